"""``explicate compare``."""

from __future__ import annotations

import argparse
import os
import re
import sys

from explicate import engine
from explicate.commands import delivery, options, values

EXAMPLES = (
    "explicate compare mine.toml --protocols xcp,vcp,newreno",
    "explicate compare mine.toml --protocols xcp,newreno -o both && explicate report both",
)

OVERRIDE = re.compile(r"^--set flows\.\d+\.protocol: `protocol`: ", re.MULTILINE)
"""How an error of the engine names the key that a comparison sets."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.simulation(parser, jobs=options.PARALLEL)
    parser.add_argument(
        "--protocols", metavar="A,B,...", type=values.names, required=True,
        help="protocols, each set for all flow groups",
    )  # fmt: skip
    options.fluid(parser)


def execute(args: argparse.Namespace) -> None:
    """Simulate once per protocol."""
    delivery.check_outputs(args)
    source = delivery.source(args.scenario)
    delivery.check_older(args, source.sketch(args.set, fluid=args.fluid)["name"], delivery.COMPARISON)
    from explicate import lab
    from explicate.progress import ProgressLine

    with delivery.keeping("nothing was written"), ProgressLine(sys.stderr, "comparing") as progress:
        try:
            results = lab.compare_source(
                source, args.protocols, args.set, seed=args.seed, runs=args.runs, fluid=args.fluid,
                jobs=args.jobs or os.cpu_count() or 1, progress=progress if progress.active else None,
            )  # fmt: skip
        except engine.ScenarioError as error:
            named = OVERRIDE.sub("--protocols: ", str(error))
            # Each group of flows has the same error.
            raise engine.ScenarioError("\n".join(dict.fromkeys(named.splitlines()))) from error
    delivery.deliver(results, args, source.origin, sys.stdout)
