"""Counts what a SCONE element adds to the cost of a whole frame at a router, by callgrind.

    python bench/scone_cost.py                     print the table
    python bench/scone_cost.py --markdown FILE     and put it between the `scone` markers of a document
    python bench/scone_cost.py --judge             fail if frames that are not SCONE cost over 5 % more

A frame is read, queued, controlled by XCP's router in one of two classes, and written, without system calls: the
example `frame_cost` of the crate `explicate-net`. The element advises fair rates, for which it also counts the flows:
the dearest of the three kinds of advice. A SCONE packet is in the first datagram of a flow, and is rewritten.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from callgrind import ENGINE, count
from shared import ROOT, print_and_judge

PROGRAM = ENGINE.with_name("frame_cost")
FRAMES = 4000
"""Few enough that flows have limits of their own, a multiple of the frames that come together."""
CASES = {
    "a packet of an explicit flow": "",
    "QUIC in IPv4": "quic",
    "QUIC in IPv6": "quic ipv6",
    "SCONE in IPv4": "opening",
    "SCONE in IPv6": "opening ipv6",
}
"""Frames, and how the program calls them."""
LIMIT = 1.05
"""Of the ratio, for frames that are not SCONE."""

Counts = Mapping[str, tuple[float, float]]
"""Instructions a frame, without an element and with one."""


def measure() -> dict[str, tuple[float, float]]:
    """Count every case without an element and with one."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "explicate-net", "--example", PROGRAM.name]
    subprocess.run(build, check=True, cwd=ROOT)

    def instructions(words: str) -> float:
        return count(PROGRAM, ["xcp", str(FRAMES), *words.split()]).total() / FRAMES

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        without = pool.map(instructions, CASES.values())
        beside = pool.map(instructions, [f"{words} scone" for words in CASES.values()])
        return dict(zip(CASES, zip(without, beside, strict=True), strict=True))


def table(counts: Counts) -> str:
    """The counts as Markdown."""
    lines = ["| frame | instructions | with an element | ratio |", "| --- | ---: | ---: | ---: |"]
    for name, (without, beside) in counts.items():
        lines.append(f"| {name} | {without:,.0f} | {beside:,.0f} | {beside / without:.3f} |")
    return "\n".join(lines)


def judge(counts: Counts) -> Iterator[str]:
    """Frames that are not SCONE and cost too much more."""
    for name, (without, beside) in counts.items():
        if "opening" not in CASES[name] and beside > LIMIT * without:
            yield f"SCONE element, {name}: {beside / without - 1:+.1%} instructions a frame, limit {LIMIT - 1:+.0%}"


if __name__ == "__main__":
    print_and_judge(__doc__, "scone", measure, table, judge)
