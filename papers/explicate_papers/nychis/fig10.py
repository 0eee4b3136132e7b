"""N-fig10: rates of thirty flows of 10 s from one station to another (figure 10). Set-up: `fig9.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explicate_papers.controls import edit
from explicate_papers.nychis.fig9 import LONG_S, OVER, SHORT_S, UNDER, half_tcp, jain, rates, two_stations
from explicate_papers.statistics import Check, above, at_least
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("N-fig10")

LONG = "long"


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both capacities, and long flows with too large a capacity."""
    short: dict[object, Case] = {capacity: two_stations(effort, capacity, SHORT_S) for capacity in (UNDER, OVER)}
    return {**short, LONG: two_stations(effort, OVER, LONG_S)}


@study.predicate("N-fig10-a", least=0.9)
def fair_if_told_too_little(data: Data, least: float) -> Check:
    """Fairness is maintained."""
    return at_least("Jain's index, told 20", data.measure(UNDER, jain), least)


@study.predicate("N-fig10-b")
def worse_than_long(data: Data) -> Check:
    """With too large a capacity the rates of short flows differ more than those of long ones."""
    return above("Jain's index, told 54: long over short", data.measure(LONG, jain), data.measure(OVER, jain))


study.control(
    "half of the flows TCP",
    edit("protocol", half_tcp, lambda label: label == UNDER),
    ["N-fig10-a"],
    "Rates are equal since all senders follow routers; TCP fills the queue, and routers make XCP's flows give way.",
)
study.cannot_fail(
    "N-fig10-b",
    "Rates that vary average out over 120 s and not over 10 s, whatever routers are told. Told 20 in place of 54, "
    "which takes the text's cause away, long flows are the fairer too.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Rates of all flows."""
    return [rates(data, "Two stations, 10 s")]
