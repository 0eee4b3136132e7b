"""Summaries of result tables: fairness, flow groups, and the links that matter.

Every figure is taken within one run first and then averaged over the runs, so that a run counts once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

BUSY_QUEUE_PACKETS = 0.1
"""A link whose mean queue is at least this long, in packets, gets a line."""

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def t_95(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t: mean ± t s / √n is the confidence interval of a mean."""
    if freedom <= len(T_95):
        return T_95[freedom - 1]
    return 1.96 + 2.372 / freedom + 2.823 / freedom**2  # Cornish-Fisher; 2.0394 at 31, the table says 2.0395


def margin_95(deviation: float | None, runs: int) -> float | None:
    """Return half the 95 % interval of a mean over `runs` from their standard deviation; nothing for one run."""
    return None if deviation is None else deviation * t_95(runs - 1) / math.sqrt(runs)


def jain_index(values: Iterable[float | None], counts: Iterable[int] | None = None) -> float:
    """Return Jain's fairness index (Σx)² / (n Σx²): 1 if all are equal, 1/n if one has everything.

    Each value stands for one, or for as many as `counts` says. None and NaN are left out. The index of nothing, or of
    zeros alone, is NaN. Raise ValueError for a negative value.
    """
    weighted = zip(values, itertools.repeat(1) if counts is None else counts, strict=False)
    kept = [(value, count) for value, count in weighted if value is not None and not math.isnan(value)]
    if any(value < 0 for value, _ in kept):
        raise ValueError("Jain's index is for quantities that are not negative")
    largest = max((value for value, _ in kept), default=0.0)
    if largest == 0:
        return math.nan
    scaled = [(value / largest, count) for value, count in kept]  # so that no square overflows or vanishes
    number = sum(count for _, count in scaled)
    total = math.fsum(count * value for value, count in scaled)
    return total**2 / (number * math.fsum(count * value * value for value, count in scaled))


def jain(column: str, count: pl.Expr | None = None) -> pl.Expr:
    """Return Jain's index of a column, whose rows stand for one or for `count`; null if all are zero."""
    share, weight = pl.col(column) / pl.col(column).max(), pl.lit(1) if count is None else count
    index = (share * weight).sum() ** 2 / ((weight * share.is_not_null()).sum() * (share * share * weight).sum())
    return pl.when(pl.col(column).max() > 0).then(index)


def _mean(column: str) -> pl.Expr:
    value, count = pl.col(column).cast(pl.Float64), pl.col("count")
    known = value.is_not_null()
    return pl.when(known.any()).then((value * count).sum() / count.filter(known).sum()).alias(column)


def with_count(flows: pl.DataFrame) -> pl.DataFrame:
    """Return `flows` with the number of flows that each row represents: as a fluid model states, otherwise one."""
    return flows if "count" in flows.columns else flows.with_columns(pl.lit(1).alias("count"))


def without_nan(frame: pl.DataFrame) -> pl.DataFrame:
    """Return `frame` with null for every NaN, so that means omit them."""
    return frame.with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))


def with_slowdown(flows: pl.DataFrame) -> pl.DataFrame:
    """Add ``slowdown``: the completion time over that of the fastest transfer of at least the same size.

    It is null for transfers that did not complete. The fastest is that of the whole table, over all runs and points. It
    stands for the time in an empty network, which is no more than that: a slowdown here is at most the usual one.
    """
    time = pl.col("completion_s").fill_nan(None)
    known = pl.when(pl.col("size_bytes").is_not_null() & (time > 0)).then(time)
    fastest = flows.select("size_bytes", known.alias("_best")).drop_nulls().group_by("size_bytes").min()
    fastest = fastest.sort("size_bytes", descending=True).with_columns(pl.col("_best").cum_min())
    joined = flows.join(fastest, on="size_bytes", how="left", maintain_order="left")
    return joined.with_columns((known / pl.col("_best")).alias("slowdown")).drop("_best")


def spread(column: str) -> pl.Expr:
    """Return the standard deviation of a column: null for one value, and exactly zero if all are equal."""
    value = pl.col(column)
    return pl.when((value.count() > 1) & (value.max() == value.min())).then(0.0).otherwise(value.std()).alias(column)


def identical_runs(flows: pl.DataFrame, links: pl.DataFrame, axes: Sequence[str] = ()) -> dict[tuple[Any, ...], int]:
    """Return the points of `axes` where several runs agree in all columns of both tables, and their runs."""
    found: dict[tuple[Any, ...], int] = {}
    for frame in map(without_nan, (flows, links)):
        points = frame.partition_by(axes, as_dict=True, include_key=False) if axes else {(): frame}
        for point, rows in points.items():
            first, *others = rows.partition_by("run", include_key=False) or [rows]
            same = bool(others) and all(run.equals(first) for run in others)
            found[point] = found.get(point, len(others) + 1) if same else 0
    return {point: runs for point, runs in found.items() if runs}


def sameness(identical: Mapping[tuple[Any, ...], int], points: int) -> str:
    """Return the sentence for a table of `points` points, some of whose runs are `identical`; empty if none are."""
    if not identical:
        return ""
    if points == 1:
        (runs,) = identical.values()
        return f"All {runs} runs gave the same result: nothing random has an effect in this scenario."
    where = "every point" if len(identical) == points else f"{len(identical)} of {points} points"
    return f"At {where} all runs gave the same result: nothing random has an effect there."


def group_summary(flows: pl.DataFrame, axes: Sequence[str] = ()) -> pl.DataFrame:
    """Return one row per flow group (and per value of `axes`) with means over runs.

    ``goodput_bps`` is the mean per flow, ``goodput_sd_bps`` its standard deviation among runs (null for one run);
    ``retransmissions`` and ``timeouts`` are sums over the group's flows in one run.
    """
    keys = [*axes, "group", "protocol"]
    per_run = (
        with_count(without_nan(flows))
        .group_by([*keys, "run"], maintain_order=True)
        .agg(
            pl.col("count").sum().alias("flows"),
            _mean("goodput_bps"),
            jain("goodput_bps", pl.col("count")).alias("jain"),
            (pl.col("retransmissions", "timeouts") * pl.col("count")).sum(),
            _mean("rtt_mean_ms"),
            _mean("completion_s"),
        )
    )
    return per_run.group_by(keys, maintain_order=True).agg(
        pl.len().alias("runs"),
        pl.col("flows").mean().round().cast(pl.Int64),
        pl.col("goodput_bps").mean(),
        spread("goodput_bps").alias("goodput_sd_bps"),
        pl.col("jain", "retransmissions", "timeouts", "rtt_mean_ms", "completion_s").mean(),
    )


LINK_COLUMNS = (
    "utilisation",
    "queue_mean_packets",
    "queue_p95_packets",
    "queue_max_packets",
    "queue_mean_ms",
    "drops_overflow",
    "drops_early",
    "drops_channel",
    "drops_total",
    "marks",
)


def link_summary(links: pl.DataFrame, axes: Sequence[str] = ()) -> pl.DataFrame:
    """Return one row per link (and per value of `axes`): the mean over runs of what was measured."""
    return (
        without_nan(links)
        .group_by([*axes, "link"], maintain_order=True)
        .agg(pl.col(LINK_COLUMNS).cast(pl.Float64).mean())
    )


def busy_links(links: pl.DataFrame) -> list[str]:
    """Return the names of the links with a standing queue, drops or marks in any run, busiest first.

    If there are none, return the fullest link alone.
    """
    per_link = (
        without_nan(links)
        .group_by("link", maintain_order=True)
        .agg(pl.col("utilisation", "queue_mean_packets", "drops_total", "marks").cast(pl.Float64).max().fill_null(0))
        .sort("drops_total", "queue_mean_packets", "utilisation", descending=True, maintain_order=True)
    )
    busy = per_link.filter(
        (pl.col("queue_mean_packets") >= BUSY_QUEUE_PACKETS) | (pl.col("drops_total") > 0) | (pl.col("marks") > 0)
    )
    if busy.is_empty():
        busy = per_link.sort("utilisation", descending=True, maintain_order=True).head(1)
    return busy["link"].to_list()
