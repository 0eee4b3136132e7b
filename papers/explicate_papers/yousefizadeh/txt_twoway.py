"""Y-txt-twoway: figure 7 with ten flows each way (section III, after figure 7). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.statistics import Check, Sample, above, at_least, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study
from explicate_papers.yousefizadeh import base
from explicate_papers.yousefizadeh.base import SYSTEMS, TCP, VCP, XCP
from explicate_papers.yousefizadeh.fig7 import MEAN_FROM_S, SHARE, STEADY_FROM_S

study = Study("Y-txt-twoway")

FEC = (SHARE, 0.5)
Key = tuple[str, bool]


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """Every system, one way and two ways."""
    return {
        (system, two_way): base.satellite(effort, system, two_way=two_way)
        for system in SYSTEMS
        for two_way in (False, True)
    }


def over_time(data: Data, system: str, two_way: bool) -> list[pl.DataFrame]:
    """Return the utilisation of the way there over time, for each seed."""
    return base.used(data, (system, two_way), base.share(system, FEC, two_way))


def mean(data: Data, system: str, two_way: bool) -> Sample:
    """Return the mean utilisation."""
    return Sample.of(metrics.mean(base.after(frame, MEAN_FROM_S)) for frame in over_time(data, system, two_way))


def unrest(data: Data, system: str, two_way: bool) -> Sample:
    """Return the deviation of the utilisation behind the starts."""
    frames = over_time(data, system, two_way)
    return Sample.of(metrics.deviation(base.after(frame, STEADY_FROM_S)) for frame in frames)


@study.predicate("Y-txt-twoway-a")
def others_get_worse(data: Data) -> Iterator[Check]:
    """Less use, or less rest."""
    for system in (XCP, TCP):
        less = above(f"{system}: mean one way over two", mean(data, system, False), mean(data, system, True))
        more = above(f"{system}: deviation two ways over one", unrest(data, system, True), unrest(data, system, False))
        shown, other = (more, less) if more.holds and not less.holds else (less, more)
        measured = f"{shown.measured}; {other.what}: {other.measured}"
        yield replace(shown, measured=measured, wanted="one of the two", holds=less.holds or more.holds)


@study.predicate("Y-txt-twoway-b", least=0.85)
def vcp_stays(data: Data, least: float) -> Iterator[Check]:
    """High and quiet."""
    yield at_least("mean utilisation of VCP, two ways", mean(data, VCP, True), least)
    yield exceeds("deviation, two ways: XCP over VCP", unrest(data, XCP, True), unrest(data, VCP, True))


def xcp_for_vcp(label: Key) -> Key:
    """Return the label with XCP in VCP's place."""
    return XCP if label[0] == VCP else label[0], label[1]


study.control(
    "one way and two ways exchanged", exchange(False, True), ["Y-txt-twoway-a"],
    "If the other way's data makes both worse, one way in the place of two is better.",
)  # fmt: skip
study.control(
    "XCP in VCP's place", Place("protocol", xcp_for_vcp), ["Y-txt-twoway-b"],
    "The text says of XCP that two ways exacerbate its swings: it does not pass as VCP.",
)  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system, of the first seed."""
    return [
        Panel(
            f"{system}, seed {data.runs((system, True))[0].seed}", "time (s)", "utilisation (%)",
            [
                Line.series(name, over_time(data, system, two_way)[0], 0.01)
                for name, two_way in (("one way", False), ("two ways", True))
            ],
            compared=True,
        )
        for system in SYSTEMS
    ]  # fmt: skip
