"""Explicate beside ns-2 2.35 over several seeds: utilisation and mean queue, a line of a table for each case.

Judged: the means over the seeds differ by at most two points of utilisation and a fifth of ns-2's mean queue.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import report
from simulators import Case, Explicate, Ns2, PeerError, run

POINTS, SHARE = 0.02, 0.2
"""Most difference of utilisation, and of the mean queue as a share of ns-2's."""

HEADS = ["utilisation, %, ns-2", "Explicate", "points", "mean queue, packets, ns-2", "Explicate", "difference", "holds"]
"""Heads of the columns behind the first."""

Pair = tuple[float, float]
"""Utilisation and mean queue in packets."""


def measure(ns2: Ns2, ours: Explicate, one: Case) -> tuple[Pair, Pair]:
    """The figures of ns-2 and Explicate."""
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


def main(
    name: str, about: str, cases: Mapping[str, Case], seeds: Sequence[int],
    fragment: Callable[[str], str], argv: Sequence[str] | None = None,
) -> int:  # fmt: skip
    """Run `cases` with all `seeds`, print the table within `fragment`, and fill in the document's section `name`."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--explicate", default=".venv/bin/explicate", metavar="COMMAND")
    parser.add_argument("--ns", default="ns", metavar="COMMAND")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="document whose section is replaced")
    options = parser.parse_args(argv)
    ns2, ours = Ns2(options.ns), Explicate(options.explicate)
    runs = [replace(case, seed=seed) for case in cases.values() for seed in seeds]
    try:
        with ThreadPoolExecutor(options.jobs) as threads:
            done = list(threads.map(lambda one: measure(ns2, ours, one), runs))
        n = len(seeds)
        rows = [row(label, done[i * n : (i + 1) * n]) for i, label in enumerate(cases)]
        section = fragment(report.markdown_table([["senders and queue", *HEADS], *rows]))
        print(section)
        if options.markdown:
            report.place(options.markdown, section, name)
    except PeerError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    return 0
