"""Puts `explicate bench --floor --json` from standard input into a document: `floor_table.py FILE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from shared import replace_between

from explicate import display


def main() -> None:
    """Read, replace."""
    rows = display.floor_rows(json.load(sys.stdin)["cases"])
    lines = [display.FLOOR_TITLES, ["---", *["---:"] * (len(display.FLOOR_TITLES) - 1)], *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    print(text)
    replace_between(Path(sys.argv[1]), text, "floor")


if __name__ == "__main__":
    main()
