"""Makes the man page explicate(1) from the parser of the command line: packaging/data/data/share/man/man1/explicate.1.

python scripts/make_man.py            # writes it
python scripts/make_man.py --check    # 1 if it is not what the parser says
"""

import argparse
import os
import sys
from pathlib import Path

import metadata
from argparse_manpage.manpage import Manpage

from explicate.cli import build_parser

PAGE = metadata.ROOT / "packaging" / "data" / "data" / "share" / "man" / "man1" / "explicate.1"
WIDTH = 100
"""Columns of the usage lines, whatever the terminal's are."""


def page() -> str:
    """The page, without a date: the same sources make the same page."""
    os.environ |= {"COLUMNS": str(WIDTH), "SOURCE_DATE_EPOCH": "0"}
    made = Manpage(build_parser())
    made.source = f"Explicate {metadata.version()}"
    made.manual, made.section, made.date = "Explicate", 1, ""
    made.description = "simulate, compare and plot explicit congestion control"
    return str(made)


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        if Path(PAGE).read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE.relative_to(metadata.ROOT)} is old: python scripts/make_man.py", file=sys.stderr)
        return 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
