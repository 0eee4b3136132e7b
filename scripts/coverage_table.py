"""Sums what `cargo llvm-cov --json --summary-only` tells by crate into a document: `coverage_table.py JSON FILE`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from pages import replace_between

KINDS = ("lines", "functions", "regions")


def by_crate(files: list[dict[str, object]]) -> dict[str, Counter[str]]:
    """For each crate the number of files, and by kind how many there are and how many tests reach."""
    crates: dict[str, Counter[str]] = {}
    for file in files:
        parts = Path(str(file["filename"])).parts
        sums = crates.setdefault(parts[parts.index("crates") + 1], Counter())
        sums["files"] += 1
        for kind in KINDS:
            summary = file["summary"][kind]  # type: ignore[index]
            sums[kind] += summary["count"]
            sums[f"{kind} covered"] += summary["covered"]
    return crates


def table(crates: dict[str, Counter[str]]) -> str:
    """Markdown."""
    lines = ["| crate | files | lines | of them covered | functions covered | regions covered |"]
    lines.append("| --- |" + " ---: |" * 5)
    for name, sums in sorted(crates.items()):
        shares = (f"{100 * sums[f'{kind} covered'] / max(sums[kind], 1):.1f} %" for kind in KINDS)
        lines.append(f"| {name} | {sums['files']} | {sums['lines']} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> None:
    """Read, sum, replace."""
    source, target = (Path(argument) for argument in sys.argv[1:3])
    (data,) = json.loads(source.read_text(encoding="utf-8"))["data"]
    text = table(by_crate(data["files"]))
    print(text)
    replace_between(target, text, "coverage")


if __name__ == "__main__":
    main()
