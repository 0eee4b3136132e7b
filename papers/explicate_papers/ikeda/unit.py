"""What paper K's checks of mechanisms share: a constant load on the paper's bottleneck, and a small flow beside it.

The load has a constant rate, so that the routers' load factor is known. The flow's packets have a tenth of the usual
length, so that its window hardly changes that. Nothing is paced here: the equations are about windows. A
third flow begins when all is over: a controller is installed only where some flow speaks its very protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explicate.results import Results
from explicate.source import value_text
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
    text = [
        f'name = "paper-K-unit"\nduration = "{seconds:g}s"',
        '[topology]\nkind = "dumbbell"\npairs = 3\n'
        'access = { rate = "1Gbit/s", delay = "10ms", router = "none" }\n'
        f'bottleneck = {{ rate = "{base.MBPS:g}Mbit/s", delay = "230ms", router = {value_text(dict(router))} }}',
        f'[[flows]]\nname = "load"\nprotocol = "greedy"\npacket = "{base.PACKET}B"\n'
        f'params = {{ rate = "{rate:.6f}Mbit/s" }}',
        f'[[flows]]\nname = "bulk"\nprotocol = "{protocol}"\npacket = "{SMALL}B"\nstart = "{JOINS_S:g}s"\n'
        f"{base.processing(effort)}params = {value_text({**base.timer(effort), **(params or {})})}",
        f'[[flows]]\nname = "witness"\nprotocol = "{router["kind"]}"\nstart = "{seconds - 0.01:g}s"',
        '[sampling]\nevery = "50ms"\nof = ["router", "flow", "cwnd", "throughput"]',
    ]
    return Case("\n\n".join(text) + "\n", seeds=seeds)


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
