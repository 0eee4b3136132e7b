"""N-fig1: TCP's throughput over five seconds of 1 % loss (figure 1). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from explicate.papers import metrics
from explicate.papers.nychis import base
from explicate.papers.statistics import Check, at_least, at_most, in_most
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("N-fig1")

SEEDS = 60
SECONDS = 5.0
BIN_S = 0.2
"""What the largest throughput after the first loss is averaged over."""
HALVED = 0.7
"""A window below this share of the one before has been halved (some growth may lie between two samples)."""


@study.cases
def cases(effort: Effort) -> Mapping[str, Case]:
    """Five seconds of TCP, and the same channels without loss."""
    every = effort.choices["N-P1"]
    return {
        base.TCP: base.chain(effort, base.TCP, 1.0, seconds=SECONDS, every=every, seeds=SEEDS),
        base.LINK: base.chain(effort, base.TCP, seconds=SECONDS, every=every, seeds=SEEDS),
    }


def trace(results: Results) -> pl.DataFrame:
    """Return what the first radio sends over time, KB/s."""
    return metrics.series(results, "n1->n2", "throughput_bps").with_columns(pl.col("value") / 8e3)


def capacity(results: Results) -> float:
    """Return what the hop carries in this channel, KB/s: the link test without its first second."""
    return metrics.mean(trace(results).filter(pl.col("time_s") > 1.0))


def first_cut(results: Results) -> float:
    """Return when the window is first halved."""
    window = base.window(results)
    cut = window.filter(pl.col("value") < HALVED * pl.col("value").shift(1))["time_s"]
    return float(cut[0]) if len(cut) else SECONDS


def peak(results: Results) -> float:
    """Return the largest throughput up to the first halving, KB/s."""
    return metrics.largest(trace(results).filter(pl.col("time_s") <= first_cut(results)))


def later_peak(results: Results) -> float:
    """Return the largest throughput once the first loss is over, KB/s in bins of 0.2 s."""
    later = trace(results).filter(pl.col("time_s") > first_cut(results) + BIN_S)
    bins = later.group_by((pl.col("time_s") / BIN_S).floor()).agg(pl.col("value").mean())
    return metrics.largest(bins)


def halvings(results: Results) -> float:
    """Count the halvings of the window."""
    return float(metrics.falls(base.window(results), HALVED))


@study.predicate("N-fig1-a", most=0.75, share=0.8)
def never_again(data: Data, most: float, share: float) -> Iterator[Check]:
    """After the first peak TCP does not come near the capacity."""
    peaks = data.measure(base.TCP, later_peak) / data.measure(base.LINK, capacity)
    below = peaks.map(lambda value: value <= most)
    yield in_most(f"largest throughput after the first loss over capacity ≤ {most:g} (mean {peaks})", below, share)


@study.predicate("N-fig1-b", least=0.9, share=0.5)
def first_peak(data: Data, least: float, share: float) -> Iterator[Check]:
    """Slow start reaches it."""
    peaks = data.measure(base.TCP, peak) / data.measure(base.LINK, capacity)
    reached = peaks.map(lambda value: value >= least)
    yield in_most(f"largest throughput before it over capacity ≥ {least:g} (mean {peaks})", reached, share)


@study.predicate("N-fig1-c", least=3, most=0.6)
def saw_teeth(data: Data, least: float, most: float) -> Iterator[Check]:
    """Several stages of additive increase, with the link under-used."""
    yield at_least("halvings in 5 s", data.measure(base.TCP, halvings), least)
    yield at_most(
        "throughput over capacity", data.measure(base.TCP, base.kilobytes) / data.measure(base.LINK, capacity), most
    )


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The first seed."""
    results = data.runs(base.TCP)[0]
    lines = [
        Line.series("TCP", trace(results)),
        Line("link test", [0, SECONDS], [capacity(data.runs(base.LINK)[0])] * 2),
    ]
    return [Panel("TCP, 1 % loss", "time (s)", "throughput (KB/s)", lines)]
