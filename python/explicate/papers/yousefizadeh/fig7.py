"""Y-fig7: utilisation of a pair of satellite links over 1000 s, one way (figure 7). Set-up: `base.py`.

The line's time counts that goes into data and its parity, in bins of 10 s.

XCP's swings are those of sessions that come and go, which it takes long to follow. The public simulator's XCP,
capped as here, uses 0.91 to 0.99 of the path with flows that stay, and 0.04 if the hosts' own ports have controllers
too: at a port that few packets cross every other interval is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import polars as pl

from explicate.papers import metrics
from explicate.papers.statistics import Check, above, at_least, at_most, equal
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.papers.yousefizadeh import base
from explicate.papers.yousefizadeh.base import SYSTEMS, TCP, VCP, XCP
from explicate.results import Results

study = Study("Y-fig7")

SHARE = 0.93
"""Of data on the line."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The three systems."""
    return {system: base.satellite(effort, system, sampling=("throughput", "cwnd")) for system in SYSTEMS}


def over_time(results: Results) -> pl.DataFrame:
    """Return the utilisation over time."""
    return base.used(results, SHARE)


def mean(results: Results) -> float:
    """Return the mean utilisation from 50 s on."""
    return metrics.mean(base.steady(over_time(results), 50))


def unrest(results: Results) -> float:
    """Return the deviation of the utilisation behind the start."""
    return metrics.deviation(base.steady(over_time(results)))


@study.predicate("Y-fig7-a")
def vcp_is_best(data: Data) -> Iterator[Check]:
    """More of the line in use."""
    for system in (XCP, TCP):
        yield above(f"mean utilisation: VCP over {system}", data.measure(VCP, mean), data.measure(system, mean))


def first_high(results: Results) -> float:
    """Return when 0.9 of the line is in use first."""
    return metrics.first_time(over_time(results), 0.9)


@study.predicate("Y-fig7-b", until_s=100, deviation=0.05, least=0.85)
def vcp_is_quick_and_quiet(data: Data, until_s: float, deviation: float, least: float) -> Iterator[Check]:
    """It converges and stays."""
    yield at_most("first time that VCP uses 0.9, s", data.measure(VCP, first_high), until_s)
    yield at_most("deviation of VCP behind the start", data.measure(VCP, unrest), deviation)
    yield at_least("mean utilisation of VCP", data.measure(VCP, mean), least)


@study.predicate("Y-fig7-c", times=2)
def xcp_swings(data: Data, times: float) -> Check:
    """Wide swings."""
    return at_least("deviation of XCP over that of VCP", data.measure(XCP, unrest) / data.measure(VCP, unrest), times)


@study.predicate("Y-fig7-d")
def tcp_swings_more(data: Data) -> Check:
    """Slow start again and again."""
    return above("deviation: TCP over XCP", data.measure(TCP, unrest), data.measure(XCP, unrest))


def recovery(results: Results) -> float:
    """Return the mean time from a window of one or two packets back to half of the window before, s."""
    took = []
    for flow in results.flows["flow"].cast(pl.String):
        frame = metrics.series(results, flow, "cwnd")
        times, windows = frame["time_s"].to_list(), frame["value"].to_list()
        for i in range(1, len(windows)):
            before = windows[i - 1]
            if before >= 10 and windows[i] <= 2:
                back = next((t for t, w in zip(times[i:], windows[i:], strict=True) if w >= before / 2), None)
                if back is not None:
                    took.append(back - times[i])
    return sum(took) / len(took) if took else math.nan


@study.predicate("Y-fig7-e")
def delay_makes_timers_expire(data: Data) -> Iterator[Check]:
    """The cause that the text gives."""
    for system in (XCP, TCP):
        yield above(
            f"timeouts of {system}", data.measure(system, base.timeouts), 0 * data.measure(system, base.timeouts)
        )
    yield above(
        "time to recover from a collapse, s: XCP over VCP", data.measure(XCP, recovery), data.measure(VCP, recovery)
    )


def lost(results: Results) -> float:
    """Return the packets that the radios lost."""
    return float(results.links["drops_channel"].sum())


@study.predicate("Y-fig7-f", lost_packets=0)
def radio_is_clear(data: Data, lost_packets: float) -> Iterator[Check]:
    """Whatever swings, it is not the channel."""
    for system in SYSTEMS:
        yield equal(f"packets of {system} that the radio lost", data.measure(system, lost), lost_packets)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system, of the first seed."""
    return [
        Panel(
            system, "time (s)", "utilisation (%)",
            [Line.series(system, over_time(data.runs(system)[0]), 0.01)],
        )
        for system in SYSTEMS
    ]  # fmt: skip
