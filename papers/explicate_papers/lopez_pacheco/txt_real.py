"""I-txt-real: probes through the simulated cloud instead of the oracle (sections III-A.3 and VI).

Set-up: the fast merge of figure 13 and the two clouds of figure 5, the latter also with foreign traffic of 30 % of the
bottleneck and a loss of 1 % of the packets that return from it. Probes are at most 1 % of the narrowest link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place
from explicate_papers.lopez_pacheco import base, fig13
from explicate_papers.statistics import Check, above, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-txt-real")

ESTIMATORS = ("delay_trend", "packet_train", "spruce")
FAST, SLOW, HARD = "fast", "slow", "hard"
CAPACITY = 30.0
FOREIGN = 0.3


@study.cases
def cases(effort: Effort) -> dict[tuple[str, str], Case]:
    """Each estimator in each place, and TCP on the fast merge."""
    choices = effort.choices

    def case(place: str, estimator: str) -> Case:
        router = {
            "estimator": estimator,
            "result_weight": float(choices["I-P21"]),
            "first_rate": choices["I-P22"],
            "probe_rate": choices["I-P23"],
        }
        name = f"I-txt-real-{place}-{estimator}"
        sampled = (*base.SAMPLED, "agent")
        if place == FAST:
            network = base.merge(fig13.SCALE, fig13.BUFFERS)
            flows = base.pair(effort, base.XCPI)
            return Case(
                base.scenario(effort, name, network, flows, router=router, seconds=fig13.SECONDS, sampled=sampled)
            )
        network = base.peering(effort)
        flows = [base.flow(effort, "bulk", base.XCPI, ("s", "d"))]
        settings = {}
        if place == HARD:
            network = base.Network([*network.links, ("x", "c1", 80), ("r1", "y", 80)], network.plain)
            rate = f"{FOREIGN * CAPACITY:g}Mbit/s"
            flows.append(base.flow(effort, "foreign", "greedy", ("x", "y"), params={"rate": rate}))
            settings = {"link.c1->e.channel": '[{ kind = "random_loss", rate = "1%" }]'}
        return Case(base.scenario(effort, name, network, flows, router=router, sampled=sampled), settings)

    made = {(place, one): case(place, one) for place in (FAST, SLOW, HARD) for one in ESTIMATORS}
    made[FAST, fig13.TCP] = fig13.cases(effort)[fig13.TCP]
    return made


@study.predicate("I-txt-real-a")
def better_than_tcp(data: Data) -> Iterator[Check]:
    """On fast links any of them will do."""
    tcp = data.measure((FAST, fig13.TCP), fig13.together)
    for one in ESTIMATORS:
        yield above(f"MB of both, {one} over TCP", data.measure((FAST, one), fig13.together), tcp)


def probes(results: Results) -> float:
    """Return the probe traffic to the first cloud as a share of its narrow link."""
    rows = metrics.series(results, "e", "probe_bytes")
    return float(rows["value"].max()) * 8 / (metrics.end_s(results) * CAPACITY * 1e6)  # type: ignore[arg-type]


@study.predicate("I-txt-real-b", percent=1)
def probes_cost_little(data: Data, percent: float) -> Iterator[Check]:
    """At most 1 % of the capacity."""
    for one in ESTIMATORS:
        yield at_most(f"probes of {one}, share of the capacity", data.measure((SLOW, one), probes), percent / 100)


def used(results: Results) -> float:
    """Return how far the narrow link is used after 10 s."""
    return metrics.mean(metrics.series(results, "c1->r1", "utilisation", 10))


@study.predicate("I-txt-real-c", least=0.8)
def foreign_traffic_and_lost_acknowledgements(data: Data, least: float) -> Iterator[Check]:
    """Neither breaks the detection or the estimates."""
    for one in ESTIMATORS:
        yield at_least(f"utilisation, {one}", data.measure((HARD, one), used), least)


study.cannot_fail("I-txt-real-b", "the rate of probes is a setting (I-P23), below 1 % of the narrow link")
study.control(
    "TCP runs in the place of XCP-i",
    Place("protocol", lambda label: (FAST, fig13.TCP) if label[0] == FAST else label),
    ["I-txt-real-a"],
    "TCP brings no more than itself",
)
study.control(
    base.XCP_FOR_XCPI,
    base.xcp_instead(*((HARD, one) for one in ESTIMATORS)),
    ["I-txt-real-c"],
    base.WHY_XCP,
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput over time in the three places."""
    return [
        Panel(
            {FAST: "Fast merge, i", SLOW: "Two clouds", HARD: "Two clouds, foreign traffic, lost ACKs"}[place]
            + ", first seed",
            "time (s)", "throughput (Mbit/s)",
            [
                Line.series(one, base.over_time(data.runs((place, one))[0], "i" if place == FAST else "bulk"), 1e6)
                for one in (*ESTIMATORS, *([fig13.TCP] if place == FAST else []))
            ],
        )
        for place in (FAST, SLOW, HARD)
    ]  # fmt: skip
