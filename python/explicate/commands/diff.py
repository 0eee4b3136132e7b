"""``explicate diff``."""

from __future__ import annotations

import argparse
from pathlib import Path

from explicate import console
from explicate.commands import options, values

EXAMPLES = (
    "explicate diff before after",
    "explicate diff before after -o diff.html",
    "explicate diff before after --measure flows.web.completion_s.p99 --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("one", metavar="A", help="a directory that `run`, `compare` or `sweep` wrote with -o")
    parser.add_argument("other", metavar="B", help="another one, with the same axes")
    parser.add_argument(
        "--measure", metavar="M,...", action="extend", type=values.names, default=[],
        help="measures to compare, TABLE[.NAME].COLUMN[.STATISTIC]; by default those of all groups and busy links",
    )  # fmt: skip
    options.output(parser, "also write a report on both (one HTML file)", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def execute(args: argparse.Namespace) -> None:
    """Compare two result directories."""
    from explicate.difference import diff
    from explicate.files import write_text
    from explicate.results import rows

    found = diff(args.one, args.other, args.measure)
    if args.json:
        about = {"a": found.names[0], "b": found.names[1], "equal": found.same, "scenario": found.scenario()}
        console.print_json({**about, "measures": rows(found.table())})
    else:
        console.show(found.text())
    if args.out:
        write_text(Path(args.out), found.page())
        if not args.json:
            console.note(f"written: {args.out} (one file; open it in a browser)", blank=True)
