"""What the scripts write into pages: text between markers, and the style of a picture that stands alone."""

from __future__ import annotations

import re
import sys
from importlib import resources
from pathlib import Path


def replace_between(path: Path, text: str, name: str) -> None:
    """Puts `text` between the markers of this name in a document."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    old = path.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        sys.exit(f"{path}: no {begin} ... {end}")
    head, tail = old[: old.index(begin) + len(begin)], old[old.index(end) :]
    path.write_text(f"{head}\n{text}\n{tail}", encoding="utf-8")


def style() -> str:
    """The style sheet of a picture that stands alone."""
    sheet = resources.files("explicate").joinpath("assets", "charts.css").read_text(encoding="utf-8")
    return re.sub(r"\n+", "", sheet) + "text{font-family:system-ui,sans-serif}"
