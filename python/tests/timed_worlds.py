"""How well both worlds of ``explicate compare-lab`` agree, in real time. Needs root, so `make measure` runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from linux_worlds import both_worlds


def test_goodput_agrees(tmp_path: Path) -> None:
    """Within a tenth."""
    error = both_worlds(tmp_path)
    if path := os.environ.get("EXPLICATE_FIGURES"):
        figure = {"name": "worlds: error of the real goodput", "value": error, "unit": "", "better": "less"}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(figure) + "\n")
    assert error < 0.1, error
