"""N-txt-zh: results that the text quotes from the wired emulation of a wireless last hop (section II-A).

Set-up: one flow over 10 Mbit/s and a round trip of N-P17, with the window of N-P21, packets lost before the hop, on it,
or on the reverse path. For link contention: two flows from each of two stations to a hub in between over radios in a
steady channel, and four over a wire, both configured with 24 Mbit/s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, above, at_most, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-zh")

MBPS = 10.0
PLACES = ("before", "on", "back")
SYSTEMS = {base.XCP: "XCP", base.XCP_NO_SACK: "XCP without SACK", base.TCP: "TCP"}
HALF, FULL = "half duplex", "full duplex"
UNDER, TRUE = "told 0.85", "told the truth"
STARTED_S = 5.0


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    return effort.pick((0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0), (0.0, 0.05, 0.1, 1.0, 5.0))


def wire(effort: Effort, system: str, place: str = "on", loss: float = 0.0, believed: float | None = None) -> Case:
    """Return one flow over the hop."""
    where = "kernel" if place == "before" else "air"
    lost = [{"kind": "random_loss", "rate": f"{loss:g}%", "place": where}] if loss else []
    rtt = float(effort.choices["N-P17"].removesuffix("ms"))
    return base.wired(
        effort, system, rate=MBPS, rtt_ms=rtt, believed=believed,
        channel=[] if place == "back" else lost, back=lost if place == "back" else [],
        every="100ms" if believed else "", params={"receiver_window": int(effort.choices["N-P21"])},
    )  # fmt: skip


def contended(effort: Effort) -> Case:
    """Return four flows from two stations to the hub between them, in a channel that never changes."""
    links = [name for station in ("n1", "n2") for name in (f"{station}->n0", f"n0->{station}")]
    return base.over_air(
        base.empty("paper-N-hub", effort.seconds),
        base.air(effort, "star", 2, base.TUNED, steady=True),
        base.kernel(effort, links),
        [base.flows(effort, base.XCP, (["n1", "n2"], "n0"), count=4)],
    )


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Every system, place and loss rate; both kinds of link; both capacities."""
    runs: dict[object, Case] = {
        (system, place, loss): wire(effort, system, place, loss)
        for system in SYSTEMS
        for place in PLACES
        for loss in losses(effort)
    }
    return {
        **runs,
        HALF: contended(effort),
        FULL: base.wired(effort, base.XCP, rate=base.TUNED, count=4),
        UNDER: wire(effort, base.XCP, believed=0.85 * MBPS),
        TRUE: wire(effort, base.XCP, believed=MBPS),
    }


def use(results: Results) -> float:
    """Return the share of the hop's rate that arrives."""
    return metrics.total(results, "throughput_bps") / (MBPS * 1e6)


def falls(data: Data, system: str, least: float, held_at: float, at: float) -> Iterator[Check]:
    """Yield that loss on the hop leaves the share `least` of the use without loss at one rate, and less at another."""
    whole = data.measure((system, "on", 0.0), use)
    before, then = (data.measure((system, "on", 100 * loss), use) for loss in (held_at, at))
    yield base.ratio_at_least(f"share left at {100 * held_at:g} %", before, whole, least)
    less = whole * least - then
    measured = f"{then.mean / whole.mean:.4g} ({then} over {whole})"
    yield Check(f"share left at {100 * at:g} %", measured, f"< {least:g}", less.mean > 0, less, (0.0,))


@study.predicate("N-txt-zh-a", fallen=0.9, at=0.001)
def falls_early_without_sack(data: Data, fallen: float, at: float) -> Check:
    """From 0.1 % on without SACK."""
    whole, then = (data.measure((base.XCP_NO_SACK, "on", 100 * loss), use) for loss in (0.0, at))
    return base.ratio_at_most(f"share left at {100 * at:g} %", then, whole, fallen)


@study.predicate("N-txt-zh-b", least=0.8, held_at=0.01, at=0.05)
def falls_late_with_sack(data: Data, least: float, held_at: float, at: float) -> Iterator[Check]:
    """From 2.5 % on with SACK."""
    yield from falls(data, base.XCP, least, held_at, at)


@study.predicate("N-txt-zh-c")
def xcp_above_tcp(data: Data) -> Iterator[Check]:
    """In all cases."""
    for place in PLACES:
        for loss in losses(data.effort):
            if loss > 0:
                tcp = data.measure((base.TCP, place, loss), use)
                for system in (base.XCP, base.XCP_NO_SACK):
                    what = f"use, {loss:g} % lost {place}: {SYSTEMS[system]} over TCP"
                    yield exceeds(what, data.measure((system, place, loss), use), tcp)


def swing(results: Results) -> float:
    """Return the coefficient of variation of the load of the senders' links, in bins of 1 s."""
    rows = results.samples.filter(
        pl.col("object").cast(pl.String).is_in([base.WIRE, "n1->n0", "n2->n0"]),
        pl.col("variable") == "throughput_bps",
        pl.col("time_s") > STARTED_S,
    )
    return metrics.variation(rows.group_by("time_s").agg(pl.col("value").sum()))


@study.predicate("N-txt-zh-d", factor=3)
def contention_makes_it_swing(data: Data, factor: float) -> Check:
    """A fixed capacity is wrong where directions and stations compete."""
    half, full = data.measure(HALF, swing), data.measure(FULL, swing)
    return base.ratio_at_least("variation in 1 s, half over full duplex", half, full, factor)


def unrest(results: Results) -> float:
    """Return the coefficient of variation of the window, the start left out."""
    return metrics.variation(base.window(results, STARTED_S))


@study.predicate("N-txt-zh-e", most=0.9)
def told_too_little(data: Data, most: float) -> Iterator[Check]:
    """It oscillates and under-uses the link."""
    yield at_most("use, told 0.85 of the capacity", data.measure(UNDER, use), most)
    under, true = data.measure(UNDER, unrest), data.measure(TRUE, unrest)
    yield above("variation of the window, told 0.85 over told the truth", under, true)


study.control(
    "no loss",
    Place("flat", lambda label: (*label[:2], 0.0) if isinstance(label, tuple) else label),
    ["N-txt-zh-a", "N-txt-zh-b"],
    "Where nothing is lost nothing falls.",
)
study.control(
    "TCP for XCP",
    exchange(base.TCP, base.XCP),
    ["N-txt-zh-c"],
    "The lead is XCP's: its routers refill what a loss takes from the window.",
)
study.control(
    "full duplex for half",
    exchange(HALF, FULL),
    ["N-txt-zh-d"],
    "A wire's capacity does not change, so it cannot swing more than the air.",
)
study.control(
    "capacities exchanged",
    exchange(UNDER, TRUE),
    ["N-txt-zh-e"],
    "Told the truth XCP uses the whole hop.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Use against the loss rate."""
    grid = losses(data.effort)
    return [
        Panel(
            f"lost {place}", "loss rate (%)", "use of the hop",
            [
                Line.of(name, grid, [data.measure((system, place, loss), use) for loss in grid])
                for system, name in SYSTEMS.items()
            ],
            log="x", zero=base.NO_LOSS_AT, compared=True,
        )
        for place in PLACES
    ]  # fmt: skip
