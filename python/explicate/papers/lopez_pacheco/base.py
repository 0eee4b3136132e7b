"""What paper I's experiments share: networks of XCP-i and plain routers, flows, and measures.

A network is a list of links, each of two nodes and a rate, both ways alike; a plain router is one whose ports say
nothing. A host's own port never drops. The estimator is the paper's unless an experiment says otherwise: an oracle that
knows what the links of a cloud could have carried and what came to them, and speaks once per control interval.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import polars as pl

from explicate.papers import metrics
from explicate.papers.study import Data, Effort, Label, Line, Panel
from explicate.results import Results
from explicate.source import value_text

XCPI, XCP = "xcp_i", "xcp"
SAMPLED = ("queue", "throughput", "cwnd")
HEADERS, TCP_HEADERS = {XCP: 72, XCPI: 80}, 52
"""Bytes of a packet that are no payload: 20 of IP and 32 of transport, 20 of congestion header, 28 with XCP-i."""
LAWS: dict[str, dict[str, Any]] = {
    "capacity": {"law": "capacity"},
    "blind": {"law": "capacity", "cloud_queue": False},
    "paper": {"law": "paper"},
}
"""What a virtual router hands out, by the choice ``I-P13``."""

UNDER_XCP = "reno"
"""The simulator of the paper's time has XCP's sender on top of Reno's."""

Metric = Callable[[Results], float]


@dataclass(frozen=True)
class Network:
    """Links (from, to, Mbit/s), the plain routers among the nodes, buffers of single ports, who counts no TTL down."""

    links: Sequence[tuple[str, str, float]]
    plain: Collection[str] = ()
    buffers: Mapping[str, str] = field(default_factory=dict)
    bridges: Collection[str] = ()

    @property
    def nodes(self) -> list[str]:
        """All nodes, in order of their appearance."""
        return list(dict.fromkeys(node for a, b, _ in self.links for node in (a, b)))

    def everywhere(self) -> Network:
        """Return the same network without plain routers."""
        return Network(self.links, (), self.buffers)

    def nowhere(self) -> Network:
        """Return the same network with nothing but plain routers."""
        return Network(self.links, self.nodes, self.buffers)


def peering(narrow: float = 30, wide: float = 50) -> Network:
    """Return figure 5: two clouds, joined by the XCP-i routers r1 and r2."""
    links = [
        ("s", "e", 80),
        ("e", "c1", 80),
        ("c1", "r1", narrow),
        ("r1", "c2", 80),
        ("c2", "r2", wide),
        ("r2", "d", 80),
    ]
    return Network(links, {"c1", "c2"})


def merge(scale: float = 1, buffers: Mapping[str, str] | None = None) -> Network:
    """Return figure 7: clouds of 30 Mbit/s with i and of 10 with j share a path of 40 behind r1, `scale` times that."""
    links: list[tuple[str, str, float]] = []
    for name, narrow in (("i", 30), ("j", 10)):
        links += [(name, f"e{name}", 80), (f"e{name}", f"c{name}", 80), (f"c{name}", "r1", narrow)]
    links += [("r1", "r2", 40), ("r2", "di", 80), ("r2", "dj", 80)]
    return Network([(a, b, scale * rate) for a, b, rate in links], {"ci", "cj"}, buffers or {})


def shared(paths: Sequence[str] = ("i", "j"), buffer: str | None = None) -> Network:
    """Return figure 14: the XCP-i paths of `paths` cross one cloud, whose link c1-c2 of 30 Mbit/s they share."""
    links: list[tuple[str, str, float]] = []
    for name in paths:
        links += [(name, f"a{name}", 80), (f"a{name}", "c1", 80)]
    links += [("c1", "c2", 30)]
    for name in paths:
        links += [("c2", f"b{name}", 80), (f"b{name}", f"d{name}", 80)]
    return Network(links, {"c1", "c2"}, {"c1->c2": buffer} if buffer else {})


def flow(
    effort: Effort,
    name: str,
    protocol: str,
    ends: tuple[str, str],
    *,
    start: str = "0s",
    count: int = 1,
    params: Mapping[str, Any] | None = None,
) -> str:
    """Return `count` bulk flows; XCP's and XCP-i's losses are found by Reno's recovery."""
    if protocol in HEADERS:
        protocol = f"{protocol}/{UNDER_XCP}"
    given = f"params = {value_text(dict(params))}\n" if params else ""
    return (
        f'[[flows]]\nname = "{name}"\nprotocol = "{protocol}"\npacket = "{effort.choices["I-P2"]}"\ncount = {count}\n'
        f'from = "{ends[0]}"\nto = "{ends[1]}"\nstart = "{start}"\n{given}'
    )


def pair(effort: Effort, protocol: str) -> list[str]:
    """Return the bulk flows i and j, from the nodes of their names to ``di`` and ``dj``."""
    start = effort.choices["I-P14"]
    return [flow(effort, "i", protocol, ("i", "di")), flow(effort, "j", protocol, ("j", "dj"), start=start)]


def scenario(
    effort: Effort,
    name: str,
    network: Network,
    flows: Iterable[str],
    *,
    router: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    every: str = "100ms",
    sampled: Sequence[str] = SAMPLED,
) -> str:
    """Return a whole scenario file; `router` has the settings of the XCP-i routers, sampled is `every` so often."""
    law = {"kind": XCPI, **LAWS[effort.choices["I-P13"]], "idle": effort.choices["I-P9"], **(router or {})}
    text = [*flows]
    speaks = value_text(law) if any(f'"{XCPI}/' in one for one in text) else '"auto"'
    sources = {node for node in network.nodes if sum(node in link[:2] for link in network.links) == 1}
    head = (
        f'name = "{name}"\nduration = "{seconds or effort.seconds:g}s"\n'
        f'[sampling]\nevery = "{every}"\nof = {value_text(list(sampled))}\n'
    )
    kinds = dict.fromkeys(network.bridges, 'kind = "bridge"\n')
    named = [f'[[node]]\nname = "{node}"\n{kinds.get(node, "")}' for node in network.nodes]
    ports = [
        _port(effort, network, (a, b), rate, '"none"' if a in network.plain else speaks, limited=a not in sources)
        for one, other, rate in network.links
        for a, b in ((one, other), (other, one))
    ]
    return "\n".join([head, *named, *ports, *text])


def _port(effort: Effort, network: Network, ends: tuple[str, str], rate: float, router: str, *, limited: bool) -> str:
    name = "->".join(ends)
    limit = network.buffers.get(name, effort.choices["I-P3"])
    queue = f'queue = {{ kind = "droptail", limit = "{limit}" }}\n' if limited else ""
    return (
        f'[[link]]\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nrate = "{rate:g}Mbit/s"\n'
        f'delay = "{effort.choices["I-P1"]}"\n{queue}router = {router}\n'
    )


# ------------------------------------------------------------------------------------------------ measures


def mbps(results: Results, group: str) -> float:
    """Return what a group brought over, Mbit/s of IP bytes; what came twice counts once."""
    rows = results.flows.filter(results.flows["group"] == group)
    wanted = (flows for flows in tomllib.loads(results.scenario)["flows"] if flows["name"] == group)
    text = next(wanted)["packet"].removesuffix("B")
    packet = 1000 * float(text[:-1]) if text.endswith("k") else float(text)
    headers = HEADERS.get(str(rows["protocol"][0]).split("/")[0], TCP_HEADERS)
    return float(rows["goodput_bps"].sum()) * packet / (packet - headers) / 1e6


def sent_mb(results: Results, group: str) -> float:
    """Return the same over the whole run, MB."""
    return mbps(results, group) * metrics.end_s(results) / 8


@cache
def rate(group: str) -> Metric:
    """Return the measure of a group's Mbit/s."""
    return partial(mbps, group=group)


@cache
def megabytes(group: str) -> Metric:
    """Return the measure of a group's MB."""
    return partial(sent_mb, group=group)


@cache
def window(group: str, start_s: float = 5) -> Metric:
    """Return the measure of a flow's mean window, packets, from `start_s` on."""
    return lambda results: metrics.mean(metrics.series(results, f"{group}.0", "cwnd", start_s))


@cache
def window_unrest(group: str, start_s: float = 5) -> Metric:
    """Return the measure of a window's coefficient of variation from `start_s` on."""
    return lambda results: metrics.variation(metrics.series(results, f"{group}.0", "cwnd", start_s))


@cache
def unrest(group: str, start_s: float = 5) -> Metric:
    """Return the measure of a group's throughput's coefficient of variation, in bins of 1 s from `start_s` on."""
    return lambda results: metrics.variation(over_time(results, group, start_s))


def over_time(results: Results, group: str, start_s: float = 0, bin_s: float = 1) -> pl.DataFrame:
    """Return a group's throughput in bit/s over time, in bins of `bin_s`."""
    return metrics.sum_series(results, group, "throughput_bps", start_s, bin_s)


def drops(results: Results) -> float:
    """Return the packets that all queues refused."""
    return float(results.links["drops_overflow"].sum())


def timeouts(results: Results) -> float:
    """Return the timeouts of all flows."""
    return metrics.total(results, "timeouts")


def panels(data: Data, label: Label, groups: Sequence[str]) -> list[Panel]:
    """Return windows and throughputs over time of the first seed, as the paper's figures have them."""
    results = data.runs(label)[0]
    return [
        Panel(
            "window", "time (s)", "window (packets)",
            [Line.series(group, metrics.series(results, f"{group}.0", "cwnd")) for group in groups],
        ),
        Panel(
            "throughput", "time (s)", "throughput (Mbit/s)",
            [Line.series(group, over_time(results, group, bin_s=0.5), 1e6) for group in groups],
        ),
    ]  # fmt: skip


def requests(results: Results) -> float:
    """Return the requests that all agents sent."""
    rows = results.samples.filter(pl.col("variable") == "requests")
    last = rows.group_by("object").agg(pl.col("value").last())
    return float(last["value"].sum())
