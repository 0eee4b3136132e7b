"""Sums the coverage of files by crate or package into a document: `coverage_table.py JSON FILE`.

JSON is of `cargo llvm-cov report --json --summary-only`, or of `coverage json`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pages import replace_between

KINDS = ("lines", "functions", "regions")


def rust(files: Iterable[dict[str, Any]]) -> str:
    """Markdown: for each crate its files and lines, and the shares of KINDS that tests reach."""
    crates: dict[str, Counter[str]] = {}
    for file in files:
        parts = Path(file["filename"]).parts
        sums = crates.setdefault(parts[parts.index("crates") + 1], Counter())
        sums["files"] += 1
        for kind in KINDS:
            sums[kind] += file["summary"][kind]["count"]
            sums[f"{kind} covered"] += file["summary"][kind]["covered"]
    heads = ("crate", "files", "lines", "of them covered", "functions covered", "regions covered")
    return markdown(heads, crates, "lines", KINDS)


def python(files: dict[str, dict[str, Any]]) -> str:
    """Markdown: for each package its files and statements, and the share of them that tests reach."""
    packages: dict[str, Counter[str]] = {}
    for name, file in files.items():
        sums = packages.setdefault(".".join(Path(name).parent.parts[1:]), Counter())
        sums["files"] += 1
        sums["statements"] += file["summary"]["num_statements"]
        sums["statements covered"] += file["summary"]["covered_lines"]
    return markdown(("package", "files", "statements", "of them covered"), packages, "statements", ("statements",))


def markdown(heads: Sequence[str], parts: dict[str, Counter[str]], size: str, kinds: Sequence[str]) -> str:
    """A table of parts: files, `size`, and the covered share of each kind; all of nothing is covered."""
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for name, sums in sorted(parts.items()):
        shares = (f"{100 * sums[f'{kind} covered'] / sums[kind] if sums[kind] else 100:.1f} %" for kind in kinds)
        lines.append(f"| {name} | {sums['files']} | {sums[size]} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> None:
    """Read, sum, replace."""
    source, target = (Path(argument) for argument in sys.argv[1:3])
    report = json.loads(source.read_text(encoding="utf-8"))
    if "files" in report:
        text, name = python(report["files"]), "coverage-python"
    else:
        text, name = rust(report["data"][0]["files"]), "coverage"
    print(text)
    replace_between(target, text, name)


if __name__ == "__main__":
    main()
