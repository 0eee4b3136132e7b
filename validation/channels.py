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
"""Losses of one block, computed independently of this program."""


def row(**params: Any) -> dict[str, Any]:
    """Return the row of curves for one value of each parameter."""
    return explicate.channel_curves("fading", **params).row(0, named=True)


def off(curves: Mapping[str, Any], what: str) -> float:
    """Return the deviation of the observation from the prediction, in standard errors."""
    error = curves[f"observed_{what}_error"]
    if what == "packet_loss":
        # With few losses the sample's standard error is unreliable; use that of the predicted rate.
        error = math.sqrt(curves[what] * (1 - curves[what]) / TRIALS)
    return (curves[f"observed_{what}"] - curves[what]) / error if error else 0.0


def figure_1() -> tuple[str, float, int]:
    """Return the table, its largest deviation, and the number of deviations."""
    points = [
        (antennas, snr, length) for antennas, all_snr in ANTENNAS.items() for snr in all_snr for length in LENGTHS
    ]
    curves = in_parallel(
        lambda antennas, snr, length: row(
            snr=snr, antennas=antennas, code="ideal", fec_data=RATE, bytes=[length], trials=TRIALS
        ),
        points,
    )
    rows, worst = [], 0.0
    for (antennas, snr, length), one in zip(points, curves, strict=True):
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
        curves = row(snr=snr, antennas=antennas, code="ideal", fec_data=data / symbols, bytes=[data])
        rows.append([
            antennas, snr, f"({symbols}, {data})", f"{exact:.3g}", f"{curves['packet_loss']:.4g}",
            f"{independent:.3g}", f"{curves['packet_loss_independent']:.4g}",
        ])  # fmt: skip
    heads = ["antennas", "SNR, dB", "block", "exact, reference", "exact", "equation 6, reference", "equation 6"]
    return table(heads, rows)


def waterfall(antennas: str, code: str, rate: float, loss: float = 1e-3) -> float:
    """Return the signal-to-noise ratio, dB, at which a 1040-byte packet is lost with this probability."""
    low, high = -5.0, 45.0
    while high - low > 0.01:
        middle = (low + high) / 2
        curves = row(snr=middle, antennas=antennas, code=code, fec_data=rate, bytes=[1040])
        low, high = (middle, high) if curves["packet_loss"] > loss else (low, middle)
    return high


def waterfalls() -> str:
    """Return the table of signal-to-noise ratios for blocks of 255 bytes and for one block per packet."""
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
    text = f"""\
Paper Y's channel has bursts of 800 good and 8 bad bits, states 10 dB apart, BPSK and one-byte symbols. The table
repeats its figure 1: predictions beside {TRIALS:,} packets, whose errors are drawn one after another. The code has a
rate of {RATE:g} and the length of the packet. *Wrong bytes* are those of the packet before correction. *Off* is the
deviation in standard errors of the prediction; the largest of the {count} is {worst:.1f}.

{figure}

The loss of one block follows from the Markov chain of symbols (*exact*), or from equation 6, which assumes independent
symbols. If losses are rare, bursts cause most of them, and equation 6 is too small:

{blocks()}

A block of one-byte symbols has at most 255 of them. The next table compares a packet of 1040 bytes in blocks of 255
with one block per packet: the signal-to-noise ratio for a loss of one packet in a thousand.

{waterfalls()}

Two properties are tested. The sampler of a link, draws from error to error and channels stepped bit by bit agree in
loss rate and in the correlation of neighbours. Counting wrong symbols loses the same packets as a Reed-Solomon codec.

    cargo test -p explicate-core --test fading -- --nocapture
    python validation/channels.py
"""
    place("channels", "The fading link: closed forms and a million packets", text)


if __name__ == "__main__":
    main()
