"""I-fig2: what a plain router at the bottleneck does to XCP (figures 1 and 2).

Set-up: one flow over three routers; 30 Mbit/s between the second router and the third, 80 elsewhere, 60 s.
(a) TCP over plain routers; (b) XCP, every router speaks; (c) XCP, the router that owns the narrow link does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.lopez_pacheco import base
from explicate.papers.statistics import Check, above, at_least, at_most, between, equal
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("I-fig2")

MOST_MB = 225.0
"""What 30 Mbit/s carry in the 60 s, megabytes."""
NARROW = "r2->r3"
FLOW = "bulk.0"


SEEDS = 10
"""How far XCP's window overshoots depends on where the routers' timers stand, which the seed decides."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """One case for each scenario of figure 1."""
    chain = base.Network([("s", "r1", 80), ("r1", "r2", 80), ("r2", "r3", 30), ("r3", "d", 80)])
    around = base.Network(chain.links, {"r2"})
    return {
        label: Case(base.scenario(effort, f"I-fig2-{label}", network, [flow]), seeds=SEEDS)
        for label, network, flow in (
            ("a", chain.nowhere(), base.flow(effort, "bulk", effort.choices["I-P4"], ("s", "d"))),
            ("b", chain, base.flow(effort, "bulk", base.XCP, ("s", "d"))),
            ("c", around, base.flow(effort, "bulk", base.XCP, ("s", "d"))),
        )
    }


def megabytes(results: Results) -> float:
    """Return what was successfully sent, MB of IP bytes: what came twice counts once."""
    return base.sent_mb(results, "bulk")


def widest(results: Results) -> float:
    """Return the largest window, packets."""
    return metrics.largest(metrics.series(results, FLOW, "cwnd"))


def unrest(results: Results) -> float:
    """Return the window's coefficient of variation."""
    return metrics.variation(metrics.series(results, FLOW, "cwnd"))


def halvings(results: Results) -> float:
    """Count the falls of the window to 60 % or less from one sample to the next."""
    return metrics.falls(metrics.series(results, FLOW, "cwnd"), 0.6)


def pipe(results: Results) -> float:
    """Return the bandwidth-delay product in packets, from the least round-trip time that the chain allows."""
    flow = results.flows.row(0, named=True)
    return float(30e6 / 8 * flow["rtt_mean_ms"] * 1e-3 / 1000)


@study.predicate("I-fig2-a", low=0.88, high=0.99)
def tcp_fills_most(data: Data, low: float, high: float) -> Check:
    """215.004 MB in the paper."""
    return between("MB with TCP", data.measure("a", megabytes), low * MOST_MB, high * MOST_MB)


@study.predicate("I-fig2-b", least=0.98)
def xcp_fills_all(data: Data, least: float) -> Check:
    """223.808 MB in the paper."""
    return at_least("MB with XCP", data.measure("b", megabytes), least * MOST_MB)


@study.predicate("I-fig2-c", most=0.5)
def silence_costs_half(data: Data, most: float) -> Check:
    """52.426 MB in the paper."""
    return at_most("MB with XCP over a plain router", data.measure("c", megabytes), most * MOST_MB)


@study.predicate("I-fig2-d", a_over_c=2.0, b_over_c=2.2)
def order(data: Data, a_over_c: float, b_over_c: float) -> Iterator[Check]:
    """XCP before TCP before XCP over a plain router."""
    a, b, c = (data.measure(label, megabytes) for label in "abc")
    yield above("b above a, MB", b, a)
    yield at_least("a over c", a / c, a_over_c)
    yield at_least("b over c", b / c, b_over_c)


@study.predicate("I-fig2-e", reach=90, rtts=10, overshoot=20)
def jumps_to_the_optimum(data: Data, reach: float, rtts: float, overshoot: float) -> Iterator[Check]:
    """The window goes straight to the optimum."""
    yield equal("drops in b", data.measure("b", base.drops), 0)

    def rtts_until(results: Results) -> float:
        window = metrics.series(results, FLOW, "cwnd")
        rtt_s = results.flows["rtt_mean_ms"][0] * 1e-3
        return float(metrics.first_time(window, reach / 100 * pipe(results)) / rtt_s)

    yield at_most(f"round trips to {reach:g} % of the pipe", data.measure("b", rtts_until), rtts)
    most = data.measure("b", widest) / data.measure("b", pipe)
    yield at_most("largest window over the pipe", most, 1 + overshoot / 100)


@study.predicate("I-fig2-f", least=3)
def saw_tooth(data: Data, least: float) -> Iterator[Check]:
    """TCP's window rises steadily and halves."""
    yield at_least("halvings in a", data.measure("a", halvings), least)

    def share_rising(results: Results) -> float:
        steps = metrics.series(results, FLOW, "cwnd", start_s=5)["value"].diff().drop_nulls()
        return float((steps >= -1e-9).mean())  # type: ignore[arg-type]

    yield at_least("share of samples not below the one before", data.measure("a", share_rising), 0.95)


@study.predicate("I-fig2-g", wider=1.5, drops_over=5)
def unstable(data: Data, wider: float, drops_over: float) -> Iterator[Check]:
    """Over the plain router XCP's window swings beyond TCP's and loses much."""
    yield above("largest window of c over that of a", data.measure("c", widest), data.measure("a", widest) * wider)
    yield above("drops of c over those of a", data.measure("c", base.drops), data.measure("a", base.drops) * drops_over)
    yield above("variation of c's window over a's", data.measure("c", unrest), data.measure("a", unrest))


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The three windows over time, and what was delivered."""
    return [
        Panel(
            f"({label})", "time (s)", "window (packets)",
            [Line.series("cwnd", metrics.series(data.runs(label)[0], FLOW, "cwnd"))],
        )
        for label in "abc"
    ]  # fmt: skip
