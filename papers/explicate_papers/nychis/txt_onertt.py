"""N-txt-onertt: how fast a window is back after one loss that is not congestion (section III).

Set-up: one flow over a wire of 24 Mbit/s with round trips that hold 20, 80 and 320 packets, clocks exact, the capacity
known; TCP's receiver window is the pipe, so nothing overflows. One packet is lost in the steady state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import polars as pl

from explicate.results import Results
from explicate_papers.controls import exchange
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, Sample, at_most, between
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-onertt")

PIPES = (20, 80, 320)
"""Bandwidth-delay products, packets: 1, 4 and 16 times the least."""
MBPS = 24.0
LOST_AT = 20.0
SECONDS = 70.0
ONE_LOSS = {"kind": "random_loss", "rate": "100%", "start": f"{LOST_AT:g}s", "most": 1, "of": "data"}


def rtt_s(pipe: int) -> float:
    """Return the round trip that holds so many packets."""
    return pipe * 12000 / (MBPS * 1e6)


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems and every pipe."""

    def one(system: str, pipe: int) -> Case:
        params: dict[str, object] = {"ack_every": 1, "receiver_window": limit(system, pipe)}
        every = f"{rtt_s(pipe) * 250:g}ms"
        return base.wired(
            effort, system, rtt_ms=rtt_s(pipe) * 1e3, channel=[ONE_LOSS], params=params, tick="0ms", every=every,
            seconds=SECONDS, queue=1000,
        )  # fmt: skip

    return {(system, pipe): one(system, pipe) for system in (base.XCP, base.TCP) for pipe in PIPES}


def limit(system: str, pipe: int) -> int:
    """Return the receiver's window, packets."""
    return pipe if system == base.TCP else 4 * pipe


def usable(results: Results, limit: int) -> pl.DataFrame:
    """Return the window over time as far as the receiver's allows it."""
    return base.window(results).with_columns(pl.col("value").clip(upper_bound=float(limit)))


@cache
def recovery(limit: int, pipe: int, share: float) -> Callable[[Results], float]:
    """Return the measure of the round trips from the halving until `share` of the window is back."""

    def measure(results: Results) -> float:
        window = usable(results, limit)
        before = float(window.filter(pl.col("time_s") <= LOST_AT)["value"][-1])
        cut = window.filter(pl.col("time_s") > LOST_AT, pl.col("value") < 0.75 * before)["time_s"]
        if cut.is_empty():
            return 0.0
        back = window.filter(pl.col("time_s") > cut[0], pl.col("value") >= share * before)["time_s"]
        return float(back[0] - cut[0]) / rtt_s(pipe) if len(back) else float("inf")

    return measure


def round_trips(data: Data, system: str, pipe: int, share: float = 0.95) -> Sample:
    """Return how many round trips the window needs."""
    return data.measure((system, pipe), recovery(limit(system, pipe), pipe, share))


@study.predicate("N-txt-onertt-a", share=0.95, most=1.25)
def xcp_is_back_at_once(data: Data, share: float, most: float) -> Iterator[Check]:
    """The text says one round trip."""
    for pipe in PIPES:
        yield at_most(
            f"round trips until {share:.0%} of {pipe} packets", round_trips(data, base.XCP, pipe, share), most
        )


@study.predicate("N-txt-onertt-b", low=0.3, high=0.7)
def tcp_needs_half_its_window(data: Data, low: float, high: float) -> Iterator[Check]:
    """One packet more in each round trip."""
    for pipe in PIPES:
        yield between(f"round trips over the window of {pipe}", round_trips(data, base.TCP, pipe) / pipe, low, high)


@study.predicate("N-txt-onertt-c", xcp=1.5, tcp=8)
def only_tcp_grows(data: Data, xcp: float, tcp: float) -> Iterator[Check]:
    """The pipe's length matters to TCP alone."""
    least, *_, most = sorted((round_trips(data, base.XCP, pipe) for pipe in PIPES), key=lambda trips: trips.mean)
    yield base.ratio_at_most("XCP, most over least", most, least, xcp)
    first, *_, last = (round_trips(data, base.TCP, pipe) for pipe in PIPES)
    yield base.ratio_at_least("TCP, the longest pipe over the shortest", last, first, tcp)


study.control(
    "TCP for XCP",
    exchange(base.TCP, base.XCP),
    ["N-txt-onertt-a", "N-txt-onertt-b", "N-txt-onertt-c"],
    "TCP adds a packet in each round trip, XCP a share of what is spare: each fails the other's claim.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Windows around the loss."""
    return [
        Panel(
            f"pipe of {pipe} packets, seed {base.seed(data, (base.XCP, pipe))}",
            "time since the loss (round trips)",
            "window (packets)",
            [
                Line(name, [(t - LOST_AT) / rtt_s(pipe) for t in kept["time_s"]], kept["value"].to_list())
                for system, name in ((base.XCP, "XCP"), (base.TCP, "TCP"))
                for kept in [_around(usable(data.runs((system, pipe))[0], limit(system, pipe)), pipe)]
            ],
        )
        for pipe in PIPES
    ]  # fmt: skip


def _around(window: pl.DataFrame, pipe: int) -> pl.DataFrame:
    first, last = LOST_AT - 5 * rtt_s(pipe), LOST_AT + 0.8 * pipe * rtt_s(pipe)
    return window.filter(pl.col("time_s").is_between(first, last))
