"""``explicate curves``."""

from __future__ import annotations

import argparse

from explicate import console
from explicate.commands import options, values
from explicate.errors import BadInputError

EXAMPLES = (
    "explicate curves fading --vary snr=0dB,10dB,20dB --vary antennas=1x1,2x2 --bytes 40,1040",
    "explicate curves fading --vary snr=5dB,15dB --set fec_data=1 --trials 1000000 --csv > figure1.csv",
    "explicate curves gilbert_elliott --set clock=time --vary bad_time=5ms,50ms --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kind", metavar="CHANNEL", help="a channel, such as fading; an unknown name lists them all")
    options.settings(parser, "one parameter of the channel")
    parser.add_argument(
        "--vary", metavar="KEY=V1,V2", type=values.axis, action="append", default=[],
        help="one parameter over several values",
    )  # fmt: skip
    parser.add_argument(
        "--bytes",
        metavar="N,...",
        type=values.lengths,
        default=[40, 520, 1040],
        help="IP lengths (default 40,520,1040)",
    )
    parser.add_argument("--acks", action="store_true", help="for acknowledgements, which may have another code")
    parser.add_argument("--trials", metavar="N", type=values.positive, default=0, help="also simulate N packets")
    parser.add_argument("--seed", type=values.seed, default=1, help="seed of the Monte Carlo packets (default 1)")
    parser.add_argument("--csv", action="store_true", help="print the table as CSV")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")


def execute(args: argparse.Namespace) -> None:
    """Print the statistics of a channel."""
    from explicate import display
    from explicate.curves import channel_curves
    from explicate.results import rows

    params = {**dict(args.set), **dict(args.vary)}
    try:
        if args.trials:
            console.detail("drawing packets")
        with console.ending_at_once():
            frame = channel_curves(
                args.kind, bytes=args.bytes, acks=args.acks, trials=args.trials, seed=args.seed, **params
            )
    except ValueError as error:
        raise BadInputError(error) from error
    if args.json:
        console.print_json(rows(frame))
    elif args.csv:
        print(frame.write_csv(), end="")
    else:
        console.show(display.curves(frame))
