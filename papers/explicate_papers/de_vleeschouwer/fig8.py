"""D-fig8: fairness ratio against loss rate, TCP and the XTCP family (figure 8). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate_papers.controls import exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, Sample, above, at_least, at_most, average, close, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig8")

FAMILY = ("LR-XTCP", "LR-XTCP_PA", "LR-LMXTCP", "LR-LMXTCP_TCPfriend")
BESIDE = ("LR-XCP", "LR-LMXCP")
"""Of figure 3, for the comparisons across the figures."""
TCP = "TCP"


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Every system at every loss rate."""
    made = {(TCP, loss): base.case(effort, base.tcp(effort), loss) for loss in base.losses(effort)}
    for system in (*FAMILY, *BESIDE):
        made |= {(system, loss): base.case(effort, system, loss) for loss in base.losses(effort)}
    return made


def under_loss(data: Data, system: str) -> Sample:
    """Return the mean fairness over the positive loss rates."""
    return average([base.fairness(data, system, loss) for loss in base.losses(data.effort) if loss > 0])


@study.predicate("D-fig8-a", at_5=0.5)
def tcp_starves(data: Data, at_5: float) -> Iterator[Check]:
    """TCP's lossy flows starve, more than those of any other system."""
    yield at_most("F of TCP at 5 %", base.fairness(data, TCP, 5.0), at_5)
    for system in FAMILY:
        yield exceeds(f"mean F under loss: {system} over TCP", under_loss(data, system), under_loss(data, TCP))


@study.predicate("D-fig8-b", small=0.03, gain=0.05, low_percent=1, high_percent=3)
def partial_acks_help_late(
    data: Data, small: float, gain: float, low_percent: float, high_percent: float
) -> Iterator[Check]:
    """Partial ACKs help only beyond some loss rate."""
    gains = {
        loss: base.fairness(data, "LR-XTCP_PA", loss) - base.fairness(data, "LR-XTCP", loss)
        for loss in base.losses(data.effort)
    }
    for loss, one in gains.items():
        if loss <= low_percent:
            yield at_most(f"gain at {loss:g} %", one, small)
    _, best = max((one.mean, loss) for loss, one in gains.items() if loss >= high_percent)
    yield at_least(f"largest gain from {high_percent:g} % on, at {best:g} %", gains[best], gain)


@study.predicate("D-fig8-c", gain=0.1, from_percent=5)
def monitor_far_better(data: Data, gain: float, from_percent: float) -> Iterator[Check]:
    """Packet numbers beat cumulative ACKs."""
    for loss in base.losses(data.effort):
        if loss >= from_percent:
            for system in ("LR-XTCP", "LR-XTCP_PA"):
                difference = base.fairness(data, "LR-LMXTCP", loss) - base.fairness(data, system, loss)
                yield at_least(f"F(LR-LMXTCP) - F({system}) at {loss:g} %", difference, gain)


@study.predicate("D-fig8-d")
def friend_even_better(data: Data) -> Check:
    """The artificial back-off makes the monitor fairer still."""
    friend, monitor = (under_loss(data, name) for name in ("LR-LMXTCP_TCPfriend", "LR-LMXTCP"))
    return exceeds("mean F under loss: TCPfriend over LR-LMXTCP", friend, monitor)


@study.predicate("D-fig8-e", least=0.8)
def monitor_efficient(data: Data, least: float) -> Check:
    """The monitor holds at 5 %."""
    return at_least("F of LR-LMXTCP at 5 %", base.fairness(data, "LR-LMXTCP", 5.0), least)


@study.predicate("D-fig8-f", from_percent=2, difference=0.07, low_percent=1)
def worse_than_xcp_above_one_percent(
    data: Data, from_percent: float, difference: float, low_percent: float
) -> Iterator[Check]:
    """A halved window reduces the throughput of a sender that also loses packets."""
    for loss in base.losses(data.effort):
        xtcp, xcp = base.fairness(data, "LR-XTCP", loss), base.fairness(data, "LR-XCP", loss)
        if loss >= from_percent:
            yield above(f"F at {loss:g} %: LR-XCP over LR-XTCP", xcp, xtcp)
        if loss <= low_percent:
            yield close(f"F at {loss:g} %: LR-XTCP and LR-XCP", xtcp, xcp, difference)


@study.predicate("D-fig8-g", difference=0.1, up_to_percent=10)
def equally_well(data: Data, difference: float, up_to_percent: float) -> Iterator[Check]:
    """With packet numbers either control will do."""
    for loss in base.losses(data.effort):
        if loss <= up_to_percent:
            xtcp, xcp = (base.fairness(data, system, loss) for system in ("LR-LMXTCP", "LR-LMXCP"))
            yield close(f"F at {loss:g} %: LR-LMXTCP and LR-LMXCP", xtcp, xcp, difference)


study.control(
    "TCP and the loss monitor exchanged",
    exchange(TCP, "LR-LMXTCP"),
    ["D-fig8-a", "D-fig8-c", "D-fig8-e", "D-fig8-g"],
    "TCP takes each loss for congestion and starves",
)
study.control(
    "with partial acknowledgements and without exchanged",
    exchange("LR-XTCP", "LR-XTCP_PA"),
    ["D-fig8-b"],
    "they help where a window loses more than one packet, so their lack costs",
)
study.control(
    "with the artificial back-off and without exchanged",
    exchange("LR-LMXTCP_TCPfriend", "LR-LMXTCP"),
    ["D-fig8-d"],
    "an order that holds does not hold the other way round",
)
study.control(
    "flags and fine feedback exchanged",
    exchange("LR-XTCP", "LR-XCP"),
    ["D-fig8-f"],
    "a window that is halved while a hole holds its head sends less than one that is not",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F against the loss rate."""
    grid = base.losses(data.effort)
    lines = [Line.of(name, grid, [base.fairness(data, name, loss) for loss in grid]) for name in (TCP, *FAMILY)]
    return [Panel("Fairness ratio, TCP and XTCP family", "loss rate (%)", "lossy / loss-free throughput", lines)]
