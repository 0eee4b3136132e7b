"""Compute the section of docs/validation.md on channels: the fading link of paper Y against its closed forms.

    python validation/channels.py

Figure 1 is repeated with a million packets for each point; a test does so for fewer points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from shared import in_parallel, place, table

import explicate

TRIALS = 1_000_000
LENGTHS = (40, 520, 1040)
RATE = 0.9
ANTENNAS: Mapping[str, tuple[float, ...]] = {"1x1": (5, 10, 15, 17, 20, 30), "2x2": (0, 3, 5, 8, 12)}
"""Signal-to-noise ratios of the good state, dB."""

REFERENCE_BLOCKS = (
    # antennas, dB, bytes on the line, of data; exact, by equation 6
    ("1x1", 20, 255, 230, 3.740e-3, 3.498e-3),
    ("1x1", 20, 255, 204, 1.27e-10, 6.93e-11),
    ("2x2", 10, 255, 230, 9.90e-8, 3.3e-11),
    ("1x1", 10, 80, 40, 4.03e-2, 3.81e-2),
    ("1x1", 20, 1156, 1040, 2.18e-9, 1.56e-9),
)
"""Losses of one block, worked out apart from this program."""


def row(**params: Any) -> dict[str, Any]:
    """Return the one row of curves with one value for everything."""
    return explicate.channel_curves("fading", **params).row(0, named=True)


def off(told: Mapping[str, Any], what: str) -> float:
    """Return how many standard errors what was observed is off what was predicted."""
    error = told[f"observed_{what}_error"]
    if what == "packet_loss":
        # Of few losses the sample's own error says little; the predicted rate has one too.
        error = math.sqrt(told[what] * (1 - told[what]) / TRIALS)
    return (told[f"observed_{what}"] - told[what]) / error if error else 0.0


def figure_1() -> tuple[str, float, int]:
    """Return the table, the worst of its deviations, and how many there are."""
    points = [
        (antennas, snr, length) for antennas, all_snr in ANTENNAS.items() for snr in all_snr for length in LENGTHS
    ]
    told = in_parallel(
        lambda antennas, snr, length: row(
            snr=snr, antennas=antennas, code="ideal", fec_data=RATE, bytes=[length], trials=TRIALS
        ),
        points,
    )
    rows, worst = [], 0.0
    for (antennas, snr, length), one in zip(points, told, strict=True):
        deviations = {what: off(one, what) for what in ("lost_bytes", "packet_loss")}
        worst = max([worst, *(abs(x) for x in deviations.values())])
        cells: list[str] = []
        for what, deviation in deviations.items():
            cells += [f"{one[what]:.5g}", f"{one['observed_' + what]:.5g}", f"{deviation:+.1f}"]
        rows.append([antennas, f"{snr:g}", str(length), *cells])
    heads = ["antennas", "SNR, dB", "bytes", "wrong bytes", "drawn", "off", "packet loss", "drawn", "off"]
    return table(heads, rows), worst, 2 * len(points)


def blocks() -> str:
    """Return the table of block losses."""
    rows = []
    for antennas, snr, symbols, data, exact, independent in REFERENCE_BLOCKS:
        told = row(snr=snr, antennas=antennas, code="ideal", fec_data=data / symbols, bytes=[data])
        rows.append([
            antennas, snr, f"({symbols}, {data})", f"{exact:.3g}", f"{told['packet_loss']:.4g}",
            f"{independent:.3g}", f"{told['packet_loss_independent']:.4g}",
        ])  # fmt: skip
    heads = ["antennas", "SNR, dB", "block", "exact, reference", "exact", "equation 6, reference", "equation 6"]
    return table(heads, rows)


def waterfall(antennas: str, code: str, rate: float, loss: float = 1e-3) -> float:
    """Return the signal-to-noise ratio, dB, at which a 1040-byte packet is lost with this probability."""
    low, high = -5.0, 45.0
    while high - low > 0.01:
        middle = (low + high) / 2
        told = row(snr=middle, antennas=antennas, code=code, fec_data=rate, bytes=[1040])
        low, high = (middle, high) if told["packet_loss"] > loss else (low, middle)
    return high


def waterfalls() -> str:
    """Return what blocks of 255 bytes cost against one block per packet."""
    cases = [(antennas, rate) for antennas in ("1x1", "2x1", "1x2", "2x2") for rate in (0.9, 0.8, 0.7)]
    found = in_parallel(lambda antennas, rate: [waterfall(antennas, code, rate) for code in ("ideal", "rs255")], cases)
    rows = [
        [antennas, f"{rate:g}", f"{ideal:.1f}", f"{cut:.1f}", f"{cut - ideal:.1f}"]
        for (antennas, rate), (ideal, cut) in zip(cases, found, strict=True)
    ]
    return table(["antennas", "code rate", "one block, dB", "blocks of 255, dB", "difference"], rows)


def main() -> None:
    """Write the section."""
    figure, worst, count = figure_1()
    text = f"""Paper Y's channel (bursts of 800 good and 8 bad bits, the states 10 dB apart, BPSK, one-byte symbols)
and its figure 1: what is predicted, and what {TRIALS:,} packets saw that are drawn from error to error. A code of rate
{RATE:g} as long as the packet; *wrong bytes* are those among the packet's own, before correction. *Off* is in standard
errors of what is predicted; the greatest of the {count} is {worst:.1f}.

{figure}

The loss of one block, by the chain of symbols and by equation 6, which takes symbols as independent. Where losses are
rare, bursts decide, and equation 6 is too small:

{blocks()}

One block of one-byte symbols cannot be longer than 255. What it costs to cut a packet of 1040 bytes into blocks that
are, in signal, for a loss of one packet in a thousand:

{waterfalls()}

That the link's own sampler, walks from error to error and channels stepped bit by bit agree in loss rate and in the
correlation of neighbours, and that counting wrong symbols loses the packets that a real Reed-Solomon codec loses, is
tested:

    cargo test -p explicate-core --test fading -- --nocapture
    python validation/channels.py
"""
    place("channels", "The fading link: closed forms and a million packets", text)


if __name__ == "__main__":
    main()
