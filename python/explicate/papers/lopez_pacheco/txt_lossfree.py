"""I-txt-lossfree: XCP after a timeout (section II-A). Set-up: scenario c of figure 1, its window every 10 ms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from explicate.papers import metrics
from explicate.papers.lopez_pacheco import base
from explicate.papers.statistics import Check, at_least, at_most, equal
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("I-txt-lossfree")

AROUND = "c"
FLOW = "bulk.0"
SECONDS, EVERY_S = 20, 0.01


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """XCP around a plain router."""
    network = base.Network([("s", "r1", 80), ("r1", "r2", 80), ("r2", "r3", 30), ("r3", "d", 80)], {"r2"})
    flows = [base.flow(effort, "bulk", base.XCP, ("s", "d"))]
    text = base.scenario(
        effort, "I-txt-lossfree", network, flows, seconds=SECONDS, every=f"{EVERY_S:g}s", sampled=["flow"]
    )
    return {AROUND: Case(text)}


def window(results: Results) -> list[float]:
    """Return the window's samples, packets."""
    return metrics.series(results, FLOW, "cwnd")["value"].to_list()


def resets(results: Results) -> list[int]:
    """Return the samples in which the window has come down to one packet."""
    made = window(results)
    return [place for place, (before, after) in enumerate(pairwise(made), 1) if before > 1 == after]


def missed(results: Results) -> float:
    """Return how many timeouts more there were than returns to one packet (a second one in a row is no return)."""
    return metrics.total(results, "timeouts") - len(resets(results))


def kept(results: Results) -> float:
    """Return the longest time, round trips, that a window of one packet stays after a timeout."""
    made, rtt_s = window(results), 0.08
    longest = 0
    for place in resets(results):
        stays = next((n for n, value in enumerate(made[place:]) if value > 1), 0)
        longest = max(longest, stays)
    return longest * EVERY_S / rtt_s


def doublings(results: Results) -> float:
    """Count the samples by which a window has doubled although the feedback that came was not positive."""
    made = window(results)
    feedback = metrics.series(results, FLOW, "feedback_bytes_per_s")["value"].to_list()
    return float(
        sum(
            after >= 1.9 * before and max(told) <= 0
            for (before, after), told in zip(pairwise(made), pairwise(feedback), strict=True)
        )
    )


def regrown(results: Results) -> float:
    """Return the least window within a second after a return to one packet, over all of them: its largest sample."""
    made = window(results)
    return min(max(made[place : place + round(1 / EVERY_S)]) for place in resets(results))


@study.predicate("I-txt-lossfree-a", packets=1)
def back_to_one(data: Data, packets: float) -> Iterator[Check]:
    """The timer resets the window; feedback alone makes it grow again."""
    yield at_least("timeouts", data.measure(AROUND, base.timeouts), 1)
    most = 0.25 * data.measure(AROUND, base.timeouts).mean
    yield at_most(f"timeouts without a window of {packets:g} seen", data.measure(AROUND, missed), most)
    yield equal("doublings without positive feedback", data.measure(AROUND, doublings), 0)
    yield at_least("largest window within a second, least over all timeouts", data.measure(AROUND, regrown), 10)


def least(results: Results) -> float:
    """Return the smallest window."""
    return min(window(results))


@study.predicate("I-txt-lossfree-b", packet=1)
def one_packet_at_least(data: Data, packet: float) -> Check:
    """The update never goes below a packet."""
    return equal("smallest window", data.measure(AROUND, least), packet)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The window over time."""
    line = Line.series("cwnd", metrics.series(data.runs(AROUND)[0], FLOW, "cwnd"))
    return [Panel("XCP around a plain router", "time (s)", "window (packets)", [line])]
