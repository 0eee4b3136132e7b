"""D-txt-dup: one duplicate ACK or three before a retransmission (end of section 7.1). Set-up: `base.py`.

Retransmissions in a round trip are counted from the packet record of one lossy flow (`lives.py`): the maximum in a
span of the flow's shortest round trip, without those of timers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers.controls import exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.de_vleeschouwer.lives import life, most_in_a_round_trip
from explicate_papers.statistics import Check, Sample, above, at_most, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-dup")

SYSTEMS = ("LR-XCP", "LR-LMXCP")
THRESHOLDS = (1, 3)
TRACED = "traced"
LEAST, GREATEST, HIGH = 1.0, 15.0, 10.0
TRACED_S = 100
"""The seconds of a run whose packets are followed."""
PLACES = 199
"""The monitor's places, more than a window needs."""
WATCHED = 5
"""The number of the first lossy flow."""


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent: those of the other figures from 1 to 15."""
    every = [loss for loss in base.points(effort, "D-P10") if LEAST <= loss <= GREATEST]
    return effort.pick(every, [loss for loss in every if loss in (1.0, 5.0, 10.0)])


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int | str, float], Case]:
    """Both systems, both thresholds, every loss rate; where much is lost also one flow's packets, with threshold 1."""
    made: dict[tuple[str, int | str, float], Case] = {}
    for system in SYSTEMS:
        for loss in losses(effort):
            for threshold in THRESHOLDS:
                made[system, threshold, loss] = base.case(effort, system, loss, params={"dupackthreshold": threshold})
            if loss >= HIGH:
                params, follow = {"dupackthreshold": 1}, f"flow={WATCHED}"
                made[system, TRACED, loss] = base.case(
                    effort, system, loss, params=params, seconds=TRACED_S, trace=follow
                )
    return made


def lead(data: Data, threshold: int, loss: float) -> Sample:
    """Return how much fairer the loss monitor is than the timer."""
    return base.fairness(data, "LR-LMXCP", threshold, loss) - base.fairness(data, "LR-XCP", threshold, loss)


@study.predicate("D-txt-dup-a", high=10, low=1)
def lead_grows(data: Data, high: float, low: float) -> Iterator[Check]:
    """The monitor's lead grows with a small threshold and high loss."""
    most = lead(data, 1, high)
    yield exceeds(f"lead at {high:g} %: threshold 1 over 3", most, lead(data, 3, high))
    yield exceeds(f"lead with threshold 1: {high:g} % over {low:g} %", most, lead(data, 1, low))


def most_resent(results: Results) -> float:
    """Return the maximum of retransmissions by acknowledgements of the recorded flow within its shortest round trip."""
    return float(most_in_a_round_trip(life(results, 1, PLACES)))


@study.predicate("D-txt-dup-b", most=1, percent=10)
def one_per_round_trip(data: Data, most: float, percent: float) -> Iterator[Check]:
    """Besides its timer the timer's sender retransmits once per round trip, the monitor's more often."""
    for loss in losses(data.effort):
        if loss >= percent:
            timer, monitor = (data.measure((system, TRACED, loss), most_resent) for system in SYSTEMS)
            yield at_most(f"LR-XCP at {loss:g} %: most retransmissions in a round trip", timer, most)
            yield above(f"LR-LMXCP at {loss:g} %: most retransmissions in a round trip", monitor, monitor * 0 + most)


study.control(
    "systems exchanged",
    exchange(*SYSTEMS),
    ["D-txt-dup-a", "D-txt-dup-b"],
    "cumulative acknowledgements show one hole a round trip, whatever the threshold",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F against the loss rate."""
    grid = losses(data.effort)
    lines = [
        Line.of(f"{system}, D{threshold}", grid, [base.fairness(data, system, threshold, loss) for loss in grid])
        for system in SYSTEMS
        for threshold in THRESHOLDS
    ]
    return [Panel("Fairness ratio", "loss rate (%)", "lossy / loss-free throughput", lines)]
