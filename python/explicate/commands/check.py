"""``explicate check``."""

from __future__ import annotations

import argparse

from explicate import console
from explicate.commands import delivery, options

EXAMPLES = ("explicate check mine.toml --set runs=3",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("scenario", metavar="FILE", help="a scenario file (TOML); - reads standard input")
    options.settings(parser, "override one key")
    parser.add_argument("--json", action="store_true", help="print the result of the check as JSON")
    options.load(parser)


def execute(args: argparse.Namespace) -> None:
    """Validate and print resolved."""
    checked = delivery.source(args.scenario).check(args.set)
    for warning in checked["warnings"]:
        console.warning(warning)
    if args.json:
        console.print_json(checked)
    else:
        console.write_toml(checked["resolved"])
