"""Y-fig7: utilisation of a pair of satellite links over 1000 s, one way (figure 7). Set-up: `base.py`.

The utilisation counts the line's time for data and its parity. A flow has one session, which ends by timeouts or with
the run. The number of timeouts is the engine's count. Their times are read from samples of each second: the timer's
length doubles and the window is one or two packets. Feedback takes 2 s, so most timeouts are found, except those whose
back-off ends within the second by a packet in flight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.statistics import Check, Sample, above, at_least, at_most, equal, exceeds
from explicate_papers.study import Case, Data, Effort, EmptyClassError, Label, Line, Panel, Study
from explicate_papers.yousefizadeh import base
from explicate_papers.yousefizadeh.base import SYSTEMS, TCP, VCP, XCP

study = Study("Y-fig7")

SHARE = 0.93
"""Of data on the line."""
MEAN_FROM_S, STEADY_FROM_S = 50.0, 100.0
"""From when on the mean counts, as the register has it, and the deviation: behind the starts."""
BACKED_OFF, COLLAPSED = 1.9, 2.0
"""A timer that grows this much in a second has expired; a window of so many packets has collapsed."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The three systems."""
    return {system: base.satellite(effort, system, sampling=("throughput", "flow")) for system in SYSTEMS}


def over_time(data: Data, label: Label) -> list[pl.DataFrame]:
    """Return the utilisation over time, for each seed."""
    return base.used(data, label, SHARE)


def mean(data: Data, label: Label) -> Sample:
    """Return the mean utilisation."""
    return Sample.of(metrics.mean(base.after(frame, MEAN_FROM_S)) for frame in over_time(data, label))


def unrest(data: Data, label: Label) -> Sample:
    """Return the deviation of the utilisation behind the starts."""
    return Sample.of(metrics.deviation(base.after(frame, STEADY_FROM_S)) for frame in over_time(data, label))


@study.predicate("Y-fig7-a")
def vcp_is_best(data: Data) -> Iterator[Check]:
    """More of the line in use."""
    for system in (XCP, TCP):
        yield exceeds(f"mean utilisation: VCP over {system}", mean(data, VCP), mean(data, system))


@study.predicate("Y-fig7-b", full=0.9, until_s=100, least=0.85)
def vcp_is_quick_and_quiet(data: Data, full: float, until_s: float, least: float) -> Iterator[Check]:
    """It converges and stays."""
    first = Sample.of(metrics.first_time(frame, full) for frame in over_time(data, VCP))
    yield at_most(f"first time that VCP uses {full:g}, s", first, until_s)
    yield exceeds("deviation: XCP over VCP", unrest(data, XCP), unrest(data, VCP))
    yield at_least("mean utilisation of VCP", mean(data, VCP), least)


@study.predicate("Y-fig7-c")
def xcp_swings(data: Data) -> Check:
    """Wide swings."""
    return exceeds("deviation: XCP over VCP", unrest(data, XCP), unrest(data, VCP))


@study.predicate("Y-fig7-d")
def tcp_swings_more(data: Data) -> Check:
    """Slow start again and again."""
    return base.at_least_as_high("deviation: TCP and XCP", unrest(data, TCP), unrest(data, XCP))


def timed_out(results: Results, flow: str) -> Iterator[tuple[float, float]]:
    """Yield the times at which a flow's timers expired, s, and the times until its window reached half of its value, s.

    A window that does not recover counts until the end of the run, which is a lower bound.
    """
    windows, timers = (metrics.series(results, flow, variable) for variable in ("cwnd", "rto_ms"))
    rows = windows.join(timers, on="time_s", suffix="_rto").sort("time_s").rows()
    for place in range(1, len(rows)):
        (_, before, timer), (at, window, longer) = rows[place - 1], rows[place]
        if longer >= BACKED_OFF * timer and window <= COLLAPSED < before:
            back = next((time for time, value, _ in rows[place:] if value >= before / 2), rows[-1][0])
            yield at, back - at


def recovery(results: Results) -> float:
    """Return the mean time of recovery after a timeout, s; not a number if there was none."""
    took = [span for flow in results.flows["flow"].cast(pl.String) for _, span in timed_out(results, flow)]
    return sum(took) / len(took) if took else math.nan


@study.predicate("Y-fig7-e", none=0)
def delay_makes_timers_expire(data: Data, none: float) -> Iterator[Check]:
    """The cause in the text; recovery times are compared in the seeds in which both had timeouts."""
    for system in (XCP, TCP):
        count = data.measure(system, base.timeouts)
        yield above(f"timeouts of {system}", count, none * count)
    pairs = list(zip(*(data.measure(system, recovery) for system in (XCP, VCP)), strict=True))
    both = [(xcp, vcp) for xcp, vcp in pairs if not math.isnan(xcp + vcp)]
    if not both:
        counts = ", ".join(
            f"{system} in {sum(not math.isnan(one[i]) for one in pairs)}" for i, system in enumerate((XCP, VCP))
        )
        raise EmptyClassError(f"no seed has windows that a timeout cut under both: {counts} of {len(pairs)} seeds")
    xcp, vcp = (Sample.of(one) for one in zip(*both, strict=True))
    yield above(f"time to recover from a timeout, s, in {len(both)} of {len(pairs)} seeds: XCP over VCP", xcp, vcp)


def lost(results: Results) -> float:
    """Return the packets that the radios lost."""
    return float(results.links["drops_channel"].sum())


@study.predicate("Y-fig7-f", lost_packets=0)
def radio_is_clear(data: Data, lost_packets: float) -> Iterator[Check]:
    """Whatever swings, it is not the channel."""
    for system in SYSTEMS:
        yield equal(f"packets of {system} that the radio lost", data.measure(system, lost), lost_packets)


study.control(
    "TCP in the place of VCP", Place("protocol", lambda label: TCP if label == VCP else label), ["Y-fig7-a"],
    "The text puts VCP's lead down to multiplying at low load, where TCP has slow start: TCP in its place has no lead.",
)  # fmt: skip
study.control(
    "XCP and VCP exchanged", exchange(XCP, VCP), ["Y-fig7-b", "Y-fig7-c", "Y-fig7-e"],
    "If VCP is quiet and quick to recover and XCP swings, then XCP in VCP's place is none of it.",
)  # fmt: skip
study.control(
    "XCP and TCP exchanged", exchange(XCP, TCP), ["Y-fig7-d"],
    "If slow starts make TCP swing more than XCP, XCP in TCP's place swings less.",
)  # fmt: skip
study.cannot_fail(
    "Y-fig7-f", "At 30 dB with 2x2 antennas one packet in a million is lost without a code, whatever the protocol."
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system, of the first seed."""
    return [
        Panel(
            f"{system}, seed {data.runs(system)[0].seed}", "time (s)", "utilisation (%)",
            [Line.series(system, over_time(data, system)[0], 0.01)], compared=True,
        )
        for system in SYSTEMS
    ]  # fmt: skip
