"""Measures that no judge has, for labels of causes that still need them: `scripts/make_causes.py --run` takes them.

Each has an experiment, whose quick set is run, and checks in the place of a claim's judge, which stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import polars as pl

from explicate.results import Results
from explicate_papers import agents, metrics
from explicate_papers.de_vleeschouwer import fig9, txt_abl
from explicate_papers.lopez_pacheco import fig2, fig6, fig14a, txt_tcp
from explicate_papers.nychis import base as radios
from explicate_papers.nychis import txt_lossmodel
from explicate_papers.statistics import Check, Sample, above, at_least, at_most, exceeds
from explicate_papers.study import Case, Data, Effort, Study
from explicate_papers.yousefizadeh import base, txt_intro


@dataclass(frozen=True)
class Measure:
    """An experiment, what is measured in words, the checks, and the cases if they are not the experiment's."""

    experiment: str
    what: str
    checks: Callable[[Data], Iterator[Check]]
    cases: Callable[[Effort], Mapping[Any, Case]] | None = None


def resets(data: Data) -> Iterator[Check]:
    """D-fig9-d: timeouts, after which a window is one segment; neither sender has an artificial back-off."""

    def timeouts(results: Results) -> float:
        return sum(metrics.total(results, "timeouts", group) for group in ("clean", "lossy"))

    for delay in fig9.delays(data.effort):
        tcp, monitor = (data.measure((system, delay), timeouts) for system in (fig9.TCP, fig9.MONITOR))
        yield above(f"resets at {delay:g} ms: TCP over {fig9.MONITOR}", tcp, monitor)


def deflation_with_timer(data: Data) -> Iterator[Check]:
    """D-txt-abl-c: the gain by deflation with the reset and without, where all four senders have the timer."""

    def fairness(*on: str) -> Any:
        return txt_abl.fairness(data, "xcp", *on)

    deflation, reset, timer = txt_abl.ALL
    together = fairness(deflation, reset, timer) - fairness(reset, timer)
    alone = fairness(deflation, timer) - fairness(timer)
    yield exceeds("gain in F by partial deflation, with the timer: with the reset over without", together, alone)


def one_way(effort: Effort) -> dict[str, Case]:
    """Y-txt-intro-c: the cases of the experiment with data in one direction."""

    def make(effort: Effort) -> dict[str, Case]:
        return {
            system: base.case(effort, system, 100, fec=(1.0, 1.0), session=False, sampling=("queue",), two_way=False)
            for system in (*base.SYSTEMS, base.DROPTAIL)
        }

    return dict(agents.chosen("Y", make)(effort))


# ---------------------------------------------------------------------------------- the card of N-txt-lossmodel


def changes_per_attempt(data: Data) -> Iterator[Check]:
    """N-txt-lossmodel-a: rate adaptation judges attempts to send a data frame, so changes of the rate over attempts."""

    def in_1000(results: Results) -> float:
        changes, tries = (
            metrics.largest(metrics.series(results, "n1->n2", f"air_{what}")) for what in ("rate_changes", "attempts")
        )
        return 1000 * changes / tries

    lossy, none = (data.measure((radios.XCP, model), in_1000) for model in (txt_lossmodel.KERNEL, txt_lossmodel.NONE))
    yield from radios.ratio_between(
        "changes of the rate in 1000 attempts to send a data frame: kernel loss over none", lossy, none, 0.95, 1.05
    )


# ------------------------------------------------------------------------------------------ paper I's routers

ALPHA = 0.2
BETA = ALPHA**2 * math.sqrt(2)
"""The largest alpha of theorem 1 of XCP's authors is pi / (4 sqrt 2) = 0.56; beta belongs to it."""


def gentle_routers(effort: Effort) -> dict[str, Case]:
    """I-fig2-e: scenario b, whose routers distribute a fifth of the spare bandwidth in an interval, not two fifths."""

    def change(content: dict[str, Any]) -> None:
        for link in content["link"]:
            own = link["router"] if isinstance(link["router"], dict) else {"kind": "xcp"}
            link["router"] = {**own, "alpha": ALPHA, "beta": BETA}

    return {"b": fig2.study.make_cases(effort)["b"].changed(change)}


def as_judged(study: Study, claim: str) -> Callable[[Data], Iterator[Check]]:
    """Return the checks of a claim's own judge with its own bounds, for cases that are not the experiment's."""

    def checks(data: Data) -> Iterator[Check]:
        rule = study.rules[claim]
        made = rule.judge(data, **rule.bounds)
        yield from (made,) if isinstance(made, Check) else made

    return checks


def results_at_once(effort: Effort) -> dict[str, Case]:
    """I-fig6-b: edges have the oracle's value at the end of each control interval, without a message."""

    def change(content: dict[str, Any]) -> None:
        for link in content["link"]:
            if isinstance(link["router"], dict) and link["router"]["kind"] == "xcp_i":
                link["router"]["results"] = "at_once"

    return {label: case.changed(change) for label, case in fig6.study.make_cases(effort).items()}


# ------------------------------------------------------------------------------------- what is left in I-fig14a

FINE_S = 0.01
"""Of the trace's samples; a round trip is ten of them."""


def sampled_finely(effort: Effort) -> dict[Any, Case]:
    """I-fig14a-b: two paths, sampled ten times a round trip."""
    case = fig14a.study.make_cases(effort)[fig14a.TWO]
    return {fig14a.TWO: replace(case, settings={**case.settings, "sampling.every": f"{1000 * FINE_S:g}ms"})}


def after_the_burst(data: Data) -> Iterator[Check]:
    """I-fig14a-b: of the three round trips after the peak, what edges find, and what they distribute."""
    rtt_s = fig14a.rtt_s(data.effort)

    def burst(results: Results) -> tuple[float, float]:
        """Return the largest load of a round trip in the first ten with data, Mbit/s, and when that one ends, s."""
        each = round(rtt_s / FINE_S)
        of_i, of_j = (metrics.series(results, f"a{one}->c1", "throughput_bps") for one in "ij")
        loads = of_i["value"] + of_j["value"]
        first = next(place for place, value in enumerate(loads) if value > 0)
        means = loads.rolling_mean(each)[first : first + 11 * each]
        place = int(means.arg_max() or 0)
        return float(means[place]) / 1e6, float(of_i["time_s"][first + place])

    def least(results: Results, ends: str, variable: str) -> float:
        _, peak = burst(results)
        frames = [metrics.series(results, ends.format(one), variable, peak - rtt_s) for one in "ij"]
        values = pl.concat(frames).filter(pl.col("time_s") <= peak + 3 * rtt_s, pl.col("value").is_finite())["value"]
        return float(values.min()) / 1e6  # type: ignore[arg-type]

    def measured(results: Results) -> float:
        return least(results, "a{0}/b{0}", "measured_bps")

    def distributed(results: Results) -> float:
        return least(results, "b{0}/a{0}", "cloud_available_bps")

    load = data.measure(fig14a.TWO, lambda results: burst(results)[0])
    yield at_most("most Mbit/s that come in a round trip, wherever it begins", load, 60)
    found = data.measure(fig14a.TWO, measured)
    yield at_most("least Mbit/s that an edge measures, from a round trip before the peak to three after it", found, 3)
    used = data.measure(fig14a.TWO, distributed)
    yield at_most("least Mbit/s that an edge distributes in that time", used, 3)
    yield at_most("load of the interval of that measurement, Mbit/s", fig14a.CAPACITY - found, 60)


# ----------------------------------------------------------------------------------- TCP's halvings in I-txt-tcp


def around_halvings(data: Data) -> Iterator[Check]:
    """I-txt-tcp-a: XCP-i's rate before a halving of TCP's window, when queue and link are full, and after it."""

    def halvings(results: Results) -> list[float]:
        window = metrics.series(results, "tcp.0", "cwnd", 10)
        found: list[float] = []
        for (_, before), (time_s, after) in pairwise(window.iter_rows()):
            if after < 0.7 * before and (not found or time_s - found[-1] > 2):
                found.append(time_s)
        return found

    def number(results: Results) -> float:
        return float(len(halvings(results)))

    def rate(results: Results, group: str, from_s: float, to_s: float) -> float:
        frame = metrics.series(results, f"{group}.0", "throughput_bps")
        parts = [
            metrics.mean(frame.filter(pl.col("time_s").is_between(time_s + from_s, time_s + to_s, closed="right")))
            for time_s in halvings(results)
        ]
        return sum(parts) / len(parts) / 1e6 if parts else math.nan

    for place in (txt_tcp.CLOUD, txt_tcp.ROUTER):
        label = (place, 1, 1)

        def of(group: str, from_s: float, to_s: float, label: Any = label) -> Sample:
            return data.measure(label, lambda results: rate(results, group, from_s, to_s))

        yield at_least(
            f"halvings of TCP, {place}", data.measure(label, lambda results: float(len(halvings(results)))), 1
        )
        most = 0.1 * txt_tcp.CAPACITY
        yield at_most(f"Mbit/s of XCP-i in the second before a halving, {place}", of("ours", -1, 0), most)
        for group, name in (("ours", "XCP-i"), ("tcp", "TCP")):
            for from_s, to_s in ((0, 1), (1, 3), (3, 6)):
                what = f"Mbit/s of {name} from {from_s} to {to_s} s after it, {place}"
                yield at_most(what, of(group, from_s, to_s), txt_tcp.CAPACITY)


MEASURES = {
    "resets": Measure("D-fig9", "resets to one segment instead of all decreases of the window", resets),
    "timer": Measure("D-txt-abl", "deflation where all senders have the timer", deflation_with_timer),
    "one-way": Measure("Y-txt-intro", "data in one direction", txt_intro.routers_that_say_it, one_way),
    "attempts": Measure("N-txt-lossmodel", "changes of the rate over attempts to send", changes_per_attempt),
    "alpha": Measure("I-fig2", "alpha = 0.2 and its beta", as_judged(fig2.study, "I-fig2-e"), gentle_routers),
    "at-once": Measure("I-fig6", "an oracle that answers at once", as_judged(fig6.study, "I-fig6-b"), results_at_once),
    "burst": Measure("I-fig14a", "what edges measure around the burst", after_the_burst, sampled_finely),
    "halvings": Measure("I-txt-tcp", "rates before and after each halving of TCP", around_halvings),
}
"""The measures, by the word after `--by` in papers/readings/needed.toml."""
