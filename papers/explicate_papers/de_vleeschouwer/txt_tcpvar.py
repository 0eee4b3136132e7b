"""D-txt-tcpvar: do other TCPs starve lossy flows too (section 8.2)? Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate_papers.controls import exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, above, at_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-tcpvar")

TCPS, XTCP = ("newreno", "sack"), "LR-XTCP"
LOSSES = (0.0, 1.0, 5.0, 10.0)


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """The two TCPs and the XTCP that they are compared with."""
    return {(system, loss): base.case(effort, system, loss) for system in (*TCPS, XTCP) for loss in LOSSES}


@study.predicate("D-txt-tcpvar-a", most=0.35, percent=5)
def they_starve_too(data: Data, most: float, percent: float) -> Iterator[Check]:
    """Their window shrinks upon every loss."""
    explicit = base.fairness(data, XTCP, percent)
    for system in TCPS:
        yield at_most(f"F of {system} at {percent:g} %", base.fairness(data, system, percent), most)
        yield above(f"F at {percent:g} %: {XTCP} over {system}", explicit, base.fairness(data, system, percent))


study.control(
    "XTCP in NewReno's place",
    exchange("newreno", XTCP),
    ["D-txt-tcpvar-a"],
    "losses leave XTCP's window alone, so it does not starve",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F against the loss rate."""
    lines = [
        Line.of(system, LOSSES, [base.fairness(data, system, loss) for loss in LOSSES]) for system in (*TCPS, XTCP)
    ]
    return [Panel("Fairness ratio", "loss rate (%)", "lossy / loss-free throughput", lines)]
