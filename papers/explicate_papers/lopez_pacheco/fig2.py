"""I-fig2: the effect of a plain router at the bottleneck on XCP (figures 1 and 2).

Set-up: one flow over three routers; 30 Mbit/s between the second router and the third, 80 elsewhere, 60 s.
(a) TCP over plain routers; (b) XCP over XCP routers; (c) XCP, the router at the bottleneck is plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.agents import tcp_for
from explicate_papers.controls import Place
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, Sample, above, at_least, at_most, between, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-fig2")

MOST_MB = 225.0
"""Data that 30 Mbit/s carry in 60 s, megabytes."""
PAPER_MB = {"a": 215.004, "b": 223.808, "c": 52.426}
FLOW = "bulk.0"
EVERY_S = 0.02
"""Of the samples: a recovery lasts several of them."""
APART_S = 1.0
"""Falls of the window that follow each other sooner than this are one back-off: the recovery's, then the timer's."""
HALF = (0.4, 0.6)
"""Share of the window after a halving: the recovery halves the data in flight, which slightly exceeds the window."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """One case for each scenario of figure 1."""
    chain, middle = base.chain(effort)
    around = base.Network(chain.links, {middle})
    return {
        label: Case(base.scenario(effort, f"I-fig2-{label}", network, [flow], every=f"{EVERY_S:g}s"))
        for label, network, flow in (
            ("a", chain.nowhere(), base.flow(effort, "bulk", effort.choices["I-P4"], ("s", "d"))),
            ("b", chain, base.flow(effort, "bulk", base.XCP, ("s", "d"))),
            ("c", around, base.flow(effort, "bulk", base.XCP, ("s", "d"))),
        )
    }


def megabytes(results: Results) -> float:
    """Return the delivered data, MB of IP bytes; duplicates count once."""
    return base.sent_mb(results, "bulk")


def window(results: Results) -> pl.DataFrame:
    """Return the flow's window over time, packets."""
    return metrics.series(results, FLOW, "cwnd")


def widest(results: Results) -> float:
    """Return the largest window, packets."""
    return metrics.largest(window(results))


def unrest(results: Results) -> float:
    """Return the window's coefficient of variation."""
    return metrics.variation(window(results))


def backoffs(results: Results) -> list[tuple[float, float]]:
    """Return the back-offs of the window: the time at which each began, s, and the share of the window after it."""
    times, values = window(results).get_columns()
    fallen = [place for place in range(1, len(values)) if values[place] < values[place - 1]]
    groups: list[list[int]] = []
    for place in fallen:
        if groups and times[place] - times[groups[-1][-1]] < APART_S:
            groups[-1].append(place)
        else:
            groups.append([place])
    return [(float(times[group[0]]), float(values[group[-1]] / values[group[0] - 1])) for group in groups]


def halvings(results: Results) -> float:
    """Count the back-offs that leave about a half; one that ends in a timeout is none."""
    return float(sum(HALF[0] <= left <= HALF[1] for _, left in backoffs(results)))


def other_falls(results: Results) -> float:
    """Count the back-offs between the first halving and the last that leave another part."""
    left = [left for _, left in backoffs(results)]
    halved = [place for place, part in enumerate(left) if HALF[0] <= part <= HALF[1]]
    return float(halved[-1] - halved[0] + 1 - len(halved)) if halved else 0.0


@study.predicate("I-fig2-a", low=0.88, high=0.99)
def tcp_fills_most(data: Data, low: float, high: float) -> Check:
    """215.004 MB in the paper."""
    return between("MB with TCP", data.measure("a", megabytes), low * MOST_MB, high * MOST_MB)


@study.predicate("I-fig2-b", least=0.98)
def xcp_fills_all(data: Data, least: float) -> Check:
    """223.808 MB in the paper."""
    return at_least("MB with XCP", data.measure("b", megabytes), least * MOST_MB)


@study.predicate("I-fig2-c", most=0.5, close_from=0.15, close_to=0.35)
def silence_costs_half(data: Data, most: float, close_from: float, close_to: float) -> Check:
    """52.426 MB in the paper; the grade of closeness is reported and does not determine the verdict."""
    sent = data.measure("c", megabytes)
    check = at_most("MB with XCP over a plain router", sent, most * MOST_MB)
    share = sent.mean / MOST_MB
    met = "met" if close_from <= share <= close_to else "missed"
    grade = f"{share:.0%} of the capacity; closeness grade {close_from:.0%} to {close_to:.0%}: {met}"
    return replace(check, measured=f"{check.measured} ({grade})")


@study.predicate("I-fig2-d", a_over_c=2.0, b_over_c=2.2)
def order(data: Data, a_over_c: float, b_over_c: float) -> Iterator[Check]:
    """XCP before TCP before XCP over a plain router."""
    a, b, c = (data.measure(label, megabytes) for label in "abc")
    yield above("b above a, MB", b, a)
    yield above("a above c, MB", a, c)
    yield at_least("a over c (paper 4.10)", a / c, a_over_c)
    yield at_least("b over c (paper 4.27)", b / c, b_over_c)


@study.predicate("I-fig2-e", reach=90, rtts=10, overshoot=10)
def jumps_to_the_optimum(data: Data, reach: float, rtts: float, overshoot: float) -> Iterator[Check]:
    """The window reaches the optimum directly."""
    yield equal("drops in b", data.measure("b", base.drops), 0)
    rtt_s = 2 * len(base.chain(data.effort)[0].links) * base.link_s(data.effort)
    pipe = 30e6 / 8 * rtt_s / base.packet_bytes(data.effort)

    def rtts_until(results: Results) -> float:
        return metrics.first_time(window(results), reach / 100 * pipe) / rtt_s

    yield at_most(f"round trips to {reach:g} % of the pipe", data.measure("b", rtts_until), rtts)
    yield at_most("largest window over the pipe", data.measure("b", widest) / pipe, 1 + overshoot / 100)


@study.predicate("I-fig2-f", least=2)
def saw_tooth(data: Data, least: float) -> Iterator[Check]:
    """TCP's window rises steadily and halves."""
    yield at_least("halvings in a", data.measure("a", halvings), least)
    yield equal("other falls between them", data.measure("a", other_falls), 0)


@study.predicate("I-fig2-g", wider=1.1, drops_over=5)
def unstable(data: Data, wider: float, drops_over: float) -> Iterator[Check]:
    """Over the plain router XCP's window swings beyond TCP's and loses much."""
    yield above("largest window of c over that of a", data.measure("c", widest), data.measure("a", widest) * wider)
    yield above("drops of c over those of a", data.measure("c", base.drops), data.measure("a", base.drops) * drops_over)
    yield above("variation of c's window over a's", data.measure("c", unrest), data.measure("a", unrest))


study.control(
    "TCP runs in the place of XCP",
    tcp_for(["bulk"], lambda label: label in "bc"),
    ["I-fig2-b", "I-fig2-c", "I-fig2-d", "I-fig2-e", "I-fig2-g"],
    "TCP finds the narrow link by losses: it neither jumps to the optimum without any nor trusts a wrong feedback",
)
study.control(
    "XCP runs in the place of TCP",
    Place("protocol", lambda label: "b" if label == "a" else label),
    ["I-fig2-a", "I-fig2-f"],
    "XCP where every router speaks loses nothing, so its window has no saw-tooth and the link is full",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The windows of all three over time, their throughputs, and the delivered data with the paper's numbers."""
    runs = {label: data.runs(label)[0] for label in PAPER_MB}
    names = {"a": "(a) TCP", "b": "(b) XCP", "c": "(c) XCP, a plain router"}
    places = [1.0, 2.0, 3.0]
    sent: list[Sample] = [data.measure(label, megabytes) for label in PAPER_MB]
    return [
        *(
            Panel(f"congestion window {title}, first seed", "time (s)", "window (packets)",
                  [Line.series(names[label], window(runs[label])) for label in labels], compared=True)
            for title, labels in (("in (a), TCP's saw-tooth, and (b)", "ab"), ("in (c)", "c"))
        ),
        Panel(
            "throughput, first seed", "time (s)", "throughput (Mbit/s)",
            [Line.series(names[label], base.over_time(results, "bulk"), 1e6) for label, results in runs.items()],
        ),
        Panel(
            "sent in one minute", "scenario", "MB",
            [Line.of("simulated", places, sent), Line("paper", places, list(PAPER_MB.values()), points=True)],
            names=list(PAPER_MB),
        ),
    ]  # fmt: skip
