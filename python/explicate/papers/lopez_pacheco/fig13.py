"""I-fig13: errors of the estimate on the fast merge, against TCP (figure 13).

Set-up: figure 7 with all rates times ten, 20 s; buffers of 1700 packets on the way of i into the merge, of 700 on that
of j. Two more runs, in which a burst of foreign packets makes TCP and XCP-i lose some, show how they recover.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from explicate.papers import metrics
from explicate.papers.lopez_pacheco import base
from explicate.papers.statistics import Check, Sample, above, at_least, at_most, between, in_most, near
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("I-fig13")

SECONDS, SCALE = 20, 10
CAPACITY = {"i": 300.0, "j": 100.0}
BUFFERS = {"ei->ci": "1700pkt", "ci->r1": "1700pkt", "ej->cj": "700pkt", "cj->r1": "700pkt"}
TCP, HIT_TCP, HIT = "TCP", "TCP, hit", "XCP-i, hit"
ERRORS = (0, 10, 20)
PAPER_MB = {0: {"i": 670, "j": 244}, 10: {"i": 690, "j": 182}, 20: {"i": 590, "j": 187}}
"""What the senders brought over in the paper, by the error."""
HIT_S, HIT_SECONDS, HIT_SEEDS = 12.0, 30, 3
FULL = 690.0
"""Packets in the buffer of 700 that count as an overflow, which goes up and down between two samples."""
EVERY_S = 0.1


@study.cases
def cases(effort: Effort) -> dict[str | int, Case]:
    """TCP; XCP-i with each error (percent); both with a burst from outside."""

    def case(name: str, protocol: str, *, hit: bool = False, seeds: int | None = None, **router: Any) -> Case:
        links = [("x", "ci", 800.0), ("y", "cj", 800.0), ("r1", "z", 8000.0)] if hit else []
        network = base.merge(SCALE, BUFFERS)
        network = base.Network([*network.links, *links], network.plain, network.buffers)
        flows = base.pair(effort, protocol)
        if hit:
            flows += [
                base.flow(
                    effort, one, "greedy", (one, "z"), start=f"{HIT_S:g}s", params={"rate": f"{rate:g}Mbit/s"}
                ).replace("start", f'stop = "{HIT_S + 0.2:g}s"\nstart')
                for one, rate in (("x", CAPACITY["i"]), ("y", CAPACITY["j"]))
            ]
        text = base.scenario(
            effort,
            f"I-fig13-{name}",
            network,
            flows,
            router=router,
            seconds=HIT_SECONDS if hit else SECONDS,
            sampled=(*base.SAMPLED, "agent"),
        )
        return Case(text, seeds=seeds)

    held: dict[str, Any] = {} if effort.choices["I-P17"] == "0s" else {"estimate_hold": effort.choices["I-P17"]}
    made: dict[str | int, Case] = {TCP: case("tcp", effort.choices["I-P4"], seeds=1)}
    for error in ERRORS:
        made[error] = case(
            f"error-{error}", base.XCPI, estimate_error=error / 100, estimate_of=effort.choices["I-P18"],
            seeds=1 if error == 0 else None, **held,
        )  # fmt: skip
    made[HIT_TCP] = case("hit-tcp", effort.choices["I-P4"], hit=True, seeds=1)
    made[HIT] = case("hit", base.XCPI, hit=True, seeds=HIT_SEEDS)
    return made


def _near(data: Data, error: int, percent: Mapping[str, float]) -> Iterator[Check]:
    for one, paper in PAPER_MB[error].items():
        yield near(f"MB of {one}", data.measure(error, base.megabytes(one)), paper, paper * percent[one] / 100)


@study.predicate("I-fig13-a", i=329, j=172, low=0.7, high=1.3, most=0.9)
def tcp_leaves_much(data: Data, i: float, j: float, low: float, high: float, most: float) -> Iterator[Check]:
    """44 % and 69 % of the capacity."""
    for one, paper in (("i", i), ("j", j)):
        ours = data.measure(TCP, base.megabytes(one))
        yield between(f"MB of {one} with TCP", ours, low * paper, high * paper)
        yield at_most(f"MB of {one} with TCP", ours, most * CAPACITY[one] * SECONDS / 8)


@study.predicate("I-fig13-b", percent=8)
def exact(data: Data, percent: float) -> Iterator[Check]:
    """89 % and 98 %."""
    yield from _near(data, 0, {"i": percent, "j": percent})


@study.predicate("I-fig13-c", i=10, j=20)
def ten_percent(data: Data, i: float, j: float) -> Iterator[Check]:
    """The paper's i has more than with exact estimates."""
    yield from _near(data, 10, {"i": i, "j": j})


@study.predicate("I-fig13-d", i=15, j=20)
def twenty_percent(data: Data, i: float, j: float) -> Iterator[Check]:
    """The paper's j has more than with smaller errors."""
    yield from _near(data, 20, {"i": i, "j": j})


def together(results: Results) -> float:
    """Return what both brought over, MB."""
    return base.sent_mb(results, "i") + base.sent_mb(results, "j")


@study.predicate("I-fig13-e")
def better_than_tcp(data: Data) -> Iterator[Check]:
    """In total and for each sender, whatever the error."""
    for error in ERRORS:
        for what, metric in (("total", together), ("i", base.megabytes("i")), ("j", base.megabytes("j"))):
            ours, tcp = data.measure(error, metric), data.measure(TCP, metric).mean
            yield above(f"MB, {what}, XCP-i with {error} % over TCP", ours, ours.map(lambda _, tcp=tcp: tcp))  # type: ignore[misc]


def timeouts_of_i(results: Results) -> float:
    """Return the timeouts of i."""
    return metrics.total(results, "timeouts", "i")


def drops_of_j(results: Results) -> float:
    """Return the drops on the way of j into the merge."""
    return sum(metrics.link(results, name, "drops_overflow") for name in ("ej->cj", "cj->r1"))


@study.predicate("I-fig13-f", spared=80, hurt=50)
def buffers_decide(data: Data, spared: float, hurt: float) -> Iterator[Check]:
    """With an error of 10 % the buffer of i suffices, that of j does not."""
    calm = data.measure(10, timeouts_of_i).map(lambda count: count == 0)
    yield in_most("i has no timeout", calm, spared / 100)
    yield in_most("j loses packets", data.measure(10, drops_of_j).map(lambda count: count > 0), hurt / 100)


def bursts(results: Results) -> list[float]:
    """Return when the buffer on the way of j begins to overflow, s; what follows within a second is part of it."""
    waiting = metrics.series(results, "cj->r1", "queue_packets")
    full = waiting.filter(waiting["value"] >= FULL)["time_s"].to_list()
    return [time_s for time_s, before in zip(full, [-1.0, *full], strict=False) if time_s - before > 1]


def too_high(results: Results, time_s: float, span_s: float) -> bool:
    """Whether an estimate for the way of j was above the truth within `span_s` before `time_s`."""
    known = metrics.series(results, "r1/ej", "cloud_capacity_bps")
    near_it = known.filter(pl.col("time_s").is_between(time_s - span_s, time_s))["value"]
    return bool((near_it > CAPACITY["j"] * 1e6).any())


@study.predicate("I-fig13-g", low=1, high=8, intervals=2)
def losses_where_it_errs_high(data: Data, low: float, high: float, intervals: float) -> Iterator[Check]:
    """Packets are lost when the estimate is too high."""
    counted, explained = [], []
    for results in data.runs(20):
        rtt_s = float(results.flows.filter(results.flows["group"] == "j")["rtt_mean_ms"][0]) * 1e-3
        found = bursts(results)
        counted.append(float(len(found)))
        span_s = (intervals + 1) * rtt_s + EVERY_S
        explained.append(all(too_high(results, time_s, span_s) for time_s in found))
    yield between("bursts of losses of j", Sample.of(counted), low, high)
    yield in_most("each after an estimate that was too high", Sample.of(map(float, explained)))


def recovery(results: Results, one: str) -> float:
    """Return how long it takes from the burst to 90 % of the throughput of the 3 s before it, s; at most to the end."""
    rate = base.over_time(results, one, bin_s=0.2)
    before = metrics.mean(rate.filter(pl.col("time_s").is_between(HIT_S - 3, HIT_S)))
    after = rate.filter(rate["time_s"] > HIT_S + 0.2)
    low = after.filter(after["value"] < 0.9 * before)
    if low.is_empty():
        return 0.2
    reached = after.filter((after["time_s"] > low["time_s"][0]) & (after["value"] >= 0.9 * before))["time_s"]
    return float(reached[0] if len(reached) else HIT_SECONDS) - HIT_S


@study.predicate("I-fig13-h", share=0.3)
def quick_recovery(data: Data, share: float) -> Iterator[Check]:
    """XCP-i is back at its throughput long before TCP is at its own."""
    for one in CAPACITY:
        ours, tcp = (data.measure(label, partial(recovery, one=one)) for label in (HIT, HIT_TCP))
        yield at_least(f"drops of {one} with XCP-i", data.measure(HIT, base.drops), 1)
        yield at_most(f"s to 90 % of {one}'s throughput: XCP-i over TCP's {tcp}", ours / tcp.mean, share)


@study.predicate("I-fig13-i", slack=1.02)
def errors_do_not_help(data: Data, slack: float) -> Iterator[Check]:
    """The greater the error, the less is brought over."""
    none, ten, twenty = (data.measure(error, together).mean for error in ERRORS)
    yield at_most("MB of both: 20 % against 10 %", Sample.of([twenty]), ten)
    yield at_most("MB of both: 10 % against 0, and a little", Sample.of([ten]), slack * none)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput of both senders over time: TCP, and XCP-i with each error."""
    return [
        Panel(
            label if label == TCP else f"XCP-i, error {label} %", "time (s)", "throughput (Mbit/s)",
            [Line.series(one, base.over_time(data.runs(label)[0], one, bin_s=0.2), 1e6) for one in CAPACITY],
        )
        for label in (TCP, *ERRORS)
    ]  # fmt: skip
