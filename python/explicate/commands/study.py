"""``explicate study``."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from explicate import console, text
from explicate.commands import delivery, options, values
from explicate.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from explicate.studies.bits import Record
    from explicate.studies.capacity import Hop
    from explicate.studies.tables import Network

EXAMPLES = (
    "explicate study bits --list",
    "explicate study bits --quick --jobs 2 -o bits.json",
    "explicate study bits --only dumbbell-10,web --laws cubic,dctcp,xcp",
    "explicate study capacity --quick --jobs 2 -o capacity.json",
)
STUDIES = ("bits", "capacity")
STORE = "explicate-study"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "what",
        metavar="STUDY",
        help="bits: how many bits does feedback need? capacity: can XCP measure the capacity of a wireless hop?",
    )
    parser.add_argument("--list", action="store_true", help="list the networks and the laws")
    parser.add_argument(
        "--quick", action="store_true", help="fewer seeds, and a dumbbell at three rates instead of ten"
    )
    parser.add_argument("--jobs", type=values.positive, default=None, help=options.PARALLEL)
    parser.add_argument(
        "--only", metavar="NETWORK,...", type=values.names, action="extend", default=[], help="these networks alone"
    )
    parser.add_argument(
        "--laws", metavar="LAW,...", type=values.names, action="extend", default=[], help="these laws alone"
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
    return _bits(args) if args.what == "bits" else _capacity(args)


def _bits(args: argparse.Namespace) -> int:
    from explicate.studies import bits
    from explicate.studies.tables import tables

    networks = tables().chosen_networks(args.only, quick=args.quick)
    laws = tables().chosen_laws(args.laws)
    if args.list:
        _list(networks)
        return 0
    record = _record(args, partial(bits.perform, networks, laws))
    _show(record, networks)
    return _failures(record)


def _capacity(args: argparse.Namespace) -> int:
    from explicate.studies import capacity

    hops, systems = capacity.chosen_hops(args.only), capacity.chosen_systems(args.laws)
    if args.list:
        console.show(text.table(["network", "what"], [[one.name, one.title] for one in hops]))
        console.show("\n" + text.table(["law", "what"], [[one.name, one.label] for one in systems]))
        return 0
    record = _record(args, partial(capacity.perform, hops, systems))
    _show_capacity(record, hops)
    return _failures(record)


def _record(args: argparse.Namespace, perform: Callable[..., Record]) -> Record:
    """Run a study, or what is missing of it, and write its record."""
    from explicate.progress import ProgressLine

    _check_output(args.out)
    kept = f"finished runs are kept in {args.store}; the same command resumes"
    with delivery.keeping(kept), ProgressLine(sys.stderr, "running") as progress:
        record = perform(
            effort="quick" if args.quick else "full", store=Path(args.store),
            jobs=args.jobs or os.cpu_count() or 1, progress=progress if progress.active else None,
        )  # fmt: skip
    if args.out:
        record.write(Path(args.out))
    return record


def _failures(record: Record) -> int:
    for network, reasons in record.failed.items():
        for law, reason in reasons.items():
            console.complain(f"{network}, {law}: {reason}")
    return 1 if record.failed else 0


def _show_capacity(record: Record, hops: Sequence[Hop]) -> None:
    from explicate.studies import capacity

    for hop in hops:
        if found := record.values.get(hop.name):
            console.show(f"{hop.name}: {hop.title}\n{text.table(*capacity.table(hop, found))}\n")
    console.note(
        f"± is half the 95 % interval over 2 x {record.seeds} seeds; the criterion: {capacity.SHARE:.0%} of the best's "
        f"goodput, delays at most {capacity.TIMES:g} times its, or its and {capacity.BESIDE:g} round trips",
        file=sys.stdout,
    )


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
