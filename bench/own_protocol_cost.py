"""Measures the cost of callbacks in Python, and puts the table into docs/own-protocol.md with `--markdown`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from shared import ROOT, replace_between

import explicate
from explicate import protocols

sys.path.insert(0, str(ROOT / "docs" / "examples"))
REPEATS = 3

LINK = explicate.Scenario("cost", duration="20s").topology(
    "dumbbell", bottleneck={"rate": "100Mbit/s", "delay": "20ms"}
)


class Watching(explicate.Router):
    """Calls at every arrival and every departure."""

    def on_arrival(self, now: float, packet: explicate.Packet, port: explicate.PortView) -> None:
        """Do nothing."""

    def on_departure(self, now: float, packet: explicate.Packet, port: explicate.PortView) -> None:
        """Do nothing."""


def cost(name: str) -> tuple[float, int]:
    """Return the least of some CPU times, in seconds, and the packet-hops of a run."""
    times, hops = [], 0
    for _ in range(REPEATS):
        began = time.process_time()
        hops = explicate.run(LINK.flows("f", name, count=10)).timing["runs"][0]["hops"]
        times.append(time.process_time() - began)
    return min(times), hops


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", metavar="FILE", help="put the table into this page")
    page = parser.parse_args().markdown
    protocols.load(str(ROOT / "docs" / "examples" / "aimd.py"))
    import aimd

    explicate.register("watched", aimd.Aimd, router=Watching)
    lines = ["| protocol | CPU time, s | ns per packet-hop |", "| --- | ---: | ---: |"]
    for name, what in (
        ("reno/sack", "`reno` in Rust"),
        ("aimd-py/sack", "`aimd-py`: a sender in Python"),
        ("watched/sack", "the same with a router in Python"),
    ):
        seconds, hops = cost(name)
        lines.append(f"| {what} | {seconds:.3f} | {1e9 * seconds / hops:,.0f} |")
    table = "\n".join(lines)
    print(table)
    if page:
        replace_between(Path(page), f"\n{table}\n", "own-protocol-cost")


if __name__ == "__main__":
    main()
