"""``explicate sweep``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from explicate import console
from explicate.commands import delivery, options, values
from explicate.errors import BadInputError

if TYPE_CHECKING:
    from explicate.sweeps.plan import Plan
    from explicate.sweeps.table import SweepResults

EXAMPLES = (
    "explicate sweep mine.toml --vary flows.0.count=2,10,50 --runs 5 -o out",
    "explicate sweep mine.toml --vary link.r1:r2.delay=10ms,100ms --vary flows.0.protocol=xcp,vcp",
    "explicate sweep mine.toml --latin topology.bottleneck.rate=1Mbit/s..1000Mbit/s:log --points 50 -o out",
    "explicate sweep mine.toml                (only the scenario's own [sweep])",
    "explicate sweep study.toml -o out        (a sweep file: scenario, [grid], [latin], runs, measure)",
    "explicate sweep study.toml -o out        (resume after an interruption)",
    "explicate sweep study.toml -o out --executor dask:tcp://host:8786",
    "explicate sweep study.toml -o out --shard $SLURM_ARRAY_TASK_ID/100",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.simulation(parser, jobs="threads or processes (default: one per core); results do not depend on it")
    parser.add_argument(
        "--vary", metavar="KEY=V1,V2", type=values.axis, action="append", default=[],
        help="one axis; repeatable; added to the file's axes, or replacing the one of that name",
    )  # fmt: skip
    parser.add_argument(
        "--latin", metavar="KEY=LOW..HIGH", type=values.setting, action="append", default=[],
        help="one axis of a Latin hypercube, logarithmic with a final :log; repeatable; needs --points",
    )  # fmt: skip
    parser.add_argument("--points", type=values.positive, help="number of points of the Latin hypercube")
    parser.add_argument("--draw", metavar="N", type=values.seed, help="seed of the Latin hypercube (default 1)")
    parser.add_argument(
        "--measure", metavar="M,...", type=values.names, action="extend", default=[],
        help="measures to report of each run, TABLE[.NAME].COLUMN[.STATISTIC], such as links.r1:r2.utilisation",
    )  # fmt: skip
    parser.add_argument(
        "--executor", metavar="WHAT", default="threads",
        help="threads (default), processes, loky, or dask:ADDRESS (a scheduler's address or its file)",
    )  # fmt: skip
    parser.add_argument(
        "--shard", metavar="I/N", type=values.shard,
        help="run only part I of N (from 1) into -o DIR; without it, run what is missing and write the tables",
    )  # fmt: skip
    options.fluid(parser)


def execute(args: argparse.Namespace) -> int:
    """Simulate every point; 1 if a run failed."""
    delivery.check_outputs(args)
    if args.shard and not args.out:
        raise BadInputError("--shard needs a directory for its runs: add -o DIR")
    from explicate.progress import ProgressLine
    from explicate.sweeps.api import EmptyPartError, sweep_plan
    from explicate.sweeps.executors import opened
    from explicate.sweeps.store import Store
    from explicate.sweeps.table import AllFailedError, write_failures

    plan = _plan(args)
    delivery.check_older(args, plan.name(), delivery.SWEEP)
    store = Store(Path(args.out) / "runs" if args.out else None)
    try:
        with (
            delivery.keeping(_kept(args)),
            ProgressLine(sys.stderr, "sweeping") as progress,
            opened(args.executor, args.jobs) as executor,
        ):
            results = sweep_plan(
                plan, store, executor=executor, jobs=args.jobs, shard=args.shard,
                progress=progress if progress.active else None,
            )  # fmt: skip
    except EmptyPartError as error:
        console.note(f"{error}; nothing to do")
        return 0
    except AllFailedError as error:
        if args.out:
            write_failures(Path(args.out), error.failures)
        raise
    for path in store.damaged:
        console.warning(f"{path} was damaged; it was renamed, and its runs were repeated")
    _deliver(results, args, plan.source.origin)
    return 1 if results.failures else 0


def _kept(args: argparse.Namespace) -> str:
    if not args.out:
        return "nothing was kept; with -o DIR, finished runs are kept and the same command resumes"
    return f"finished runs are kept in {Path(args.out) / 'runs'}; the same command resumes"


def _plan(args: argparse.Namespace) -> Plan:
    from dataclasses import replace

    from explicate.sweeps.api import extended
    from explicate.sweeps.plan import plan_of_source

    plan = plan_of_source(delivery.source(args.scenario))
    plan = extended(plan, dict(args.vary), dict(args.latin), points=args.points, draw=args.draw)
    return replace(
        plan,
        settings=(*plan.settings, *args.set),
        seed=plan.seed if args.seed is None else args.seed,
        runs=plan.runs if args.runs is None else args.runs,
        measures=tuple(args.measure) or plan.measures,
        fluid=args.fluid,
    )


def _deliver(results: SweepResults, args: argparse.Namespace, origin: str) -> None:
    from dataclasses import asdict

    from explicate import display
    from explicate.results import rows
    from explicate.sweeps.table import write_failures

    delivery.warn(results, origin)
    if args.shard:
        write_failures(Path(args.out) / "shard-{}-of-{}".format(*args.shard), results.failures)
    elif args.out:
        with delivery.keeping(_kept(args), f"writing {args.out}"):
            results.write(args.out, csv=args.csv)
    if results.failures:
        for line in display.failures(results, args.out):
            console.complain(line)
    if args.json:
        more = {"measures": rows(results.measures()), "failures": [asdict(failure) for failure in results.failures]}
        console.print_json({**delivery.as_json(results), **more})
        return
    console.show(display.heading(results) + f"; {results.fresh} computed now")
    if args.shard:
        console.note(
            "stored the runs of this shard; when all shards are done, run the same command without --shard",
            file=sys.stdout, blank=True,
        )  # fmt: skip
        return
    console.show("\n" + display.intervals(results))
    delivery.finish(args, sys.stdout)
