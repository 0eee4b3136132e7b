"""D-txt-rtx: the retransmission timer's length and its reasons (section 4.3, note 3). Set-up: `base.py`.

In (c) timers that never exceed half of their usual length underestimate the round trip. In (d) the packet record of a
lossy flow shows whether an expiry was justified; hosts have no processing time there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Rewrite, Settings
from explicate_papers.de_vleeschouwer import base
from explicate_papers.de_vleeschouwer.lives import life
from explicate_papers.statistics import Check, at_least, at_most, average, close, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-rtx")

SYSTEMS = ("LR-XCP", "LR-XCP_PA", "LR-XTCP")
FACTORS = (1.5, 2.0, 3.0)
LOSSES = (1.0, 5.0, 10.0)
USUAL = 2.0
SHORT, TRACED = "half", "traced"
HALF = {"min_rto": "100ms", "max_rto": "100ms"}
"""Half of the minimum timeout (D-P7), and less than the 120 ms that a packet travels."""
TOO_SHORT = {"min_rto": "40ms", "max_rto": "40ms"}
"""Both timers expire within the 120 ms that a packet travels."""
WATCHED = 5
"""The number of the first lossy flow."""


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float, float | str], Case]:
    """Every factor at every loss rate, and two cases with single mechanisms."""
    made: dict[tuple[str, float, float | str], Case] = {
        (system, loss, factor): base.case(effort, system, loss, params={"retransmission_factor": factor})
        for system in SYSTEMS
        for loss in LOSSES
        for factor in FACTORS
    }
    for system in SYSTEMS:
        made[system, 5.0, SHORT] = base.case(effort, system, 5.0, params=HALF)
        made[system, 5.0, TRACED] = base.case(effort, system, 5.0, trace=f"flow={WATCHED}")
    return made


@study.predicate("D-txt-rtx-a", fairness=0.1, use=0.1)
def no_significant_effect(data: Data, fairness: float, use: float) -> Iterator[Check]:
    """1.5 or 3 times the recovery timeout do as well as 2 times."""
    for system in SYSTEMS:
        for factor in (1.5, 3.0):
            name = f"{system}: factor {factor:g} and {USUAL:g}"
            one, usual = (
                average([base.fairness(data, system, loss, value) for loss in LOSSES]) for value in (factor, USUAL)
            )
            yield close(f"mean F of {name}", one, usual, fairness)
            one, usual = (
                average([data.measure((system, loss, value), base.utilisation) for loss in LOSSES])
                for value in (factor, USUAL)
            )
            yield close(f"mean utilisation of {name}", one, usual, use)


def timer_resends(results: Results) -> float:
    """Return how often the retransmission timers of the lossy flows fired."""
    return sum(metrics.largest(metrics.series(results, f"lossy.{i}", "timer_resends")) for i in range(5))


@study.predicate("D-txt-rtx-b")
def fires_before_the_recovery_timer(data: Data) -> Iterator[Check]:
    """It is longer, but duplicates do not put it off; resets are rare."""
    for system in SYSTEMS:
        fired, resets = (data.measure((system, 5.0, USUAL), metric) for metric in (timer_resends, base.timeouts))
        yield exceeds(f"{system} at 5 %: the timer's expiries over the resets", fired, resets)


@study.predicate("D-txt-rtx-c", percent=10)
def stable_with_short_timers(data: Data, percent: float) -> Iterator[Check]:
    """Too short an estimate does not overload the other flows."""
    most = 1 + percent / 100
    for system in SYSTEMS:
        short, usual = ((system, 5.0, value) for value in (SHORT, USUAL))
        for name, metric in (("mean queue", base.queue), ("packets lost by the queue", base.refused)):
            one, other = (data.measure(label, metric) for label in (short, usual))
            yield at_most(f"{system}: {name} with half timers, less {most:g} times the usual", one - other * most, 0)
        one, other = (data.measure(label, base.utilisation) for label in (short, usual))
        least = 1 - percent / 100
        name = f"{system}: utilisation with half timers, less {least:g} times the usual"
        yield at_least(name, one - other * least, 0)


def needless(results: Results) -> float:
    """Return the retransmissions by timer of segments that had arrived, per expiry of the timer, percent."""
    return 100 * life(results, 3, 1000).in_vain / max(fired(results), 1.0)


def fired(results: Results) -> float:
    """Return how often the watched flow's timer fired."""
    return metrics.largest(metrics.series(results, f"lossy.{WATCHED - 5}", "timer_resends"))


@study.predicate("D-txt-rtx-d", percent=1)
def always_justified(data: Data, percent: float) -> Iterator[Check]:
    """Segments that the timer retransmits were lost."""
    for system in SYSTEMS:
        yield at_least(f"{system}: expiries", data.measure((system, 5.0, TRACED), fired), 1)
        share = data.measure((system, 5.0, TRACED), needless)
        yield at_most(f"{system}: needless retransmissions, % of the expiries", share, percent)


OFF = {f"flows.{half}.params.retransmission_timer": False for half in ("clean", "lossy")}


def short_one(label: tuple[str, float, float | str]) -> bool:
    """Return whether a case has timers of half their length."""
    return label[2] == SHORT


def too_short(_: tuple[str, float, float | str], one: Case) -> Case:
    """Return the case with timers shorter than a round trip."""
    timers = {f"flows.{half}.params.{key}": value for half in ("clean", "lossy") for key, value in TOO_SHORT.items()}
    return replace(one, settings=timers)


def other_factor(label: tuple[str, float, float | str]) -> bool:
    """Return whether a case has another factor than the usual one."""
    return label[2] in {factor for factor in FACTORS if factor != USUAL}


study.control(
    "no timer where the factor is another",
    Settings("off", OFF, other_factor),
    ["D-txt-rtx-a"],
    "without it what is lost twice waits for a reset",
)
study.control(
    "no timer at all",
    Settings("off", OFF),
    ["D-txt-rtx-b"],
    "what does not exist does not fire first",
)
study.control(
    "TCP with the short timers",
    Rewrite("protocol", lambda label, one: base.instead_of(label[0], "reno").change(label, one), short_one),
    ["D-txt-rtx-c"],
    "TCP fills the queue that XCP keeps nearly empty",
)
study.control(
    "timers shorter than a round trip",
    Rewrite("off", too_short, lambda label: label[2] == TRACED),
    ["D-txt-rtx-d"],
    "they expire while what they wait for is under way",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F against the factor."""
    lines = [
        Line.of(f"{system}, {loss:g} %", FACTORS, [base.fairness(data, system, loss, one) for one in FACTORS])
        for system in SYSTEMS
        for loss in LOSSES
    ]
    return [Panel("Fairness ratio", "timeout (recovery timeouts)", "lossy / loss-free throughput", lines)]
