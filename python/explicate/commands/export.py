"""``explicate export``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from explicate import console
from explicate.commands import delivery, options, values
from explicate.errors import BadInputError

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
    """Write the requested export."""
    from explicate.files import write_text

    if args.format == "tcp":
        _tcp(args)
        return
    text = _text(args)
    if args.out:
        write_text(Path(args.out), text)
        console.show(f"written: {args.out}")
    else:
        print(text, end="")


def _text(args: argparse.Namespace) -> str:
    from explicate.export import mahimahi, netem, qlog
    from explicate.results import Results

    if args.format == "netem":
        resolved = delivery.source(args.source).check([])["resolved"]
        return netem(resolved, args.link, args.dev) + "\n"
    results = Results.load(args.source)
    if args.format == "qlog":
        return json.dumps(qlog(results, args.run), allow_nan=False) + "\n"
    if args.link is None:
        raise BadInputError("name the link: --link r1:r2")
    return mahimahi(results, args.link, args.run)


def _tcp(args: argparse.Namespace) -> None:
    if not args.out:
        raise BadInputError("name the capture to write: -o tcp.pcapng")
    if Path(args.out).resolve() == Path(args.source).resolve():
        raise BadInputError("the capture cannot replace itself; choose another name for -o")
    from explicate.export import convert

    count = convert(Path(args.source), Path(args.out), args.at)
    console.show(f"written: {args.out} ({count} packets, as at the {args.at}s)")
