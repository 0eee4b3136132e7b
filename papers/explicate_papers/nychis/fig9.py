"""N-fig9: rates of thirty long flows from one station to another, capacity too small and too large (figure 9).

Set-up: `base.py`; 120 s, 20 and 54 Mbit/s. The same for 10 s are figure 10; from two stations, figures 11 and 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, Settings, edit
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-fig9")

UNDER, OVER = 20.0, 54.0
FLOWS = 30
LONG_S, SHORT_S = 120.0, 10.0
HUB = "n0"


def two_stations(effort: Effort, capacity: float, seconds: float, *, protocol: str = base.XCP) -> Case:
    """Return thirty flows from one station to another."""
    return _case(effort, capacity, seconds, "chain", ["n1"], "n2", protocol)


def three_stations(effort: Effort, capacity: float, seconds: float, *, protocol: str = base.XCP) -> Case:
    """Return fifteen flows from each of two stations to the server between them."""
    return _case(effort, capacity, seconds, "star", ["n1", "n2"], HUB, protocol)


def _case(
    effort: Effort, capacity: float, seconds: float, layout: str, sources: list[str], sink: str, protocol: str
) -> Case:
    # Who only receives, the server: n2 of two stations, the hub of three.
    silent = [{"node": sink, "router": "none"}] if effort.choices["N-P16"] == "senders" else []
    links = [f"{a}->{b}" for source in sources for a, b in ((source, sink), (sink, source))]
    return base.over_air(
        base.empty("paper-N-fairness", seconds),
        base.air(effort, layout, 2, capacity, overrides=silent),
        base.kernel(effort, links, float(effort.choices["N-P14"])),
        [
            base.flows(effort, protocol, ([source], sink), name=f"of_{source}", count=FLOWS // len(sources))
            for source in sources
        ],
    )


@study.cases
def cases(effort: Effort) -> Mapping[float, Case]:
    """Both capacities."""
    return {capacity: two_stations(effort, capacity, LONG_S) for capacity in (UNDER, OVER)}


def jain(results: Results) -> float:
    """Return Jain's index of all flows."""
    return metrics.jain(results)


def most_over_least(results: Results) -> float:
    """Return the largest rate over the smallest."""
    rates = results.flows["throughput_bps"].to_list()
    return max(rates) / min(rates) if min(rates) else float("inf")


def waiting(results: Results) -> float:
    """Return the mean queue of the first sender, packets."""
    return metrics.link(results, "n1->n2", "queue_mean_packets")


@study.predicate("N-fig9-a", least=0.95)
def fair_if_told_too_little(data: Data, least: float) -> Check:
    """The rates are nearly equal."""
    return at_least("Jain's index, told 20", data.measure(UNDER, jain), least)


@study.predicate("N-fig9-b", less=0.05, ratio=2)
def unfair_if_told_too_much(data: Data, less: float, ratio: float) -> Iterator[Check]:
    """The fairness controller breaks down."""
    under, over = data.measure(UNDER, jain), data.measure(OVER, jain)
    yield at_most("Jain's index, told 54, less that told 20", over - under, -less)
    yield at_least("largest over smallest rate, told 54", data.measure(OVER, most_over_least), ratio)


@study.predicate("N-fig9-c", drops=0, factor=3)
def costs_queue_too(data: Data, drops: float, factor: float) -> Check:
    """Efficiency is sacrificed as well: packets are dropped, or the queue is three times as long."""
    dropped = data.measure(OVER, base.drops)
    queue = base.ratio_at_least(
        f"queue told 54 over told 20 (drops {dropped})",
        data.measure(OVER, waiting),
        data.measure(UNDER, waiting),
        factor,
    )
    if queue.holds or not dropped.mean > drops:
        return queue
    return Check("drops told 54", str(dropped), f"> {drops:g}", holds=True, sample=dropped, bounds=(drops,))


def half_tcp(content: dict[str, Any]) -> None:
    """Make half of the flows TCP, which ignores routers: a control."""
    (xcp,) = content["flows"]
    xcp["count"] = FLOWS // 2
    params = {key: value for key, value in xcp["params"].items() if key not in {"on_loss", "fractions"}}
    content["flows"].append({**xcp, "name": f"tcp_{xcp['name']}", "protocol": base.TCP, "params": params})


study.control(
    "half of the flows TCP",
    edit("protocol", half_tcp, lambda label: label == UNDER),
    ["N-fig9-a"],
    "Rates are equal since all senders follow routers; TCP fills the queue, and routers make XCP's flows give way.",
)
study.control(
    "capacities exchanged",
    Place("exchange", lambda label: {UNDER: OVER, OVER: UNDER}[label]),
    ["N-fig9-b"],
    "It is what is told above the truth that ends control, so what is told below it must be the fairer.",
)
study.control(
    "told 6",
    Settings("told", {"medium.air.capacity": "6Mbit/s"}, lambda label: label == OVER),
    ["N-fig9-c"],
    "Told a quarter of what the air carries, XCP keeps the queue empty and drops nothing.",
)


def rates(data: Data, title: str) -> Panel:
    """Return the rate of each flow of the first seed, as points."""
    numbers = list(range(1, FLOWS + 1))
    lines = [
        Line(
            f"told {capacity:g} Mbit/s",
            numbers,
            (data.runs(capacity)[0].flows["throughput_bps"] / 8e3).to_list(),
            points=True,
        )
        for capacity in (UNDER, OVER)
    ]
    return Panel(f"{title}, seed {base.seed(data, UNDER)}", "flow", "throughput (KB/s)", lines)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Rates of all flows."""
    return [rates(data, "Two stations, 120 s")]
