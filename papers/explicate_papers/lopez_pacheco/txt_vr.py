"""I-txt-vr: equation of the virtual router (section III-A.4). Set-up: figure 5's network, and one with a narrow end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.lopez_pacheco import base, fig6
from explicate_papers.statistics import Check, at_least, at_most, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-txt-vr")

VIRTUAL, REAL = "the cloud is narrow", "the router is narrow"
TRACED_S = 3.0
RANDOM = "estimates at random"
LAW = ("cloud_available_bps", "virtual_rtt_s", "virtual_queue_bytes", "virtual_feedback_bytes")


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """Figure 6's runs; short ones whose packets are followed through r1; and one with estimates that err at random."""

    def traced(name: str, cloud: float, router: float) -> Case:
        links = [("s", "e", 80), ("e", "c1", 80), ("c1", "r1", cloud), ("r1", "d", router)]
        flows = [base.flow(effort, "bulk", base.XCPI, ("s", "d"))]
        text = base.scenario(effort, f"I-txt-vr-{name}", base.Network(links, {"c1"}), flows, seconds=TRACED_S)
        return Case(text, seeds=1, trace="flow=0")

    links = [("s", "e", 80.0), ("e", "c", 80.0), ("c", "r", 30.0), ("x", "r", 80.0), ("r", "d", 20.0)]
    pauses = {"on": "500ms", "off": "500ms"}
    bursts = base.flow(effort, "bursts", "greedy", ("x", "d"), params={"rate": "15Mbit/s"}, on_off=pauses)
    flows = [base.flow(effort, "bulk", base.XCPI, ("s", "d")), bursts]
    router = {"law": "paper", "estimate_error": 0.5, "estimate_of": "capacity"}
    sampled = [*base.SAMPLED, "agent"]
    text = base.scenario(
        effort, "I-txt-vr-random", base.Network(links, {"c"}), flows, router=router, seconds=20, sampled=sampled
    )
    made = {RANDOM: Case(text, seeds=1)}
    return {**made, **fig6.cases(effort), VIRTUAL: traced("virtual", 30, 80), REAL: traced("real", 80, 30)}


ALPHA, BETA = 0.4, 0.226


def _estimated(results: Results) -> pl.DataFrame:
    """Return the samples of r's virtual router from the first estimate on: time and the variables of `LAW`."""
    first, *rest = (metrics.series(results, "r/e", name).rename({"value": name}) for name in LAW)
    for one in rest:
        first = first.join(one, on="time_s")
    return first.sort("time_s")


def law_error(results: Results) -> float:
    """Return the greatest error of eq. 1 over all samples of r's virtual router, relative to its greatest term.

    BW is the last estimate that r received, rtt and Q are the values that the virtual router used.
    """
    worst = 0.0
    for _, left_bps, rtt_s, queue, feedback in _estimated(results).iter_rows():
        terms = ALPHA * rtt_s * left_bps / 8, BETA * queue
        worst = max(worst, abs(feedback - (terms[0] - terms[1])) / max(*map(abs, terms), 1.0))
    return worst


def inputs(results: Results) -> float:
    """Count the different inputs among these samples that have a queue."""
    table = _estimated(results).filter(pl.col(LAW[2]) > 0)
    return float(table.select(LAW[0], LAW[2]).n_unique())


@study.predicate("I-txt-vr-a", error=1e-9)
def the_law(data: Data, error: float) -> Iterator[Check]:
    """Feedback = alpha rtt BW - beta Q, for the router's last estimate and its feedback."""
    yield at_least("inputs with a queue", data.measure(RANDOM, inputs), 20)
    yield at_most("relative error of eq. 1", data.measure(RANDOM, law_error), error)


@study.predicate("I-txt-vr-b", throughput=1, cwnd=5)
def same_as_xcp(data: Data, throughput: float, cwnd: float) -> Iterator[Check]:
    """With exact estimates XCP-i does as XCP."""
    yield fig6.apart(data, base.rate("bulk"), "Mbit/s", throughput)
    yield fig6.apart(data, base.window("bulk"), "window", cwnd)


STEP = re.compile(r"(\S+)\s+(enqueue|departure)\s+\S+ data \d+ packet (\d+) \d+ B delta ([+-]\d+)")


def journeys(results: Results) -> list[tuple[int, int, int]]:
    """Return the request of each packet before r1, after its virtual router, and after the real one, bytes/s."""
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


@study.predicate(
    "I-txt-vr-c",
    instead="that neither router raises the feedback, and that the virtual one sets it where the cloud is narrow, the "
    "real one where the router is, because a packet shows what is left of its request and not what each router offered",
)
def the_smaller_one_counts(data: Data) -> Iterator[Check]:
    """First the virtual router, then the real one: the smaller feedback stays."""
    for label, metric, who in ((VIRTUAL, by_virtual, "virtual"), (REAL, by_real, "real")):
        yield equal(f"packets whose feedback rises, {label}", data.measure(label, rises), 0)
        yield at_least(f"packets whose feedback the {who} router sets, {label}", data.measure(label, metric), 100)


study.control(
    base.XCP_FOR_XCPI,
    base.xcp_instead(fig6.CLOUDS, VIRTUAL),
    ["I-txt-vr-b", "I-txt-vr-c"],
    "without a virtual router nothing lowers the feedback for the cloud",
)
study.control(
    "the virtual router hands out capacity less load",
    base.other_routers(RANDOM, law="capacity"),
    ["I-txt-vr-a"],
    "the law with the present load is not eq. 1 of the last estimate",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The feedback of r's virtual router and equation 1; window and throughput with clouds and without."""
    rows = _estimated(data.runs(RANDOM)[0]).rows()
    times = [time for time, *_ in rows]
    equation = [ALPHA * rtt_s * left_bps / 8 - BETA * queue for _, left_bps, rtt_s, queue, _ in rows]
    lines = [Line("virtual router", times, [one[-1] / 1e3 for one in rows])]
    lines.append(Line("equation 1", times, [value / 1e3 for value in equation]))
    panel = Panel("Feedback, estimates at random", "time (s)", "feedback of an interval (kB)", lines)
    return [panel, *base.panels(data, fig6.CLOUDS, ["bulk"], beside=[fig6.REFERENCE])]
