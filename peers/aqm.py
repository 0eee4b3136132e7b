"""TCP over RED and REM, Explicate beside ns-2 2.35: utilisation and mean queue over several seeds.

    python3 peers/aqm.py [--markdown docs/validation.md]

Judged: the means over the seeds differ by at most two points of utilisation and a fifth of the mean queue.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import report
from simulators import Case, Explicate, Ns2, PeerError, Queue, run

SEEDS = range(1, 6)
POINTS, SHARE = 0.02, 0.2
"""Most difference of utilisation, and of the mean queue as a share of ns-2's."""

Pair = tuple[float, float]
"""Utilisation and mean queue in packets."""


def red(name: str, min_th: int, max_th: int, weight: float, max_p: float) -> Queue:
    """RED by packets, gentle, dropping, nearly empty queues left alone as in ns-2; thresholds in packets."""
    ours = f'kind = "red", min_th = "{min_th}pkt", max_th = "{max_th}pkt", weight = {weight}, max_p = {max_p}'
    return Queue(name, f"red:{min_th}:{max_th}:{weight}:{max_p}", f"{ours}, gentle = true, ns2 = true, mark = false")


def rem(name: str, interval_ms: float, target: int) -> Queue:
    """REM by packets with the paper's gains, dropping; the target in packets."""
    ours = f'kind = "rem", gamma = 0.001, alpha = 0.1, phi = 1.001, interval = "{interval_ms}ms"'
    return Queue(name, f"rem:0.001:1.001:{interval_ms / 1e3}:{target}", f'{ours}, target = "{target}pkt", mark = false')


PAPER = red("RED, min 333, max 667, weight 0.002, max_p 0.1", 333, 667, 0.002, 0.1)
MIDDLE = red("RED, min 50, max 150, weight 0.0002, max_p 0.1", 50, 150, 0.0002, 0.1)
CLASSIC = red("RED, min 5, max 15, weight 0.002, max_p 0.1", 5, 15, 0.002, 0.1)
REMS = [rem("REM, T 0.8 ms, target 333", 0.8, 333), rem("REM, T 2 ms, target 20", 2, 20)]
SYSTEMS = {"newreno": "NewReno", "sack": "SACK"}
SHAPES = [(80, None, [PAPER, MIDDLE, CLASSIC, *REMS]), (70, 90, [MIDDLE, CLASSIC])]
"""Round trips and the queues that are tried with them."""


def kinds() -> list[Case]:
    """One case of each kind: 100 Mbit/s, 10 flows, 60 to 160 s."""
    shapes = [(low, high, queue) for low, high, queues in SHAPES for queue in queues]
    return [
        Case(system, 100, low, 10, high, duration_s=160.0, warmup_s=60.0, queue=queue, starts="random")
        for system in SYSTEMS
        for low, high, queue in shapes
    ]


def measure(ns2: Ns2, ours: Explicate, one: Case) -> tuple[Pair, Pair]:
    """What ns-2 and Explicate say."""
    theirs, link = run(ns2.arguments(one))[0], Explicate.link(ours.run(one))
    first, second = [(float(side["utilisation"]), float(side["queue_mean_packets"])) for side in (theirs, link)]
    return first, second


def text(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation."""
    return f"{fmean(values):.{digits}f} ± {stdev(values):.{digits}f}"


def row(kind: Case, runs: Sequence[tuple[Pair, Pair]]) -> list[str]:
    """A line of the table, from each seed's pairs."""
    (their_use, their_queue), (our_use, our_queue) = (
        zip(*(seed[side] for seed in runs), strict=True) for side in (0, 1)
    )
    points = fmean(our_use) - fmean(their_use)
    share = fmean(our_queue) / fmean(their_queue) - 1
    percent = [[100 * value for value in values] for values in (their_use, our_use)]
    holds = abs(points) <= POINTS and abs(share) <= SHARE
    rtt = f"{kind.rtt_ms}" if kind.rtt_high_ms is None else f"{kind.rtt_ms}..{kind.rtt_high_ms}"
    return [
        f"{SYSTEMS[kind.system]}, {rtt} ms, {kind.queue.name}",
        text(percent[0], 2), text(percent[1], 2), f"{100 * points:+.2f}",
        text(their_queue, 1), text(our_queue, 1), f"{100 * share:+.1f} %", "yes" if holds else "**no**",
    ]  # fmt: skip


def fragment(rows: Sequence[Sequence[str]]) -> str:
    """The section."""
    heads = ["senders and queue", "utilisation, %, ns-2", "Explicate", "points", "mean queue, ns-2", "Explicate"]
    return f"""100 Mbit/s, 10 flows, a buffer of one BDP (1000 packets of 1000 bytes), packets dropped, not marked; 100
s after 60, mean and standard deviation over {len(SEEDS)} seeds. The first RED and the first REM are those of the XCP
paper's comparison (thresholds at a third and two thirds of the buffer; T of ten packet times, target a third of the
buffer), the last ones the classic constants and ns-2's defaults. Queues in packets. Expected: at most
{100 * POINTS:.0f} points of utilisation apart, and {100 * SHARE:.0f} % of the mean queue.

{report.markdown_table([[*heads, "difference", "holds"], *rows])}

    python3 peers/aqm.py --markdown docs/validation.md"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, and fill in the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--explicate", default=".venv/bin/explicate", metavar="COMMAND")
    parser.add_argument("--ns", default="ns", metavar="COMMAND")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="document whose section is replaced")
    options = parser.parse_args(argv)
    ns2, ours = Ns2(options.ns), Explicate(options.explicate)
    all_kinds = kinds()
    cases = [replace(kind, seed=seed) for kind in all_kinds for seed in SEEDS]
    try:
        with ThreadPoolExecutor(options.jobs) as threads:
            done = list(threads.map(lambda one: measure(ns2, ours, one), cases))
        n = len(SEEDS)
        rows = [row(kind, done[i * n : (i + 1) * n]) for i, kind in enumerate(all_kinds)]
        section = fragment(rows)
        print(section)
        if options.markdown:
            report.place(options.markdown, section, "aqm")
    except PeerError as error:
        print(f"aqm: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
