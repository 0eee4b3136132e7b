"""Text that scripts write into pages, between markers."""

from __future__ import annotations

import sys
from pathlib import Path


def replace_between(path: Path, text: str, name: str) -> None:
    """Puts `text` between the markers of this name in a document."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    old = path.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        sys.exit(f"{path}: no {begin} ... {end}")
    head, tail = old[: old.index(begin) + len(begin)], old[old.index(end) :]
    path.write_text(f"{head}\n{text}\n{tail}", encoding="utf-8")
