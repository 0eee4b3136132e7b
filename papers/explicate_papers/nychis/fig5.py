"""N-fig5: throughput over three hops against the loss rate of each link (figure 5). Set-up: `base.py`.

The caption exchanges the two protocols; the text says that XCP is the better one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from explicate_papers.controls import Place, exchange
from explicate_papers.nychis import base
from explicate_papers.nychis.fig3 import curves, sweep
from explicate_papers.nychis.fig4 import SYSTEMS, meet_at, one_percent
from explicate_papers.statistics import Check, Sample, above, exceeds, rising
from explicate_papers.study import Case, Data, Effort, Label, Panel, Study

study = Study("N-fig5")

HOPS = (1, 2, 3, 4, 5)
PAPER = 3
MIDDLE = (0.1, 1.0)
"""The loss rates between which the text compares hops, percent."""


def middle(effort: Effort) -> list[float]:
    """Return the loss rates of the range in which the text compares hops."""
    return [loss for loss in base.losses(effort) if MIDDLE[0] <= loss <= MIDDLE[1]]


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems at every loss rate over three hops, and in the middle of the range over others."""
    others: dict[object, Case] = {
        (system, loss, hops): base.chain(effort, system, loss, ends=(1, 1 + hops))
        for hops in HOPS
        if hops != PAPER
        for system in SYSTEMS
        for loss in middle(effort)
    }
    return {**sweep(effort, SYSTEMS, PAPER), **others}


def lead(data: Data, hops: int) -> Sample:
    """Return XCP over TCP, mean over the middle of the range."""
    label = () if hops == PAPER else (hops,)
    means = [
        base.rate(data, base.XCP, loss, *label) / base.rate(data, base.TCP, loss, *label)
        for loss in middle(data.effort)
    ]
    return Sample.of(fmean(values) for values in zip(*(mean.values for mean in means), strict=True))


@study.predicate("N-fig5-a", up_to=5)
def xcp_leads(data: Data, up_to: float) -> Iterator[Check]:
    """XCP outperforms TCP."""
    for loss in base.losses(data.effort):
        if loss <= up_to:
            xcp, tcp = base.rate(data, base.XCP, loss), base.rate(data, base.TCP, loss)
            yield exceeds(f"KB/s at {loss:g} %: XCP over TCP", xcp, tcp)


@study.predicate("N-fig5-b")
def gap_grows_from_two_hops(data: Data) -> Check:
    """The gap in the middle of the range is larger than over two hops."""
    return above("XCP over TCP: three hops over two", lead(data, 3), lead(data, 2))


@study.predicate("N-fig5-c", at=10, difference=0.04)
def meet(data: Data, at: float, difference: float) -> Iterator[Check]:
    """Evident in all experiments."""
    yield from meet_at(data, at, difference)


@study.predicate("N-fig5-d", slack=5)
def gap_grows_with_hops(data: Data, slack: float) -> Check:
    """The authors expect it to go on."""
    return rising("XCP over TCP, 1 to 5 hops", [lead(data, hops) for hops in HOPS], slack / 100, relative=True)


def _swapped(pairs: Mapping[int, int]) -> Place:
    """Return the exchange of numbers of hops in the middle of the range."""

    def source(label: Label) -> Label:
        assert isinstance(label, tuple)
        system, loss, *others = label
        hops = others[0] if others else PAPER
        wanted = pairs.get(hops, hops)
        if not others and not MIDDLE[0] <= loss <= MIDDLE[1]:
            return label
        return (system, loss) if wanted == PAPER else (system, loss, wanted)

    return Place("exchange", source)


study.control(
    "TCP for XCP",
    exchange(base.TCP, base.XCP),
    ["N-fig5-a"],
    "The lead is XCP's: routers refill its window, which TCP raises by a packet in each round trip.",
)
study.control(
    "1 % for 10 %",
    Place("exchange", one_percent),
    ["N-fig5-c"],
    "At 1 % one system recovers and the other does not; only a loss that stops both lets them meet.",
)
study.control(
    "two hops for three",
    _swapped({2: 3, 3: 2}),
    ["N-fig5-b"],
    "If more hops widen the gap, fewer narrow it.",
)
study.control(
    "two hops for five",
    _swapped({2: 5, 5: 2}),
    ["N-fig5-d"],
    "If the lead grows with every hop, it cannot be at five what it is at two.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput against the loss rate."""
    return curves(data, SYSTEMS, "Node 1 to node 4")
