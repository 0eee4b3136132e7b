"""A link's capacity over time as a trace of mahimahi: a line for each chance to deliver 1500 bytes, in milliseconds.

A trace has the capacity alone. mahimahi's shells have some of the rest: mm-delay, mm-loss, and the queue of mm-link.
"""

from __future__ import annotations

import re

import polars as pl

from explicate import engine
from explicate.engine import Link, Part, ScenarioError
from explicate.errors import BadInputError
from explicate.export.exported import assignments, table, value, word
from explicate.export.selection import one_run, samples_of
from explicate.results import Results

PACKET_BITS = 1500 * 8
MOST_LINES = 50_000_000
CAPACITY = ("rate_steps", "outages", "trace", "wire")
"""The kinds of channels that are in the samples of capacity."""
UNDERSTOOD = {"queue": ("limit", "count"), "codel": ("limit", "count", "target", "interval"), "random_loss": ("rate",)}
"""What the options of mahimahi's shells say."""
RECORDED = re.compile(r'\{ kind = "trace", file = "[^"\n]*" \}')
"""A recorded channel of a resolved scenario: its file need not be here, and its capacity is in the samples."""


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


def sampled(results: Results) -> list[str]:
    """Return the links whose capacity was sampled."""
    names = results.samples.filter(pl.col("variable").cast(pl.String) == "utilisation")["object"].cast(pl.String)
    return names.unique(maintain_order=True).to_list()


def _samples(results: Results, link: str, run: int) -> pl.DataFrame:
    """Return the capacity at the end of each sampling period."""
    samples = samples_of(results, run)
    own = samples.filter(pl.col("object") == link, pl.col("variable").is_in(["throughput_bps", "utilisation"]))
    wide = own.pivot("variable", index="time_s", values="value").sort("time_s")
    if not {"throughput_bps", "utilisation"} <= set(wide.columns):
        known = sampled(results)
        there = f"sampled links are {', '.join(known[:12])}" if known else 'put of = ["throughput"] under [sampling]'
        raise BadInputError(f"{link}: no samples of its throughput and utilisation; {there}")
    capacity = pl.when(pl.col("utilisation") > 0).then(pl.col("throughput_bps") / pl.col("utilisation"))
    wide = wide.with_columns(capacity.alias("capacity_bps").forward_fill().backward_fill())
    if wide["capacity_bps"].null_count():
        raise BadInputError(f"{link}: carried nothing in run {run}, so its capacity is unknown")
    return wide


def lost(results: Results, link: str, run: int | None = None) -> list[str]:
    """Return what the trace of `link` leaves out, with the option of mahimahi that has it."""
    number = one_run(results, run)
    wide = _samples(results, link, number)
    left = []
    if results.run.height > 1:
        left.append(f"{results.run.height - 1} other runs: a trace has one, here run {number}")
    if idle := wide.filter(pl.col("utilisation") <= 0).height:
        left.append(
            f"the capacity of {idle} of {wide.height} sampling periods, which carried nothing: it is that before"
        )
    try:
        resolved = engine.links(RECORDED.sub('{ kind = "wire" }', results.scenario), "scenario", ".", [])
        (settings,) = (one for one in resolved["links"] if one["name"] == link)
    except (ScenarioError, ValueError):
        return [*left, "everything else about the link: the scenario in the results cannot be read here"]
    left += [f"reroute at {one['at']}" for one in resolved["reroutes"]]
    return left + lost_of(settings)


def lost_of(link: Link) -> list[str]:
    """Return the settings of a link that are not in its trace."""
    left = []
    if link["medium"]:
        left.append(f"the medium `{link['medium']['name']}`: mahimahi has no wireless medium")
    if link["delay_ns"]:
        delay_ms = link["delay_ns"] / 1e6
        rounded = "" if delay_ms == round(delay_ms) else ", which has whole milliseconds"
        left.append(f'delay = "{delay_ms:g}ms": run in `mm-delay {round(delay_ms)}`{rounded}')
    if link["queue"]:
        left += _queue(link["queue"])
    left += [f"router = {table(router)}: not in mahimahi" for router in link["routers"]]
    for one in link["classes"]:
        parts = [table(part) for part in (one["queue"], *one["routers"]) if part]
        left.append(
            f'classes: match = "{one["match"]}", weight = {one["weight"]:g}, {", ".join(parts)}: not in mahimahi'
        )
    left += [f"{setting}: not in mahimahi" for setting in assignments(link["settings"])]
    for channel in link["channels"]:
        if channel["kind"] not in CAPACITY:
            left += _channel(channel)
    return left


def _queue(queue: engine.Queue) -> list[str]:
    kind, limit = queue["kind"], value(queue, "limit")
    size = f"bytes={limit:.0f}" if limit is not None else ""
    if limit is not None and word(queue, "count") == "packets":
        size = f"packets={limit / queue['mean_packet']:.0f}"
    if kind == "droptail":
        option = f"mm-link --uplink-queue=droptail --uplink-queue-args={size}" if size else "mm-link"
        return [f"queue = {table(queue)}: give `{option}`"]
    if kind == "codel" and size:
        times = [f"{name}={1e3 * (value(queue, name) or 0):g}" for name in ("target", "interval")]
        others = [f"queue {one}: not in mahimahi" for one in assignments(queue["params"], UNDERSTOOD["codel"])]
        option = f"mm-link --uplink-queue=codel --uplink-queue-args={','.join([size, *times])}"
        return [f"queue = {table(queue)}: give `{option}`", *others]
    return [f"queue = {table(queue)}: not in mahimahi"]


def _channel(channel: Part) -> list[str]:
    rest = assignments(channel["params"], UNDERSTOOD["random_loss"])
    if channel["kind"] == "random_loss" and not rest:
        return [f"channel {table(channel)}: run in `mm-loss uplink {value(channel, 'rate'):g}`"]
    return [f"channel {table(channel)}: not in mahimahi"]
