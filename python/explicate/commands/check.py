"""``explicate check``."""

from __future__ import annotations

import argparse

from explicate import console
from explicate.commands import delivery, options

EXAMPLES = ("explicate check mine.toml --set runs=3",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.resolved(parser, as_json="the result of the check")


def execute(args: argparse.Namespace) -> None:
    """Validate and print resolved."""
    checked = delivery.source(args.scenario).check(args.set)
    for warning in checked["warnings"]:
        console.warning(warning)
    if args.json:
        console.print_json(checked)
    else:
        console.write_toml(checked["resolved"])
