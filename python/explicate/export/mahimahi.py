"""A link's capacity over time as a trace of mahimahi: a line for each chance to deliver 1500 bytes, in milliseconds."""

from __future__ import annotations

import polars as pl

from explicate.errors import BadInputError
from explicate.export.selection import one_run, samples_of
from explicate.results import Results

PACKET_BITS = 1500 * 8
MOST_LINES = 50_000_000


def mahimahi(results: Results, link: str, run: int | None = None) -> str:
    """Return the trace of `link` in one run (by default the first), from its samples of throughput and utilisation.

    The capacity of a sampling period is throughput / utilisation; that of an idle period is the one before. mahimahi
    repeats a trace from its end, which is that of the run. Raise BadInputError without such samples.
    """
    wide = _samples(results, link, one_run(results, run))
    periods = wide["time_s"].diff().fill_null(wide["time_s"][0]).to_list()
    rates = wide["capacity_bps"].to_list()
    total = sum(rate * period for rate, period in zip(rates, periods, strict=True)) / PACKET_BITS
    if total < 1:
        raise BadInputError(f"{link}: its capacity is less than one packet of 1500 bytes in the whole run")
    if total > MOST_LINES:
        raise BadInputError(f"{link}: {total:.0f} lines are too many; the maximum is {MOST_LINES}")
    lines: list[str] = []
    sent, at = 0.0, 0.0  # bits since the last chance, seconds
    for rate, period in zip(rates, periods, strict=True):
        end = at + period
        while rate > 0 and sent + rate * (end - at) >= PACKET_BITS - 1e-6:
            at += (PACKET_BITS - sent) / rate
            sent = 0.0
            lines.append(str(max(1, round(at * 1000))))
        sent += rate * (end - at)
        at = end
    return "\n".join(lines) + "\n"


def _samples(results: Results, link: str, run: int) -> pl.DataFrame:
    """Return the capacity at the end of each sampling period."""
    samples = samples_of(results, run)
    own = samples.filter(pl.col("object") == link, pl.col("variable").is_in(["throughput_bps", "utilisation"]))
    wide = own.pivot("variable", index="time_s", values="value").sort("time_s")
    if not {"throughput_bps", "utilisation"} <= set(wide.columns):
        known = samples.filter(pl.col("variable") == "utilisation")["object"].unique(maintain_order=True).to_list()
        there = f"sampled links are {', '.join(known[:12])}" if known else 'put of = ["throughput"] under [sampling]'
        raise BadInputError(f"{link}: no samples of its throughput and utilisation; {there}")
    capacity = pl.when(pl.col("utilisation") > 0).then(pl.col("throughput_bps") / pl.col("utilisation"))
    wide = wide.with_columns(capacity.alias("capacity_bps").forward_fill().backward_fill())
    if wide["capacity_bps"].null_count():
        raise BadInputError(f"{link}: carried nothing in run {run}, so its capacity is unknown")
    return wide
