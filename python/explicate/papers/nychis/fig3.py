"""N-fig3: throughput over one hop against the loss rate: TCP, XCP without SACK, XCP (figure 3). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate.papers.nychis import base
from explicate.papers.statistics import Check, Sample, above, at_least, at_most, between, fact, falling
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-fig3")

NAMES = {base.TCP: "TCP", base.XCP_NO_SACK: "XCP without SACK", base.XCP: "XCP"}


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


def never_below(data: Data, up_to: float, strict: tuple[float, float] | None = None) -> Iterator[Check]:
    """Yield that XCP carries what TCP does up to a loss rate, and 5 % more in the range `strict`."""
    for loss in base.losses(data.effort):
        if loss <= up_to:
            most = 1.05 if strict and strict[0] <= loss <= strict[1] else 1.0
            xcp, tcp = base.rate(data, base.XCP, loss), base.rate(data, base.TCP, loss)
            holds = xcp.mean >= most * tcp.mean
            yield Check(f"KB/s of XCP over TCP at {loss:g} %", f"{xcp} against {tcp}", f"× {most:g} or more", holds)


@study.predicate("N-fig3-a", up_to=5, strict_from=0.1, strict_to=2.5)
def xcp_leads(data: Data, up_to: float, strict_from: float, strict_to: float) -> Iterator[Check]:
    """XCP outperforms TCP at all loss probabilities."""
    yield from never_below(data, up_to, (strict_from, strict_to))


@study.predicate("N-fig3-b", least=0.93, up_to=0.1)
def xcp_holds(data: Data, least: float, up_to: float) -> Iterator[Check]:
    """It holds its throughput up to 0.1 %."""
    for loss in base.losses(data.effort):
        if 0 < loss <= up_to:
            share = base.rate(data, base.XCP, loss).mean / base.rate(data, base.XCP, 0.0).mean
            yield at_least(f"share of XCP at {loss:g} %", Sample.of([share]), least)


@study.predicate("N-fig3-c", slack=0.05, since=0.25)
def xcp_falls(data: Data, slack: float, since: float) -> Iterator[Check]:
    """And then falls."""
    yield above("KB/s at 0.1 % over 1 %", base.rate(data, base.XCP, 0.1), base.rate(data, base.XCP, 1.0))
    samples = [base.rate(data, base.XCP, loss) for loss in base.losses(data.effort) if loss >= since]
    yield falling("KB/s of XCP", samples, slack * samples[0].mean)


@study.predicate("N-fig3-d", slack=0.03, most=0.97)
def tcp_falls_at_once(data: Data, slack: float, most: float) -> Iterator[Check]:
    """TCP falls with any loss, and by more than XCP."""
    grid = base.losses(data.effort)
    none = base.rate(data, base.TCP, 0.0).mean
    yield falling("KB/s of TCP", [base.rate(data, base.TCP, loss) for loss in grid], slack * none)
    yield at_most("share of TCP at 0.1 %", Sample.of([base.rate(data, base.TCP, 0.1).mean / none]), most)
    for loss in grid:
        if 0 < loss <= 0.1:
            tcp, xcp = (
                base.rate(data, system, loss).mean / base.rate(data, system, 0.0).mean
                for system in (base.TCP, base.XCP)
            )
            yield fact(
                f"share left at {loss:g} %",
                holds=tcp < xcp,
                measured=f"TCP {tcp:.4f}, XCP {xcp:.4f}",
                wanted="TCP's less",
            )


@study.predicate("N-fig3-e", since=0.25, to=1)
def gap_widens(data: Data, since: float, to: float) -> Iterator[Check]:
    """From 0.1 % on the gap grows."""
    for loss in base.losses(data.effort):
        if since <= loss <= to:
            yield above(f"lead, KB/s: at {loss:g} % over 0.1 %", gap(data, loss), gap(data, 0.1))


@study.predicate("N-fig3-f")
def gap_closes(data: Data) -> Iterator[Check]:
    """From 2.5 % on it closes."""
    widest = max((gap(data, loss) for loss in base.losses(data.effort)), key=lambda lead: lead.mean)
    yield above("lead, KB/s: the widest over that at 2.5 %", widest, gap(data, 2.5))
    yield above("lead, KB/s: at 2.5 % over 5 %", gap(data, 2.5), gap(data, 5.0))


@study.predicate("N-fig3-g", low=1.6, high=2.4, widest_from=0.5, widest_to=2.5)
def twice_at_one_percent(data: Data, low: float, high: float, widest_from: float, widest_to: float) -> Iterator[Check]:
    """The gap is widest at 1 %, where XCP nearly doubles TCP."""
    widest = max(base.losses(data.effort), key=lambda loss: gap(data, loss).mean)
    yield between("loss of the widest gap, %", Sample.of([widest]), widest_from, widest_to)
    yield between("XCP over TCP at 1 %", base.rate(data, base.XCP, 1.0) / base.rate(data, base.TCP, 1.0), low, high)


@study.predicate("N-fig3-h", difference=0.04, most=0.15)
def both_poor_at_ten(data: Data, difference: float, most: float) -> Iterator[Check]:
    """They meet at 10 %, and are very slow."""
    capacity = base.hop_capacity(data)
    apart = abs(gap(data, 10.0).mean)
    yield at_most("difference at 10 % over the hop's capacity", Sample.of([apart / capacity]), difference)
    for system in (base.TCP, base.XCP):
        share = base.rate(data, system, 10.0).mean / capacity
        yield at_most(f"{NAMES[system]} at 10 % over the hop's capacity", Sample.of([share]), most)


@study.predicate("N-fig3-i", since=0.1, at_one=1.1)
def sack_helps(data: Data, since: float, at_one: float) -> Iterator[Check]:
    """SACK makes XCP better."""
    for loss in base.losses(data.effort):
        if loss >= since:
            ratio = base.rate(data, base.XCP, loss).mean / base.rate(data, base.XCP_NO_SACK, loss).mean
            least = at_one if loss == 1.0 else 1.0
            yield at_least(f"with SACK over without at {loss:g} %", Sample.of([ratio]), least)


@study.predicate("N-fig3-j", low=900, high=1450)
def best_tcp(data: Data, low: float, high: float) -> Check:
    """1173.58 KB/s in the paper."""
    return between("KB/s of the best TCP run at 1 %", Sample.of([max(base.rate(data, base.TCP, 1.0))]), low, high)


def curves(data: Data, systems: Sequence[str], title: str) -> Sequence[Panel]:
    """Return throughput against the loss rate."""
    grid = [loss for loss in base.losses(data.effort) if loss > 0]
    lines = [Line.of(NAMES[system], grid, [base.rate(data, system, loss) for loss in grid]) for system in systems]
    return [Panel(title, "loss rate (%)", "throughput (KB/s)", lines, log="x")]


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput against the loss rate."""
    return curves(data, list(NAMES), "Node 1 to node 2")
