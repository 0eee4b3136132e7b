"""Counts what the event queue costs where the times of events are bad for it, without a network.

    python bench/cost_queue.py                     print the table
    python bench/cost_queue.py --markdown FILE     and put it between the `queue` markers of a document
    python bench/cost_queue.py --judge             fail if a count is over its limit

The patterns are in `crates/explicate-sim/src/adversaries.rs`. A count is of a whole run with its first and last
events, divided by the insertions and removals.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from callgrind import ENGINE, count
from shared import ROOT, print_and_judge

PROGRAM = ENGINE.with_name("queue_cost")
SIZES = (1 << 11, 1 << 15)
"""Pending events."""

LIMITS = {
    "all at one time": 720,
    "two times": 890,
    "backwards": 390,
    "a burst after a calm": 550,
    "a long burst after a long calm": 4800,
    "alternating scales": 2860,
    "every scale at once": 1570,
    "one far event in each rotation": 3070,
    "ties that grow while they are popped": 610,
}
"""Limit of instructions for an insertion or removal with the most pending events: the measured count plus a tenth.
A list that was walked would take tens of thousands. Where buckets are too narrow, empty ones are searched, up to some
thousand between two events, however many are pending."""

Counts = Mapping[tuple[str, int], float]


def measure() -> dict[tuple[str, int], float]:
    """Count every pattern with every number of pending events."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "explicate-sim", "--example", PROGRAM.name]
    subprocess.run(build, check=True, cwd=ROOT)
    cases = [(name, size) for name in LIMITS for size in SIZES]

    def instructions(case: tuple[str, int]) -> float:
        counted = count(PROGRAM, [case[0], str(case[1])])
        return counted.total() / counted.told["operations"]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(cases, pool.map(instructions, cases), strict=True))


def table(counts: Counts) -> str:
    """The counts as Markdown."""
    heads = " | ".join(f"{size:,} events" for size in SIZES)
    lines = [f"| times | {heads} |", f"| --- |{' ---: |' * len(SIZES)}"]
    for name in LIMITS:
        cells = " | ".join(f"{counts[name, size]:.0f}" for size in SIZES)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def judge(counts: Counts) -> Iterator[str]:
    """Counts over their limits."""
    for name, limit in LIMITS.items():
        counted = counts[name, SIZES[-1]]
        if counted > limit:
            yield f"event queue, {name}: {counted:.0f} instructions an operation, limit {limit}"


if __name__ == "__main__":
    print_and_judge(__doc__, "queue", measure, table, judge)
