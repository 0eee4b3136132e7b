"""N-fig7: the window oscillates and the hop is under-used, in 7 of 10 runs (figure 7). Set-up: `base.py`.

XCP is configured with 24 Mbit/s, about the largest observed throughput; no losses are injected. In the paper the kernel
printed the window before each packet; here the packets of the first seconds are traced, and the window is sampled twice
in a millisecond. A run has a standing queue, and belongs to figure 8, if more than N-P25 packets wait in half of that
time. The others belong to figure 7. Throughputs are of whole runs. The cases are the same runs, observed in three ways:
controls can thus change the measurement or the classes alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Settings, edit
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, Sample, above, at_least, between
from explicate_papers.study import Case, Data, Effort, EmptyClassError, Line, Panel, Study

study = Study("N-fig7")

SHOWN_S = 5.0
CLASS, SHOWN, WHOLE = "class", "first 5 s", "whole run"
SENT = re.compile(r"^ *(\d+\.\d{9})  n1->n2 +enqueue +bulk\.0 data ", re.MULTILINE)
PAPER_KBPS = {False: 2827, True: 2503}
"""Throughput of the runs of figures 7 and 8 (standing queue) in the paper, KB/s."""


def start_s(effort: Effort) -> float:
    """Return when the start-up is over."""
    return float(effort.choices["N-P28"].removesuffix("ms")) / 1e3


def watched(effort: Effort) -> Mapping[str, Case]:
    """Return the first seconds of each run, coarsely and packet by packet, whole runs, and their link tests."""
    more = (
        [base.flows(effort, base.XCP, (["n2"], "n1"), name="reverse")] if effort.choices["N-P30"] == "reverse" else []
    )

    def run(seconds: float, every: str = "", trace: str | None = None) -> Case:
        return base.chain(effort, base.XCP, capacity=base.TUNED, seconds=seconds, every=every, trace=trace, more=more)

    first_s = start_s(effort) + SHOWN_S
    return {
        CLASS: run(first_s, "10ms"),
        SHOWN: replace(run(first_s, "500us", "flow=0"), settings={"sampling.of": ["queue", "cwnd"]}),
        WHOLE: run(effort.seconds),
        base.LINK: base.link_test(effort),
    }


study.cases(watched)


def shown(data: Data, results: Results, name: str, variable: str) -> pl.DataFrame:
    """Return a variable in the figure's range: 5 s after the start-up."""
    return metrics.series(results, name, variable, start_s(data.effort))


def packets(results: Results) -> pl.DataFrame:
    """Return the window before each packet that is sent: columns ``time_s``, ``packet`` (from 1) and ``value``."""
    times = [float(found) for found in SENT.findall(results.trace)]
    sent = pl.DataFrame({"time_s": times, "packet": range(1, len(times) + 1)})
    return sent.join_asof(base.window(results), on="time_s", strategy="backward").drop_nulls()


def variation(data: Data, results: Results) -> float:
    """Return the coefficient of variation of the window, packet by packet."""
    return metrics.variation(packets(results).filter(pl.col("time_s") >= start_s(data.effort)))


def reversals(data: Data, results: Results) -> float:
    """Return how often in a second the window turns from growing to shrinking or back."""
    steps = packets(results).filter(pl.col("time_s") >= start_s(data.effort))["value"].diff().drop_nulls()
    signs = steps.filter(steps != 0).sign()
    return float((signs != signs.shift(1)).sum()) / SHOWN_S


def queue(data: Data, results: Results) -> float:
    """Return the mean queue, packets."""
    return metrics.mean(shown(data, results, "n1->n2", "queue_packets"))


def middle(data: Data, results: Results) -> float:
    """Return the median queue, packets."""
    return float(median(shown(data, results, "n1->n2", "queue_packets")["value"].to_list()))


def window(data: Data, results: Results) -> float:
    """Return the mean window, packets."""
    return metrics.mean(shown(data, results, "bulk.0", "cwnd"))


def throughput(_: Data, results: Results) -> float:
    """Return the throughput at the receiver, KB/s."""
    return base.kilobytes_of_bulk(results)


Measure = Callable[[Data, Results], float]


def standing(data: Data) -> list[bool]:
    """Return for each run whether it has a standing queue."""
    border = float(data.effort.choices["N-P25"])
    return [middle(data, results) > border for results in data.runs(CLASS)]


def of_class(data: Data, measure: Measure, label: str, *, stands: bool) -> Sample:
    """Return a measure of the runs with a standing queue, or of the others; raise EmptyClassError if there are none."""
    rows = zip(data.runs(label), standing(data), strict=True)
    values = [measure(data, results) for results, waits in rows if waits == stands]
    if not values:
        raise EmptyClassError(f"no run has {'a' if stands else 'no'} standing queue")
    return Sample.of(values)


def share_of_class(data: Data, low: float, high: float, of: float, *, stands: bool) -> Check:
    """Check how many runs in so many belong to a class."""
    members = Sample.of(float(waits == stands) for waits in standing(data))
    what = f"share of the runs with {'a' if stands else 'no'} standing queue"
    return between(what, members, low / of, high / of)


@study.predicate("N-fig7-a", low=5, high=9, of=10)
def seven_of_ten(data: Data, low: float, high: float, of: float) -> Check:
    """7 in the paper."""
    return share_of_class(data, low, high, of, stands=False)


@study.predicate("N-fig7-b", least=0.15, turns=5)
def never_settles(data: Data, least: float, turns: float) -> Iterator[Check]:
    """The window constantly fluctuates."""
    yield at_least("variation of the window per packet", of_class(data, variation, SHOWN, stands=False), least)
    yield at_least("reversals a second", of_class(data, reversals, SHOWN, stands=False), turns)


@study.predicate("N-fig7-c", most=20)
def under_used(data: Data, most: float) -> Iterator[Check]:
    """The link is under-used, and the queue mostly empty."""
    waiting = of_class(data, queue, SHOWN, stands=False)
    limit = Sample.of([float(data.effort.choices["N-P7"])] * len(waiting.values))
    yield base.ratio_at_most("mean queue over its limit", waiting, limit, most / 100)
    got, could = (of_class(data, throughput, label, stands=False) for label in (WHOLE, base.LINK))
    yield above("KB/s: the link test in the same channel over XCP", could, got)


@study.predicate("N-fig7-d", low=0.848, high=1.037)
def nearly_all(data: Data, low: float, high: float) -> Iterator[Check]:
    """2827 KB/s of 3000, which link tests before the experiments gave."""
    got = of_class(data, throughput, WHOLE, stands=False)
    hop = Sample.of([base.hop_capacity(data)] * len(got.values))
    yield from base.ratio_between("throughput over what the hop carries", got, hop, low, high)


study.control(
    "classes told 54",
    Settings("told", {"medium.air.capacity": "54Mbit/s"}, lambda label: label == CLASS),
    ["N-fig7-a"],
    "Told more than any of its channels carries, XCP has a standing queue in nearly all runs.",
)
study.control(
    "steady channel",
    edit("off", base.calm, lambda label: label == SHOWN),
    ["N-fig7-b"],
    "The text blames a changing channel for the fluctuation; without noise and interferer there is none.",
)
study.control(
    "shown told 54",
    Settings("told", {"medium.air.capacity": "54Mbit/s"}, lambda label: label == SHOWN),
    ["N-fig7-c"],
    "The queue is empty because XCP is told no more than the channel carries; told more, the same runs fill it.",
)
study.control(
    "18 Mbit/s configured",
    Settings("told", {"medium.air.capacity": "18Mbit/s"}, lambda label: label == WHOLE),
    ["N-fig7-d"],
    "XCP carries at most the configured capacity. A hop carries 24 Mbit/s, and the bound is 0.848 of that, 20 Mbit/s.",
)


def trace(data: Data, title: str, *, stands: bool) -> Sequence[Panel]:
    """Return the window before each packet in the first 5 s, as the figures have it; nothing if no run is of the class.

    The run is the one in the middle of its class by its queue.
    """
    queues = [queue(data, results) for results in data.runs(CLASS)]
    runs = sorted((run for run, waits in enumerate(standing(data)) if waits == stands), key=lambda run: queues[run])
    if not runs:
        return []
    run = runs[len(runs) // 2]
    results = data.runs(SHOWN)[run]
    sent = packets(results).filter(pl.col("time_s") <= SHOWN_S)
    carried = throughput(data, data.runs(WHOLE)[run])
    what = f"{title}: seed {results.seed}, {carried:.0f} KB/s (paper: {PAPER_KBPS[stands]})"
    line = Line("XCP", sent["packet"].to_list(), sent["value"].to_list())
    return [Panel(what, "packet sent", "window (packets)", [line])]


def with_queue(data: Data, title: str, *, stands: bool) -> Sequence[Panel]:
    """Return the trace of a class with what the hop carries in its title, and the queue of the same run beside it."""
    drawn = trace(data, title, stands=stands)
    found = re.search(r"seed (\d+)", drawn[0].title) if drawn else None
    if found is None:
        return drawn
    results = next(run for run in data.runs(SHOWN) if run.seed == int(found[1]))
    waits = metrics.series(results, "n1->n2", "queue_packets").filter(pl.col("time_s") <= SHOWN_S)
    hop = f"{drawn[0].title}, of {base.hop_capacity(data):.0f} that the hop carries"
    line = Line.series("XCP", waits)
    return [replace(drawn[0], title=hop), Panel(f"Its queue, seed {found[1]}", "time (s)", "queue (packets)", [line])]


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """A run without a standing queue."""
    return with_queue(data, "The channel carries the configured rate", stands=False)
