"""Common code of the measurements: the repository's root, and functions that put tables and pictures into pages."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))

from pages import between, replace_between  # noqa: E402
from pictures import picture  # noqa: E402

__all__ = ["ROOT", "picture", "replace_between", "table_of"]


def table_of(page: Path, marker: str) -> list[list[str]]:
    """The cells of the table between the markers of a page, without its head."""
    lines = [line for line in between(page, marker).splitlines() if line.startswith("|")]
    return [[cell.strip().replace(",", "") for cell in line.strip("|").split("|")] for line in lines[2:]]
