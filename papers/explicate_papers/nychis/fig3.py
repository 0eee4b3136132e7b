"""N-fig3: throughput over one hop against the loss rate: TCP, XCP without SACK, XCP (figure 3). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from explicate_papers.controls import Place, exchange
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, Sample, above, between, exceeds, falling
from explicate_papers.study import Case, Data, Effort, Label, Line, Panel, Study

study = Study("N-fig3")

NAMES = {base.TCP: "TCP", base.XCP_NO_SACK: "XCP without SACK", base.XCP: "XCP"}
RUNS = 3
"""So many runs at each loss rate, in the paper."""
BEST_TCP = 1173.58
"""The highest reading of TCP at 1 %, KB/s."""


def sweep(effort: Effort, systems: Sequence[str], hops: int) -> dict[object, Case]:
    """Return every system at every loss rate over so many hops."""
    return {
        (system, loss): base.chain(effort, system, loss, ends=(1, 1 + hops))
        for system in systems
        for loss in base.losses(effort)
    }


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Three systems at every loss rate, and the test of the hop."""
    return {**sweep(effort, list(NAMES), 1), base.LINK: base.link_test(effort)}


def gap(data: Data, loss: float) -> Sample:
    """Return XCP's lead over TCP, KB/s."""
    return base.rate(data, base.XCP, loss) - base.rate(data, base.TCP, loss)


def best_of_three(data: Data, label: Label) -> float:
    """Return the largest throughput of a case's first three seeds, KB/s."""
    return max(data.measure(label, base.kilobytes).values[:RUNS])


def never_below(data: Data, up_to: float) -> Iterator[Check]:
    """Yield that XCP carries as much as TCP up to a loss rate."""
    for loss in base.losses(data.effort):
        if loss <= up_to:
            xcp, tcp = base.rate(data, base.XCP, loss), base.rate(data, base.TCP, loss)
            yield base.not_below(f"KB/s of XCP and TCP at {loss:g} %", xcp, tcp)


@study.predicate("N-fig3-a", up_to=5, strict=5, strict_from=0.1, strict_to=2.5)
def xcp_leads(data: Data, up_to: float, strict: float, strict_from: float, strict_to: float) -> Iterator[Check]:
    """XCP outperforms TCP at all loss probabilities."""
    yield from never_below(data, up_to)
    for loss in base.losses(data.effort):
        if strict_from <= loss <= strict_to:
            xcp, tcp = base.rate(data, base.XCP, loss), base.rate(data, base.TCP, loss)
            yield base.not_below(f"KB/s of XCP and TCP at {loss:g} %", xcp, tcp, 1 + strict / 100)


@study.predicate("N-fig3-b", least=0.93, up_to=0.1)
def xcp_holds(data: Data, least: float, up_to: float) -> Iterator[Check]:
    """It holds its throughput up to 0.1 %."""
    for loss in base.losses(data.effort):
        if 0 < loss <= up_to:
            left, whole = base.rate(data, base.XCP, loss), base.rate(data, base.XCP, 0.0)
            yield base.ratio_at_least(f"share of XCP at {loss:g} %", left, whole, least)


@study.predicate("N-fig3-c", low=0.1, high=1, slack=5, since=0.25)
def xcp_falls(data: Data, low: float, high: float, slack: float, since: float) -> Iterator[Check]:
    """And then falls."""
    before, after = base.rate(data, base.XCP, float(low)), base.rate(data, base.XCP, float(high))
    yield above(f"KB/s at {low:g} % over {high:g} %", before, after)
    samples = [base.rate(data, base.XCP, loss) for loss in base.losses(data.effort) if loss >= since]
    yield falling("KB/s of XCP", samples, slack / 100, relative=True)


@study.predicate("N-fig3-d", slack=3, most=0.97, at=0.1)
def tcp_falls_at_once(data: Data, slack: float, most: float, at: float) -> Iterator[Check]:
    """TCP falls with any loss, and by more than XCP."""
    grid = base.losses(data.effort)
    whole = base.rate(data, base.TCP, 0.0)
    yield falling("KB/s of TCP", [base.rate(data, base.TCP, loss) for loss in grid], slack / 100, relative=True)
    yield base.ratio_at_most(f"share of TCP at {at:g} %", base.rate(data, base.TCP, float(at)), whole, most)
    for loss in grid:
        if 0 < loss <= at:
            # A seed has the same channel with both systems and without loss, so shares are computed for each seed.
            tcp, xcp = (base.rate(data, system, loss) / base.rate(data, system, 0.0) for system in (base.TCP, base.XCP))
            yield above(f"share left at {loss:g} %: XCP's over TCP's", xcp, tcp)


@study.predicate("N-fig3-e", of=0.1, since=0.25, to=1)
def gap_widens(data: Data, of: float, since: float, to: float) -> Iterator[Check]:
    """From 0.1 % on the gap grows."""
    for loss in base.losses(data.effort):
        if since <= loss <= to:
            yield above(f"lead, KB/s: at {loss:g} % over {of:g} %", gap(data, loss), gap(data, float(of)))


@study.predicate("N-fig3-f", since=2.5, then=5, least=0.9)
def gap_closes(data: Data, since: float, then: float, least: float) -> Iterator[Check]:
    """From 2.5 % on it closes."""
    widest = max((gap(data, loss) for loss in base.losses(data.effort)), key=lambda lead: lead.mean)
    first, second = gap(data, float(since)), gap(data, float(then))
    yield base.ratio_at_least(f"lead, KB/s: at {since:g} % over the widest", first, widest, least)
    yield exceeds(f"lead, KB/s: at {since:g} % over {then:g} %", first, second)


@study.predicate("N-fig3-g", at=1, low=1.6, high=2.4, widest_from=0.5, widest_to=2.5)
def twice_at_one_percent(
    data: Data, at: float, low: float, high: float, widest_from: float, widest_to: float
) -> Iterator[Check]:
    """The gap is widest at 1 %, where XCP nearly doubles TCP."""
    widest = max(base.losses(data.effort), key=lambda loss: gap(data, loss).mean)
    yield between("loss of the widest gap, %", Sample.of([widest]), widest_from, widest_to)
    xcp, tcp = base.rate(data, base.XCP, float(at)), base.rate(data, base.TCP, float(at))
    yield from base.ratio_between(f"XCP over TCP at {at:g} %", xcp, tcp, low, high)


@study.predicate("N-fig3-h", at=10, difference=0.1, most=0.15)
def both_poor_at_ten(data: Data, at: float, difference: float, most: float) -> Iterator[Check]:
    """They meet at 10 %, and are very slow."""
    capacity = data.measure(base.LINK, base.kilobytes)
    what = f"XCP's lead at {at:g} % over the hop's capacity"
    yield from base.ratio_between(what, gap(data, float(at)), capacity, -difference, difference)
    for system in (base.TCP, base.XCP):
        what = f"{NAMES[system]} at {at:g} % over the hop's capacity"
        yield base.ratio_at_most(what, base.rate(data, system, float(at)), capacity, most)


@study.predicate("N-fig3-i", since=0.1, at=1, more=1.1)
def sack_helps(data: Data, since: float, at: float, more: float) -> Iterator[Check]:
    """SACK makes XCP better."""
    for loss in base.losses(data.effort):
        if loss >= since:
            sack, none = base.rate(data, base.XCP, loss), base.rate(data, base.XCP_NO_SACK, loss)
            yield base.ratio_at_least(f"with SACK over without at {loss:g} %", sack, none, 1)
    sack, none = base.rate(data, base.XCP, float(at)), base.rate(data, base.XCP_NO_SACK, float(at))
    yield base.ratio_at_least(f"with SACK over without at {at:g} %", sack, none, more)


@study.predicate("N-fig3-j", at=1, low=900, high=1450)
def best_tcp(data: Data, at: float, low: float, high: float) -> Check:
    """1173.58 KB/s in the paper; that a hop carries 3000 KB/s is N-txt-linktest-a."""
    best = best_of_three(data, (base.TCP, float(at)))
    what = f"KB/s of the best of three TCP runs at {at:g} %, where the hop carries {base.hop_capacity(data):.0f}"
    return between(what, Sample.of([best]), low, high)


study.control(
    "TCP for XCP",
    exchange(base.TCP, base.XCP),
    ["N-fig3-a", "N-fig3-d", "N-fig3-e", "N-fig3-f", "N-fig3-g"],
    "The lead is XCP's: routers refill its window, which TCP raises by a packet in each round trip.",
)
study.control(
    "no loss",
    Place("flat", base.lossless),
    ["N-fig3-d", "N-fig3-g", "N-fig3-h", "N-fig3-i", "N-fig3-j"],
    "Where nothing is injected neither system falls, no gap opens, and no retransmission needs SACK.",
)
study.control(
    "0.1 and 1 % exchanged",
    exchange(0.1, 1.0),
    ["N-fig3-b", "N-fig3-c", "N-fig3-d", "N-fig3-e"],
    "At 1 % XCP has lost throughput and its lead is wide; neither is so at 0.1 %.",
)


def curves(data: Data, systems: Sequence[str], title: str) -> list[Panel]:
    """Return throughput against the loss rate, with that without loss at a place of its own."""
    grid = base.losses(data.effort)
    lines = [Line.of(NAMES[system], grid, [base.rate(data, system, loss) for loss in grid]) for system in systems]
    return [Panel(title, "loss rate (%)", "throughput (KB/s)", lines, log="x", zero=base.NO_LOSS_AT)]


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput against the loss rate."""
    (panel,) = curves(data, list(NAMES), "Node 1 to node 2")
    paper = Line("paper: best TCP run", [1.0], [BEST_TCP], points=True)
    return [replace(panel, lines=[*panel.lines, paper])]
