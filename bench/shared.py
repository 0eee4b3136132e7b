"""Common code of the measurements: the repository's root, tables and pictures in pages, a measurement's command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))

from pages import between, replace_between  # noqa: E402
from pictures import picture  # noqa: E402

__all__ = ["ROOT", "picture", "print_and_judge", "replace_between", "table_of"]

T = TypeVar("T")


def table_of(page: Path, marker: str) -> list[list[str]]:
    """The cells of the table between the markers of a page, without its head."""
    lines = [line for line in between(page, marker).splitlines() if line.startswith("|")]
    return [[cell.strip().replace(",", "") for cell in line.strip("|").split("|")] for line in lines[2:]]


def print_and_judge(
    about: str | None,
    marker: str,
    measure: Callable[[], T],
    table: Callable[[T], str],
    judge: Callable[[T], Iterable[str]],
) -> None:
    """Measure, print the table. `--markdown` puts it between a page's markers; `--judge` fails by what is wrong."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="document whose table is replaced")
    parser.add_argument("--judge", action="store_true", help="compare with the limits")
    options = parser.parse_args()
    measured = measure()
    print(table(measured))
    if options.markdown:
        replace_between(options.markdown, table(measured), marker)
    if options.judge and (wrong := list(judge(measured))):
        sys.exit("\n".join(wrong))
