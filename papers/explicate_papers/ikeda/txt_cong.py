"""K-txt-cong: under VCP hardly a packet is lost to congestion; WLTE backs off all the same (section IV-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Settings, edit
from explicate_papers.ikeda import base
from explicate_papers.statistics import Check, Sample, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-txt-cong")

SYSTEMS = (base.VCP, base.PROPOSED)
STRESS, WHOLE = "stress", "stress, with its start"
STRESS_S = 60.0


def numbers(effort: Effort) -> Sequence[int]:
    """Return the numbers of flows."""
    return effort.pick((1, 2, 5, 10, 15, 20), (1, 5, 20))


@study.cases
def cases(effort: Effort) -> dict[object, Case]:
    """The runs of figure 6; and 200 flows over a tenth of a pipe of buffer, measured behind their start and with it."""
    made: dict[object, Case] = {
        (system, flows): base.case(effort, system, flows=flows, of=("router",), every="250ms")
        for system in SYSTEMS
        for flows in numbers(effort)
    }
    for name, warmup in ((STRESS, effort.choices["K-P24"]), (WHOLE, "0s")):
        made[name] = base.case(
            effort, base.PROPOSED, flows=200, buffer="0.1bdp", seconds=STRESS_S, warmup=warmup, of=("router", "queue"),
            every="250ms", seeds=base.few(effort),
        )  # fmt: skip
    return made


def lost_share(results: Results) -> float:
    """Return the packets that queues refused, over those sent, in the measured time."""
    return base.drops(results) / metrics.total(results, "sent_packets")


@study.predicate("K-txt-cong-a", share=1e-4)
def seldom(data: Data, share: float) -> Iterator[Check]:
    """Without errors nothing is lost."""
    for system in SYSTEMS:
        for flows in numbers(data.effort):
            yield at_most(f"drops over sent, {system}, {flows} flows", data.measure((system, flows), lost_share), share)


def goodput_share(results: Results) -> float:
    """Return the goodput over the capacity."""
    return base.goodput_mbps(results) / base.MBPS


@study.predicate("K-txt-cong-b", least=0.8, percent=5)
def backs_off(data: Data, least: float, percent: float) -> Iterator[Check]:
    """Overload marks and timeouts suffice: no collapse."""
    settled = data.effort.choices["K-P24"]
    yield at_least(f"goodput over the capacity, from {settled} on", data.measure(STRESS, goodput_share), least)
    yield at_most("packets dropped in all, %", 100 * data.measure(WHOLE, lost_share), percent)


study.control(
    "TCP runs in the place of VCP",
    Settings(
        "protocol",
        {"flows.bulk.protocol": "newreno", "flows.bulk.params": {"receiver_window": 1_000_000}},
        lambda label: isinstance(label, tuple),
    ),
    ["K-txt-cong-a"],
    "slow start finds the end of the queue by losses",
)
study.control(
    base.UNMIXED,
    edit("off", base.unmixed, lambda label: label in (STRESS, WHOLE)),
    ["K-txt-cong-b"],
    "200 windows that multiply by ten before the load is known lose more than a tenth of a pipe of buffer holds",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The queue under stress over time, and the losses without stress."""
    queue = metrics.series(data.runs(STRESS)[0], base.BOTTLENECK, "queue_packets")
    grid = numbers(data.effort)
    shares: dict[str, list[Sample]] = {
        system: [data.measure((system, flows), lost_share) for flows in grid] for system in SYSTEMS
    }
    lines = [Line.of(system, grid, samples) for system, samples in shares.items()]
    return [
        Panel("200 flows, 0.1 BDP of buffer", "time (s)", "queue (packets)", [Line.series("queue", queue)]),
        Panel("Losses to congestion", "flows", "drops / sent", lines),
    ]
