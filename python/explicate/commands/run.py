"""``explicate run``."""

from __future__ import annotations

import argparse
import os
import sys

from explicate import console, engine
from explicate.commands import delivery, options
from explicate.errors import BadInputError

EXAMPLES = (
    "explicate run mine.toml",
    "explicate run mine.toml --seed 7 --runs 5 -o out",
    "explicate run mine.toml --set flows.0.protocol=vcp --json",
    "explicate run mine.toml --trace flow=3 | less",
    "explicate run mine.toml --fluid",
)

LOST_OF_A_CAPTURE = (
    "lost: payloads, packets of agents, packets that a port drops, what channels do to a packet after it has left, and "
    "all settings of the scenario"
)
"""The comment of a capture (explicate_sim::pcap)."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.simulation(parser, jobs=options.PARALLEL)
    parser.add_argument(
        "--trace", metavar="WHAT", help="print a trace of every packet of flow=N (to DIR/trace.txt with -o)"
    )
    parser.add_argument("--pcap", metavar="DIR", help="write pcapng captures here")
    parser.add_argument(
        "--engine", choices=engine.KINDS, default="fast",
        help="reference: one event for each departure, as in a textbook; the same results, more slowly",
    )  # fmt: skip
    options.fluid(parser)


def execute(args: argparse.Namespace) -> None:
    """Simulate once; without -o, the trace goes to standard output and the tables to standard error."""
    delivery.check_outputs(args)
    _check(args)
    source = delivery.source(args.scenario)
    checked = source.check(args.set, fluid=args.fluid)
    delivery.check_older(args, checked["name"], delivery.RUN)
    if checked["sweep"] and not args.fluid:
        keys = ", ".join(key for key, _ in checked["sweep"])
        console.note(f"note: [sweep] ({keys}) is ignored; `explicate sweep {args.scenario}` runs it")
    from explicate import display, lab
    from explicate.progress import ProgressLine

    with delivery.keeping("nothing was written"), ProgressLine(sys.stderr, "running") as progress:
        results = lab.run_source(
            source, args.set, seed=args.seed, runs=args.runs, jobs=args.jobs or os.cpu_count() or 1,
            trace=args.trace, pcap=args.pcap, fluid=args.fluid, kind=args.engine,
            progress=progress if progress.active else None,
        )  # fmt: skip
    if args.pcap:
        others = results.run.height - 1
        console.note(f"capture: {LOST_OF_A_CAPTURE}" + (f", and the other {others} runs" if others else ""))
    trace_alone = bool(args.trace) and not args.out
    if trace_alone:
        sys.stdout.write(results.trace)
    delivery.deliver(results, args, source.origin, sys.stderr if trace_alone else sys.stdout)
    if args.fluid and not args.json:
        console.show(display.fluid(results))


def _check(args: argparse.Namespace) -> None:
    if args.trace and args.json and not args.out:
        raise BadInputError(
            "--trace and --json both write to standard output: add -o DIR to write the trace to DIR/trace.txt"
        )
    if args.fluid and args.engine != "fast":
        raise BadInputError("--fluid has no packets, and no reference engine; leave out --engine")
    if args.fluid and (args.trace or args.pcap):
        raise BadInputError("--fluid has no packets to trace or capture; remove --trace and --pcap")
