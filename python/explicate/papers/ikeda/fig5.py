"""K-fig5: the time until 80 % of the link is used, against its rate, for several k (figure 5). Set-up: `base.py`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from explicate.papers import metrics
from explicate.papers.ikeda import base
from explicate.papers.ikeda.fig2 import intervals
from explicate.papers.statistics import Check, Sample, at_least, between, fact, near, number
from explicate.papers.study import Case, Data, Effort, Label, Line, Panel, Study
from explicate.results import Results

study = Study("K-fig5")

RATES = (10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
DECADES = (10.0, 100.0, 1000.0)
GROWTHS = (10.0, 30.0, 100.0, 1000.0)
SECONDS = 25.0
SOON_S = 14.0
"""How long a start is watched: less with a k of which all are over soon."""
SOON_K = 0.25
SEEDS = 40
"""Of the figure itself, whose means hardly differ at large k (the paper has 100)."""
FEW_SEEDS = 5
VCP_S = {"200ms": 50.0, "1.25s": 260.0}
"""How long VCP is given, by its interval."""


def values_of_k(effort: Effort) -> list[float]:
    """Return the curves."""
    return [float(k) for k in effort.choices["K-P9"].split()]


def rates(effort: Effort) -> Sequence[float]:
    """Return the rates of the bottleneck, Mbit/s."""
    return effort.pick(RATES, DECADES)


@study.cases
def cases(effort: Effort) -> dict[Label, Case]:
    """The figure; more growth in an interval; VCP with either interval."""
    of = ("router", "throughput")
    made: dict[Label, Case] = {}
    for k in values_of_k(effort):
        for mbps in rates(effort):
            seconds = SOON_S if k > SOON_K else SECONDS
            case = base.case(effort, base.PROPOSED, mbps=mbps, k=k, seconds=seconds, of=of)
            made["k", k, mbps] = Case(case.text, seeds=max(effort.seeds, SEEDS))
    for mbps in DECADES:
        for growth in GROWTHS:
            case = base.case(effort, base.PROPOSED, mbps=mbps, growth=growth, seconds=SECONDS, of=of)
            made["growth", growth, mbps] = Case(case.text, seeds=min(effort.seeds, FEW_SEEDS))
        for interval, seconds in VCP_S.items():
            own = {"t_rho": interval}
            case = base.case(effort, base.VCP, mbps=mbps, params=own, router=own, seconds=seconds, of=of)
            made[interval, mbps] = Case(case.text, seeds=1)
    return made


def by_load(results: Results) -> float:
    """Return when the router first finds a load of 80 %, s; the run's end if it does not."""
    return min(metrics.first_time(base.load(results), 0.8), metrics.end_s(results))


def by_rate(mbps: float, results: Results) -> float:
    """Return when the link has first carried 80 % of its rate for a second, s; the run's end if it does not."""
    rate = metrics.series(results, base.BOTTLENECK, "throughput_bps")
    second = rate.with_columns(rate["value"].rolling_mean(20)).drop_nulls()
    return min(metrics.first_time(second, 0.8e6 * mbps), metrics.end_s(results))


def elapsed(data: Data, label: Label, mbps: float) -> Sample:
    """Return the time until the link is used, s."""
    choices = data.effort.choices
    metric = by_load if choices["K-P12"] == "load factor" else partial(by_rate, mbps)
    late = 0.0 if choices["K-P11"] == "the connection's set-up" else base.RTT_S
    return data.measure(label, metric) - late


@study.predicate("K-fig5-a")
def larger_is_faster(data: Data) -> Iterator[Check]:
    """The larger k, the shorter the start."""
    for mbps in rates(data.effort):
        times = [elapsed(data, ("k", k, mbps), mbps) for k in values_of_k(data.effort)]
        holds = all(a.mean > b.mean for a, b in pairwise(times))
        measured = " → ".join(map(str, times))
        yield fact(f"s to 80 % at {mbps:g} Mbit/s, k rising", holds=holds, measured=measured, wanted="always down")


@study.predicate("K-fig5-b", factor=1.25, rest=0.2, one=1)
def longer_than_the_analysis(data: Data, factor: float, rest: float, one: float) -> Iterator[Check]:
    """The simulation takes longer than equation 12."""
    for k in values_of_k(data.effort):
        analysis = factor * math.log(rest) / math.log(one - k)
        for mbps in rates(data.effort):
            yield at_least(f"s to 80 %, k = {k:g}, {mbps:g} Mbit/s", elapsed(data, ("k", k, mbps), mbps), analysis)


@study.predicate("K-fig5-c", fast=1000, slow=10, low=0, high=4)
def grows_slightly(data: Data, fast: float, slow: float, low: float, high: float) -> Iterator[Check]:
    """A hundred times the rate costs a few seconds."""
    for k in values_of_k(data.effort):
        more = elapsed(data, ("k", k, fast), fast) - elapsed(data, ("k", k, slow), slow)
        yield between(f"k = {k:g}: seconds more at {fast:g} than at {slow:g} Mbit/s", more, low, high)


VCP_DECADE_S = {"1.25s": 47.5, "200ms": 7.6}
"""Seconds that VCP needs for a decade more of bandwidth, by its interval."""
FLUID = {0.2: (10.5, 11.8, 13.0), 0.33: (7.0, 8.3, 9.5), 0.553: (4.8, 6.1, 7.3)}
"""Seconds at 10, 100 and 1000 Mbit/s by equation 10 with growth cut to ten in an interval, without the set-up."""


@study.predicate("K-fig5-d", tolerance=1.5)
def as_the_fluid(data: Data, tolerance: float) -> Iterator[Check]:
    """The analysis with growth of at most ten in an interval, and a round trip for the set-up."""
    for k, fluid in FLUID.items():
        for mbps, seconds in zip(DECADES, fluid, strict=True):
            measured = elapsed(data, ("k", k, mbps), mbps)
            yield near(f"s to 80 %, k = {k:g}, {mbps:g} Mbit/s", measured, seconds + base.RTT_S, tolerance)


def slope(data: Data, growth: float) -> Sample:
    """Return the seconds that a decade more of bandwidth costs."""
    slow, fast = DECADES[0], DECADES[-1]
    return (elapsed(data, ("growth", growth, fast), fast) - elapsed(data, ("growth", growth, slow), slow)) / 2


@study.predicate("K-fig5-e")
def more_growth_flattens(data: Data) -> Check:
    """The larger 1 + epsilon, the less a decade costs; what is dropped is reported."""
    slopes = [slope(data, growth) for growth in GROWTHS]
    lost = [data.measure(("growth", growth, mbps), base.drops).mean for growth in GROWTHS for mbps in DECADES]
    holds = all(a.mean > b.mean for a, b in pairwise(slopes))
    measured = f"{' → '.join(map(str, slopes))}; drops {', '.join(map(number, lost))}"
    return fact("s per decade, 1 + epsilon = 10, 30, 100, 1000", holds=holds, measured=measured, wanted="always down")


@study.predicate("K-fig5-f", percent=10)
def vcp_pays_for_decades(data: Data, percent: float) -> Iterator[Check]:
    """VCP multiplies by 1.0625 in an interval: 38 of them for a decade."""
    for interval, decade in VCP_DECADE_S.items():
        for few, many in pairwise(DECADES):
            more = elapsed(data, (interval, many), many) - elapsed(data, (interval, few), few)
            name = f"VCP, {interval}: seconds more at {many:g} than at {few:g} Mbit/s"
            yield near(name, more, decade, percent / 100 * decade)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Simulation and analysis for each k."""
    grid = rates(data.effort)
    ks = {f"k = {k:g}": k for k in values_of_k(data.effort)}
    runs = [Line.of(name, grid, [elapsed(data, ("k", k, mbps), mbps) for mbps in grid]) for name, k in ks.items()]
    fluid = [Line(name, grid, [base.T_RHO_S * intervals(k)] * len(grid)) for name, k in ks.items()]
    return [
        Panel(title, "bandwidth (Mbit/s)", "time to 80 % of the link (s)", lines, log="x")
        for title, lines in (("Simulation", runs), ("Analysis", fluid))
    ]
