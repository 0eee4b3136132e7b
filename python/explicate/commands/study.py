"""``explicate study``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from explicate import console
from explicate.commands import delivery, distribution, options, values
from explicate.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from explicate.studies.bits import Record
    from explicate.studies.tables import Law, Network
    from explicate.studies.verdict import Values

EXAMPLES = (
    "explicate study bits --list",
    "explicate study bits --quick --jobs 2 -o bits.json",
    "explicate study bits --only dumbbell-10,web --laws cubic,dctcp,xcp",
    "explicate study bits --only trace --trace lte.down wlan.up -o mine.json",
    "explicate study papers --quick --jobs 2 -o papers.json",
    "explicate study capacity --quick --jobs 2 -o capacity.json",
    "explicate study capacity --only trace --trace lte.down -o mine.json",
    "explicate study l4s --quick --jobs 2 -o l4s.json",
)
STUDIES = ("bits", "papers", "capacity", "l4s")
RECORDED = ("bits", "capacity")
"""Studies that take recordings."""
STORE = "explicate-study"


class Study(Protocol):
    """What a study has for this command: a module, here or, as its experiments, in the papers' distribution."""

    NAME: str
    NOTE: str

    def chosen(
        self, only: Sequence[str], laws: Sequence[str], *, quick: bool, traces: Sequence[str] = ()
    ) -> tuple[Sequence[Network], Sequence[Law]]:
        """Return the networks and laws with these names, or all; raise BadInputError for an unknown name."""

    def listing(self, networks: Sequence[Any]) -> str:
        """Return what `--list` shows."""

    def shown(self, network: Any, values: Values) -> str:
        """Return a network's table and its verdict."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "what", metavar="STUDY",
        help="bits: how many bits does feedback need? papers: are the protocols of the five papers still ahead? "
        "capacity: can XCP measure the capacity of a wireless hop? l4s: what may share the queues of L4S?",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the networks and the laws")
    parser.add_argument(
        "--quick", action="store_true", help="fewer seeds, and in bits a dumbbell at three rates instead of eleven"
    )
    parser.add_argument("--jobs", type=values.positive, default=None, help=options.PARALLEL)
    parser.add_argument(
        "--only", metavar="NETWORK,...", type=values.names, action="extend", default=[], help="these networks alone"
    )
    parser.add_argument(
        "--laws", metavar="LAW,...", type=values.names, action="extend", default=[], help="these laws alone"
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="bits, capacity: add a cellular network for each of these recordings (mahimahi's format: a line for each "
        "1500 bytes, in milliseconds); --only trace stands for all of them",
    )
    parser.add_argument(
        "--store",
        metavar="DIR",
        default=STORE,
        help="keep finished runs here, and resume from them (default: %(default)s)",
    )
    options.output(parser, "write what was measured here, as JSON", metavar="FILE")


def execute(args: argparse.Namespace) -> int:
    """Run the study, or what is missing of it, and print tables and verdicts; 1 if a run failed."""
    study = _named(args.what)
    if args.trace and study.NAME not in RECORDED:
        raise BadInputError(f"--trace adds recordings to the studies {' and '.join(RECORDED)}, not to {study.NAME}")
    networks, laws = study.chosen(args.only, args.laws, quick=args.quick, traces=args.trace)
    if args.list:
        console.show(study.listing(networks))
        return 0
    from explicate.progress import ProgressLine
    from explicate.studies import bits

    _check_output(args.out)
    jobs = args.jobs or os.cpu_count() or 1

    def begin(extent: bits.Extent) -> None:
        console.note(extent.words(jobs))

    kept = f"finished runs are kept in {args.store}; the same command resumes"
    with delivery.keeping(kept), ProgressLine(sys.stderr, "running") as progress:
        record = bits.perform(
            networks, laws, effort="quick" if args.quick else "full", store=Path(args.store),
            jobs=jobs, progress=progress if progress.active else None, begin=begin, study=study.NAME,
        )  # fmt: skip
    if args.out:
        record.write(Path(args.out))
    _show(study, record, networks)
    for network, reasons in record.failed.items():
        for law, reason in reasons.items():
            console.complain(f"{network}, {law}: {reason}")
    return 1 if record.failed else 0


def _named(name: str) -> Study:
    """Return a study; raise BadInputError for an unknown name, or if its distribution is not installed."""
    if name not in STUDIES:
        raise BadInputError(f"there is no study {name!r}; the studies are: {', '.join(STUDIES)}")
    if name == "bits":
        from explicate.studies import bits

        return bits
    if name == "capacity":
        from explicate.studies import capacity

        return capacity
    if name == "l4s":
        from explicate.studies import l4s

        return l4s
    distribution.require(f"study {name}")
    from explicate_papers.modern import study

    return study


def _check_output(name: str | None) -> None:
    """Raise BadInputError if the record could not be written; before the runs, not after them."""
    if name and (Path(name).is_dir() or not Path(name).absolute().parent.is_dir()):
        raise BadInputError(f"{name}: is no name for a file in a folder that exists; choose another one for -o")


def _show(study: Study, record: Record, networks: Sequence[Network]) -> None:
    for network in networks:
        if found := record.values.get(network.name):
            console.show(f"{network.name}: {network.title}\n{study.shown(network, found)}\n")
    seeds = f"2 x {record.seeds} seeds"
    console.note(f"± is half the 95 % interval over {seeds}; {study.NOTE}", file=sys.stdout)
