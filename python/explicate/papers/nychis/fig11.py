"""N-fig11: rates of thirty long flows from two stations to one server (figure 11). Set-up: `fig9.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate.papers import metrics
from explicate.papers.nychis.fig9 import LONG_S, OVER, SHORT_S, UNDER, jain, rates, three_stations, two_stations
from explicate.papers.statistics import Check, Sample, above, at_most, between
from explicate.papers.study import Case, Data, Effort, Panel, Study
from explicate.results import Results

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
    """Return the sum of the first station's rates over that of the second's."""
    return metrics.total(results, "throughput_bps", "of_n1") / metrics.total(results, "throughput_bps", "of_n2")


def capacity_hardly_matters(data: Data, share: float, most: float) -> Iterator[Check]:
    """Yield that with two senders the capacity told changes fairness little: in itself, and beside one sender."""
    three = abs((data.measure(OVER, jain) - data.measure(UNDER, jain)).mean)
    two = abs((data.measure((TWO, OVER), jain) - data.measure((TWO, UNDER), jain)).mean)
    yield at_most(f"change of Jain's index, three stations (two: {two:.4f})", Sample.of([three]), share * two)
    yield at_most("the same", Sample.of([three]), most)


def contention_costs(data: Data) -> Check:
    """Return that a second sender lowers fairness."""
    two, three = data.measure((TWO, UNDER), jain), data.measure(UNDER, jain)
    return above("Jain's index, told 20: two stations over three", two, three)


@study.predicate("N-fig11-a", share=0.5, most=0.1)
def capacity(data: Data, share: float, most: float) -> Iterator[Check]:
    """Told 20 or 54, it is the same."""
    yield from capacity_hardly_matters(data, share, most)


@study.predicate("N-fig11-b")
def contention(data: Data) -> Check:
    """Contention has a great effect on fairness."""
    return contention_costs(data)


@study.predicate("N-fig11-c", low=0.7, high=1.4)
def stations_are_equal(data: Data, low: float, high: float) -> Iterator[Check]:
    """The fairness of 802.11 takes over."""
    for told in (UNDER, OVER):
        yield between(f"first station over second, told {told:g}", data.measure(told, by_station), low, high)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Rates of all flows; the second half is the second station's."""
    return [rates(data, "Three stations, 120 s")]
