"""K-fig4: the window of one flow after its start: the proposed scheme, VCP and TCP (figure 4). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from explicate.papers import metrics
from explicate.papers.ikeda import base
from explicate.papers.statistics import Check, at_least, at_most, between, equal, in_most
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("K-fig4")

VCP_S = {"200ms": 40.0, "1.25s": 240.0}
"""How long VCP is watched, until it has filled the link: the first 30 s are drawn."""
SHOWN_S = 30.0


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """One flow of each."""
    return {
        base.PROPOSED: base.case(effort, base.PROPOSED, seconds=SHOWN_S),
        base.VCP: base.case(effort, base.VCP, seconds=VCP_S[effort.choices["K-P3"]]),
        # Nothing in its run is random.
        base.TCP: Case(base.case(effort, base.TCP, seconds=SHOWN_S).text, seeds=1),
    }


def longest_queue(results: Results) -> float:
    """Return the most packets that waited at the bottleneck."""
    return metrics.link(results, base.BOTTLENECK, "queue_peak_packets")


@study.predicate("K-fig4-a", packets=6009)
def pipe(data: Data, packets: float) -> Check:
    """The queue holds one pipe; TCP fills it to the brim."""
    return equal("longest queue under TCP, packets", data.measure(base.TCP, longest_queue), packets)


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


@study.predicate("K-fig4-d", drops=0, percent=12.5, runs=90)
def smooth(data: Data, drops: float, percent: float, runs: float) -> Iterator[Check]:
    """From the hybrid increase to the additive one without a loss."""
    yield equal("drops", data.measure(base.PROPOSED, base.drops), drops)
    yield at_most("largest fall of the window, %", data.measure(base.PROPOSED, deepest_cut), percent + 1e-9)
    yield in_most("no cut before additive increase", data.measure(base.PROPOSED, adds_before_cuts), runs / 100)


def first_drop(results: Results) -> float:
    """Return when the queue is first full, s."""
    return metrics.first_time(metrics.series(results, base.BOTTLENECK, "queue_packets"), base.pipe())


@study.predicate("K-fig4-e", low=5.5, high=8.5)
def slow_start_overruns(data: Data, low: float, high: float) -> Check:
    """The pipe is full near 6.3 s, the queue near 6.8 s."""
    return between("TCP's queue is full after, s", data.measure(base.TCP, first_drop), low, high)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The windows over time."""
    lines = []
    for system in (base.PROPOSED, base.VCP, base.TCP):
        window = base.cwnd(data.runs(system)[0])
        lines.append(Line.series(system, window.filter(window["time_s"] <= SHOWN_S)))
    return [Panel("Window after the start", "time (s)", "window (packets)", lines)]
