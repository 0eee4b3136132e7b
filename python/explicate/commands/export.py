"""``explicate export``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from explicate import console
from explicate.commands import delivery, options, values
from explicate.errors import BadInputError

if TYPE_CHECKING:
    from explicate.export.exported import Exported

EXAMPLES = (
    "explicate export mahimahi out --link r1:r2 -o down.trace         (from a directory of results)",
    "explicate export qlog out -o out.qlog",
    "explicate export tcp capture.pcapng -o tcp.pcapng                (from a capture of run --pcap)",
    "explicate export netem mine.toml --link bottleneck --dev eth1    (from a scenario)",
)
FORMATS = ("mahimahi", "qlog", "tcp", "netem")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("format", metavar="FORMAT", choices=FORMATS, help=", ".join(FORMATS))
    parser.add_argument("source", metavar="FROM", help="results (mahimahi, qlog), a capture (tcp), a scenario (netem)")
    options.output(parser, "output file (default: standard output; tcp needs one)", metavar="FILE")
    parser.add_argument(
        "--link", metavar="LINK", type=values.link, help="the link: needed for mahimahi; netem prints all without it"
    )
    parser.add_argument("--run", metavar="N", type=int, help="number of the run, from 0 (default: the first)")
    parser.add_argument("--dev", metavar="DEV", default="DEV", help="netem: the interface that sends into the link")
    parser.add_argument(
        "--at", choices=("sender", "receiver"), default="sender", help="tcp: the end at which packets are seen"
    )


def execute(args: argparse.Namespace) -> None:
    """Write the requested export, and say on stderr what it leaves out."""
    from explicate.files import write_text

    if args.format == "tcp":
        _tcp(args)
        return
    exported = _exported(args)
    if args.out:
        write_text(Path(args.out), exported.text)
        console.show(f"written: {args.out}")
    else:
        print(exported.text, end="")
    _tell(exported.lost)


def _tell(lost: Iterable[str]) -> None:
    from explicate.export.exported import LOST

    for line in lost:
        console.warning(f"{LOST}{line}")


def _exported(args: argparse.Namespace) -> Exported:
    from explicate.export import mahimahi, qlog
    from explicate.export.exported import Exported
    from explicate.export.mahimahi import lost, sampled
    from explicate.export.netem import commands
    from explicate.export.qlog import left_out
    from explicate.results import Results

    if args.format == "netem":
        return commands(delivery.source(args.source), args.link, args.dev)
    results = Results.load(args.source)
    if args.format == "qlog":
        document = qlog(results, args.run)
        text = json.dumps(document, allow_nan=False) + "\n"
        return Exported(text, tuple(left_out(document)))
    if args.link is None:
        first = next(iter(sampled(results)), "r1->r2")
        raise BadInputError(f"name the link: --link {first.replace('->', ':', 1)}")
    return Exported(mahimahi(results, args.link, args.run), tuple(lost(results, args.link, args.run)))


def _tcp(args: argparse.Namespace) -> None:
    if not args.out:
        raise BadInputError("name the capture to write: -o tcp.pcapng")
    if Path(args.out).resolve() == Path(args.source).resolve():
        raise BadInputError("the capture cannot replace itself; choose another name for -o")
    from explicate.export.tcp import converted

    count, lost = converted(Path(args.source), Path(args.out), args.at)
    console.show(f"written: {args.out} ({count} packets, as at the {args.at}s)")
    _tell(lost)
