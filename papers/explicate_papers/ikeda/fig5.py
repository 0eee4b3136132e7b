"""K-fig5: the time until 80 % of the link is used, against its rate, for several k (figure 5). Set-up: `base.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, edit
from explicate_papers.ikeda import base
from explicate_papers.ikeda.fig2 import intervals
from explicate_papers.statistics import Check, Sample, at_least, at_most, average, between, exceeds, near, number
from explicate_papers.study import Case, Data, Effort, Empty, Label, Line, Panel, Study

study = Study("K-fig5")

DECADES = (10.0, 100.0, 1000.0)
GROWTHS = (10.0, 30.0, 100.0, 1000.0)
SOON_K = 0.25
"""Starts with a larger k are over sooner, and watched for the second time of ``K-P21``."""
ONE_K = base.K
VCP_DECADE_S = {"1.25s": 47.5, "200ms": 7.6}
"""Seconds that VCP needs for a decade more of bandwidth, by its interval."""


def values_of_k(effort: Effort) -> list[float]:
    """Return the curves."""
    return [float(k) for k in effort.choices["K-P9"].split()]


def rates(effort: Effort) -> Sequence[float]:
    """Return the rates of the bottleneck, Mbit/s."""
    return effort.pick([float(rate) for rate in effort.choices["K-P10"].split()], DECADES)


@study.cases
def cases(effort: Effort) -> dict[Label, Case]:
    """The figure, with twice the seeds, since means hardly differ at large k; more growth; VCP with either interval."""
    of = ("router", "throughput")
    late_s, soon_s = base.watched_s(effort, "K-P21")
    made: dict[Label, Case] = {}
    for k in values_of_k(effort):
        for mbps in rates(effort):
            seconds = soon_s if k > SOON_K else late_s
            made["k", k, mbps] = base.case(
                effort, base.PROPOSED, mbps=mbps, k=k, seconds=seconds, of=of, seeds=2 * effort.seeds
            )
    for mbps in DECADES:
        for growth in GROWTHS:
            made["growth", growth, mbps] = base.case(
                effort, base.PROPOSED, mbps=mbps, growth=growth, seconds=late_s, of=of, seeds=base.few(effort)
            )
        for interval in VCP_DECADE_S:
            own, seconds = {"t_rho": interval}, base.vcp_watched_s(effort, interval)
            made[interval, mbps] = base.case(
                effort, base.VCP, mbps=mbps, params=own, router=own, seconds=seconds, of=of, seeds=2
            )
    return made


def by_load(results: Results) -> float:
    """Return when the router first finds a load of 80 %, s; infinite if it does not."""
    return metrics.first_time(base.load(results), 0.8)


def by_rate(mbps: float, results: Results) -> float:
    """Return when the link has first carried 80 % of its rate for a second, s; infinite if it has not."""
    rate = metrics.series(results, base.BOTTLENECK, "throughput_bps")
    second = rate.with_columns(rate["value"].rolling_mean(20)).drop_nulls()
    return metrics.first_time(second, 0.8e6 * mbps)


Times = dict[Any, Sample]
"""The time until the link is used, s, of the cases in which every run uses it."""


def elapsed(data: Data, labels: Iterable[Any]) -> tuple[Times, list[Empty]]:
    """Return the times of those cases in which every run uses the link, and of each other case that it does not."""
    late = 0.0 if data.effort.choices["K-P11"] == "the connection's set-up" else base.RTT_S
    found, empty = {}, []
    for label in labels:
        times = data.measure(label, _metric(data, label[-1]))
        missing = not_reached(times, words(label))
        empty += missing
        if not missing:
            found[label] = times - late
    return found, empty


def words(label: Any) -> str:
    """Return a label in words."""
    *kind, mbps = label
    name = {"k": "k = {:g}", "growth": "1 + epsilon = {:g}"}.get(kind[0], f"VCP, {kind[0]}").format(*kind[1:])
    return f"{name}, {mbps:g} Mbit/s"


def _metric(data: Data, mbps: float) -> Callable[[Results], float]:
    return by_load if data.effort.choices["K-P12"] == "load factor" else partial(by_rate, mbps)


def not_reached(times: Sample, what: str) -> list[Empty]:
    """Return a failed check if one of the times is infinite, else none."""
    missing = sum(map(math.isinf, times))
    told = f"in {missing} of {len(times.values)} runs the load does not reach 80 % in time"
    return [Empty.of(f"s to 80 %, {what}", told)] if missing else []


def of_k(data: Data, ks: Iterable[float], mbps: Iterable[float]) -> tuple[Times, list[Empty]]:
    """Return `elapsed` for each k at each rate."""
    return elapsed(data, [("k", k, rate) for k, rate in product(ks, mbps)])


@study.predicate("K-fig5-a")
def larger_is_faster(data: Data) -> Iterator[Check]:
    """The larger k, the shorter the start."""
    ks, grid = values_of_k(data.effort), rates(data.effort)
    times, empty = of_k(data, ks, grid)
    for small, large in pairwise(ks):
        slow, fast = ([times["k", k, mbps] for mbps in grid if ("k", k, mbps) in times] for k in (small, large))
        if len(slow) == len(fast) == len(grid):
            name = f"s to 80 %, mean over {len(grid)} capacities: k = {small:g} over {large:g}"
            yield exceeds(name, average(slow), average(fast))
    yield from empty


@study.predicate("K-fig5-b", factor=1.25, rest=0.2, one=1)
def longer_than_the_analysis(data: Data, factor: float, rest: float, one: float) -> Iterator[Check]:
    """The simulation takes longer than equation 12."""
    times, empty = of_k(data, values_of_k(data.effort), rates(data.effort))
    for label, took in times.items():
        analysis = factor * math.log(rest) / math.log(one - label[1])
        yield at_least(f"s to 80 %, {words(label)}", took, analysis)
    yield from empty


@study.predicate("K-fig5-c", fast=1000, slow=10, low=0, high=4)
def grows_slightly(data: Data, fast: float, slow: float, low: float, high: float) -> Iterator[Check]:
    """A hundred times the rate costs a few seconds."""
    ks = values_of_k(data.effort)
    times, empty = of_k(data, ks, (slow, fast))
    for k in ks:
        if ("k", k, slow) in times and ("k", k, fast) in times:
            more = times["k", k, fast] - times["k", k, slow]
            yield between(f"k = {k:g}: seconds more at {fast:g} than at {slow:g} Mbit/s", more, low, high)
    yield from empty


FLUID = {0.2: (10.5, 11.8, 13.0), 0.33: (7.0, 8.3, 9.5), 0.553: (4.8, 6.1, 7.3)}
"""Seconds at 10, 100 and 1000 Mbit/s by equation 10 with growth cut to ten in an interval, without the set-up."""


@study.predicate("K-fig5-d", tolerance=1.5)
def as_the_fluid(data: Data, tolerance: float) -> Iterator[Check]:
    """The analysis with growth of at most ten in an interval, and a round trip for the set-up."""
    times, empty = of_k(data, FLUID, DECADES)
    for label, measured in times.items():
        seconds = FLUID[label[1]][DECADES.index(label[2])]
        yield near(f"s to 80 %, {words(label)}", measured, seconds + base.RTT_S, tolerance)
    yield from empty


@study.predicate("K-fig5-e", slow=10, fast=1000, percent=10)
def more_growth_flattens(data: Data, slow: float, fast: float, percent: float) -> Iterator[Check]:
    """With the largest 1 + epsilon a hundred times the capacity costs no time; drops are reported."""
    usual, large = GROWTHS[0], GROWTHS[-1]
    times, empty = elapsed(data, [("growth", growth, mbps) for growth, mbps in product((usual, large), (slow, fast))])
    if not empty:
        costs = {growth: times["growth", growth, fast] - times["growth", growth, slow] for growth in (usual, large)}
        lost = [number(data.measure(("growth", large, mbps), base.drops).mean) for mbps in DECADES]
        name = f"s more at {fast:g} than at {slow:g} Mbit/s"
        told = f"1 + epsilon = {usual:g} over {large:g} (drops with {large:g}: {', '.join(lost)})"
        yield exceeds(f"{name}: {told}", costs[usual], costs[large])
        share = 100 * costs[large] / times["growth", large, slow]
        yield at_most(f"{name} with {large:g}, % of the time at {slow:g}", share, percent)
    yield from empty


@study.predicate("K-fig5-f", percent=10)
def vcp_pays_for_decades(data: Data, percent: float) -> Iterator[Check]:
    """VCP multiplies by 1.0625 in an interval: 38 of them for a decade."""
    times, empty = elapsed(data, product(VCP_DECADE_S, DECADES))
    for (interval, decade), (few, many) in product(VCP_DECADE_S.items(), pairwise(DECADES)):
        if (interval, few) in times and (interval, many) in times:
            more = times[interval, many] - times[interval, few]
            name = f"VCP, {interval}: seconds more at {many:g} than at {few:g} Mbit/s"
            yield near(name, more, decade, percent / 100 * decade)
    yield from empty


study.control(
    "one k for all",
    Place("flat", lambda label: ("k", ONE_K, label[2]) if label[0] == "k" else label),
    ["K-fig5-a"],
    "the same k starts in the same time",
)
study.control(
    base.UNMIXED,
    edit("off", base.unmixed, lambda label: label[0] == "k"),
    ["K-fig5-b"],
    "windows that multiply by ten in every interval are faster than any k of the analysis allows",
)
study.control(
    "VCP in the place of BISE",
    Place("protocol", lambda label: ("200ms", label[2]) if label[0] == "k" and label[2] in DECADES else label),
    ["K-fig5-c", "K-fig5-d"],
    "VCP takes 38 intervals more for a decade",
)
study.control(
    "one growth for all",
    Place("flat", lambda label: ("growth", GROWTHS[0], label[2]) if label[0] == "growth" else label),
    ["K-fig5-e"],
    "the same growth costs the same time for a decade",
)
study.control(
    "BISE in the place of VCP",
    Place("protocol", lambda label: ("k", ONE_K, label[1]) if label[0] in VCP_DECADE_S else label),
    ["K-fig5-f"],
    "BISE takes little more time for a decade",
)


def _drawn(data: Data, name: str, k: float) -> Line:
    """Return the curve of a k, of the runs that fill the link."""
    found = {
        mbps: Sample.of(time for time in data.measure(("k", k, mbps), _metric(data, mbps)) if math.isfinite(time))
        for mbps in rates(data.effort)
    }
    shown = {mbps: times for mbps, times in found.items() if times.values}
    return Line.of(name, list(shown), list(shown.values()))


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Simulation and analysis for each k."""
    grid = rates(data.effort)
    ks = {f"k = {k:g}": k for k in values_of_k(data.effort)}
    runs = [_drawn(data, name, k) for name, k in ks.items()]
    fluid = [Line(name, grid, [base.T_RHO_S * intervals(k)] * len(grid)) for name, k in ks.items()]
    return [
        Panel(title, "bandwidth (Mbit/s)", "time to 80 % of the link (s)", lines, log="x", compared=True)
        for title, lines in (("Simulation", runs), ("Analysis", fluid))
    ]
