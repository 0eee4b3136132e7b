"""D-fig3: fairness ratio against loss rate, the XCP family (figure 3). Set-up: `base.py`; three duplicate ACKs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate_papers.controls import exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, Sample, above, at_least, at_most, average, between, exceeds, falling
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig3")

SYSTEMS = ("XCP_dumb", "XCP", "XCP_PA", "LR-XCP", "LR-XCP_PA", "LR-LMXCP")


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Every system at every loss rate."""
    return {(system, loss): base.case(effort, system, loss) for system in SYSTEMS for loss in base.losses(effort)}


def over_losses(data: Data, system: str, from_percent: float) -> Sample:
    """Return the mean fairness over the loss rates from `from_percent` on."""
    grid = [loss for loss in base.losses(data.effort) if loss >= from_percent]
    return average([base.fairness(data, system, loss) for loss in grid])


@study.predicate("D-fig3-a", from_percent=1)
def monitor_fairest_dumb_worst(data: Data, from_percent: float) -> Iterator[Check]:
    """The loss monitor leads and XCP_dumb trails at every loss rate."""
    best, worst = (over_losses(data, system, from_percent) for system in ("LR-LMXCP", "XCP_dumb"))
    for system in SYSTEMS[1:-1]:
        other = over_losses(data, system, from_percent)
        yield exceeds(f"mean F: LR-LMXCP over {system}", best, other)
        yield exceeds(f"mean F: {system} over XCP_dumb", other, worst)


@study.predicate("D-fig3-b", gain=0.05, from_percent=5)
def timer_helps(data: Data, gain: float, from_percent: float) -> Iterator[Check]:
    """The retransmission timer improves the fairness."""
    for loss in base.losses(data.effort):
        if loss >= from_percent:
            difference = base.fairness(data, "LR-XCP_PA", loss) - base.fairness(data, "XCP_PA", loss)
            yield at_least(f"F(LR-XCP_PA) - F(XCP_PA) at {loss:g} %", difference, gain)


@study.predicate("D-fig3-c", small=0.05, low_percent=1, high_percent=5)
def partial_acks_help_at_high_loss(
    data: Data, small: float, low_percent: float, high_percent: float
) -> Iterator[Check]:
    """They matter when a round trip loses more than one packet."""
    gains = {
        loss: base.fairness(data, "LR-XCP_PA", loss) - base.fairness(data, "LR-XCP", loss)
        for loss in base.losses(data.effort)
    }
    for loss, gain in gains.items():
        if loss <= low_percent:
            yield at_most(f"gain at {loss:g} %", gain, small)
        if loss >= high_percent:
            yield above(f"gain at {loss:g} % over that at {low_percent:g} %", gain, gains[low_percent])


@study.predicate("D-fig3-d", low=0.95, high=1.05)
def even_without_loss(data: Data, low: float, high: float) -> Iterator[Check]:
    """All start at one."""
    for system in SYSTEMS:
        yield between(f"F(0) of {system}", base.fairness(data, system, 0.0), low, high)


@study.predicate("D-fig3-e", slack=0.03)
def falls_with_loss(data: Data, slack: float) -> Iterator[Check]:
    """More loss, less fairness."""
    for system in SYSTEMS:
        yield falling(f"F of {system}", [base.fairness(data, system, loss) for loss in base.losses(data.effort)], slack)


@study.predicate("D-fig3-f", at_5=0.85, at_10=0.7)
def monitor_stays_fair(data: Data, at_5: float, at_10: float) -> Iterator[Check]:
    """The monitor holds at high loss."""
    yield at_least("F of LR-LMXCP at 5 %", base.fairness(data, "LR-LMXCP", 5.0), at_5)
    yield at_least("F of LR-LMXCP at 10 %", base.fairness(data, "LR-LMXCP", 10.0), at_10)


study.control(
    "the loss monitor and Reno's recovery exchanged",
    exchange("LR-LMXCP", "XCP_dumb"),
    ["D-fig3-a", "D-fig3-f"],
    "a sender that halves its window at each loss starves on a lossy link",
)
study.control(
    "with the timer and without exchanged",
    exchange("LR-XCP_PA", "XCP_PA"),
    ["D-fig3-b"],
    "the timer repairs what is lost twice, for which the other waits until it is reset",
)
study.control(
    "with partial acknowledgements and without exchanged",
    exchange("LR-XCP_PA", "LR-XCP"),
    ["D-fig3-c"],
    "they repair a second loss of a window at once, so their lack costs more the more is lost",
)
study.control(
    "no loss and 10 % exchanged",
    exchange(0.0, 10.0),
    ["D-fig3-d", "D-fig3-e"],
    "losses make F fall below one",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F against the loss rate."""
    grid = base.losses(data.effort)
    lines = [Line.of(system, grid, [base.fairness(data, system, loss) for loss in grid]) for system in SYSTEMS]
    return [Panel("Fairness ratio, XCP family", "loss rate (%)", "lossy / loss-free throughput", lines)]
