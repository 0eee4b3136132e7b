"""``explicate bench``."""

from __future__ import annotations

import argparse

from explicate import console, engine
from explicate.commands import values
from explicate.errors import BadInputError

EXAMPLES = ("explicate bench --json",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--case", metavar="NAME", help="only this case")
    parser.add_argument("--duration", metavar="S", type=values.seconds, help="simulated seconds per case")
    parser.add_argument(
        "--floor", action="store_true", help="compare the engine with minimal programs that only move packets"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def execute(args: argparse.Namespace) -> None:
    """Benchmark the engine; also count instructions, unless a duration is given."""
    from explicate import cost, display

    if args.floor:
        if args.case is not None or args.duration is not None:
            raise BadInputError("--floor has its own cases and durations; remove --case and --duration")
        cases = cost.beside_floor()
        shown = display.floor
    else:
        known = engine.bench_cases()
        if args.case is not None and args.case not in known:
            raise BadInputError(f"unknown case {args.case!r}; there are {', '.join(known)}")
        names = known if args.case is None else [args.case]
        shown = display.bench
        if args.duration is None:
            cases = [cost.measure(name) for name in names]
        else:
            cases = [row for name in names for row in engine.bench(name, args.duration)]
    if args.json:
        console.print_json({"cases": cases})
    else:
        console.show(shown(cases))
