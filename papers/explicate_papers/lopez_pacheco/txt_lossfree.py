"""I-txt-lossfree: XCP after a timeout (section II-A).

Set-up: scenario c of figure 1. The window is sampled every 50 us: at most one acknowledgement arrives in that time,
since data leave the last router 100 us apart or more. The trace has the contents of each acknowledgement.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Settings
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, Sample, at_least, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-txt-lossfree")

AROUND = "c"
FLOW = "bulk.0"
SECONDS, EVERY_S = 5, 50e-6
GROWTH_S = 0.15
"""How long acknowledgements are followed after a timeout."""
DUPLICATES = 3
"""With so many the recovery may find a loss: the window is halved, and then the feedback is added."""
ROUNDING = 1e-6
"""Of a window, packets: round-trip times have nanoseconds, and are printed in ms."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """XCP around a plain router."""
    chain, middle = base.chain(effort)
    flows = [base.flow(effort, "bulk", base.XCP, ("s", "d"))]
    text = base.scenario(
        effort, "I-txt-lossfree", base.Network(chain.links, {middle}), flows,
        seconds=SECONDS, every=f"{1e6 * EVERY_S:g}us", sampled=["flow"],
    )  # fmt: skip
    # The rule is checked with the sampled estimate, which is the timer's.
    return {AROUND: Case(text, {"flows.0.params.rtt_resolution": "auto"}, trace="flow=0", seeds=2)}


@dataclass(frozen=True)
class Told:
    """An acknowledgement: its arrival time, s, its feedback, bytes/s, and whether it is the third duplicate."""

    time_s: float
    feedback: int
    third: bool


HEARD = re.compile(r"([\d.]+)\s+delivered\s+\S+ ack (\d+) packet \d+ \d+ B feedback ([+-]\d+)")


def told(results: Results) -> list[Told]:
    """Return all acknowledgements."""
    made, last, same = [], "", 0
    for time_s, number, feedback in HEARD.findall(results.trace):
        same, last = (same + 1 if number == last else 0), number
        made.append(Told(float(time_s), int(feedback), same == DUPLICATES))
    return made


@dataclass(frozen=True)
class Step:
    """One sample: the window after it, the windows that the update rule permits, and the events."""

    time_s: float
    after: float
    allowed: Sequence[float]
    """The first is that of a window which was not halved."""
    acknowledged: bool
    expired: bool

    @property
    def by_rule(self) -> float:
        """The window by the update rule and the timer alone."""
        return self.allowed[0]

    @property
    def as_told(self) -> bool:
        """Whether the rule permits the window."""
        return any(abs(self.after - one) <= ROUNDING * max(one, 1.0) for one in self.allowed)


def allowed(before: float, answers: Sequence[Told], one_per_s: float, *, expired: bool) -> list[float]:
    """Return the possible next windows: max(cwnd + H_feedback, packet) at each acknowledgement.

    A feedback of 1 byte/s adds `one_per_s` packets. The third duplicate may find the window halved. If a timer
    expired in the same time, its order relative to the acknowledgements is unknown.
    """
    found = [1.0 if expired else before]
    for one in answers:
        if one.third:
            found += [max(window / 2, 1.0) for window in found]
        found = [max(window + one.feedback * one_per_s, 1.0) for window in found]
    return [*found, 1.0] if expired else found


def steps(results: Results, packet: float) -> list[Step]:
    """Return the samples in which an acknowledgement came or the timer expired."""
    mine = results.samples.filter(pl.col("object").cast(pl.String) == FLOW)
    table = mine.pivot("variable", index="time_s", values="value").sort("time_s")
    times, windows, rtts, timers = (table[name].to_list() for name in ("time_s", "cwnd", "srtt_ms", "rto_ms"))
    heard: dict[int, list[Told]] = {}
    for one in told(results):
        heard.setdefault(bisect_left(times, one.time_s - 1e-9), []).append(one)
    made = []
    for place in range(1, len(times)):
        answers, expired = heard.get(place, []), timers[place] > 1.98 * timers[place - 1]
        if answers or expired:
            may = allowed(windows[place - 1], answers, rtts[place] * 1e-3 / packet, expired=expired)
            made.append(Step(times[place], windows[place], may, bool(answers), expired))
    return made


def _counted(data: Data) -> Iterator[list[Step]]:
    for results in data.runs(AROUND):
        yield steps(results, base.packet_bytes(data.effort))


@study.predicate("I-txt-lossfree-a")
def back_to_one(data: Data) -> Iterator[Check]:
    """The timer resets the window; feedback alone makes it grow again."""
    yield at_least("timeouts", data.measure(AROUND, base.timeouts), 1)
    wide, more = [], []
    for found in _counted(data):
        expired = [step for step in found if step.expired]
        wide.append(sum(not step.as_told for step in expired))
        after = [
            step
            for step in found
            if not step.expired and any(0 < step.time_s - one.time_s <= GROWTH_S for one in expired)
        ]
        more.append(sum(step.after > step.by_rule + ROUNDING * step.by_rule for step in after))
    yield equal("timeouts after which the window is not one packet", Sample.of(wide), 0)
    yield equal(f"acknowledgements within {GROWTH_S:g} s that add more than their feedback", Sample.of(more), 0)


@study.predicate("I-txt-lossfree-b")
def one_packet_at_least(data: Data) -> Iterator[Check]:
    """The window after each acknowledgement is max(cwnd + H_feedback, packet)."""
    answered = [[step for step in found if step.acknowledged] for found in _counted(data)]
    floored = [sum(step.by_rule == 1.0 for step in found) for found in answered]
    yield at_least(
        f"samples with an acknowledgement (in {Sample.of(floored)} the packet decides)",
        Sample.of(map(len, answered)),
        1,
    )
    wrong = Sample.of(sum(not step.as_told for step in found) for found in answered)
    yield equal("of them with another window than the rule's", wrong, 0)


study.control(
    "the timer leaves the window alone",
    Settings("off", {"flows.bulk.params.on_timeout": "keep"}),
    ["I-txt-lossfree-a"],
    "without TCP's reaction to severe congestion the window is not reset",
)
study.control(
    "duplicates carry no feedback",
    Settings("off", {"flows.bulk.params": {"follow_duplicates": False}}),
    ["I-txt-lossfree-b"],
    "the rule is then not followed at every acknowledgement",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The window over time."""
    window = metrics.series(data.runs(AROUND)[0], FLOW, "cwnd").gather_every(round(0.005 / EVERY_S))
    line = Line.series("cwnd", window)
    return [Panel("XCP around a plain router, first seed", "time (s)", "window (packets)", [line])]
