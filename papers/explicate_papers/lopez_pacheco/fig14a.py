"""I-fig14a: XCP-i paths that share 30 Mbit/s inside a cloud, and start together (figure 14, the first problem)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, Rewrite
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, at_least, at_most, between, exceeds, falling, near
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-fig14a")

CAPACITY = 30.0
LINKS = 5
"""On the way of a flow."""
PATHS = "ijkl"
BUFFERS = ("0.25bdp", "0.5bdp", "1.0bdp", "2.0bdp", "4.0bdp")
PERIODS = (8.0, 4.0, 2.0, 1.0, 0.5)
"""Of the estimation, round trips."""
SECONDS, STOP = 10, "8s"
TWO = ("paths", 2)
FIXED = (2, 3, 4)
"""Paths with the law for shared bottlenecks."""


def rtt_s(effort: Effort) -> float:
    """Return the round-trip time without queues, s."""
    return 2 * LINKS * base.link_s(effort)


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float | str], Case]:
    """One to four paths; two with other buffers at the shared link; two with other periods; the law of claim f."""

    def case(name: str, paths: int, buffer: str | None = None, **router: str) -> Case:
        flows = [base.flow(effort, one, base.XCPI, (one, f"d{one}"), stop=STOP) for one in PATHS[:paths]]
        network = base.shared(PATHS[:paths], buffer)
        text = base.scenario(
            effort, f"I-fig14a-{name}", network, flows, router=router, seconds=SECONDS,
            every=f"{1000 * rtt_s(effort):g}ms", sampled=(*base.SAMPLED, "agent"),
        )  # fmt: skip
        return Case(text)

    made: dict[tuple[str, float | str], Case] = {("paths", n): case(f"{n}-paths", n) for n in range(1, 5)}
    made |= {("buffer", buffer): case(f"buffer-{buffer}", 2, buffer) for buffer in BUFFERS}
    made |= {("period", p): case(f"period-{p:g}", 2, period=f"{1000 * p * rtt_s(effort):g}ms") for p in PERIODS}
    return made | {("law", n): base.fair_law(case(f"law-{n}-paths", n)) for n in FIXED}


def arrivals(results: Results) -> list[float]:
    """Return the load of the shared link in each round trip from the first with data, Mbit/s."""
    feeds = [name for name in results.links["link"].to_list() if name.startswith("a") and name.endswith("->c1")]
    series = [metrics.series(results, name, "throughput_bps")["value"] for name in feeds]
    sums = [float(value) / 1e6 for value in sum(series[1:], series[0])]
    return sums[next(place for place, value in enumerate(sums) if value > 0) :]


def load(results: Results, rtts: float = 10) -> float:
    """Return the largest load of the shared link in one of the first `rtts` round trips with data, Mbit/s."""
    return max(arrivals(results)[: round(rtts) + 1])


def next_estimate(results: Results) -> float:
    """Return the smallest estimate of an edge in the three round trips after the burst's peak, Mbit/s."""
    begun = arrivals(results)
    silent = len(metrics.series(results, "c1->c2", "throughput_bps")) - len(begun)
    peak = silent + begun.index(load(results))
    known = [metrics.series(results, f"b{one}/a{one}", "cloud_available_bps") for one in "ij"]
    times = metrics.series(results, "c1->c2", "throughput_bps")["time_s"]
    begin, end = float(times[peak]), float(times[min(peak + 3, len(times) - 1)])
    left = [one.filter(one["time_s"].is_between(begin, end))["value"].min() for one in known]
    return min(float(value) for value in left if value is not None) / 1e6  # type: ignore[arg-type]


def first_estimates(results: Results) -> float:
    """Return the sum of the first estimates of all edges, Mbit/s."""
    paths = results.flows["group"].unique().to_list()
    known = [base.known(results, f"b{one}/a{one}", "cloud_available_bps")["value"] for one in paths]
    return sum(float(values[0]) for values in known if len(values)) / 1e6


@study.predicate("I-fig14a-a", low=45, high=66, rtts=10, both=60, percent=10)
def twice_the_load(data: Data, low: float, high: float, rtts: float, both: float, percent: float) -> Iterator[Check]:
    """Both edges find 30 Mbit/s, and so up to 60 come."""
    peak = data.measure(TWO, lambda results: load(results, rtts))
    told = data.measure(TWO, first_estimates)
    yield near("first estimates of both, Mbit/s", told, both, percent / 100 * both)
    yield between("most Mbit/s that come in a round trip", peak, low, high)


@study.predicate("I-fig14a-b", most=3)
def then_nothing_is_left(data: Data, most: float) -> Check:
    """The next estimate is near zero; the difference may be negative."""
    return at_most("Mbit/s left after the burst", data.measure(TWO, next_estimate), most)


@study.predicate("I-fig14a-c")
def buffers_help(data: Data) -> Iterator[Check]:
    """Losses depend on the size of the buffers."""
    drops = [data.measure(("buffer", buffer), base.drops) for buffer in BUFFERS]
    yield falling(f"drops with {', '.join(BUFFERS)}", drops)
    yield at_least("drops with the smallest", drops[0], 1)


def messages(results: Results) -> float:
    """Return the messages that left one upstream edge: bytes on its link beyond those that came with data."""
    span = metrics.end_s(results)
    before, after = (80e6 / 8 * span * metrics.link(results, name, "utilisation") for name in ("i->ai", "ai->c1"))
    return (after - before) / MESSAGE_BYTES


MESSAGE_BYTES = 56.0


@study.predicate("I-fig14a-d")
def more_often_is_better(data: Data) -> Iterator[Check]:
    """A frequent estimation costs messages and spares load."""
    rare, often = PERIODS[0], PERIODS[-1]
    for what, metric, (one, other) in (("most Mbit/s", load, (rare, often)), ("messages", messages, (often, rare))):
        high, low = (data.measure(("period", period), metric) for period in (one, other))
        yield exceeds(f"{what}: a period of {one:g} RTT over {other:g}", high, low)


@study.predicate("I-fig14a-e", least=0.9)
def n_paths_n_times(data: Data, least: float) -> Iterator[Check]:
    """First estimates of n paths sum to n times the capacity."""
    for n in range(1, 5):
        share = data.measure(("paths", n), first_estimates) / (n * CAPACITY)
        yield at_least(f"first estimates of {n} paths over {n} times the capacity", share, least)


@study.predicate("I-fig14a-f", most=1.1, drops=0, jain=0.95)
def a_law_for_shared_links(data: Data, most: float, drops: float, jain: float) -> Iterator[Check]:
    """The paper has no law for this; ours steers each edge to a multiple of what is left, by its number of flows."""
    for n in FIXED:
        peak = data.measure(("law", n), lambda results: max(arrivals(results)) / CAPACITY)
        yield at_most(f"{n} paths: most load over capacity in a round trip of the run", peak, most)
        yield at_most(f"{n} paths: drops", data.measure(("law", n), base.drops), drops)
        yield at_least(f"{n} paths: Jain's index", data.measure(("law", n), fairness), jain)


def fairness(results: Results) -> float:
    """Return Jain's index of the flows' rates over the run."""
    return metrics.jain(results)


def held(_: object, case: Case) -> Case:
    """Return the case with receivers that allow a window of 100 packets, 8 Mbit/s of a round trip of 0.1 s."""

    def change(content: dict[str, Any]) -> None:
        for group in content["flows"]:
            group["params"] = {"receiver_window": 100}

    return case.changed(change)


SMALLER = dict(zip(BUFFERS, reversed(BUFFERS), strict=True))
study.control(
    "one path in the place of more",
    Place("flat", lambda label: ("paths", 1) if label[0] == "paths" else label),
    ["I-fig14a-a", "I-fig14a-e"],
    "one edge alone hands out what there is once",
)
study.control(
    "receivers hold the senders back",
    Rewrite("off", held, lambda label: label == TWO),
    ["I-fig14a-b"],
    "senders that do not take what they are given leave half of the link free",
)
study.control(
    "small and large buffers exchanged",
    Place("exchange", lambda label: ("buffer", SMALLER[label[1]]) if label[0] == "buffer" else label),
    ["I-fig14a-c"],
    "if buffers decide about losses, exchanged buffers turn their order round",
)
study.control(
    "one period for all",
    Place("flat", lambda label: ("period", 1.0) if label[0] == "period" else label),
    ["I-fig14a-d"],
    "the same period costs the same messages",
)
study.control(
    "equation 1 in the place of the law for shared links",
    Rewrite("off", lambda _, case: base.equation_1(case), lambda label: label[0] == "law"),
    ["I-fig14a-f"],
    base.WHY_EQUATION_1,
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughputs and estimates; drops against buffers; load and messages against the period."""
    results = data.runs(TWO)[0]
    shown = [Line.series(one, base.over_time(results, one, bin_s=0.2), 1e6) for one in "ij"]
    known = [(one, base.known(results, f"b{one}/a{one}", "cloud_available_bps")) for one in "ij"]
    sizes = [float(buffer.removesuffix("bdp")) for buffer in BUFFERS]
    return [
        Panel("Two paths, first seed", "time (s)", "throughput (Mbit/s)", shown),
        Panel(
            "What each edge finds left, first seed", "time (s)", "estimate (Mbit/s)",
            [Line.series(f"edge of {one}", frame, 1e6) for one, frame in known],
        ),
        Panel(
            "Losses", "buffer (BDP)", "drops",
            [Line.of("two paths", sizes, [data.measure(("buffer", buffer), base.drops) for buffer in BUFFERS])], "x",
        ),
        Panel(
            "Estimation", "period (RTT)", "load of the first 10 RTT (Mbit/s)",
            [Line.of("two paths", PERIODS, [data.measure(("period", p), load) for p in PERIODS])], "x",
        ),
        Panel(
            "Paths", "paths", "load of the first 10 RTT (Mbit/s)",
            [Line.of("load", range(1, 5), [data.measure(("paths", n), load) for n in range(1, 5)])],
        ),
    ]  # fmt: skip
