"""The quantities that the papers measure, from the tables of one run."""

from __future__ import annotations

import math

import polars as pl

from explicate.results import Results
from explicate.summary import jain_index


def link(results: Results, name: str, column: str) -> float:
    """Return a column of a link's row; not a number where it has none."""
    value = results.links.filter(pl.col("link") == name)[column][0]
    return math.nan if value is None else float(value)


def total(results: Results, column: str, group: str | None = None) -> float:
    """Return the sum of a column over the flows, of one group or of all."""
    return float(_flows(results, group)[column].sum())


def delivered(results: Results) -> float:
    """Return the IP bytes of data packets that reached the receivers of all flows, as a rate over the measured span."""
    return float(results.flows["throughput_bps"].sum()) / 8


def jain(results: Results, group: str | None = None) -> float:
    """Return Jain's index of the flows' goodput."""
    return jain_index(_flows(results, group)["goodput_bps"].to_list())


def _flows(results: Results, group: str | None) -> pl.DataFrame:
    flows = results.flows
    return flows if group is None else flows.filter(pl.col("group") == group)


def series(results: Results, name: str, variable: str, start_s: float = 0.0) -> pl.DataFrame:
    """Return the samples of an object's variable from `start_s` on: columns ``time_s`` and ``value``."""
    rows = results.samples.filter(pl.col("object").cast(pl.String) == name, pl.col("variable") == variable)
    if rows.is_empty():
        raise KeyError(f"no samples of {variable} of {name}")
    return rows.filter(pl.col("time_s") >= start_s).select("time_s", "value")


def sum_series(results: Results, group: str, variable: str, start_s: float = 0.0, bin_s: float = 0.0) -> pl.DataFrame:
    """Return the sum over a group's flows of a sampled variable, averaged over bins of `bin_s`, over time."""
    flows = results.flows.filter(pl.col("group") == group)["flow"].cast(pl.String)
    rows = results.samples.filter(
        pl.col("object").cast(pl.String).is_in(flows.to_list()),
        pl.col("variable") == variable,
        pl.col("time_s") > start_s,
    )
    sums = rows.group_by("time_s").agg(pl.col("value").sum()).sort("time_s")
    if bin_s > 0:
        # A sample's time is the end of its period: it belongs to the bin in which it ends.
        end = ((pl.col("time_s") / bin_s - 1e-9).floor() + 1) * bin_s
        sums = sums.group_by(end.alias("time_s")).agg(pl.col("value").mean()).sort("time_s")
    return sums


def mean(frame: pl.DataFrame) -> float:
    """Return the mean of a series."""
    return _number(frame["value"].mean())


def largest(frame: pl.DataFrame) -> float:
    """Return the largest value of a series."""
    return _number(frame["value"].max())


def end_s(results: Results) -> float:
    """Return the time of the last sample."""
    return _number(results.samples["time_s"].max())


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def deviation(frame: pl.DataFrame) -> float:
    """Return the standard deviation of a series."""
    return _number(frame["value"].std())


def variation(frame: pl.DataFrame) -> float:
    """Return the coefficient of variation of a series."""
    middle = mean(frame)
    return deviation(frame) / middle if middle else math.nan


def first_time(frame: pl.DataFrame, level: float) -> float:
    """Return the time at which a series first reaches `level`; infinite if it does not."""
    reached = frame.filter(pl.col("value") >= level)["time_s"]
    return float(reached[0]) if len(reached) else math.inf


def falls(frame: pl.DataFrame, share: float) -> int:
    """Count the samples of a series that lie below `share` of the sample before."""
    before = frame["value"].shift(1)
    return int((frame["value"] < share * before).sum())
