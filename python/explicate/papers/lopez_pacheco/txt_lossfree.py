"""I-txt-lossfree: XCP after a timeout (section II-A). Set-up: scenario c of figure 1, looked at every millisecond."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from explicate.papers import metrics
from explicate.papers.lopez_pacheco import base
from explicate.papers.statistics import Check, at_least, between, equal
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("I-txt-lossfree")

AROUND = "c"
FLOW = "bulk.0"
SECONDS, EVERY_S = 5, 0.001
PACKET_BYTES = 1000
GROWTH_S = 0.15
"""How long growth is followed after a timeout."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """XCP around a plain router."""
    network = base.Network([("s", "r1", 80), ("r1", "r2", 80), ("r2", "r3", 30), ("r3", "d", 80)], {"r2"})
    flows = [base.flow(effort, "bulk", base.XCP, ("s", "d"))]
    text = base.scenario(
        effort, "I-txt-lossfree", network, flows, seconds=SECONDS, every=f"{EVERY_S:g}s", sampled=["flow"]
    )
    return {AROUND: Case(text, trace="flow=0", seeds=2)}


def samples(results: Results) -> pl.DataFrame:
    """Return the samples of the flow, a column for each variable."""
    mine = results.samples.filter(pl.col("object").cast(pl.String) == FLOW)
    return mine.pivot("variable", index="time_s", values="value").sort("time_s")


def expired(table: pl.DataFrame) -> list[int]:
    """Return the rows at which the timer has expired: it doubles."""
    rto = table["rto_ms"].to_list()
    return [row for row, (before, after) in enumerate(pairwise(rto), 1) if after > 1.98 * before]


def reset(results: Results) -> float:
    """Return the share of timeouts after which the window is seen at one packet, or with the first feedback on top."""
    table = samples(results)
    after = [table["cwnd"][row] for row in expired(table)]
    return sum(float(value) < 2 for value in after) / len(after)


HEARD = re.compile(r"([\d.]+)\s+delivered\s+\S+ ack \d+ packet \d+ \d+ B feedback ([+-]\d+)")


def explained(results: Results) -> float:
    """Return the growth of the window after timeouts over that which the feedback alone makes."""
    table = samples(results)
    heard = [(float(time), int(feedback)) for time, feedback in HEARD.findall(results.trace)]
    grown = told = 0.0
    for row in expired(table):
        stretch = table.slice(row, round(GROWTH_S / EVERY_S))
        fallen = (stretch["cwnd"] < stretch["cwnd"].shift(1)).fill_null(value=False)
        stretch = stretch.slice(0, fallen.arg_max() if fallen.any() else None)
        if stretch.is_empty():
            continue
        begin, end = stretch["time_s"][0], stretch["time_s"][-1]
        srtt = dict(zip((1000 * stretch["time_s"]).round().to_list(), stretch["srtt_ms"].to_list(), strict=True))
        grown += stretch["cwnd"][-1] - stretch["cwnd"][0]
        told += sum(
            feedback * srtt.get(round(1000 * time), stretch["srtt_ms"][-1]) * 1e-3 / PACKET_BYTES
            for time, feedback in heard
            if begin < time <= end
        )
    return grown / told


@study.predicate("I-txt-lossfree-a", low=0.9, high=1.1)
def back_to_one(data: Data, low: float, high: float) -> Iterator[Check]:
    """The timer resets the window; feedback alone makes it grow again."""
    yield at_least("timeouts", data.measure(AROUND, base.timeouts), 1)
    yield at_least("share of them with a window of one packet after it", data.measure(AROUND, reset), 0.95)
    yield between("growth after them over that by feedback", data.measure(AROUND, explained), low, high)


def least(results: Results) -> float:
    """Return the smallest window."""
    return float(samples(results)["cwnd"].min())  # type: ignore[arg-type]


@study.predicate("I-txt-lossfree-b", packet=1)
def one_packet_at_least(data: Data, packet: float) -> Check:
    """The update never goes below a packet."""
    return equal("smallest window", data.measure(AROUND, least), packet)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The window over time."""
    line = Line.series("cwnd", metrics.series(data.runs(AROUND)[0], FLOW, "cwnd"))
    return [Panel("XCP around a plain router", "time (s)", "window (packets)", [line])]
