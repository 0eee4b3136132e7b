"""``explicate study``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from explicate import console, text
from explicate.commands import delivery, options, values
from explicate.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from explicate.studies.bits import Record
    from explicate.studies.tables import Network

EXAMPLES = (
    "explicate study bits --list",
    "explicate study bits --quick --jobs 2 -o bits.json",
    "explicate study bits --only dumbbell-10,web --laws cubic,dctcp,xcp",
    "explicate study bits --only trace --trace lte.down wlan.up -o mine.json",
)
STUDIES = ("bits",)
STORE = "explicate-study"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("what", metavar="STUDY", help="bits: how many bits does feedback need?")
    parser.add_argument("--list", action="store_true", help="list the networks and the laws")
    parser.add_argument(
        "--quick", action="store_true", help="fewer seeds, and a dumbbell at three rates instead of eleven"
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
        help="add a cellular network for each of these recordings (mahimahi's format: a line for each 1500 bytes, in "
        "milliseconds); --only trace stands for all of them",
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
    if args.what not in STUDIES:
        raise BadInputError(f"there is no study {args.what!r}; the studies are: {', '.join(STUDIES)}")
    from explicate.progress import ProgressLine
    from explicate.studies import bits
    from explicate.studies.recordings import FAMILY, with_recordings
    from explicate.studies.tables import tables

    if FAMILY in args.only and not args.trace:
        raise BadInputError(f"--only {FAMILY} stands for recordings; add --trace FILE")
    known = with_recordings(tables(), args.trace) if args.trace else tables()
    networks = known.chosen_networks(args.only, quick=args.quick)
    laws = known.chosen_laws(args.laws)
    if args.list:
        _list(networks)
        return 0
    _check_output(args.out)
    jobs = args.jobs or os.cpu_count() or 1

    def begin(extent: bits.Extent) -> None:
        console.note(extent.words(jobs))

    kept = f"finished runs are kept in {args.store}; the same command resumes"
    with delivery.keeping(kept), ProgressLine(sys.stderr, "running") as progress:
        record = bits.perform(
            networks, laws, effort="quick" if args.quick else "full", store=Path(args.store),
            jobs=jobs, progress=progress if progress.active else None, begin=begin,
        )  # fmt: skip
    if args.out:
        record.write(Path(args.out))
    _show(record, networks)
    for network, reasons in record.failed.items():
        for law, reason in reasons.items():
            console.complain(f"{network}, {law}: {reason}")
    return 1 if record.failed else 0


def _check_output(name: str | None) -> None:
    """Raise BadInputError if the record could not be written; before the runs, not after them."""
    if name and (Path(name).is_dir() or not Path(name).absolute().parent.is_dir()):
        raise BadInputError(f"{name}: is no name for a file in a folder that exists; choose another one for -o")


def _list(networks: Sequence[Network]) -> None:
    from explicate.studies.tables import tables

    console.show(text.table(["network", "what"], [[one.name, one.title] for one in networks]))
    rows = [[law.name, str(law.bits), law.carried] for law in tables().laws]
    console.show("\n" + text.table(["law", "bits", "feedback of the network"], rows))


def _show(record: Record, networks: Sequence[Network]) -> None:
    from explicate.studies import bits

    for network in networks:
        found = record.values.get(network.name)
        if found:
            head, body = bits.table(network, found)
            lines = [
                f"{network.name}: {network.title}",
                text.table(head, body),
                *bits.verdict(network, found).sentences,
            ]
            console.show("\n".join(lines) + "\n")
    console.note(
        f"± is half the 95 % interval over 2 x {record.seeds} seeds; the bits of a law are judged against all laws "
        "with fewer bits",
        file=sys.stdout,
    )
