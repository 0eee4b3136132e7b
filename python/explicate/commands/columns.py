"""``explicate columns``."""

from __future__ import annotations

import argparse

from explicate import console, engine

EXAMPLES = ("explicate columns",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print them as JSON")


def execute(args: argparse.Namespace) -> None:
    """Print the columns of the tables."""
    from explicate import display

    tables = engine.columns()
    if args.json:
        console.print_json(tables)
    else:
        console.show(display.columns(tables))
