"""I-fig13: errors of the estimate on the fast merge, against TCP (figure 13).

Set-up: figure 7 with all rates times ten, 20 s; buffers of 1700 packets on the path of i into the merge, of 700 on that
of j. Drops over time are the arrivals at a plain router minus its departures and its queue; `losses.py` counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.lopez_pacheco import base, losses
from explicate_papers.statistics import Check, Sample, above, at_least, at_most, between, equal, in_most, near
from explicate_papers.study import Case, Data, Effort, EmptyClassError, Line, Panel, Study

study = Study("I-fig13")

SECONDS, SCALE = 20, 10
CAPACITY = {"i": 300.0, "j": 100.0}
BUFFERS = {"ei->ci": "1700pkt", "ci->r1": "1700pkt", "ej->cj": "700pkt", "cj->r1": "700pkt"}
TCP = "TCP"
ERRORS = (0, 10, 20)
PAPER_MB: dict[str | int, dict[str, float]] = {
    TCP: {"i": 329, "j": 172},
    0: {"i": 670, "j": 244},
    10: {"i": 690, "j": 182},
    20: {"i": 590, "j": 187},
}
"""Data delivered by the senders in the paper, by the error."""


@study.cases
def cases(effort: Effort) -> dict[str | int, Case]:
    """TCP, and XCP-i with each error (percent)."""

    def case(name: str, protocol: str, every_s: float, sampled: Sequence[str], **router: Any) -> Case:
        return Case(
            base.scenario(
                effort,
                f"I-fig13-{name}",
                base.merge(SCALE, BUFFERS),
                base.pair(effort, protocol),
                router=router,
                seconds=SECONDS,
                every=f"{1000 * every_s:g}ms",
                sampled=sampled,
            )
        )

    hold = effort.choices["I-P17"]
    held: dict[str, Any] = {} if hold == "0s" else {"estimate_hold": hold}
    link_s = base.link_s(effort)
    made: dict[str | int, Case] = {TCP: case("tcp", effort.choices["I-P4"], link_s, ("queue", "throughput"))}
    for error in ERRORS:
        # Where drops are counted, samples are as far apart as the two ends of a link.
        made[error] = case(
            f"error-{error}",
            base.XCPI,
            link_s if error == max(ERRORS) else 0.1,
            ("queue", "throughput", "agent"),
            estimate_error=error / 100,
            estimate_of=effort.choices["I-P18"],
            **held,
        )
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
    """Return the data delivered by both, MB."""
    return base.sent_mb(results, "i") + base.sent_mb(results, "j")


@study.predicate("I-fig13-e")
def better_than_tcp(data: Data) -> Iterator[Check]:
    """In total and for each sender, whatever the error."""
    for error in ERRORS:
        for what, metric in (("total", together), ("i", base.megabytes("i")), ("j", base.megabytes("j"))):
            name = f"MB, {what}, XCP-i with {error} % over TCP"
            yield above(name, data.measure(error, metric), data.measure(TCP, metric))


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


def estimated(results: Results, one: str, link_s: float) -> pl.DataFrame:
    """Return the capacity that the edge before a cloud estimates, bit/s: the estimate plus the load of its interval.

    There is a row for each estimate. With an exact estimate this is the capacity. The load
    arrives `link_s` after it was sent, which matters for samples that are as close as that.
    """
    left = base.known(results, f"e{one}/r1", "measured_bps").filter(pl.col("value").is_finite())
    fresh = left.filter(pl.col("value").diff().fill_null(1.0) != 0).rename({"value": "left"})
    load = metrics.series(results, f"e{one}->c{one}", "throughput_bps")
    step_s = float(load["time_s"][1] - load["time_s"][0])
    late = round(link_s / step_s)
    came = load.select("time_s", bits=(pl.col("value").cum_sum() * step_s).shift(late, fill_value=0.0))
    spans = fresh.join(came, on="time_s").with_columns(load=pl.col("bits").diff() / pl.col("time_s").diff())
    return spans.drop_nulls().select("time_s", value=pl.col("left") + pl.col("load"))


def unexplained(results: Results, intervals: float, effort: Effort) -> float:
    """Count the bursts of drops of j with no estimate above the truth in so many intervals and a round trip before."""
    known = estimated(results, "j", base.link_s(effort)).filter(pl.col("value") > CAPACITY["j"] * 1e6)["time_s"]
    rtts = base.known(results, "r1/ej", "virtual_rtt_s")
    wrong = 0
    for time_s in losses.bursts(results, "j", losses.gap_s(effort)):
        rtt_s = float(rtts.filter(pl.col("time_s") <= time_s)["value"][-1])
        wrong += not ((known >= time_s - (intervals + 1) * rtt_s) & (known <= time_s)).any()
    return float(wrong)


@study.predicate("I-fig13-g", least=1, intervals=2)
def losses_where_it_errs_high(data: Data, least: float, intervals: float) -> Iterator[Check]:
    """Packets are lost when the estimate is too high."""
    gap_s = losses.gap_s(data.effort)
    found = Sample.of(float(len(losses.bursts(results, "j", gap_s))) for results in data.runs(20))
    yield at_least("bursts of losses of j", found, least)
    wrong = Sample.of(unexplained(results, intervals, data.effort) for results in data.runs(20))
    yield equal("of them without an estimate above the truth before", wrong, 0)


def recoveries(data: Data, label: str | int) -> Sample:
    """Return the mean recovery time after a loss for each seed with losses, s; for TCP it ends with the run at most."""
    found = [losses.recoveries(results, CAPACITY, data.effort) for results in data.runs(label)]
    means = [sum(times) / len(times) for times in found if times]
    if not means:
        raise EmptyClassError(f"{label}: no run loses a packet, so there is no recovery to measure")
    return Sample.of(means)


@study.predicate("I-fig13-h", share=1)
def quick_recovery(data: Data, share: float) -> Check:
    """XCP-i regains its throughput long before TCP regains its own."""
    ours, tcp = recoveries(data, 20), recoveries(data, TCP)
    what = f"s to 90 % of the throughput before a loss: XCP-i with 20 % ({ours}) over TCP's {tcp}"
    return at_most(what, ours / tcp.mean, share)


@study.predicate("I-fig13-i", slack=1.02)
def errors_do_not_help(data: Data, slack: float) -> Iterator[Check]:
    """The greater the error, the less is brought over."""
    none, ten, twenty = (data.measure(error, together) for error in ERRORS)
    yield at_most("MB of both: 20 % less 10 %", twenty - ten, 0)
    yield at_most(f"MB of both: 10 % less {slack:g} times 0 %", ten - slack * none, 0)


study.control(
    "XCP-i runs in the place of TCP",
    Place("protocol", lambda label: 0 if label == TCP else label),
    ["I-fig13-a"],
    "XCP-i with exact estimates fills the links that TCP leaves half empty",
)
study.control(
    "TCP runs in the place of XCP-i with exact estimates",
    Place("protocol", lambda label: TCP if label == 0 else label),
    ["I-fig13-b", "I-fig13-e"],
    "TCP's window needs minutes to fill such a pipe",
)
study.control(
    "TCP runs in the place of XCP-i with errors",
    Place("protocol", lambda label: TCP if label in (10, 20) else label),
    ["I-fig13-c", "I-fig13-d"],
    "TCP's window needs minutes to fill such a pipe",
)
study.control(
    "estimates have no error",
    Place("off", lambda label: 0 if label in (10, 20) else label),
    ["I-fig13-f", "I-fig13-g"],
    "with exact estimates no more comes than the cloud carries, so the buffer of j does not overflow",
)
study.control(
    "TCP and XCP-i exchanged",
    exchange(TCP, 20),
    ["I-fig13-h"],
    "TCP adds a packet in a round trip after a loss, XCP-i two fifths of what is left",
)
study.control(
    "no error and the largest exchanged",
    exchange(0, 20),
    ["I-fig13-i"],
    "errors in both directions cost packets or leave capacity idle",
)


def _shown(data: Data, label: int, one: str) -> Panel:
    results = data.runs(label)[0]
    times = [0.0, float(SECONDS)]
    return Panel(
        f"XCP-i, sender {one}, {label} %, first seed", "time (s)", "Mbit/s",
        [
            Line.series("throughput", base.over_time(results, one, bin_s=0.2), 1e6),
            Line.series("estimated bandwidth", estimated(results, one, base.link_s(data.effort)), 1e6),
            Line("real bandwidth", times, [CAPACITY[one]] * 2),
        ],
        compared=True,
    )  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The paper's six panels, and the delivered data with the paper's numbers."""
    tcp, lossy = data.runs(TCP)[0], data.runs(20)[0]
    names = [label if label == TCP else f"{label} %" for label in PAPER_MB]
    places = [float(place) for place in range(1, len(names) + 1)]
    sent = [
        line
        for one in CAPACITY
        for line in (
            Line.of(f"{one}, simulated", places, [data.measure(label, base.megabytes(one)) for label in PAPER_MB]),
            Line(f"{one}, paper", places, [numbers[one] for numbers in PAPER_MB.values()], points=True),
        )
    ]
    return [
        Panel(
            "TCP, first seed", "time (s)", "Mbit/s",
            [Line.series(f"throughput of {one}", base.over_time(tcp, one, bin_s=0.2), 1e6) for one in CAPACITY],
            compared=True,
        ),
        *(_shown(data, label, one) for label, one in ((10, "i"), (10, "j"), (20, "i"), (20, "j"))),
        Panel(
            "packet losses, XCP-i, 20 %, first seed", "time (s)", "packets lost in 0.2 s",
            [Line.series(f"way of {one}", losses.over_time(lossy, one, bin_s=0.2)) for one in CAPACITY],
        ),
        Panel("sent in 20 s", "error of the estimate", "MB", sent, names=names),
    ]  # fmt: skip
