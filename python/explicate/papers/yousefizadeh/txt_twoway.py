"""Y-txt-twoway: figure 7 with ten flows each way (section III, after figure 7). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from explicate.papers import metrics
from explicate.papers.statistics import Check, Sample, at_least, at_most, fact
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.papers.yousefizadeh import base
from explicate.papers.yousefizadeh.base import SYSTEMS, TCP, VCP, XCP
from explicate.papers.yousefizadeh.fig7 import SHARE
from explicate.results import Results

study = Study("Y-txt-twoway")

FEC = (SHARE, 0.5)


@study.cases
def cases(effort: Effort) -> dict[tuple[str, bool], Case]:
    """Every system, one way and two ways."""
    return {
        (system, two_way): base.satellite(effort, system, two_way=two_way)
        for system in SYSTEMS
        for two_way in (False, True)
    }


def over_time(system: str, two_way: bool, results: Results) -> pl.DataFrame:
    """Return the utilisation of the way there over time."""
    return base.used(results, base.share(system, FEC, two_way))


def mean(data: Data, system: str, two_way: bool) -> Sample:
    """Return the mean utilisation from 50 s on."""
    runs = data.runs((system, two_way))
    return Sample.of(metrics.mean(base.steady(over_time(system, two_way, one), 50)) for one in runs)


def unrest(data: Data, system: str, two_way: bool) -> Sample:
    """Return the deviation of the utilisation behind the start."""
    runs = data.runs((system, two_way))
    return Sample.of(metrics.deviation(base.steady(over_time(system, two_way, one))) for one in runs)


@study.predicate("Y-txt-twoway-a")
def others_get_worse(data: Data) -> Iterator[Check]:
    """Less use, or less rest."""
    for system in (XCP, TCP):
        means = [mean(data, system, two_way) for two_way in (False, True)]
        deviations = [unrest(data, system, two_way) for two_way in (False, True)]
        worse = means[1].mean < means[0].mean or deviations[1].mean > deviations[0].mean
        measured = f"mean {means[0]} → {means[1]}, deviation {deviations[0]} → {deviations[1]}"
        yield fact(
            f"{system}, one way → two ways", holds=worse, measured=measured, wanted="a lower mean or more deviation"
        )


@study.predicate("Y-txt-twoway-b", least=0.85, deviation=0.06)
def vcp_stays(data: Data, least: float, deviation: float) -> Iterator[Check]:
    """High and quiet."""
    yield at_least("mean utilisation of VCP, two ways", mean(data, VCP, True), least)
    yield at_most("deviation of VCP, two ways", unrest(data, VCP, True), deviation)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system, of the first seed."""
    return [
        Panel(
            system, "time (s)", "utilisation (%)",
            [
                Line.series(name, over_time(system, two_way, data.runs((system, two_way))[0]), 0.01)
                for name, two_way in (("one way", False), ("two ways", True))
            ],
        )
        for system in SYSTEMS
    ]  # fmt: skip
