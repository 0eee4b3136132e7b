"""Common code of paper I's experiments: networks of XCP-i and plain routers, flows, measures, and controls.

A network is a list of links, each of two nodes and a rate for both directions. The ports of a plain router have no
controller. A host's own port never drops. By default the estimator is the paper's: an oracle that subtracts the load of
the cloud's links from their capacity once per control interval; the difference may be negative.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import Any

import polars as pl

from explicate.results import Results
from explicate.scenario import Scenario
from explicate_papers import metrics
from explicate_papers.controls import Rewrite
from explicate_papers.statistics import Check, Sample, between
from explicate_papers.study import Case, Data, Effort, Label, Line, Panel

XCPI, XCP = "xcp_i", "xcp"
SAMPLED = ("queue", "throughput", "cwnd")
HEADERS, TCP_HEADERS = {XCP: 72, XCPI: 80}, 52
"""Bytes of a packet that are no payload: 20 of IP and 32 of transport, 20 of congestion header, 28 with XCP-i."""
LAWS: dict[str, dict[str, Any]] = {
    "paper": {"law": "paper"},
    "available": {"law": "available"},
    "blind": {"law": "capacity", "cloud_queue": False},
    "capacity": {"law": "capacity"},
}
"""The parameters of a virtual router, by the choice ``I-P13``."""

Metric = Callable[[Results], float]
Flows = dict[str, Any]
"""A group of flows, as a scenario has it."""


@dataclass(frozen=True)
class Network:
    """Links (from, to, Mbit/s), plain routers, buffers of single ports, and routers that leave the TTL alone."""

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


def chain(effort: Effort) -> tuple[Network, str]:
    """Return figure 1 with ``I-P6`` routers, and the name of the middle one, which sends into 30 Mbit/s."""
    count = int(effort.choices["I-P6"])
    nodes = ["s", *(f"r{place}" for place in range(1, count + 1)), "d"]
    middle = nodes[(count + 1) // 2]
    links = [(a, b, 30.0 if a == middle else 80.0) for a, b in pairwise(nodes)]
    return Network(links), middle


def peering(effort: Effort) -> Network:
    """Return figure 5: two clouds, joined by the XCP-i routers r1 and r2; ``I-P12`` has the rates of their links."""
    narrow, wide = map(float, effort.choices["I-P12"].split("/"))
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


def flow(effort: Effort, name: str, protocol: str, ends: tuple[str, str], **keys: Any) -> Flows:
    """Return a bulk flow, or `count` of them; ``I-P19`` is the loss recovery under XCP and XCP-i.

    ``I-P20`` is the processing time of hosts. `keys` are further ones of the scenario.
    """
    if protocol in HEADERS:
        protocol = f"{protocol}/{effort.choices['I-P19']}"
    return {
        "name": name, "protocol": protocol, "packet": effort.choices["I-P2"], "count": 1, "from": ends[0],
        "to": ends[1], "start": "0s", "processing": effort.choices["I-P20"], **keys,
    }  # fmt: skip


def pair(effort: Effort, protocol: str) -> list[Flows]:
    """Return the bulk flows i and j, from the nodes of their names to ``di`` and ``dj``."""
    start = effort.choices["I-P14"]
    return [flow(effort, "i", protocol, ("i", "di")), flow(effort, "j", protocol, ("j", "dj"), start=start)]


def scenario(
    effort: Effort,
    name: str,
    network: Network,
    flows: Sequence[Flows],
    *,
    router: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    every: str = "100ms",
    sampled: Sequence[str] = SAMPLED,
) -> str:
    """Return a whole scenario file; `router` has the settings of the XCP-i routers, sampled is `every` so often."""
    choices, period = effort.choices, effort.choices["I-P8"]
    law = {
        "kind": XCPI, **LAWS[choices["I-P13"]], "idle": choices["I-P9"], "request_timeout": choices["I-P7"],
        **({} if period == "control interval" else {"period": period}), **(router or {}),
    }  # fmt: skip
    explicit = law if any(one["protocol"].startswith(f"{XCPI}/") for one in flows) else "auto"
    sources = {node for node in network.nodes if sum(node in link[:2] for link in network.links) == 1}
    made = Scenario(name, duration=f"{seconds or effort.seconds:g}s").sampling(every, sampled)
    for node in network.nodes:
        made = made.node(node, kind="bridge" if node in network.bridges else None)
    for one, other, rate in network.links:
        for a, b in ((one, other), (other, one)):
            made = made.link(
                a, b, rate=f"{rate:g}Mbit/s", delay=choices["I-P1"],
                queue=None if a in sources else _queue(effort, network, a, b),
                router="none" if a in network.plain else explicit,
            )  # fmt: skip
    for group in flows:
        made = made.add("flows", **group)
    return made.to_toml()


def _queue(effort: Effort, network: Network, a: str, b: str) -> dict[str, str]:
    kind = effort.choices["I-P5"] if a in network.plain else "droptail"
    return {"kind": kind, "limit": network.buffers.get(f"{a}->{b}", effort.choices["I-P3"])}


def link_s(effort: Effort) -> float:
    """Return the delay of a link, s."""
    return float(effort.choices["I-P1"].removesuffix("ms")) / 1000


def packet_bytes(effort: Effort) -> float:
    """Return the length of a packet, bytes."""
    return float(effort.choices["I-P2"].removesuffix("B"))


# ------------------------------------------------------------------------------------------------ measures


def mbps(results: Results, group: str) -> float:
    """Return the goodput of a group, Mbit/s of IP bytes; duplicates count once."""
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


def known(results: Results, name: str, variable: str) -> pl.DataFrame:
    """Return the samples of an entry of an agent, as `metrics.series`; none if there is no such agent or entry."""
    mine = pl.col("object").cast(pl.String) == name
    return results.samples.filter(mine, pl.col("variable") == variable).select("time_s", "value")


def most_known(results: Results, name: str, variable: str) -> float:
    """Return the largest value of an entry of an agent; 0 if there is no such agent or entry."""
    frame = known(results, name, variable)
    return 0.0 if frame.is_empty() else metrics.largest(frame)


def requests(results: Results) -> float:
    """Return the requests that all agents sent."""
    rows = results.samples.filter(pl.col("variable") == "requests")
    last = rows.group_by("object").agg(pl.col("value").last())
    return float(last["value"].sum())


def percent_apart(what: str, ours: Sample, reference: Sample, percent: float) -> Check:
    """Check that the means differ by at most `percent` of the reference."""
    named = f"{what}: {ours} against {reference}, apart by percent"
    return between(named, 100 * (ours - reference) / reference, -percent, percent)


# --------------------------------------------------------------------------------------- figures and controls


def panels(
    data: Data,
    label: Label,
    groups: Sequence[str],
    *,
    total: bool = False,
    beside: Sequence[Label] = (),
    marks: Mapping[str, float] | None = None,
) -> list[Panel]:
    """Return windows and throughputs over time of the first seed, with their `total` if requested.

    The runs `beside` are drawn too, under their labels, and the rates `marks`, Mbit/s, under their names.
    """
    windows, rates = [], []
    for one in (label, *beside):
        results = data.runs(one)[0]
        shown = {group: f"{group}, {one}" if beside else group for group in groups}
        windows += [Line.series(name, metrics.series(results, f"{group}.0", "cwnd")) for group, name in shown.items()]
        frames = {name: over_time(results, group, bin_s=0.5) for group, name in shown.items()}
        if total:
            first, *rest = frames.values()
            summed = first["value"] + sum(frame["value"] for frame in rest)
            frames[f"sum, {one}" if beside else "sum"] = first.with_columns(value=summed)
        rates += [Line.series(name, frame, 1e6) for name, frame in frames.items()]
    times = [0.0, max(rates[0].x)]
    rates += [Line(name, times, [mbps] * 2) for name, mbps in (marks or {}).items()]
    return [
        Panel("window, first seed", "time (s)", "window (packets)", windows),
        Panel("throughput, first seed", "time (s)", "throughput (Mbit/s)", rates),
    ]


def as_xcp(_: Label, case: Case) -> Case:
    """Return the case with plain XCP in the place of XCP-i: no cloud is found or measured."""

    def change(content: dict[str, Any]) -> None:
        for link in content["link"]:
            if isinstance(link["router"], dict):
                link["router"] = "auto"
        for group in content["flows"]:
            group["protocol"] = group["protocol"].replace(f"{XCPI}/", f"{XCP}/")

    return case.changed(change)


def xcp_instead(*labels: Label) -> Rewrite:
    """Return the mutation that runs plain XCP in the place of XCP-i, in the cases with these labels."""
    return Rewrite("protocol", as_xcp, lambda label: label in labels)


def other_routers(label: Label, **settings: Any) -> Rewrite:
    """Return the mutation that sets other values in the XCP-i routers of one case; they must have these keys."""

    def change(content: dict[str, Any]) -> None:
        for link in content["link"]:
            if isinstance(link["router"], dict):
                if strange := settings.keys() - link["router"]:
                    raise ValueError(f"the routers have no {', '.join(strange)}")
                link["router"] |= settings

    return Rewrite("off", lambda _, case: case.changed(change), lambda one: one == label)


def plain_at(case: Case, nodes: Callable[[str], bool]) -> Case:
    """Return the case with no control on the ports of some nodes."""

    def change(content: dict[str, Any]) -> None:
        for link in content["link"]:
            if nodes(link["from"]):
                link["router"] = "none"

    return case.changed(change)


def routers_everywhere(content: dict[str, Any]) -> None:
    """Give the ports of plain routers the controllers of the others."""
    law = next(link["router"] for link in content["link"] if isinstance(link["router"], dict))
    for link in content["link"]:
        if link["router"] == "none":
            link["router"] = dict(law)


def fair_law(case: Case) -> Case:
    """Return the case with the law for a bottleneck that edges share. The paper has none; this one is ours."""
    laws = {key for law in LAWS.values() for key in law}

    def change(content: dict[str, Any]) -> None:
        for link in content["link"]:
            if isinstance(link["router"], dict):
                link["router"] = {key: value for key, value in link["router"].items() if key not in laws}
                link["router"]["law"] = "shared"

    return case.changed(change)


def equation_1(case: Case) -> Case:
    """Return a case of the law for shared bottlenecks with equation 1 in its place."""

    def change(content: dict[str, Any]) -> None:
        for link in content["link"]:
            if isinstance(link["router"], dict):
                link["router"]["law"] = "paper"

    return case.changed(change)


WHY_EQUATION_1 = "equation 1 grants each edge all that is left, and is at rest with any division of a full link"
XCP_FOR_XCPI = "XCP runs in the place of XCP-i"
WHY_XCP = "XCP does not see the cloud's narrow link and overruns it, as the paper's section II-B shows"
