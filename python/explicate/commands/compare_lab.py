"""``explicate compare-lab``."""

from __future__ import annotations

import argparse
import sys

from explicate.commands import delivery, options
from explicate.errors import BadInputError

EXAMPLES = (
    "explicate compare-lab mine.toml",
    "explicate compare-lab mine.toml -o both && explicate report both",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.simulation(parser, jobs="ignored: lab runs take real time and run one after the other")


def execute(args: argparse.Namespace) -> None:
    """Simulate, and run the same scenario on real sockets."""
    delivery.check_outputs(args)
    source = delivery.source(args.scenario)
    delivery.check_older(args, source.check(args.set)["name"], delivery.LABORATORY)
    from explicate import worlds

    overrides = [
        *args.set,
        *((key, str(value)) for key in ("seed", "runs") if (value := getattr(args, key)) is not None),
    ]
    try:
        with delivery.keeping("nothing was written"):
            results = worlds.compare_source(source, overrides)
    except FileNotFoundError as error:
        raise BadInputError(str(error)) from error
    delivery.deliver(results, args, source.origin, sys.stdout)
