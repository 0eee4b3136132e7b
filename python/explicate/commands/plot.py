"""``explicate plot``."""

from __future__ import annotations

import argparse
import warnings

from explicate import console
from explicate.commands import options
from explicate.errors import BadInputError

EXAMPLES = (
    "explicate plot out throughput -o fig.pdf",
    "explicate plot out tradeoff -o fig.svg --width 3.5",
    "explicate plot out                       (lists the figures)",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="a directory that `run`, `compare` or `sweep` wrote with -o")
    parser.add_argument("kind", metavar="KIND", nargs="?", help="a figure; without it, the figures are listed")
    options.output(parser, "output file; its ending says how: .pdf, .svg or .png", metavar="FILE")
    parser.add_argument(
        "--width", metavar="IN", type=inches, help="width in inches (default: a column of a two-column paper, or both)"
    )


def inches(text: str) -> float:
    """Return a width."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a width from 1 to 100 inches")
    return value


def execute(args: argparse.Namespace) -> None:
    """Draw one figure, or list the figures for which there are data."""
    from explicate.plotting import listed, plot
    from explicate.results import Results

    results = Results.load(args.directory)
    if args.kind is None:
        console.show(listed(results))
        return
    made = plot(results, args.kind)
    if not args.out:
        raise BadInputError(f"name the file to write: explicate plot {args.directory} {args.kind} -o {args.kind}.pdf")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        path = made.save(args.out, width=args.width)
    console.show(f"written: {path}")
    for one in raised:
        console.warning(str(one.message))
    if made.figure.note:
        console.warning(made.figure.note)
