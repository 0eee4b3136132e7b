"""What paper K's checks of mechanisms share: a constant load on the paper's bottleneck, and a small flow beside it.

The load has a constant rate, so that the routers' load factor is known. The flow's packets have a tenth of the usual
length, so that its window hardly changes that. Nothing is paced here: the equations are about windows. A
third flow begins when all is over: a controller is installed only where some flow speaks its very protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explicate.results import Results
from explicate.scenario import Scenario
from explicate_papers import metrics
from explicate_papers.ikeda import base
from explicate_papers.study import Case, Effort

SMALL = 104
"""Bytes of the flow's packets."""
JOINS_S = 6.0
"""When the flow joins; the load is measured by then."""


def case(
    effort: Effort,
    load: float,
    router: Mapping[str, Any],
    protocol: str = "vcp-bise",
    params: Mapping[str, Any] | None = None,
    *,
    seconds: float = 10.0,
    seeds: int | None = None,
) -> Case:
    """Return a load factor of `load`, and a flow of `protocol` beside it."""
    rate = load * base.FULL * base.MBPS
    values = {**base.timer(effort), **(params or {})}
    made = (
        Scenario("paper-K-unit", duration=f"{seconds:g}s")
        .topology(
            "dumbbell",
            pairs=3,
            access={"rate": "1Gbit/s", "delay": "10ms", "router": "none"},
            bottleneck={"rate": f"{base.MBPS:g}Mbit/s", "delay": "230ms", "router": router},
        )
        .flows("load", "greedy", packet=f"{base.PACKET}B", params={"rate": f"{rate:.6f}Mbit/s"})
        .flows(
            "bulk", protocol, packet=f"{SMALL}B", start=f"{JOINS_S:g}s", processing=effort.choices["K-P20"],
            params=values,
        )
        .flows("witness", router["kind"], start=f"{seconds - 0.01:g}s")
        .sampling("50ms", ["router", "flow", "cwnd", "throughput"])
    )  # fmt: skip
    return Case(made.to_toml(), seeds=seeds)


def window(results: Results, at_s: float) -> float:
    """Return the flow's window at a time, packets."""
    frame = base.cwnd(results)
    return float(frame.filter(frame["time_s"] >= at_s - 1e-6)["value"][0])


def load_factor(results: Results) -> float:
    """Return the bottleneck's load factor before the flow joins."""
    frame = base.load(results)
    return float(frame.filter(frame["time_s"] < JOINS_S)["value"][-1])


def mixing_ratio(results: Results) -> float:
    """Return the bottleneck's mixing ratio before the flow joins."""
    frame = metrics.series(results, base.BOTTLENECK, "mixing_ratio")
    return float(frame.filter(frame["time_s"] < JOINS_S)["value"][-1])
