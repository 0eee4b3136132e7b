"""N-fig1: TCP's throughput over five seconds of 1 % loss (figure 1). Set-up: `base.py`.

The capacity is the throughput of the link test in the same channel. A run that never halves its window is not limited,
so its largest throughput after the first loss is the largest of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, Settings
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, Sample, at_least, in_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-fig1")

SECONDS = 5.0
SAMPLED_S = 0.02
STARTED_S = 1.0
"""Duration of the link test's start."""
SHORT_WINDOW = 12
"""Packets, which one round trip of some 12 ms carries: half of the hop's capacity."""


@study.cases
def cases(effort: Effort) -> Mapping[str, Case]:
    """Five seconds of TCP, and the same channels without loss."""
    every = f"{1e3 * SAMPLED_S:g}ms"
    return {
        base.TCP: base.chain(effort, base.TCP, 1.0, seconds=SECONDS, every=every),
        base.LINK: base.chain(effort, base.TCP, seconds=SECONDS, every=every),
    }


def trace(results: Results, bin_s: float = SAMPLED_S, start_s: float = 0.0) -> pl.DataFrame:
    """Return the throughput of the first radio over time, KB/s, in bins of `bin_s` from `start_s` on."""
    rows = metrics.series(results, "n1->n2", "throughput_bps", start_s + SAMPLED_S / 2)
    # A sample's time is the end of its period: it belongs to the bin that it ends in.
    end = start_s + (((pl.col("time_s") - start_s) / bin_s - 1e-6).floor() + 1) * bin_s
    return rows.group_by(end.alias("time_s")).agg(pl.col("value").mean() / 8e3).sort("time_s")


def capacity(results: Results) -> float:
    """Return the hop's throughput in this channel, KB/s: the link test without its start."""
    return metrics.mean(trace(results, start_s=STARTED_S))


def first_cut(results: Results, halved: float) -> float:
    """Return when the window first falls below the share `halved` of the sample before; infinite if it does not."""
    window = base.window(results)
    cut = window.filter(pl.col("value") < halved * pl.col("value").shift(1))["time_s"]
    return float(cut[0]) if len(cut) else math.inf


def bin_s(effort: Effort) -> float:
    """Return the bin of the trace."""
    return float(effort.choices["N-P1"].removesuffix("ms")) / 1e3


def halved(effort: Effort) -> float:
    """Return the share of the sample before below which a window counts as halved."""
    return float(effort.choices["N-P27"])


def peaks(data: Data, *, later: bool) -> Sample:
    """Return the largest throughput over the capacity, up to the bin of the first loss or after it."""
    width, share = bin_s(data.effort), halved(data.effort)

    def peak(results: Results) -> float:
        cut = first_cut(results, share)
        if not later or math.isinf(cut):
            shown = trace(results, width)
            return metrics.largest(shown.filter(pl.col("time_s") < cut + width))
        return metrics.largest(trace(results, width, cut + width))

    return Sample.of(map(peak, data.runs(base.TCP))) / data.measure(base.LINK, capacity)


@study.predicate("N-fig1-a", most=0.75, share=50)
def never_again(data: Data, most: float, share: float) -> Iterator[Check]:
    """After the first peak TCP does not come near the capacity."""
    largest = peaks(data, later=True)
    below = largest.map(lambda value: value <= most)
    yield in_most(
        f"largest throughput after the first loss over capacity ≤ {most:g} (mean {largest})", below, share / 100
    )


@study.predicate("N-fig1-b", least=0.9, share=50)
def first_peak(data: Data, least: float, share: float) -> Iterator[Check]:
    """Slow start reaches it."""
    largest = peaks(data, later=False)
    reached = largest.map(lambda value: value >= least)
    yield in_most(f"largest throughput before it over capacity ≥ {least:g} (mean {largest})", reached, share / 100)


@study.predicate("N-fig1-c", least=3, most=0.6)
def saw_teeth(data: Data, least: float, most: float) -> Iterator[Check]:
    """Several stages of additive increase, with the link under-used."""
    share = halved(data.effort)
    falls = Sample.of(float(metrics.falls(base.window(results), share)) for results in data.runs(base.TCP))
    yield at_least("halvings in 5 s", falls, least)
    carried, could = data.measure(base.TCP, base.kilobytes), data.measure(base.LINK, capacity)
    yield base.ratio_at_most("throughput over capacity", carried, could, most)


study.control(
    "no loss",
    Place("off", lambda _: base.LINK),
    ["N-fig1-a", "N-fig1-c"],
    "Without loss TCP is never halved for long and goes on carrying what the hop can.",
)
study.control(
    "short window",
    Settings("off", {"flows.bulk.params.receiver_window": SHORT_WINDOW}, lambda label: label == base.TCP),
    ["N-fig1-b"],
    "The receiver's window stops slow start at half of the capacity, so no peak can reach it.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The first seed."""
    width = bin_s(data.effort)
    carried = capacity(data.runs(base.LINK)[0])
    lines = [
        Line.series("TCP", trace(data.runs(base.TCP)[0], width)),
        Line("link test", [0, SECONDS], [carried] * 2),
        Line("two thirds of it (paper: TCP's most after the start)", [0, SECONDS], [carried * 2 / 3] * 2),
    ]
    title = f"TCP, 1 % loss, seed {base.seed(data, base.TCP)}"
    return [Panel(title, "time (s)", "throughput (KB/s)", lines)]
