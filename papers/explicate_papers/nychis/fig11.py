"""N-fig11: rates of thirty long flows from two stations to one server (figure 11). Set-up: `fig9.py`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, edit
from explicate_papers.nychis.fig9 import LONG_S, OVER, SHORT_S, UNDER, jain, rates, three_stations, two_stations
from explicate_papers.statistics import Check, Sample, above, at_most, between
from explicate_papers.study import Case, Data, Effort, Label, Panel, Study

study = Study("N-fig11")

TWO = "two stations"


def contended(effort: Effort, seconds: float) -> Mapping[object, Case]:
    """Return both capacities with three stations, and with two."""
    three: dict[object, Case] = {capacity: three_stations(effort, capacity, seconds) for capacity in (UNDER, OVER)}
    return {**three, **{(TWO, capacity): two_stations(effort, capacity, seconds) for capacity in (UNDER, OVER)}}


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Long flows, unless the figures are taken to be the other way round."""
    return contended(effort, LONG_S if effort.choices["N-P15"] == "11" else SHORT_S)


def by_station(results: Results) -> float:
    """Return the sum of the first station's rates over that of the second's; infinite if the second got nothing."""
    first, second = (metrics.total(results, "throughput_bps", f"of_{node}") for node in ("n1", "n2"))
    return first / second if second else math.inf


def capacity_hardly_matters(data: Data, most: float) -> Check:
    """Return that with two senders the configured capacity changes fairness little."""
    change = _size(data.measure(OVER, jain) - data.measure(UNDER, jain))
    return at_most("change of Jain's index, three stations", change, most)


def _size(change: Sample) -> Sample:
    """Return `change` with the sign that makes its mean positive: the mean's size, with one value for each seed."""
    return -change if change.mean < 0 else change


def contention_costs(data: Data) -> Check:
    """Return that a second sender lowers fairness."""
    two, three = data.measure((TWO, UNDER), jain), data.measure(UNDER, jain)
    return above("Jain's index, told 20: two stations over three", two, three)


def _fewer(label: Label) -> Label:
    return label[1] if isinstance(label, tuple) else (TWO, label)


def _second_told_less(content: dict[str, Any]) -> None:
    (medium,) = content["medium"]
    medium.setdefault("station", []).append({"node": "n2", "capacity": "6Mbit/s"})


ONE_SENDER = Place("exchange", _fewer)
ONE_SENDER_WHY = "If contention hides the capacity and costs fairness, a single sender in its place does neither."
TOLD_LESS = edit("told", _second_told_less, lambda label: not isinstance(label, tuple))
TOLD_LESS_WHY = "A station whose router has a quarter of the air gets no more, whatever share 802.11 offers it."


@study.predicate("N-fig11-a", most=0.1)
def capacity(data: Data, most: float) -> Check:
    """The result is the same with 20 and with 54 Mbit/s."""
    return capacity_hardly_matters(data, most)


@study.predicate("N-fig11-b")
def contention(data: Data) -> Check:
    """Contention has a great effect on fairness."""
    return contention_costs(data)


@study.predicate("N-fig11-c", low=0.7, high=1.4)
def stations_are_equal(data: Data, low: float, high: float) -> Iterator[Check]:
    """The fairness of 802.11 determines the shares."""
    for told in (UNDER, OVER):
        yield between(f"first station over second, told {told:g}", data.measure(told, by_station), low, high)


study.control("two stations for three", ONE_SENDER, ["N-fig11-a", "N-fig11-b"], ONE_SENDER_WHY)
study.control("6 Mbit/s configured at the second station", TOLD_LESS, ["N-fig11-c"], TOLD_LESS_WHY)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Rates of all flows; the second half is the second station's."""
    return [rates(data, "Three stations, 120 s; one sends flows 1 to 15, the other 16 to 30")]
