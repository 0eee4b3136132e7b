"""Holds the engine's cost against its limits; `--markdown` puts the table into a document.

Only instruction counts and memory are judged: times move with whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from shared import ROOT, replace_between

LIMITS = {"xcp": 276.5, "sack": 221.8}
"""Limit of instructions per packet-hop. The aim is 250 for both. SACK meets it; XCP did until hosts had a random
processing time for each data packet. Three shortcuts of a port that saved 1.3 % together have gone: the limits, 273
and 219 with them, are that much higher, here and below."""
LIMITS_1000 = {"xcp": 294.8, "sack": 256.3}
"""The same with 1,000 flows: a fourteenth more (XCP), a sixth (SACK) than with 10; the aim is at most 20 %."""
MEMORY = {"xcp": 2048.0, "sack": 1800.0}
"""Limit of bytes per flow, with its four access links, at 10,000 flows. XCP's is the aim itself: its flows, with two
controllers, need 2,005 bytes."""

CHANNEL = 5.0
"""Limit of a packet's cost at a port with a fading link, divided by that at a port with a wire."""
MEASURED = 225.0
"""Limit of the instructions that the measurement of a port's capacity adds to a packet there, with the equipment that
such a port has: 211 of 1,202, built without link-time optimisation. A port of XCP that is not polled takes 355."""


def channel_instructions(name: str) -> float:
    """Return the instructions of a packet at a port with this channel, as the difference of two counts."""
    program = ROOT / "target/release/examples/port_cost"
    counts = []
    for packets in (100_000, 200_000):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), name, str(packets)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = re.search(r"Collected : (\d+)", done.stderr)
        if found is None:
            sys.exit(f"callgrind did not count {name}: {done.stderr[-500:]}")
        counts.append(int(found[1]))
    return (counts[1] - counts[0]) / 100_000


def judge_channels() -> list[str]:
    """Count, print, and report values above their limits."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "explicate-core", "--example", "port_cost"]
    subprocess.run(build, check=True, cwd=ROOT)
    counts = {name: channel_instructions(name) for name in ("wire", "random_loss", "gilbert_elliott", "fading")}
    ratio = counts["fading"] / counts["wire"]
    listed = ", ".join(f"{name} {count:.0f}" for name, count in counts.items())
    print(f"instructions of a packet at a port: {listed}; fading over wire {ratio:.2f}")
    return [f"fading: {ratio:.2f} times a wire, limit {CHANNEL}"] if ratio > CHANNEL else []


def judge_measured() -> list[str]:
    """Count XCP's port with a configured capacity, polled, and measuring; report a measurement above its limit."""
    ways = ("xcp", "xcp:polled", "xcp:measured")
    counts = {way: channel_instructions(way) for way in ways}
    more = counts["xcp:measured"] - counts["xcp:polled"]
    listed = ", ".join(f"{way} {count:.0f}" for way, count in counts.items())
    print(f"instructions of a packet at a port: {listed}; the measurement takes {more:.0f}")
    return [f"measured capacity: {more:.0f} instructions, limit {MEASURED:.0f}"] if more > MEASURED else []


def table(rows: list[dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| case | instructions per hop | million hops per CPU second | bytes a flow |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        count = f"{row['instructions_per_hop']:.0f}" if row["instructions_per_hop"] else ""
        memory = f"{row['bytes_per_flow']:.0f}" if row["bytes_per_flow"] else ""
        lines.append(f"| {row['name']} | {count} | {row['hops_per_cpu_second'] / 1e6:.1f} | {memory} |")
    return "\n".join(lines)


def judge(rows: list[dict[str, Any]]) -> list[str]:
    """Values above their limits, and values that were not counted."""
    counts = {row["name"]: row["instructions_per_hop"] for row in rows if row["bytes_per_flow"] is None}
    if not counts or None in counts.values():
        return ["instructions were not counted: is valgrind installed?"]
    over = []
    for case, count in counts.items():
        limit = (LIMITS_1000 if case.endswith("-1000") else LIMITS)[case.partition("-")[0]]
        if count > limit:
            over.append(f"{case}: {count:.0f} instructions per hop, limit {limit:.0f}")
    for system in ("xcp", "sack"):
        memory = next(row["bytes_per_flow"] for row in rows if row["name"] == f"{system}-1G-10000")
        if not 0 < memory <= MEMORY[system]:
            over.append(f"{system}: {memory:.0f} bytes a flow, limit {MEMORY[system]:.0f}")
    return over


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, help="document whose bench table is replaced")
    options = parser.parse_args()
    command = [sys.executable, "-m", "explicate", "bench", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["cases"]
    text = table(rows)
    print(text)
    if options.markdown:
        replace_between(options.markdown, text, "bench")
    over = judge(rows) + judge_channels() + judge_measured()
    if over:
        sys.exit("\n".join(over))


if __name__ == "__main__":
    main()
