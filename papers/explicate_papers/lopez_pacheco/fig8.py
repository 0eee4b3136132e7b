"""I-fig8: two clouds, of 30 (sender i) and 10 Mbit/s (sender j), merge into one XCP path of 40 (figures 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers.controls import exchange
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, above, at_most, between, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-fig8")

CLOUDS, REFERENCE, STILL = "clouds", "all XCP", "gamma = 0"
SENDERS = ("i", "j")


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The merge, the same with XCP everywhere, and the merge without bandwidth shuffling."""

    def case(name: str, network: base.Network, protocol: str, **router: float) -> Case:
        sampled = (*base.SAMPLED, "agent")
        return Case(
            base.scenario(
                effort, f"I-fig8-{name}", network, base.pair(effort, protocol), router=router, sampled=sampled
            )
        )

    network = base.merge()
    return {
        CLOUDS: case("clouds", network, base.XCPI),
        REFERENCE: case("xcp", network.everywhere(), base.XCP),
        STILL: case("still", network, base.XCPI, gamma=0.0),
    }


@study.predicate("I-fig8-a", low=9.3, high=10.05)
def the_slow_cloud_is_full(data: Data, low: float, high: float) -> Check:
    """Sender j has its 10 Mbit/s."""
    return between("Mbit/s of j", data.measure(CLOUDS, base.rate("j")), low, high)


@study.predicate("I-fig8-b", low=26.5, high=29.7, share=0.995, capacity=30)
def the_fast_cloud_is_not(data: Data, low: float, high: float, share: float, capacity: float) -> Iterator[Check]:
    """Sender i has 28 of its 30 Mbit/s."""
    ours = data.measure(CLOUDS, base.rate("i"))
    yield between("Mbit/s of i", ours, low, high)
    yield at_most("Mbit/s of i", ours, share * capacity)


def virtual_routers(results: Results) -> float:
    """Return the maximum number of virtual routers at r1."""
    return base.most_known(results, "r1", "virtual_routers")


@study.predicate("I-fig8-c", count=2)
def one_for_each_cloud(data: Data, count: float) -> Check:
    """One virtual router per incoming cloud."""
    return equal("virtual routers of r1", data.measure(CLOUDS, virtual_routers), count)


@study.predicate("I-fig8-d", percent=3)
def same_as_all_xcp(data: Data, percent: float) -> Iterator[Check]:
    """The clouds change nothing."""
    for one in SENDERS:
        ours, reference = (data.measure(label, base.rate(one)) for label in (CLOUDS, REFERENCE))
        yield base.percent_apart(f"Mbit/s of {one}", ours, reference, percent)


@study.predicate("I-fig8-e")
def shuffling_costs_it(data: Data) -> Check:
    """Bandwidth shuffling explains the rate that i lacks."""
    still, shuffled = (data.measure(label, base.rate("i")) for label in (STILL, CLOUDS))
    return above("Mbit/s of i: gamma = 0 over gamma = 0.1", still, shuffled)


study.control(
    base.XCP_FOR_XCPI,
    base.xcp_instead(CLOUDS),
    ["I-fig8-a", "I-fig8-b", "I-fig8-c", "I-fig8-d"],
    "the router at the merge alone speaks for 40 Mbit/s: it asks both senders for more than their clouds carry",
)
study.control(
    "the merge without shuffling in the place of that with it",
    exchange(CLOUDS, STILL),
    ["I-fig8-e"],
    "what shuffling takes from i is then taken from the other side of the comparison",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Windows and throughputs over time, with XCP everywhere, and the text's 28 and 10 Mbit/s."""
    marks = {"paper, i": 28.0, "paper, j": 10.0}
    window, throughput = base.panels(data, CLOUDS, SENDERS, beside=[REFERENCE], marks=marks)
    still = Line.series(f"i, {STILL}", base.over_time(data.runs(STILL)[0], "i", bin_s=0.5), 1e6)
    return [window, replace(throughput, lines=[*throughput.lines, still])]
