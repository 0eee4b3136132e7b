"""What the engine costs per packet-hop: instructions under callgrind, hops per CPU second, bytes a flow.

A figure is the run of 2 T minus the run of T over the packet-hops of the difference, so that set-up, Python's start
and the start of the flows cancel. Only instruction counts are judged: they repeat on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LIMIT = 450.0
"""Most instructions per packet-hop."""
GROWTH = 1.5
"""Most growth of that from 10 to 1,000 flows."""
MEMORY = 2048.0
"""Most bytes a flow, with its four access links, at 10,000 flows."""

# Simulated seconds T, short because callgrind is slow.
SECONDS = {"xcp-100M-10": 3.0, "sack-100M-10": 4.0, "xcp-1G-10": 1.5, "sack-1G-10": 3.0, "xcp-1G-1000": 1.5}
GROWS = ("xcp-1G-10", "xcp-1G-1000")

# The engine alone, without the package's imports.
ONE_RUN = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
print(native.bench(sys.argv[2], float(sys.argv[3])))
"""


def native_file() -> str:
    """The compiled engine of this environment."""
    from explicate import _native

    return str(_native.__file__)


def counted(case: str, seconds: float) -> tuple[int, int]:
    """Instructions and packet-hops of one run in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-I", "-S", "-c"]
        done = subprocess.run(
            [*command, ONE_RUN, native_file(), case, str(seconds)], capture_output=True, text=True, check=False
        )
    match = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or match is None:
        sys.exit(f"callgrind failed on {case}: {done.stderr[-2000:]}")
    return int(match[1]), int(json.loads(done.stdout)["cases"][0]["hops"])


def instructions_per_hop(case: str) -> float:
    """The run of 2 T minus the run of T."""
    once, twice = counted(case, SECONDS[case]), counted(case, 2 * SECONDS[case])
    return (twice[0] - once[0]) / (twice[1] - once[1])


def table(rows: list[dict[str, Any]], instructions: dict[str, float]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| case | instructions per hop | million hops per CPU second | bytes a flow |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        name = row["name"]
        count = f"{instructions[name]:.0f}" if name in instructions else ""
        memory = f"{row['bytes_per_flow']:.0f}" if row["bytes_per_flow"] else ""
        lines.append(f"| {name} | {count} | {row['hops_per_cpu_second'] / 1e6:.1f} | {memory} |")
    return "\n".join(lines)


def replace_between(path: Path, text: str) -> None:
    """Puts `text` between the markers of a document."""
    begin, end = "<!-- bench:begin -->", "<!-- bench:end -->"
    old = path.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        sys.exit(f"{path}: no {begin} ... {end}")
    head, tail = old[: old.index(begin) + len(begin)], old[old.index(end) :]
    path.write_text(f"{head}\n{text}\n{tail}", encoding="utf-8")


def judge(instructions: dict[str, float], memory: float) -> list[str]:
    """What is over its limit."""
    over = [f"{case}: {n:.0f} instructions per hop, limit {LIMIT:.0f}" for case, n in instructions.items() if n > LIMIT]
    growth = instructions[GROWS[1]] / instructions[GROWS[0]]
    if growth > GROWTH:
        over.append(f"from 10 to 1,000 flows the cost grows {growth:.2f} times, limit {GROWTH}")
    if memory > MEMORY:
        over.append(f"{memory:.0f} bytes a flow, limit {MEMORY:.0f}")
    return over


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, help="document whose bench table is replaced")
    options = parser.parse_args()
    from explicate import engine

    # Memory first, in a process that has not freed anything yet.
    rows: list[dict[str, Any]] = [dict(row) for row in engine.bench()]
    instructions = {case: instructions_per_hop(case) for case in SECONDS}
    text = table(rows, instructions)
    print(text)
    if options.markdown:
        replace_between(options.markdown, text)
    over = judge(instructions, max(row["bytes_per_flow"] or 0.0 for row in rows))
    if over:
        sys.exit("\n".join(over))


if __name__ == "__main__":
    main()
