"""N-fig6: highest, lowest and mean throughput of three XCP runs at each loss rate (figure 6). Set-up: `base.py`.

Consecutive seeds form triples; the spread is the mean of that of three runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from explicate_papers.controls import Place
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, Sample, at_least, at_most, fact, total
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-fig6")

WIRED = ("wired", 0.0)


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    return effort.pick(base.losses(effort), (0.0, 0.1, 1.0, 5.0))


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems at every loss rate, and XCP over a wire of known capacity."""
    runs: dict[object, Case] = {
        (system, loss): base.chain(effort, system, loss) for system in (base.XCP, base.TCP) for loss in losses(effort)
    }
    return {**runs, WIRED: base.wired(effort, base.XCP)}


def spread(data: Data, *label: object) -> Sample:
    """Return (high - low) / mean of three runs, one value for each three."""
    return base.spread(base.rate(data, *label))


@study.predicate("N-fig6-a", least=0.05, triples=10)
def varies(data: Data, least: float, triples: float) -> Iterator[Check]:
    """A high level of variance, without loss too."""
    spreads = spread(data, base.XCP, 0.0)
    count = len(spreads.values)
    yield at_least("(high - low) / mean at 0 %", spreads, least)
    yield fact("triples of seeds", holds=count >= triples, measured=str(count), wanted=f"{triples:g} or more")


@study.predicate("N-fig6-b", most=0.01)
def wires_do_not(data: Data, most: float) -> Check:
    """XCP is stable over wires."""
    return at_most("(high - low) / mean over a wire", spread(data, *WIRED), most)


@study.predicate("N-fig6-c", low=0.3, high=3)
def so_does_tcp(data: Data, low: float, high: float) -> Iterator[Check]:
    """TCP had similar results."""
    tcp, xcp = (total(spread(data, system, loss) for loss in losses(data.effort)) for system in (base.TCP, base.XCP))
    yield from base.ratio_between("spread of TCP over XCP, all loss rates", tcp, xcp, low, high)


study.control(
    "wire for air",
    Place("exchange", lambda label: {(base.XCP, 0.0): WIRED, WIRED: (base.XCP, 0.0)}.get(label, label)),
    ["N-fig6-a", "N-fig6-b"],
    "The spread comes from the air: over a wire nothing changes from run to run.",
)
study.control(
    "TCP over a wire",
    Place("off", lambda label: WIRED if label[0] == base.TCP else label),
    ["N-fig6-c"],
    "If the channel makes the spread of both, TCP without the channel has none.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """High, low and mean of the first three runs."""
    grid = losses(data.effort)

    def three(loss: float) -> tuple[float, ...]:
        return base.rate(data, base.XCP, loss).values[:3]

    lines = [
        Line(name, grid, [work(three(loss)) for loss in grid])
        for name, work in (("high", max), ("mean", fmean), ("low", min))
    ]
    return [Panel("XCP, three runs", "loss rate (%)", "throughput (KB/s)", lines, log="x", zero=base.NO_LOSS_AT)]
