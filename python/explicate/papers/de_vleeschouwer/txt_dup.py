"""D-txt-dup: one duplicate ACK or three before a retransmission (end of section 7.1). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.statistics import Check, Sample, above, at_least, at_most
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("D-txt-dup")

SYSTEMS = ("LR-XCP", "LR-LMXCP")
THRESHOLDS = (1, 3)


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    return effort.pick((1.0, 2.0, 5.0, 8.0, 10.0, 15.0), (1.0, 5.0, 10.0))


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int, float], Case]:
    """Both systems, both thresholds, every loss rate."""
    return {
        (system, threshold, loss): base.case(effort, system, loss, params={"dupackthreshold": threshold})
        for system in SYSTEMS
        for threshold in THRESHOLDS
        for loss in losses(effort)
    }


def lead(data: Data, threshold: int, loss: float) -> Sample:
    """Return how much fairer the loss monitor is than the timer."""
    return base.fairness(data, "LR-LMXCP", threshold, loss) - base.fairness(data, "LR-XCP", threshold, loss)


@study.predicate("D-txt-dup-a", high=10, low=1)
def lead_grows(data: Data, high: float, low: float) -> Iterator[Check]:
    """The monitor's lead grows with a small threshold and high loss."""
    most = lead(data, 1, high)
    yield above(f"lead at {high:g} %: threshold 1 over 3", most, lead(data, 3, high))
    yield above(f"lead with threshold 1: {high:g} % over {low:g} %", most, lead(data, 1, low))


def resent_per_round_trip(results: Results) -> float:
    """Return retransmissions per flow and round trip, without those that follow timeouts."""
    lossy = results.flows.filter(results.flows["group"] == "lossy")
    round_trips = metrics.end_s(results) / (lossy["rtt_mean_ms"] / 1000)
    return float(max((lossy["retransmissions"] / round_trips).to_list()))


@study.predicate("D-txt-dup-b", most=1, percent=10)
def one_per_round_trip(data: Data, most: float, percent: float) -> Iterator[Check]:
    """The timer's sender resends once a round trip, the monitor's more often."""
    timer = data.measure(("LR-XCP", 1, percent), resent_per_round_trip)
    monitor = data.measure(("LR-LMXCP", 1, percent), resent_per_round_trip)
    yield at_most("LR-XCP: most retransmissions per round trip", timer, most)
    yield at_least("LR-LMXCP: more of them than LR-XCP, factor", monitor / timer, most)


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
