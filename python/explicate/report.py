"""One self-contained HTML page from a set of results."""

from __future__ import annotations

from pathlib import Path

from explicate.results import Results


def write_report(results: Results, path: str | Path) -> Path:
    """Write the page to `path` and return it."""
    target = Path(path)
    target.write_text(f"<!doctype html><title>{results.name}</title>\n", encoding="utf-8")
    return target
