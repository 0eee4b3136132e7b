"""Y-txt-intro: statements of the introduction, on a clear direct link without codes. Set-up: `base.py`.

Flows start within a second and do not stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.statistics import Check, above, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study
from explicate_papers.yousefizadeh import base
from explicate_papers.yousefizadeh.base import DROPTAIL, SYSTEMS, TCP, VCP, XCP

study = Study("Y-txt-intro")


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The three systems, and TCP without marks."""
    return {
        system: base.case(effort, system, 100, fec=(1.0, 1.0), session=False, sampling=("throughput", "queue"))
        for system in (*SYSTEMS, DROPTAIL)
    }


def time_to_90(results: Results) -> float:
    """Return when 0.9 of the link is first in use, s."""
    return metrics.link(results, base.FORTH, "time_to_90_s")


@study.predicate("Y-txt-intro-a")
def two_bits_take_longer(data: Data) -> Check:
    """XCP's feedback has a size, VCP's only a direction."""
    return above("time to 0.9, s: VCP over XCP", data.measure(VCP, time_to_90), data.measure(XCP, time_to_90))


@study.predicate("Y-txt-intro-b")
def marks_do_not_fill(data: Data) -> Iterator[Check]:
    """Less waits and less is lost, but the link is not full."""
    for name, metric in (("drops", base.drops), ("mean queue, packets", base.queue)):
        yield above(f"{name}: TCP without marks over {TCP}", data.measure(DROPTAIL, metric), data.measure(TCP, metric))
    tcp = data.measure(TCP, base.utilisation)
    for system in (XCP, VCP):
        yield above(f"utilisation: {system} over {TCP}", data.measure(system, base.utilisation), tcp)


@study.predicate("Y-txt-intro-c")
def routers_that_say_it(data: Data) -> Iterator[Check]:
    """Smaller queues and fewer drops than with marks."""
    for system in (XCP, VCP):
        for name, metric in (("mean queue, packets", base.queue), ("drops", base.drops)):
            yield exceeds(f"{name}: TCP over {system}", data.measure(DROPTAIL, metric), data.measure(system, metric))


def droptail_for_routers(label: str) -> str:
    """Return TCP without marks in the place of XCP and VCP."""
    return DROPTAIL if label in (XCP, VCP) else label


study.control(
    "XCP and VCP exchanged", exchange(XCP, VCP), ["Y-txt-intro-a"],
    "If two bits take longer than a number, the number in their place does not.",
)  # fmt: skip
study.control(
    "marks and no marks exchanged", exchange(TCP, DROPTAIL), ["Y-txt-intro-b"],
    "Without marks TCP fills the queue until it overflows.",
)  # fmt: skip
study.control(
    "TCP without marks for XCP and VCP", Place("protocol", droptail_for_routers), ["Y-txt-intro-c"],
    "A sender that is told nothing fills the queue until it overflows.",
)  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput and queue over time, of the first seed, and the drops."""
    systems = (*SYSTEMS, DROPTAIL)
    places = range(1, len(systems) + 1)
    dropped = Line.of("drops", places, [data.measure(one, base.drops) for one in systems])
    over_time = [
        Panel(
            f"{title}, seed {data.runs(XCP)[0].seed}", "time (s)", label,
            [
                Line.series(one, metrics.series(data.runs(one)[0], base.FORTH, variable), scale)
                for one in systems
            ],
        )
        for title, label, variable, scale in (
            ("Throughput", "throughput (Mbit/s)", "throughput_bps", 1e6),
            ("Queue", "queue (packets)", "queue_packets", 1.0),
        )
    ]  # fmt: skip
    return [*over_time, Panel("Drops of queues", "system", "drops in a run", [dropped], names=systems)]
