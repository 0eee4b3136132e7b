"""N-fig12: rates of thirty short flows from two stations to one server (figure 12). Set-up: `fig9.py`, `fig11.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate_papers.nychis.fig9 import LONG_S, OVER, SHORT_S, UNDER, rates
from explicate_papers.nychis.fig11 import (
    ONE_SENDER,
    ONE_SENDER_WHY,
    TOLD_LESS,
    TOLD_LESS_WHY,
    by_station,
    capacity_hardly_matters,
    contended,
    contention_costs,
)
from explicate_papers.statistics import Check, between
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("N-fig12")


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Short flows, unless the figures are taken to be the other way round."""
    return contended(effort, SHORT_S if effort.choices["N-P15"] == "11" else LONG_S)


@study.predicate("N-fig12-a", most=0.1)
def capacity(data: Data, most: float) -> Check:
    """The result is the same with 20 and with 54 Mbit/s."""
    return capacity_hardly_matters(data, most)


@study.predicate("N-fig12-b")
def contention(data: Data) -> Check:
    """Contention has a great effect on fairness."""
    return contention_costs(data)


@study.predicate("N-fig12-c", low=0.7, high=1.4)
def stations_are_equal(data: Data, low: float, high: float) -> Iterator[Check]:
    """The fairness of 802.11 determines the shares."""
    for told in (UNDER, OVER):
        yield between(f"first station over second, told {told:g}", data.measure(told, by_station), low, high)


study.control("two stations for three", ONE_SENDER, ["N-fig12-a", "N-fig12-b"], ONE_SENDER_WHY)
study.control("6 Mbit/s configured at the second station", TOLD_LESS, ["N-fig12-c"], TOLD_LESS_WHY)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Rates of all flows; the second half is the second station's."""
    return [rates(data, "Three stations, 10 s; one sends flows 1 to 15, the other 16 to 30")]
