"""I-fig6: two clouds joined by XCP-i routers (figures 5 and 6), and the same network with XCP everywhere.

Set-up: s - e - cloud - r1 - cloud - r2 - d; the first cloud's link has 30 Mbit/s, the second's 50, all others 80.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, at_most, equal
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("I-fig6")

CLOUDS, REFERENCE = "clouds", "all XCP"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The two networks."""
    network = base.peering(effort)
    return {
        label: Case(base.scenario(effort, f"I-fig6-{protocol}", net, [base.flow(effort, "bulk", protocol, ("s", "d"))]))
        for label, protocol, net in (
            (CLOUDS, base.XCPI, network),
            (REFERENCE, base.XCP, network.everywhere()),
        )
    }


@study.predicate("I-fig6-a", throughput=0.03, cwnd=0.05)
def stable(data: Data, throughput: float, cwnd: float) -> Iterator[Check]:
    """Window and throughput stay."""
    yield at_most("variation of the throughput", data.measure(CLOUDS, base.unrest("bulk")), throughput)
    yield at_most("variation of the window", data.measure(CLOUDS, base.window_unrest("bulk")), cwnd)


def apart(data: Data, metric: base.Metric, what: str, percent: float) -> Check:
    """Check by how much the clouds change a mean, percent of that without them."""
    return base.percent_apart(what, data.measure(CLOUDS, metric), data.measure(REFERENCE, metric), percent)


@study.predicate("I-fig6-b", throughput=10, cwnd=10)
def same_as_all_xcp(data: Data, throughput: float, cwnd: float) -> Iterator[Check]:
    """The clouds change nothing."""
    yield apart(data, base.rate("bulk"), "Mbit/s", throughput)
    yield apart(data, base.window("bulk"), "window", cwnd)


@study.predicate("I-fig6-c")
def nothing_lost(data: Data) -> Iterator[Check]:
    """No timeout, no loss."""
    yield equal("timeouts", data.measure(CLOUDS, base.timeouts), 0)
    yield equal("drops", data.measure(CLOUDS, base.drops), 0)


study.control(base.XCP_FOR_XCPI, base.xcp_instead(CLOUDS), ["I-fig6-a", "I-fig6-b", "I-fig6-c"], base.WHY_XCP)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Window and throughput over time, beside those with XCP everywhere, which the text calls identical."""
    return base.panels(data, CLOUDS, ["bulk"], beside=[REFERENCE], marks={"bottleneck": 30.0})
