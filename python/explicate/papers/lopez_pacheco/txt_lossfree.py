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


HEARD = re.compile(r"([\d.]+)\s+delivered\s+\S+ ack \d+ packet \d+ \d+ B feedback ([+-]\d+)")


def heard(results: Results) -> list[tuple[float, float]]:
    """Return when acknowledgements came, s, and by how much each changes the window, packets."""
    table = samples(results)
    srtt = dict(zip((1000 * table["time_s"]).round().to_list(), table["srtt_ms"].to_list(), strict=True))
    return [
        (float(time), int(feedback) * srtt.get(round(1000 * float(time)), 0.0) * 1e-3 / PACKET_BYTES)
        for time, feedback in HEARD.findall(results.trace)
    ]


def reset(results: Results) -> float:
    """Return the share of timeouts after which the window is one packet, what came since the last sample aside."""
    table, told = samples(results), heard(results)
    left = [
        table["cwnd"][row]
        - sum(change for time, change in told if table["time_s"][row - 1] < time <= table["time_s"][row])
        for row in expired(table)
    ]
    return sum(float(value) < 2 for value in left) / len(left)


def explained(results: Results) -> float:
    """Return the growth of the window after timeouts over that which the feedback alone makes."""
    table, news = samples(results), heard(results)
    grown = told = 0.0
    for row in expired(table):
        stretch = table.slice(row, round(GROWTH_S / EVERY_S))
        fallen = (stretch["cwnd"] < stretch["cwnd"].shift(1)).fill_null(value=False)
        stretch = stretch.slice(0, fallen.arg_max() if fallen.any() else None)
        if not stretch.is_empty():
            begin, end = stretch["time_s"][0], stretch["time_s"][-1]
            grown += stretch["cwnd"][-1] - stretch["cwnd"][0]
            told += sum(change for time, change in news if begin < time <= end)
    return grown / told


@study.predicate("I-txt-lossfree-a")
def back_to_one(data: Data) -> Iterator[Check]:
    """The timer resets the window; feedback alone makes it grow again."""
    yield at_least("timeouts", data.measure(AROUND, base.timeouts), 1)
    yield at_least("share of them with a window of one packet after it", data.measure(AROUND, reset), 0.95)
    yield between("growth after them over that by feedback", data.measure(AROUND, explained), 0.9, 1.1)


def least(results: Results) -> float:
    """Return the smallest window."""
    return float(samples(results)["cwnd"].min())  # type: ignore[arg-type]


@study.predicate("I-txt-lossfree-b")
def one_packet_at_least(data: Data) -> Check:
    """The update never goes below a packet."""
    return equal("smallest window", data.measure(AROUND, least), 1)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The window over time."""
    line = Line.series("cwnd", metrics.series(data.runs(AROUND)[0], FLOW, "cwnd"))
    return [Panel("XCP around a plain router", "time (s)", "window (packets)", [line])]
