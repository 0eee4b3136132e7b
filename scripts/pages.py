"""Text that scripts write into pages, between markers."""

from __future__ import annotations

import sys
from pathlib import Path


def replace_between(path: Path, text: str, name: str) -> None:
    """Puts `text` between the markers of this name in a document."""
    head, _, tail = _parts(path, name)
    path.write_text(f"{head}\n{text}\n{tail}", encoding="utf-8")


def between(path: Path, name: str) -> str:
    """What is between the markers of this name in a document."""
    return _parts(path, name)[1]


def _parts(path: Path, name: str) -> tuple[str, str, str]:
    """A document up to a beginning marker, from there to its end, and from that on; both markers stay outside."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    text = path.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        sys.exit(f"{path}: no {begin} ... {end}")
    first, last = text.index(begin) + len(begin), text.index(end)
    return text[:first], text[first:last], text[last:]
