"""I-fig4: a cloud at the sender, at the receiver, or at both (figure 4). The bottleneck has 30 Mbit/s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers.controls import Place
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, at_least, at_most, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-fig4")

NARROW = 30.0
SENDER, RECEIVER, BOTH = PLACES = ("at the sender", "at the receiver", "at both ends")
ASKED = "at the receiver, asked"


def network(effort: Effort, place: str) -> base.Network:
    """Return the network with its clouds in a place; ``I-P10`` has the rates of those at both ends."""
    near, far = map(float, effort.choices["I-P10"].split("/"))
    return {
        SENDER: base.Network([("s", "c1", 80), ("c1", "r1", NARROW), ("r1", "d", 80)], {"c1"}),
        RECEIVER: base.Network([("s", "r1", 80), ("r1", "c1", 80), ("c1", "d", NARROW)], {"c1"}),
        BOTH: base.Network([("s", "c1", 80), ("c1", "r1", near), ("r1", "c2", 80), ("c2", "d", far)], {"c1", "c2"}),
    }[place]


@study.cases
def cases(effort: Effort) -> dict[tuple[str, str], Case]:
    """XCP-i and XCP in each place; at the receiver also with computation by the last router."""

    def case(place: str, protocol: str, **router: str) -> Case:
        flows = [base.flow(effort, "bulk", protocol, ("s", "d"))]
        name = f"I-fig4-{place}-{protocol}{'-asked' if router else ''}"
        sampled = (*base.SAMPLED, "agent")
        return Case(base.scenario(effort, name, network(effort, place), flows, router=router, sampled=sampled))

    made = {(place, protocol): case(place, protocol) for place in PLACES for protocol in (base.XCPI, base.XCP)}
    made[ASKED, base.XCPI] = case(RECEIVER, base.XCPI, receiver="ask")
    return made


def used(results: Results) -> float:
    """Return the share of the narrow link that brought something new."""
    return base.mbps(results, "bulk") / NARROW


def _full(data: Data, place: str, least: float) -> Iterator[Check]:
    label = (place, base.XCPI)
    yield at_least(f"utilisation, cloud {place}", data.measure(label, used), least)
    yield equal(f"drops, cloud {place}", data.measure(label, base.drops), 0)


@study.predicate("I-fig4-a", least=0.95)
def the_sender_answers(data: Data, least: float) -> Iterator[Check]:
    """The first XCP-i router sends a request to the sender."""
    yield from _full(data, SENDER, least)


@study.predicate("I-fig4-b", least=0.95)
def the_receiver_computes(data: Data, least: float) -> Iterator[Check]:
    """The receiver has a virtual router; with clouds at both ends, both do their part."""
    yield from _full(data, RECEIVER, least)
    yield from _full(data, BOTH, least)


@study.predicate("I-fig4-c", percent=3)
def the_last_router_computes(data: Data, percent: float) -> Check:
    """The other way to do it."""
    asked, computed = (data.measure((place, base.XCPI), used) for place in (ASKED, RECEIVER))
    messages = [data.measure((place, base.XCPI), base.requests) for place in (ASKED, RECEIVER)]
    what = "utilisation with {} requests against that with {}".format(*messages)
    return base.percent_apart(what, asked, computed, percent)


@study.predicate("I-fig4-d", share=0.6)
def xcp_suffers(data: Data, share: float) -> Iterator[Check]:
    """Plain XCP does as in scenario c of figure 1."""
    for place in PLACES:
        xcp, ours = (data.measure((place, protocol), used) for protocol in (base.XCP, base.XCPI))
        yield at_most(f"utilisation of XCP over XCP-i's, cloud {place}", xcp / ours, share)


study.control(
    base.XCP_FOR_XCPI,
    Place("protocol", lambda label: (label[0], base.XCP) if label[0] in PLACES else label),
    ["I-fig4-a", "I-fig4-b", "I-fig4-d"],
    base.WHY_XCP,
)
study.control(
    "the receiver neither computes nor asks",
    base.other_routers((ASKED, base.XCPI), receiver="nothing"),
    ["I-fig4-c"],
    "without a virtual router for its cloud the receiver's narrow link is overrun as by XCP",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput over time, in each place."""
    return [
        Panel(
            f"cloud {place}, first seed", "time (s)", "throughput (Mbit/s)",
            [
                Line.series(protocol, base.over_time(data.runs((place, protocol))[0], "bulk", bin_s=0.5), 1e6)
                for protocol in (base.XCPI, base.XCP)
            ],
            compared=True,
        )
        for place in PLACES
    ]  # fmt: skip
