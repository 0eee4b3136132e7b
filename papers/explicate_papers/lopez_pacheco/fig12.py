"""I-fig12: one cloud serves two XCP paths (figures 11 and 12). Set-up: the paths of i and j part behind 50 Mbit/s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, at_most, between, equal
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("I-fig12")

SENDERS = ("i", "j")
FORK = "fork"


def network(effort: Effort) -> base.Network:
    """Return the fork; the 50 Mbit/s are inside the cloud, or those of the XCP-i router before it."""
    inside, before = (50, 80) if effort.choices["I-P16"] == "cloud" else (80, 50)
    links = [("i", "e", 80), ("j", "e", 80), ("e", "c1", before), ("c1", "c2", inside)]
    links += [("c2", "r1", 80), ("c2", "r2", 80), ("r1", "di", 80), ("r2", "dj", 80)]
    return base.Network(links, {"c1", "c2"})


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """Two flows that start together, or one after the other (``I-P14``)."""
    return {FORK: Case(base.scenario(effort, "I-fig12", network(effort), base.pair(effort, base.XCPI)))}


@study.predicate("I-fig12-a", low=23.5, high=25.5)
def half_each(data: Data, low: float, high: float) -> Iterator[Check]:
    """25 Mbit/s for each flow."""
    for one in SENDERS:
        yield between(f"Mbit/s of {one}", data.measure(FORK, base.rate(one)), low, high)


def unfairness(results: Results) -> float:
    """Return the difference of the two rates as a share of their sum."""
    i, j = (base.mbps(results, one) for one in SENDERS)
    return abs(i - j) / (i + j)


@study.predicate("I-fig12-b", most=0.1)
def fair(data: Data, most: float) -> Check:
    """Both get the same."""
    return at_most("difference of the rates over their sum", data.measure(FORK, unfairness), most)


@study.predicate("I-fig12-c")
def nothing_lost(data: Data) -> Check:
    """No loss."""
    return equal("drops", data.measure(FORK, base.drops), 0)


study.control(base.XCP_FOR_XCPI, base.xcp_instead(FORK), ["I-fig12-a", "I-fig12-b", "I-fig12-c"], base.WHY_XCP)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Windows and throughputs over time, with the text's 25 Mbit/s for each."""
    return base.panels(data, FORK, SENDERS, marks={"paper, each": 25.0})
