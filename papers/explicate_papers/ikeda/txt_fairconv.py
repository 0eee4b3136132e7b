"""K-txt-fairconv: open questions of the authors: slow convergence to fair shares, strict independence of bandwidth.

(a) A second flow joins at 10 Mbit/s; the variant that converges faster is VCP with four times the additive increase.
(b) Growth of up to a thousandfold in an interval, so that only the routers' share limits it.
(c) Round trips longer than the interval, which the controller assumes not to occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, edit, exchange
from explicate_papers.ikeda import base
from explicate_papers.ikeda.fig5 import by_load, not_reached
from explicate_papers.statistics import Check, above, at_most, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-txt-fairconv")

JOIN_S = 60.0
JOINS = (base.VCP, "fast", base.BISE)
"""The scenarios that a second flow joins; ``K-P23`` has their length: BISE's additive increase is a 39th of VCP's."""
RATIOS = (0.5, 1.0, 1.6, 2.0)
"""Round trip over interval."""
BIN_S = 10.0
JAIN = 0.95


@study.cases
def cases(effort: Effort) -> dict[tuple[str, object], Case]:
    """Late joiners, unlimited growth, short intervals."""
    made: dict[tuple[str, object], Case] = {}
    vcp_s, bise_s = base.watched_s(effort, "K-P23")
    growth_s, _ = base.watched_s(effort, "K-P21")
    for name in JOINS:
        system, seconds = base.VCP if name == "fast" else name, bise_s if name == base.BISE else vcp_s
        params = {"alpha": 4} if name == "fast" else {}
        made["join", name] = base.case(
            effort, system, mbps=10, flows=2, params=params, start={"spread": f"{2 * JOIN_S:g}s"}, seconds=seconds,
            every="1s", of=("throughput", "queue"),
        )  # fmt: skip
    for mbps in (10.0, 1000.0):
        made["growth", mbps] = base.case(
            effort, base.PROPOSED, mbps=mbps, growth=1000, seconds=growth_s, of=("router",)
        )
    for ratio in RATIOS:
        interval = {"t_rho": f"{1000 * base.RTT_S / ratio:g}ms"}
        made["ratio", ratio] = base.case(effort, base.PROPOSED, params=interval, router=interval, of=("router",))
    return {label: replace(case, seeds=base.few(effort)) for label, case in made.items()}


def shares(results: Results) -> pl.DataFrame:
    """Return Jain's index of the two flows' goodput in the bins since the second joined."""
    flows = [metrics.series(results, f"bulk.{i}", "throughput_bps", JOIN_S + 1.0) for i in (0, 1)]
    end = ((flows[0]["time_s"] / BIN_S - 1e-9).floor() + 1) * BIN_S
    bins = (
        pl.DataFrame({"time_s": end, "one": flows[0]["value"], "other": flows[1]["value"]})
        .group_by("time_s").mean().sort("time_s")
    )  # fmt: skip
    index = (bins["one"] + bins["other"]) ** 2 / (2 * (bins["one"] ** 2 + bins["other"] ** 2))
    return pl.DataFrame({"time_s": bins["time_s"], "value": index})


def converges(results: Results) -> float:
    """Return how long after the second flow's start the index reaches `JAIN`, s; until the end if it does not."""
    return min(metrics.first_time(shares(results), JAIN), metrics.end_s(results)) - JOIN_S


@study.predicate(
    "K-txt-fairconv-a",
    most=0.5,
    instead="the variant that converges faster is VCP with four times the additive increase, because EVCP and VCP-FC "
    "are not built",
)
def late_joiner(data: Data, most: float) -> Iterator[Check]:
    """Time to nearly equal shares, for VCP, BISE and the variant."""
    times = {name: data.measure(("join", name), converges) for name in JOINS}
    measured = ", ".join(f"{name} {time}" for name, time in times.items())
    ratio = times["fast"] / times[base.VCP]
    yield at_most(f"s to a Jain index of {JAIN:g}: {measured}; the variant over VCP", ratio, most)


@study.predicate("K-txt-fairconv-b", seconds=1.25, drops=0)
def flat(data: Data, seconds: float, drops: float) -> Iterator[Check]:
    """With growth left to the routers a hundred times the rate costs at most an interval, and no packet."""
    times = {mbps: data.measure(("growth", mbps), by_load) for mbps in (10.0, 1000.0)}
    empty = [one for mbps in times for one in not_reached(times[mbps], f"{mbps:g} Mbit/s with a growth of 1000")]
    if not empty:
        slow, fast = times.values()
        yield at_most(f"s to 80 %: at 1000 Mbit/s ({fast}) less at 10 ({slow})", fast - slow, seconds)
    yield from empty
    for mbps in (10.0, 1000.0):
        yield equal(f"drops at {mbps:g} Mbit/s", data.measure(("growth", mbps), base.drops), drops)


def peak(results: Results) -> float:
    """Return the largest load factor."""
    return metrics.largest(base.load(results))


@study.predicate(
    "K-txt-fairconv-c",
    short=0.5,
    long=2,
    instead="that the load overshoots further with the longest round trip than with the shortest, because a report "
    "alone cannot fail",
)
def overshoots(data: Data, short: float, long: float) -> Iterator[Check]:
    """The longer the round trip relative to the interval, the further the load overshoots."""
    peaks = {ratio: data.measure(("ratio", ratio), peak) for ratio in RATIOS}
    measured = ", ".join(f"{ratio:g}: {value}" for ratio, value in peaks.items())
    yield above(
        f"largest load at a round trip over interval of {long:g}, over {short:g} ({measured})",
        peaks[long],
        peaks[short],
    )


study.control(
    "VCP and the variant exchanged",
    exchange(base.VCP, "fast"),
    ["K-txt-fairconv-a"],
    "a quarter of the additive increase takes longer",
)
study.control(
    "growth is capped at ten",
    edit("off", base.growth_of(10), lambda label: label[0] == "growth"),
    ["K-txt-fairconv-b"],
    "each decade of bandwidth then costs an interval of growth",
)
study.control(
    "one round trip for all",
    Place("flat", lambda label: ("ratio", RATIOS[0]) if label[0] == "ratio" else label),
    ["K-txt-fairconv-c"],
    "the same round trip overshoots by the same",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The shares after a flow joins; the load for round trips short and long."""
    joins = [Line.series(name, shares(data.runs(("join", name))[0])) for name in JOINS]
    loads = [Line.series(f"rtt / t_rho = {ratio:g}", base.load(data.runs(("ratio", ratio))[0])) for ratio in RATIOS]
    return [
        Panel("A second flow joins", "time (s)", "Jain index", joins, log="x"),
        Panel("Round trip over interval", "time (s)", "load factor", loads),
    ]
