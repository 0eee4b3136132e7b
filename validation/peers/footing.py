"""Cost of a flow before it sends, with its two ends, two hosts and four access links: set-up time and memory.

The difference of a large and a small network, each run for a millisecond, per additional flow.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulators import Case, Simulator, cost_report

FEW = 10
MANY = {"ns-2": 200, "ns-3": 1000, "Explicate": 10_000}
"""Flows of the large network: enough to exceed the noise. The memory of ns-2's routes grows with their square."""
RUN_S = 0.001


@dataclass(frozen=True)
class Footing:
    flows: int
    setup_us: float
    bytes_per_flow: float


def footing(peer: Simulator, core: int, repetitions: int) -> Footing:
    """Of the SACK dumbbell at 1 Gbit/s; the least time of some repetitions."""
    many = MANY[peer.name]
    seconds, memory = [], []
    for flows in (FEW, many):
        runs = [cost_report(peer, Case("sack", 1000, 80, flows), RUN_S, core) for _ in range(repetitions)]
        seconds.append(min(cpu_s for _, cpu_s in runs))
        memory.append(int(runs[0][0].get("peak_bytes") or 0))
        own = runs[0][0].get("bytes_per_flow")
    more = many - FEW
    return Footing(many, 1e6 * (seconds[1] - seconds[0]) / more, own or (memory[1] - memory[0]) / more)
