"""Cost of a sweep besides its runs, and gain of a second core; fills docs/sweeps.md. Needs an idle machine.

bench/sweep_cost.py [--markdown docs/sweeps.md]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared import replace_between

from explicate import engine
from explicate.sweeps.api import extended, sweep_plan
from explicate.sweeps.plan import plan_of
from explicate.sweeps.store import Store

REPETITIONS = 5

SCENARIO = """\
name = "sweep-cost"
duration = "60s"
runs = 3

[topology]
kind = "dumbbell"
pairs = 10
access = { rate = "400Mbit/s", delay = "1ms", queue = "unlimited" }
bottleneck = { rate = "100Mbit/s", delay = "38ms" }

[[flows]]
name = "bulk"
count = 10
protocol = "xcp"
packet = "1000B"
"""

AXES: dict[str, Sequence[Any]] = {
    "flows.bulk.protocol": ["xcp", "newreno"],
    "topology.bottleneck.delay": ["28ms", "38ms", "48ms", "58ms"],
}


class Engine:
    """The engine's `run`, with the CPU time of all its calls."""

    def __init__(self) -> None:
        self.cpu_s, self._run, self._lock = 0.0, engine._native.run, threading.Lock()

    def __call__(self, *args: Any) -> Any:
        """Run, and measure the time."""
        before = time.thread_time()
        output = self._run(*args)
        spent = time.thread_time() - before
        with self._lock:
            self.cpu_s += spent
        return output


def measure(jobs: int) -> tuple[float, float, float]:
    """Sweep with files; return seconds that passed, CPU seconds, and those of the engine."""
    counted = Engine()
    engine._native.run, usual = counted, engine._native.run
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        plan = extended(plan_of(SCENARIO), AXES, {}, points=None, draw=None)
        results = sweep_plan(plan, Store(Path(folder, "runs")), jobs=jobs)
        results.write(folder)
    engine._native.run = usual
    return time.perf_counter() - began, time.process_time() - cpu, counted.cpu_s


def main() -> None:
    """Measure in turns, print, fill the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--markdown", type=Path, help="document whose sweep-cost table is replaced")
    options = parser.parse_args()
    measure(2)  # loads the modules
    rows = [(measure(1), measure(2)) for _ in range(REPETITIONS)]
    faster = [one[0] / two[0] for one, two in rows]
    shares = [(cpu - inside) / cpu for one in rows for _, cpu, inside in one]
    one, two = (statistics.median(row[i][0] for row in rows) for i in (0, 1))
    runs = 24
    print(f"speed-ups {[round(value, 3) for value in faster]}, shares {[round(share, 4) for share in shares]}")
    table = f"""| {runs} runs of 60 s, 100 Mbit/s, 10 flows | median of {REPETITIONS} | least | most |
| --- | --: | --: | --: |
| one thread, s | {one:.2f} | {min(r[0][0] for r in rows):.2f} | {max(r[0][0] for r in rows):.2f} |
| two threads, s | {two:.2f} | {min(r[1][0] for r in rows):.2f} | {max(r[1][0] for r in rows):.2f} |
| two over one, pairwise | {statistics.median(faster):.2f} | {min(faster):.2f} | {max(faster):.2f} |
| CPU outside the engine | {statistics.median(shares):.1%} | {min(shares):.1%} | {max(shares):.1%} |"""
    print(table)
    if options.markdown:
        replace_between(options.markdown, table, "sweep-cost")


if __name__ == "__main__":
    main()
