"""Instructions per packet-hop, counted by callgrind where it is installed.

A figure is the run of 2 T minus the run of T over the packet-hops of the difference, so that set-up, Python's start
and the start of the flows cancel. Instruction counts repeat on a busy machine, times do not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from explicate import engine

REPEATABLE = {"PATH": os.environ.get("PATH", ""), "PYTHONHASHSEED": "0"}
"""The environment in which instructions are counted: with another seed of hashes for each run, counts of one program
differed by 0.2 %."""

SECONDS = {
    "xcp-100M-10": 3.0,
    "xcp-1G-10": 1.5,
    "xcp-1G-1000": 4.0,
    "sack-100M-10": 4.0,
    "sack-1G-10": 3.0,
    "sack-1G-1000": 4.0,
    "hops-100M-10": 4.0,
    "merges-100M-10": 4.0,
    "hops-1G-10": 1.0,
    "merges-1G-10": 1.0,
    "hops-1G-1000": 1.0,
    "merges-1G-1000": 1.0,
}
"""Simulated seconds T of the cases that are counted: short, because callgrind is slow, but after the start of all
flows and the losses of their slow starts.
"""

# The engine alone, without the package's imports.
ONE_RUN = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
run = native.floor if sys.argv[2] in native.floor_cases() else native.bench
print(run(sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else None))
"""


class CountError(RuntimeError):
    """Callgrind exists, but did not count."""


def measure(case: str) -> engine.BenchCase:
    """Return what one case costs, in a process of its own: memory that another case has freed would be missed."""
    row = run(case)
    row["instructions_per_hop"] = instructions_per_hop(case) if countable(case) else None
    return row


def run(case: str) -> engine.BenchCase:
    """Return what one case, or one floor, costs in time and memory, in a process of its own."""
    if not engine.file().endswith(".so"):
        return engine.floor(case) if case in engine.floor_cases() else engine.bench(case)[0]
    command = [sys.executable, "-I", "-S", "-c", ONE_RUN, engine.file(), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CountError(f"{case} failed: {done.stderr[-1000:]}")
    row: engine.BenchCase = json.loads(done.stdout)["cases"][0]
    return row


ROUNDS = 3
"""Number of rounds in which floor and engine are timed in turn."""


def beside_floor() -> list[engine.BenchCase]:
    """Return floors and the engine on the same dumbbells; times are the least of some rounds, all in turn."""
    sizes = sorted({name.partition("-")[2] for name in engine.floor_cases()})
    names = [n for size in sizes for n in (*engine.floor_cases(), *engine.bench_cases()) if n.partition("-")[2] == size]
    rows = {name: run(name) for name in names}
    for _ in range(ROUNDS - 1):
        for name in names:
            rows[name] = max(rows[name], run(name), key=lambda row: row["hops_per_cpu_second"])
    for name, row in rows.items():
        row["instructions_per_hop"] = instructions_per_hop(name) if countable(name) else None
    return list(rows.values())


def countable(case: str) -> bool:
    """Whether instructions of this case can be counted here."""
    return case in SECONDS and shutil.which("valgrind") is not None and engine.file().endswith(".so")


def instructions_per_hop(case: str) -> float:
    """Return the instructions per packet-hop of the case; raise CountError if callgrind fails."""
    once, twice = _count(case, SECONDS[case]), _count(case, 2 * SECONDS[case])
    return (twice[0] - once[0]) / (twice[1] - once[1])


def _count(case: str, seconds: float) -> tuple[int, int]:
    """Return instructions and packet-hops of one run in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        run = [sys.executable, "-P", "-s", "-S", "-c", ONE_RUN, engine.file(), case, str(seconds)]
        done = subprocess.run([*valgrind, *run], env=REPEATABLE, capture_output=True, text=True, check=False)
    match = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or match is None:
        raise CountError(f"callgrind failed on {case}: {done.stderr[-1000:]}")
    return int(match[1]), int(json.loads(done.stdout)["cases"][0]["hops"])
