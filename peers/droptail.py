"""NewReno and SACK over drop-tail, Explicate beside ns-2 2.35: utilisation and mean queue over several seeds.

    python3 peers/droptail.py [--markdown docs/validation.md]

Nothing is random here but the times at which the flows start: uniform over a second, by the seed. Judged: the means
over the seeds differ by at most two points of utilisation and a fifth of the mean queue.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev

import report
from simulators import Case, Explicate, Ns2, PeerError, run

SEEDS = range(1, 9)
POINTS, SHARE = 0.02, 0.2
"""Most difference of utilisation, and of the mean queue as a share of ns-2's."""

SYSTEMS = {"newreno": "NewReno", "sack": "SACK"}


def case(system: str, seed: int) -> Case:
    """The dumbbell: 100 Mbit/s, 80 ms, 10 flows, 50 to 150 s."""
    return Case(system, 100, 80, 10, starts="random", duration_s=150.0, warmup_s=50.0, seed=seed)


Pair = tuple[float, float]
"""Utilisation and mean queue in packets."""


def measure(ns2: Ns2, ours: Explicate, one: Case) -> tuple[Pair, Pair]:
    """What ns-2 and Explicate say."""
    theirs, link = run(ns2.arguments(one))[0], Explicate.link(ours.run(one))
    first, second = [(float(side["utilisation"]), float(side["queue_mean_packets"])) for side in (theirs, link)]
    return first, second


def text(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation."""
    return f"{fmean(values):.{digits}f} ± {stdev(values):.{digits}f}"


def row(name: str, runs: Sequence[tuple[Pair, Pair]]) -> list[str]:
    """A line of the table, from each seed's pairs."""
    (their_use, their_queue), (our_use, our_queue) = (
        zip(*(seed[side] for seed in runs), strict=True) for side in (0, 1)
    )
    points = fmean(our_use) - fmean(their_use)
    share = fmean(our_queue) / fmean(their_queue) - 1
    percent = [[100 * value for value in values] for values in (their_use, our_use)]
    holds = abs(points) <= POINTS and abs(share) <= SHARE
    return [
        name, text(percent[0], 2), text(percent[1], 2), f"{100 * points:+.2f}",
        text(their_queue, 1), text(our_queue, 1), f"{100 * share:+.1f} %", "yes" if holds else "**no**",
    ]  # fmt: skip


def fragment(rows: Sequence[Sequence[str]]) -> str:
    """The section."""
    heads = ["senders", "utilisation, %, ns-2", "Explicate", "points", "mean queue, packets, ns-2", "Explicate"]
    return f"""100 Mbit/s, 80 ms, 10 flows of 1000-byte packets that start at random within a second, drop-tail
with a buffer of one BDP (1000 packets); 50 to 150 s, mean and standard deviation over {len(SEEDS)} seeds. Expected: at
most {100 * POINTS:.0f} points of utilisation and {100 * SHARE:.0f} % of the mean queue apart.

{report.markdown_table([[*heads, "difference", "holds"], *rows])}

    python3 peers/droptail.py --markdown docs/validation.md"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, and fill in the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--explicate", default=".venv/bin/explicate", metavar="COMMAND")
    parser.add_argument("--ns", default="ns", metavar="COMMAND")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="document whose section is replaced")
    options = parser.parse_args(argv)
    ns2, ours = Ns2(options.ns), Explicate(options.explicate)
    cases = [case(system, seed) for system in SYSTEMS for seed in SEEDS]
    try:
        with ThreadPoolExecutor(options.jobs) as threads:
            done = list(threads.map(lambda one: measure(ns2, ours, one), cases))
        n = len(SEEDS)
        section = fragment([row(name, done[i * n : (i + 1) * n]) for i, name in enumerate(SYSTEMS.values())])
        print(section)
        if options.markdown:
            report.place(options.markdown, section, "droptail")
    except PeerError as error:
        print(f"droptail: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
