"""Instructions per packet-hop, counted by callgrind where it is installed.

A figure is the run of 2 T minus the run of T over the packet-hops of the difference, so that set-up, Python's start
and the start of the flows cancel. Instruction counts repeat on a busy machine, times do not.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from explicate import engine

SECONDS = {
    "xcp-100M-10": 3.0,
    "xcp-1G-10": 1.5,
    "xcp-1G-1000": 1.5,
    "sack-100M-10": 4.0,
    "sack-1G-10": 3.0,
    "sack-1G-1000": 1.5,
}
"""Simulated seconds T of the cases that are counted: short, because callgrind is slow."""

# The engine alone, without the package's imports.
ONE_RUN = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
print(native.bench(sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else None))
"""


class CountError(RuntimeError):
    """Callgrind was there, but did not count."""


def measure(case: str) -> engine.BenchCase:
    """Return what one case costs, in a process of its own: memory that another case has freed would be missed."""
    if not engine.file().endswith(".so"):
        return engine.bench(case)[0]
    command = [sys.executable, "-I", "-S", "-c", ONE_RUN, engine.file(), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CountError(f"{case} failed: {done.stderr[-1000:]}")
    row: engine.BenchCase = json.loads(done.stdout)["cases"][0]
    row["instructions_per_hop"] = instructions_per_hop(case) if countable(case) else None
    return row


def countable(case: str) -> bool:
    """Whether instructions of this case can be counted here."""
    return case in SECONDS and shutil.which("valgrind") is not None and engine.file().endswith(".so")


def instructions_per_hop(case: str) -> float:
    """Return the instructions that one packet-hop of the case takes; raise CountError if callgrind fails."""
    once, twice = _count(case, SECONDS[case]), _count(case, 2 * SECONDS[case])
    return (twice[0] - once[0]) / (twice[1] - once[1])


def _count(case: str, seconds: float) -> tuple[int, int]:
    """Return instructions and packet-hops of one run in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-I", "-S", "-c"]
        done = subprocess.run(
            [*command, ONE_RUN, engine.file(), case, str(seconds)], capture_output=True, text=True, check=False
        )
    match = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or match is None:
        raise CountError(f"callgrind failed on {case}: {done.stderr[-1000:]}")
    return int(match[1]), int(json.loads(done.stdout)["cases"][0]["hops"])
