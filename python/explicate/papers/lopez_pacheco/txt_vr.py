"""I-txt-vr: the law of the virtual router (section III-A.4). Set-up: figure 5's network, and one with a narrow end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from explicate.papers.lopez_pacheco import base, fig6
from explicate.papers.statistics import Check, at_least, equal
from explicate.papers.study import Case, Data, Effort, Panel, Study
from explicate.results import Results

study = Study("I-txt-vr")

VIRTUAL, REAL = "the cloud is narrow", "the router is narrow"
TRACED_S = 3.0


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """Figure 6's runs; and short ones whose packets are followed through r1, where the cloud or the router has less."""

    def traced(name: str, cloud: float, router: float) -> Case:
        links = [("s", "e", 80), ("e", "c1", 80), ("c1", "r1", cloud), ("r1", "d", router)]
        flows = [base.flow(effort, "bulk", base.XCPI, ("s", "d"))]
        text = base.scenario(effort, f"I-txt-vr-{name}", base.Network(links, {"c1"}), flows, seconds=TRACED_S)
        return Case(text, seeds=1, trace="flow=0")

    return {**fig6.cases(effort), VIRTUAL: traced("virtual", 30, 80), REAL: traced("real", 80, 30)}


study.skip(
    "I-txt-vr-a",
    "no results of a run hold the law's inputs to nine digits; the test `the_virtual_router_hands_out_what_eq_1_says` "
    "of protocols/xcp_i/node.rs compares 100 random ones to 1e-9",
)


@study.predicate("I-txt-vr-b", throughput=1, cwnd=5)
def same_as_xcp(data: Data, throughput: float, cwnd: float) -> Iterator[Check]:
    """With exact estimates XCP-i does as XCP."""
    yield fig6.apart(data, base.rate("bulk"), "Mbit/s", throughput)
    yield fig6.apart(data, base.window("bulk"), "window", cwnd)


STEP = re.compile(r"(\S+)\s+(enqueue|departure)\s+\S+ data \d+ packet (\d+) \d+ B delta ([+-]\d+)")


def journeys(results: Results) -> list[tuple[int, int, int]]:
    """Return what each packet asks for before r1, after its virtual router, and after the real one, bytes/s."""
    seen: dict[str, dict[str, int]] = {}
    for link, event, packet, delta in STEP.findall(results.trace):
        step = "before" if (link, event) == ("c1->r1", "departure") else event if link == "r1->d" else ""
        if step:
            seen.setdefault(packet, {})[step] = int(delta)
    whole = (steps for steps in seen.values() if len(steps) == 3)
    return [(steps["before"], steps["enqueue"], steps["departure"]) for steps in whole]


def rises(results: Results) -> float:
    """Count the packets whose feedback one of the two raised."""
    return float(sum(virtual > before or real > virtual for before, virtual, real in journeys(results)))


def by_virtual(results: Results) -> float:
    """Count the packets whose feedback the virtual router lowered, and the real one left so."""
    return float(sum(before > virtual == real for before, virtual, real in journeys(results)))


def by_real(results: Results) -> float:
    """Count the packets whose feedback the real router lowered."""
    return float(sum(virtual > real for _, virtual, real in journeys(results)))


@study.predicate("I-txt-vr-c")
def the_smaller_one_counts(data: Data) -> Iterator[Check]:
    """First the virtual router, then the real one: the smaller feedback stays."""
    for label, metric, who in ((VIRTUAL, by_virtual, "virtual"), (REAL, by_real, "real")):
        yield equal(f"packets whose feedback rises, {label}", data.measure(label, rises), 0)
        yield at_least(f"packets whose feedback the {who} router sets, {label}", data.measure(label, metric), 100)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Window and throughput over time."""
    return base.panels(data, fig6.CLOUDS, ["bulk"])
