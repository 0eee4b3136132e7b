"""K-fig4: the window of one flow after its start: the proposed scheme, VCP and TCP (figure 4). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, edit
from explicate_papers.ikeda import base
from explicate_papers.statistics import Check, Sample, at_least, at_most, between, equal, in_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-fig4")

SHOWN_S = 30.0
"""The variants of the plot; VCP runs longer, until it has filled the link."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """One flow of each."""
    return {
        base.PROPOSED: base.case(effort, base.PROPOSED, seconds=SHOWN_S),
        base.VCP: base.case(effort, base.VCP, seconds=base.vcp_watched_s(effort, effort.choices["K-P3"])),
        base.TCP: base.case(effort, base.TCP, seconds=SHOWN_S),
    }


def longest_queue(results: Results) -> float:
    """Return the peak queue at the bottleneck, packets."""
    return metrics.link(results, base.BOTTLENECK, "queue_peak_packets")


@study.predicate("K-fig4-a", packets=6009)
def pipe(data: Data, packets: float) -> Iterator[Check]:
    """The bandwidth-delay product, and the peak of a queue of that size: TCP fills it."""
    yield equal("rate by round trip over packet, packets", Sample.of([base.pipe()]), packets)
    yield equal("longest queue under TCP, packets", data.measure(base.TCP, longest_queue), packets)


filled = partial(base.window_reaches, base.MBPS)


@study.predicate("K-fig4-b", times=0.5)
def far_faster(data: Data, times: float) -> Check:
    """The proposed scheme starts in half of VCP's time or less."""
    proposed, vcp = data.measure(base.PROPOSED, filled), data.measure(base.VCP, filled)
    return at_most(f"time to 80 % of the pipe, proposed ({proposed} s) over VCP ({vcp} s)", proposed / vcp, times)


@study.predicate("K-fig4-c", timeouts=1, drops=500)
def tcp_times_out(data: Data, timeouts: float, drops: float) -> Iterator[Check]:
    """Slow start loses heavily."""
    yield at_least("TCP's timeouts", data.measure(base.TCP, base.timeouts), timeouts)
    yield at_least("TCP's drops", data.measure(base.TCP, base.drops), drops)


def deepest_cut(results: Results) -> float:
    """Return the largest fall of the window from one sample to the next, percent."""
    return 100 * (1 - float(base.steps(base.cwnd(results)).min()))  # type: ignore[arg-type]


def adds_before_cuts(results: Results) -> float:
    """Return 1 if the load factor passes through high load on its way up, 0 if it jumps to overload."""
    loads = base.load(results)["value"]
    above = loads.filter(loads >= 0.8)
    return float(len(above) > 0 and above[0] < 1.0)


@study.predicate("K-fig4-d", drops=0, percent=12.5, runs=50)
def smooth(data: Data, drops: float, percent: float, runs: float) -> Iterator[Check]:
    """From the hybrid increase to the additive one without a loss; no window of any run falls further."""
    yield equal("drops", data.measure(base.PROPOSED, base.drops), drops)
    deepest = data.measure(base.PROPOSED, deepest_cut)
    name = f"runs whose window falls by more than {percent:g} % (deepest falls {deepest} %)"
    yield equal(name, deepest.map(lambda cut: cut > percent + 1e-9), 0)
    yield in_most("no cut before additive increase", data.measure(base.PROPOSED, adds_before_cuts), runs / 100)


def first_drop(results: Results) -> float:
    """Return when the queue is first full, s."""
    return metrics.first_time(metrics.series(results, base.BOTTLENECK, "queue_packets"), base.pipe())


@study.predicate("K-fig4-e", low=5.5, high=8.5)
def slow_start_overruns(data: Data, low: float, high: float) -> Check:
    """The pipe is full near 6.3 s, the queue near 6.8 s."""
    return between("TCP's queue is full after, s", data.measure(base.TCP, first_drop), low, high)


def half_a_pipe(content: dict[str, Any]) -> None:
    """Let queues hold half a bandwidth-delay product."""
    for link in base.links(content):
        link["queue"]["limit"] = "0.5bdp"


study.control(
    "queues hold half a pipe",
    edit("off", half_a_pipe, lambda label: label == base.TCP),
    ["K-fig4-a"],
    "TCP then fills half as much",
)
study.control(
    "VCP in the place of the others",
    Place("protocol", lambda _: base.VCP),
    ["K-fig4-b", "K-fig4-c", "K-fig4-e"],
    "VCP multiplies by 1.0625 in an interval: it is no faster than itself and overruns nothing",
)
study.control(
    base.UNMIXED, edit("off", base.unmixed, lambda label: label == base.PROPOSED), ["K-fig4-d"], base.WHY_UNMIXED
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The windows over time, whole and up to two pipes, which TCP's peak exceeds."""
    two, times = 2.0 * base.pipe(), [0.0, SHOWN_S]
    whole, cut = [], []
    for system in (base.PROPOSED, base.VCP, base.TCP):
        window = base.cwnd(data.runs(system)[0])
        shown = window.filter(window["time_s"] <= SHOWN_S)
        whole.append(Line.series(system, shown))
        cut.append(Line.series(system, shown.with_columns(value=shown["value"].clip(upper_bound=two))))
    pipe_line = Line("BDP", times, [float(base.pipe())] * 2)
    return [
        Panel("Window after the start, cut at two BDP, first seed", "time (s)", "window (packets)", [*cut, pipe_line]),
        Panel("Window after the start, whole, first seed", "time (s)", "window (packets)", [*whole, pipe_line]),
    ]
