"""N-fig4: throughput over two hops against the loss rate of each link (figure 4). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate_papers.controls import Place, exchange
from explicate_papers.nychis import base
from explicate_papers.nychis.fig3 import curves, gap, never_below, sweep
from explicate_papers.statistics import Check
from explicate_papers.study import Case, Data, Effort, Label, Panel, Study

study = Study("N-fig4")

SYSTEMS = (base.TCP, base.XCP)
ONE = "one hop"


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems at every loss rate, and one hop without loss."""
    return {**sweep(effort, SYSTEMS, 2), ONE: base.chain(effort, base.XCP)}


@study.predicate("N-fig4-a", up_to=5)
def xcp_leads(data: Data, up_to: float) -> Iterator[Check]:
    """XCP outperforms TCP."""
    yield from never_below(data, up_to)


def meet_at(data: Data, loss: float, difference: float) -> Iterator[Check]:
    """Yield that both meet at a loss rate; the path's throughput is the better of the two without loss."""
    capacity = max((base.rate(data, system, 0.0) for system in SYSTEMS), key=lambda carried: carried.mean)
    what = f"XCP's lead at {loss:g} % over the path's capacity"
    yield from base.ratio_between(what, gap(data, float(loss)), capacity, -difference, difference)


@study.predicate("N-fig4-b", at=10, difference=0.1)
def meet(data: Data, at: float, difference: float) -> Iterator[Check]:
    """Evident in all experiments."""
    yield from meet_at(data, at, difference)


@study.predicate("N-fig4-c", low=0.4, high=0.6)
def half_of_one_hop(data: Data, low: float, high: float) -> Iterator[Check]:
    """Two hops share the air."""
    two, one = base.rate(data, base.XCP, 0.0), data.measure(ONE, base.kilobytes)
    yield from base.ratio_between("two hops over one", two, one, low, high)


def one_percent(label: Label) -> Label:
    """Return the label whose case replaces the largest loss: that of 1 %, where systems differ most."""
    return (label[0], 1.0) if isinstance(label, tuple) and label[1:] == (10.0,) else label


study.control(
    "TCP for XCP",
    exchange(base.TCP, base.XCP),
    ["N-fig4-a"],
    "The lead is XCP's: routers refill its window, which TCP raises by a packet in each round trip.",
)
study.control(
    "1 % for 10 %",
    Place("exchange", one_percent),
    ["N-fig4-b"],
    "At 1 % one system recovers and the other does not; only a loss that stops both lets them meet.",
)
study.control(
    "two hops for one",
    Place("exchange", lambda label: (base.XCP, 0.0) if label == ONE else label),
    ["N-fig4-c"],
    "A path of two hops carries as much as itself: half comes from the air that two hops share.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput against the loss rate."""
    return curves(data, SYSTEMS, "Node 1 to node 3")
