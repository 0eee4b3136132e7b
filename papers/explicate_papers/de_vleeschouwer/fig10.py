"""D-fig10: sums of throughput over time at 5 % loss, the XTCP family (figure 10). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from explicate.results import Results
from explicate_papers import plan
from explicate_papers.controls import Rewrite, exchange
from explicate_papers.de_vleeschouwer import base, fig8
from explicate_papers.de_vleeschouwer.fig2a import panel
from explicate_papers.register import experiments
from explicate_papers.statistics import Check, above, close
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("D-fig10")

MONITOR, FRIEND = "LR-LMXTCP", "LR-LMXTCP_TCPfriend"
FIGURE_8 = "D-fig8"
LOSS = 5.0


@study.cases
def cases(effort: Effort) -> dict[Any, Case]:
    """The panels that are named in the text, and the same systems' cases of figure 8 as that is run."""
    made: dict[Any, Case] = {system: base.case(effort, system, LOSS) for system in (MONITOR, FRIEND)}
    other = replace(effort, seconds=plan.effort(experiments()["D-fig8"], effort.name).seconds)
    for system in (MONITOR, FRIEND):
        made[FIGURE_8, system] = replace(fig8.cases(other)[system, LOSS], seeds=effort.seeds)
    return made


def clean_unrest(results: Results) -> float:
    """Return the standard deviation of the loss-free sum, Mbit/s."""
    return base.unrest(results, base.CLEAN)


@study.predicate("D-fig10-a")
def friend_fluctuates_more(data: Data) -> Iterator[Check]:
    """The artificial back-off shakes the throughput."""
    for name, metric in (("lossy", base.unrest), ("loss-free", clean_unrest)):
        friend, monitor = (data.measure(system, metric) for system in (FRIEND, MONITOR))
        yield above(f"deviation of the {name} sum in 1 s, Mbit/s: TCPfriend over LR-LMXTCP", friend, monitor)


@study.predicate("D-fig10-b", difference=0.07)
def means_agree(data: Data, difference: float) -> Iterator[Check]:
    """The time means are those of figure 8."""
    for system in (MONITOR, FRIEND):
        here, there = base.fairness(data, system), base.fairness(data, FIGURE_8, system)
        yield close(f"F of {system} here and in figure 8", here, there, difference)


study.control(
    "with the artificial back-off and without exchanged",
    exchange(MONITOR, FRIEND),
    ["D-fig10-a"],
    "windows that fall to one shake the throughput more than windows that are halved",
)
study.control(
    "TCP here, not in figure 8",
    Rewrite(
        "protocol",
        lambda label, one: base.instead_of(label, "reno").change(label, one),
        lambda label: label in (MONITOR, FRIEND),
    ),
    ["D-fig10-b"],
    "TCP starves at 5 %, the loss monitor does not",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, system, system) for system in (MONITOR, FRIEND)]
