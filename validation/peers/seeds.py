"""Explicate beside ns-2 2.35 over several seeds: utilisation and mean queue, a line of a table for each case.

Judged: the means over the seeds differ by at most two points of utilisation and a fifth of ns-2's mean queue.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import report
from simulators import Case, Explicate, Ns2, PeerError, run

POINTS, SHARE = 0.02, 0.2
"""Most difference of utilisation, and of the mean queue as a share of ns-2's."""

HEADS = ["utilisation, %, ns-2", "Explicate", "points", "mean queue, packets, ns-2", "Explicate", "difference", "holds"]
"""Heads of the columns behind the first."""

Pair = tuple[float, float]
"""Utilisation and mean queue in packets."""


def pair(side: Mapping[str, Any]) -> Pair:
    """The figures of a report."""
    return float(side["utilisation"]), float(side["queue_mean_packets"])


def text(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation."""
    return f"{fmean(values):.{digits}f} ± {stdev(values):.{digits}f}"


@dataclass(frozen=True)
class Side:
    """One simulator's means over the seeds, and their cells: utilisation in percent, mean queue."""

    use: float
    queue: float
    cells: tuple[str, str]

    @classmethod
    def of(cls, runs: Sequence[Pair]) -> Side:
        """From the figures of each seed."""
        use, queue = zip(*runs, strict=True)
        percent = [100 * value for value in use]
        return cls(fmean(percent), fmean(queue), (text(percent, 2), text(queue, 1)))

    @classmethod
    def read(cls, use: str, queue: str) -> Side:
        """From cells, whose digits the means have."""
        return cls(float(use.partition(" ")[0]), float(queue.partition(" ")[0]), (use, queue))


def row(name: str, theirs: Side, ours: Side) -> list[str]:
    """A line of the table."""
    points, share = ours.use - theirs.use, ours.queue / theirs.queue - 1
    holds = abs(points) <= 100 * POINTS and abs(share) <= SHARE
    return [
        name, theirs.cells[0], ours.cells[0], f"{points:+.2f}", theirs.cells[1], ours.cells[1],
        f"{100 * share:+.1f} %", "yes" if holds else "**no**",
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
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="take ns-2's figures from this document")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="document whose section is replaced")
    options = parser.parse_args(argv)
    ns2, ours = Ns2(options.ns), Explicate(options.explicate)
    try:
        known = report.recorded(options.recorded, name) if options.recorded else {}
        rows = []
        with ThreadPoolExecutor(options.jobs) as threads:
            for label, case in cases.items():
                runs = [replace(case, seed=seed) for seed in seeds]
                if options.recorded:
                    use, _, _, queue, *_ = report.of_row(known, label)
                    theirs = Side.read(use, queue)
                else:
                    theirs = Side.of(list(threads.map(lambda one: pair(run(ns2.arguments(one))[0]), runs)))
                mine = Side.of(list(threads.map(lambda one: pair(Explicate.link(ours.run(one))), runs)))
                rows.append(row(label, theirs, mine))
        section = fragment(report.markdown_table([["senders and queue", *HEADS], *rows]))
        print(section)
        if options.markdown:
            report.place(options.markdown, section, name)
    except PeerError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    return 0
