"""Coverage by crate and by package: what `cargo llvm-cov` and `coverage` report of files is summed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import coverage_table


def file(name: str, lines: int, covered: int) -> dict[str, object]:
    """What the report says of a file whose functions and regions are as many as its lines."""
    counts = {"count": lines, "covered": covered}
    return {"filename": f"/src/crates/{name}", "summary": dict.fromkeys(coverage_table.KINDS, counts)}


def test_files_are_summed_by_crate() -> None:
    files = [file("b/src/x.rs", 10, 5), file("a/src/x.rs", 3, 3), file("b/src/y.rs", 30, 25)]
    assert coverage_table.rust(files).splitlines()[2:] == [
        "| a | 1 | 3 | 100.0 % | 100.0 % | 100.0 % |",
        "| b | 2 | 40 | 75.0 % | 75.0 % | 75.0 % |",
    ]


def module(statements: int, covered: int) -> dict[str, object]:
    """What `coverage json` reports of a file."""
    return {"summary": {"num_statements": statements, "covered_lines": covered, "percent_covered": 0.0}}


def test_modules_are_summed_by_package() -> None:
    files = {
        "python/explicate/cli.py": module(10, 5),
        "python/explicate/sweeps/plan.py": module(4, 4),
        "python/explicate/lab.py": module(30, 25),
        "papers/explicate_papers/__init__.py": module(0, 0),
    }
    assert coverage_table.python(files).splitlines()[2:] == [
        "| explicate | 2 | 40 | 75.0 % |",
        "| explicate.sweeps | 1 | 4 | 100.0 % |",
        "| explicate_papers | 1 | 0 | 100.0 % |",
    ]
