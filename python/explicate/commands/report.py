"""``explicate report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from explicate import console
from explicate.commands import options

EXAMPLES = ("explicate report out",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="a directory that `run`, `compare` or `sweep` wrote with -o")
    options.output(parser, "output file (default: DIR/report.html)", metavar="FILE")


def execute(args: argparse.Namespace) -> None:
    """Make the page."""
    from explicate.report import write_report
    from explicate.results import Results

    results = Results.load(args.directory)
    path = write_report(results, args.out or Path(args.directory) / "report.html")
    console.show(f"written: {path} (one file; open it in a browser)")
