"""Common set-up of paper K's experiments: a dumbbell with a round trip of 0.5 s (figure 3), and its measurements.

    s0 ... --- r1 === B ===> r2 --- d0 ...

The other links have 2 B. Every queue holds a bandwidth-delay product. Packets have 1040 bytes, all flows start from one
packet. Table III: the proposed scheme has t_rho = 1.25 s, 1 + epsilon = 10, alpha = 1, beta = 0.875, k = 0.33.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from explicate.results import Results
from explicate.scenario import Scenario
from explicate_papers import metrics
from explicate_papers.study import Case, Effort

RTT_S = 0.5
PACKET = 1040
T_RHO_S = 1.25
GROWTH = 10.0
"""1 + epsilon: the largest growth of windows in an interval."""
K = 0.33
FULL = 0.98
"""gamma: the share of the capacity that counts as full (equation 1)."""
MBPS = 100.0
BOTTLENECK = "r1->r2"
FLOW = "bulk.0"

PROPOSED, BISE, VCP, TCP = "BISE + WLTE", "BISE", "VCP", "TCP NewReno"


def case(
    effort: Effort,
    system: str,
    *,
    mbps: float = MBPS,
    flows: int = 1,
    loss: float = 0.0,
    k: float = K,
    growth: float = GROWTH,
    buffer: str = "1.0bdp",
    params: Mapping[str, Any] | None = None,
    router: Mapping[str, Any] | None = None,
    start: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    seeds: int | None = None,
    warmup: str = "0s",
    every: str = "50ms",
    of: Sequence[str] = ("cwnd", "router", "throughput", "queue"),
) -> Case:
    """Return the paper's network with `flows` of one `system`; `params` and `router` add to those of the system.

    Flows start as ``K-P14`` says, or by `start`.
    """
    choices = effort.choices
    protocol, own, marks = _system(effort, system, k, growth)
    values = {
        "initial_window": int(choices["K-P4"]), "receiver_window": int(choices["K-P8"]), **timer(effort),
        "paced": system in (PROPOSED, BISE, VCP) and choices["K-P15"] == "true", **own, **(params or {}),
    }  # fmt: skip
    controller = {**marks, **(router or {})} if marks else "auto"
    access_ms, drawn = float(choices["K-P5"].removesuffix("ms")), choices["K-P14"].split(", ")[0]

    def link(mbps: float, delay_ms: float, router: Any) -> dict[str, Any]:
        queue = {"kind": "droptail", "limit": buffer}
        return {"rate": f"{mbps:g}Mbit/s", "delay": f"{delay_ms:g}ms", "queue": queue, "router": router}

    made = (
        Scenario("paper-K", duration=f"{seconds or effort.seconds:g}s", warmup=warmup)
        .topology(
            "dumbbell",
            pairs=flows,
            access=link(2 * mbps, access_ms, controller if choices["K-P7"] == "every" else "none"),
            bottleneck=link(mbps, 1000 * RTT_S / 2 - 2 * access_ms, controller),
        )
        .flows(
            "bulk", protocol, count=flows, packet=f"{PACKET}B", processing=choices["K-P20"], params=values,
            start=start or (drawn if drawn == "0s" else {"uniform": drawn}),
        )
        .sampling(every, of)
    )  # fmt: skip
    for name in _lossy_links(choices) if loss else ():
        made = made.link(name=name, channel=[{"kind": "random_loss", "rate": loss}])
    return Case(made.to_toml(), seeds=seeds)


def _system(effort: Effort, system: str, k: float, growth: float) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a system's protocol, the parameters of its senders, and the controller of its routers."""
    recovery, scale = effort.choices["K-P17"], effort.choices["K-P2"]
    step = {"in_step": True} if effort.choices["K-P14"].endswith("in step") else {}
    if system == VCP:
        interval = effort.choices["K-P3"]
        return f"vcp/{recovery}", {"t_rho": interval, "ai_scale": scale}, {"kind": "vcp", "t_rho": interval, **step}
    if system in (PROPOSED, BISE):
        sender = {"xi": growth - 1, "ai_scale": scale, "on_loss": "keep" if system == PROPOSED else "halve"}
        epsilon = effort.choices["K-P6"]
        law: dict[str, Any] = {"eps_r": float(epsilon) if epsilon != "exact" and growth == GROWTH else growth - 1}
        if epsilon == "exact":
            law["exact_rtt"] = f"{RTT_S:g}s"
        return f"vcp-bise/{recovery}", sender, {"kind": "vcp-bise", "k": k, **law, **step}
    return {TCP: "newreno"}.get(system, system), {}, {}


def _lossy_links(choices: Mapping[str, str]) -> Sequence[str]:
    return (BOTTLENECK, "r2->r1") if choices["K-P19"] == "both" else (BOTTLENECK,)


def few(effort: Effort) -> int:
    """Return a quarter of the plan's seeds, for runs that are long or hardly differ."""
    return max(2, effort.seeds // 4)


def timer(effort: Effort) -> dict[str, str]:
    """Return the minimum timeout of hosts and its tick (``K-P18``); congestion controllers use exact round trips."""
    least, tick = effort.choices["K-P18"].split("/")
    return {"min_rto": least, "clock_tick": tick, "rtt_resolution": "0s"}


def watched_s(effort: Effort, parameter: str) -> tuple[float, float]:
    """Return the two times that a choice of how long something is watched has, s."""
    first, second = map(float, effort.choices[parameter].split("/"))
    return first, second


def vcp_watched_s(effort: Effort, interval: str) -> float:
    """Return how long a start of VCP is watched, by its interval (``K-P22``), s."""
    return dict(zip(("200ms", "1.25s"), watched_s(effort, "K-P22"), strict=True))[interval]


def pipe(mbps: float = MBPS) -> int:
    """Return the bandwidth-delay product in packets."""
    return math.floor(mbps * 1e6 * RTT_S / (8 * PACKET))


# ------------------------------------------------------------------------------------------------ measures


def cwnd(results: Results, flow: str = FLOW) -> pl.DataFrame:
    """Return a window over time, packets."""
    return metrics.series(results, flow, "cwnd")


def load(results: Results) -> pl.DataFrame:
    """Return the bottleneck's load factor over time."""
    return metrics.series(results, BOTTLENECK, "load_factor")


def drops(results: Results) -> float:
    """Return the packets refused by all queues."""
    return float(results.links["drops_overflow"].sum())


def timeouts(results: Results) -> float:
    """Return the timeouts of all flows."""
    return metrics.total(results, "timeouts")


def utilisation(results: Results) -> float:
    """Return the share of the bottleneck that is used."""
    return metrics.link(results, BOTTLENECK, "utilisation")


def goodput_mbps(results: Results) -> float:
    """Return the goodput of all flows, Mbit/s."""
    return metrics.total(results, "goodput_bps") / 1e6


def window_reaches(mbps: float, results: Results) -> float:
    """Return when the window first has 80 % of the pipe, s."""
    return metrics.first_time(cwnd(results), 0.8 * mbps * 1e6 * RTT_S / (8 * PACKET))


def steps(frame: pl.DataFrame) -> pl.Series:
    """Return each sample of a series over the one before."""
    return (frame["value"] / frame["value"].shift(1)).drop_nulls()


# ------------------------------------------------------------------------------------------------ controls


def links(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the two kinds of links of a scenario's dumbbell."""
    return [content["topology"][kind] for kind in ("access", "bottleneck")]


def marking(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the kinds of links whose ports mark (``K-P7``)."""
    return [link for link in links(content) if isinstance(link["router"], dict)]


def unmixed(content: dict[str, Any]) -> None:
    """Put VCP's routers in the place of BISE's: the senders keep their constants, nothing is mixed."""
    interval = {"t_rho": f"{T_RHO_S:g}s"}
    for link in marking(content):
        step = {key: value for key, value in link["router"].items() if key == "in_step"}
        link["router"] = {"kind": "vcp", **interval, **step}
    (bulk,) = content["flows"]
    bulk["protocol"] = bulk["protocol"].replace("vcp-bise/", "vcp/")
    bulk["params"] = {**interval, **bulk["params"]}


def growth_of(growth: int) -> Callable[[dict[str, Any]], None]:
    """Return the settings that give the senders and routers of BISE another 1 + epsilon."""

    def change(content: dict[str, Any]) -> None:
        content["flows"][0]["params"]["xi"] = growth - 1
        for link in marking(content):
            link["router"]["eps_r"] = growth - 1

    return change


UNMIXED = "VCP's routers mark for BISE's senders"
WHY_UNMIXED = "without mixed codes windows multiply by ten in an interval until the load is known"
