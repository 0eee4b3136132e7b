"""Times of drops on figure 13's network, and recovery times of their senders.

The tables count drops of whole runs. Over time they are the arrivals at the plain router minus its departures and
its queue. This is exact to the packets in service if samples are as far apart as the delay of the link before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.lopez_pacheco import base
from explicate_papers.study import Effort

SERVED = 2.0
"""Packets in service or between two samples: a smaller difference is no drop."""


def gap_s(effort: Effort) -> float:
    """Return the gap beyond which two drops belong to two bursts, s (``I-P25``)."""
    return float(effort.choices["I-P25"].removesuffix("s"))


def dropped(results: Results, one: str) -> pl.DataFrame:
    """Return how many packets the cloud of `one` has dropped so far, over time."""
    router = f"c{one}->r1"
    came, left = (metrics.series(results, name, "throughput_bps") for name in (f"e{one}->c{one}", router))
    waits, packets = (metrics.series(results, router, name)["value"] for name in ("queue_bytes", "queue_packets"))
    step_s = float(came["time_s"][1] - came["time_s"][0])
    # Packets that left the link one sample before have arrived by now.
    inside = (came["value"].shift(1, fill_value=0.0) - left["value"]).cum_sum() * step_s / 8 - waits
    length = float(waits.sum()) / max(float(packets.sum()), 1.0) or 1000.0
    gone = (inside / length).cum_max()
    return pl.DataFrame({"time_s": came["time_s"], "value": gone.clip(lower_bound=0.0)})


def times(results: Results, one: str) -> list[float]:
    """Return the times of samples in which packets were dropped on the way of `one`, s."""
    found, counted = [], SERVED
    for time_s, gone in dropped(results, one).iter_rows():
        if gone > counted + 0.5:
            found.append(float(time_s))
            counted = gone
    return found


def bursts(results: Results, one: str, gap: float) -> list[float]:
    """Return when bursts of drops on the way of `one` begin, s: drops at most `gap` s apart are one burst."""
    found = times(results, one)
    return [after for before, after in pairwise([-gap - 1.0, *found]) if after - before > gap]


def over_time(results: Results, one: str, bin_s: float) -> pl.DataFrame:
    """Return the packets dropped on the way of `one` in each bin of `bin_s`."""
    gone = dropped(results, one)
    ends = gone.group_by(((pl.col("time_s") / bin_s - 1e-9).floor() + 1) * bin_s).agg(pl.col("value").last())
    ends = ends.sort("time_s")
    fresh = (ends["value"] - ends["value"].shift(1, fill_value=0.0)).clip(lower_bound=0.0)
    return ends.with_columns(value=pl.when(fresh < 1.0).then(0.0).otherwise(fresh))


def recoveries(results: Results, senders: Iterable[str], effort: Effort) -> list[float]:
    """Return the time of each sender after each burst until 90 % of its throughput before the burst, s.

    The throughput before a loss is the mean of ``I-P24``. A time ends with the run, or at the next burst.
    """
    before_s, made = float(effort.choices["I-P24"].removesuffix("s")), []
    for one in senders:
        rate = base.over_time(results, one, bin_s=0.2)
        begun = bursts(results, one, gap_s(effort))
        for begin, end in pairwise([*begun, metrics.end_s(results)]):
            before = metrics.mean(rate.filter(pl.col("time_s").is_between(begin - before_s, begin)))
            after = rate.filter(pl.col("time_s").is_between(begin, end, closed="right"))
            low = after.filter(after["value"] < 0.9 * before)
            if low.is_empty():
                made.append(0.0)
                continue
            back = after.filter((after["time_s"] > low["time_s"][0]) & (after["value"] >= 0.9 * before))["time_s"]
            made.append((float(back[0]) if len(back) else end) - begin)
    return made
