"""Coverage by crate: the sums of `cargo llvm-cov`'s figures of files."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import coverage_table


def file(name: str, lines: int, covered: int) -> dict[str, object]:
    """The report's entry of a file whose functions and regions are as many as its lines."""
    counts = {"count": lines, "covered": covered}
    return {"filename": f"/src/crates/{name}", "summary": dict.fromkeys(coverage_table.KINDS, counts)}


def test_files_are_summed_by_crate() -> None:
    crates = coverage_table.by_crate([file("b/src/x.rs", 10, 5), file("a/src/x.rs", 3, 3), file("b/src/y.rs", 30, 25)])
    assert coverage_table.table(crates).splitlines()[2:] == [
        "| a | 1 | 3 | 100.0 % | 100.0 % | 100.0 % |",
        "| b | 2 | 40 | 75.0 % | 75.0 % | 75.0 % |",
    ]
