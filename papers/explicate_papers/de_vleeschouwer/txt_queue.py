"""D-txt-queue: XTCP's counter under drop-tail and RED queues (section 3.2, note 1). Set-up: `base.py`, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Rewrite
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, at_least, at_most, equal, near
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-queue")

SYSTEMS = ("LR-XTCP", "LR-LMXTCP")
TCPS = ("newreno", "sack")
DROPTAIL, RED = "drop-tail", "RED"
STEP_S = 0.005
"""Sampling interval of windows and queues."""
CLOSE_UP_S = 50
OFTEN = "sampled often"


@study.cases
def cases(effort: Effort) -> dict[tuple[str, str], Case]:
    """Both systems over both policies, the TCPs that they resemble, and one run of each policy with fine sampling."""
    red = {"kind": "red", "limit": f"{effort.choices['D-P2']}pkt", **effort.table("D-P20")}
    queues = {DROPTAIL: None, RED: red}
    made: dict[tuple[str, str], Case] = {
        (system, queue): base.case(effort, system, 0.0, queue=kept)
        for queue, kept in queues.items()
        for system in (*SYSTEMS, *(TCPS if queue == DROPTAIL else ()))
    }
    close_up = {"sampling.every": f"{STEP_S * 1000:g}ms", "sampling.of": ["queue", "router", "flow"]}
    for queue, kept in queues.items():
        one = base.case(effort, SYSTEMS[1], 0.0, queue=kept, seconds=CLOSE_UP_S)
        made[OFTEN, queue] = replace(one, settings=close_up, seeds=2)
    return made


@study.predicate("D-txt-queue-a", use=0.95, jain=0.9)
def works_with_both(data: Data, use: float, jain: float) -> Iterator[Check]:
    """The link is full and fair with either drop policy."""
    for queue in (DROPTAIL, RED):
        for system in SYSTEMS:
            yield at_least(f"utilisation, {system} over {queue}", data.measure((system, queue), base.utilisation), use)
            yield at_least(f"Jain's index, {system} over {queue}", data.measure((system, queue), metrics.jain), jain)


def exceeded(results: Results) -> float:
    """Return in how many samples the counter exceeded the packets in the queue."""
    counter, queue = (
        metrics.series(results, base.BOTTLENECK, what)["value"] for what in ("congestion_counter", "queue_packets")
    )
    return float((counter > queue).sum())


def counted(results: Results) -> float:
    """Return the greatest value of the counter."""
    return metrics.largest(metrics.series(results, base.BOTTLENECK, "congestion_counter"))


@study.predicate(
    "D-txt-queue-b",
    instead="the counter and the queue are compared every 5 ms, because the record of packets has no counter",
)
def counter_within_queue(data: Data) -> Iterator[Check]:
    """Every counted packet can still be reported."""
    for queue in (DROPTAIL, RED):
        yield at_least(f"greatest counter, {queue}", data.measure((OFTEN, queue), counted), 1)
        yield equal(f"samples in which it exceeds the queue, {queue}", data.measure((OFTEN, queue), exceeded), 0)


def rise(results: Results, variable: str) -> float:
    """Return by how much a variable of the bottleneck's router rose in the measured time."""
    values = metrics.series(results, base.BOTTLENECK, variable, base.warmup_s(results))["value"]
    return float(values[-1] - values[0])


def unpaid(results: Results) -> float:
    """Return the drops that neither a flag, nor the counter, nor the cap accounts for."""
    known = sum(rise(results, name) for name in ("congestion_flags", "congestion_counter", "uncounted_drops"))
    return base.refused(results) - known


def surplus(results: Results) -> float:
    """Return how many more flags there were than drops, those of the counter at the start included."""
    return flags(results) + rise(results, "congestion_counter") - base.refused(results)


def flags(results: Results) -> float:
    """Return the flags of the measured time."""
    return rise(results, "congestion_flags")


@study.predicate("D-txt-queue-c")
def one_flag_for_each_drop(data: Data) -> Iterator[Check]:
    """No drop causes two flags; each causes one unless the cap or the end of the run prevents it."""
    for queue in (DROPTAIL, RED):
        for system in SYSTEMS:
            label, name = (system, queue), f"{system} over {queue}"
            yield at_least(f"{name}: flags", data.measure(label, flags), 1)
            yield at_most(f"{name}: flags less drops", data.measure(label, surplus), 0)
            yield equal(f"{name}: drops that nothing accounts for", data.measure(label, unpaid), 0)


def estimate(results: Results, flow: str) -> pl.DataFrame:
    """Return the round trip that a sender compares with, ms: its own estimate, or the timer's where one serves both."""
    try:
        return metrics.series(results, flow, "controller_srtt_ms")
    except KeyError:
        return metrics.series(results, flow, "srtt_ms")


def cuts(results: Results) -> list[tuple[float, float]]:
    """Return for each cut of a window the time since the flow's last one and its sender's round trip then, seconds."""
    found = []
    for flow in results.flows["flow"].cast(pl.String).to_list():
        window, smooth = metrics.series(results, flow, "cwnd"), estimate(results, flow)
        frame = window.with_columns(srtt=smooth["value"], before=window["value"].shift(1))
        times = frame.filter(pl.col("value") < pl.col("before"))
        spaces = times["time_s"].diff().to_list()
        found += [(space, srtt / 1000) for space, srtt in zip(spaces, times["srtt"], strict=True) if space is not None]
    return found


def too_near(results: Results) -> float:
    """Return how many cuts came less than a round trip after the flow's last one; a sample may come one step late."""
    return float(sum(space + STEP_S < srtt for space, srtt in cuts(results)))


def number_of_cuts(results: Results) -> float:
    """Return how many cuts were seen."""
    return float(len(cuts(results)))


@study.predicate("D-txt-queue-d")
def one_cut_a_round_trip(data: Data) -> Iterator[Check]:
    """The next cut is at least a round trip away."""
    for queue in (DROPTAIL, RED):
        yield at_least(f"cuts, {queue}", data.measure((OFTEN, queue), number_of_cuts), 10)
        yield equal(f"cuts within a round trip, {queue}", data.measure((OFTEN, queue), too_near), 0)


def mean_window(results: Results) -> float:
    """Return the mean window of all flows, packets."""
    flows, start_s = results.flows["flow"].cast(pl.String).to_list(), base.warmup_s(results)
    return sum(metrics.mean(metrics.series(results, flow, "cwnd", start_s)) for flow in flows) / len(flows)


@study.predicate("D-txt-queue-e", percent=10)
def mimics_tcp(data: Data, percent: float) -> Iterator[Check]:
    """Without losses on the air it is TCP, like NewReno and like SACK."""
    for system in SYSTEMS:
        for what, metric in (("mean window", mean_window), ("utilisation", base.utilisation)):
            for tcp in TCPS:
                share = data.measure((system, DROPTAIL), metric) / data.measure((tcp, DROPTAIL), metric)
                yield near(f"{what} of {system} over that of {tcp}", share, 1, percent / 100)


def half_speaks(protocol: str) -> Rewrite:
    """Return the mutation: the loss-free half of the XTCP flows uses another protocol."""

    def change(label: Any, one: Case) -> Case:
        system = SYSTEMS[1] if label[0] == OFTEN else label[0]
        return base.instead_of(system, protocol, halves=["clean"]).change(label, one)

    return Rewrite("protocol", change, lambda label: label[0] not in TCPS)


study.control(
    "UDP that obeys no flags in half of the flows' place",
    half_speaks("greedy"),
    ["D-txt-queue-a"],
    "the routers share only among senders that slow down",
)
study.cannot_fail("D-txt-queue-b", "the limit of note 1 has no switch, and no sender can move the counter past it")
study.control(
    "TCP in half of the flows' place",
    half_speaks("reno"),
    ["D-txt-queue-c"],
    "drops of TCP's packets are not counted, so nothing accounts for them",
)
study.control(
    "with the artificial back-off",
    base.instead_of(SYSTEMS[1], "LR-LMXTCP_TCPfriend", lambda label: label[0] == OFTEN),
    ["D-txt-queue-d"],
    "it cuts the window again when a second flag comes within a round trip",
)
study.control(
    "XCP in the place of LR-LMXTCP",
    base.instead_of(SYSTEMS[1], "LR-LMXCP", lambda label: label[0] != OFTEN),
    ["D-txt-queue-e"],
    "XCP keeps the queue empty, so its windows hold what the path holds and no more",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Ten seconds of the counter and the queue."""
    panels = []
    for queue in (DROPTAIL, RED):
        results = data.runs((OFTEN, queue))[0]
        lines = []
        for what in ("queue_packets", "congestion_counter"):
            frame = metrics.series(results, base.BOTTLENECK, what, 20)
            lines.append(Line.series(what, frame.filter(pl.col("time_s") < 25)))
        panels.append(Panel(f"LR-LMXTCP over {queue}", "time (s)", "packets", lines, compared=True))
    return panels
