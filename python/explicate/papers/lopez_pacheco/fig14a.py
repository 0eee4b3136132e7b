"""I-fig14a: XCP-i paths that share 30 Mbit/s inside a cloud, and start together (figure 14, the first problem)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.lopez_pacheco import base
from explicate.papers.statistics import Check, at_least, at_most, between, falling, rising
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("I-fig14a")

CAPACITY = 30.0
RTT_S = 0.1
"""Five links of 10 ms each way."""
PATHS = "ijkl"
BUFFERS = ("0.25bdp", "0.5bdp", "1.0bdp", "2.0bdp", "4.0bdp")
PERIODS = (8.0, 4.0, 2.0, 1.0, 0.5)
"""Of the estimation, round trips."""
SECONDS, STOP = 10, "8s"
SEEDS = 10
"""Losses differ much from one to the next."""
TWO = ("paths", 2)
ABOUT = (0.6, 1.4)
"""What counts as growth like the number of paths."""


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float | str], Case]:
    """One to four paths; two with other buffers at the shared link; two with other periods of the estimation."""

    def case(name: str, paths: int, buffer: str | None = None, **router: str) -> Case:
        flows = [
            base.flow(effort, one, base.XCPI, (one, f"d{one}")).replace("start", f'stop = "{STOP}"\nstart')
            for one in PATHS[:paths]
        ]
        network = base.shared(PATHS[:paths], buffer)
        text = base.scenario(
            effort, f"I-fig14a-{name}", network, flows, router=router, seconds=SECONDS, sampled=(*base.SAMPLED, "agent")
        )
        return Case(text, seeds=SEEDS)

    made: dict[tuple[str, float | str], Case] = {("paths", n): case(f"{n}-paths", n) for n in range(1, 5)}
    made |= {("buffer", buffer): case(f"buffer-{buffer}", 2, buffer) for buffer in BUFFERS}
    made |= {("period", p): case(f"period-{p:g}", 2, period=f"{1000 * p * RTT_S:g}ms") for p in PERIODS}
    return made


def load(results: Results, rtts: float = 10) -> float:
    """Return the most that came to the shared link in a round trip of the first `rtts` with data, Mbit/s."""
    feeds = [name for name in results.links["link"].to_list() if name.startswith("a") and name.endswith("->c1")]
    series = [metrics.series(results, name, "throughput_bps")["value"] for name in feeds]
    sums = sum(series[1:], series[0]) / 1e6
    begun = next(place for place, value in enumerate(sums) if value > 0)
    return float(sums[begun : begun + round(rtts) + 1].max())  # type: ignore[arg-type]


def estimate(results: Results) -> float:
    """Return the least that an edge believes to be left after the burst, in the first 2 s, Mbit/s."""
    left = metrics.series(results, "bi/ai", "cloud_available_bps")
    return float(left.filter(left["time_s"] < 2)["value"].min()) / 1e6  # type: ignore[arg-type]


def first_estimates(results: Results) -> float:
    """Return the sum of what the two edges believe to be left at first, Mbit/s."""
    first = [metrics.series(results, f"b{one}/a{one}", "cloud_available_bps")["value"][0] for one in "ij"]
    return float(sum(first)) / 1e6


@study.predicate("I-fig14a-a", low=45, high=66, rtts=10)
def twice_the_load(data: Data, low: float, high: float, rtts: float) -> Iterator[Check]:
    """Both edges find 30 Mbit/s, and so up to 60 come."""
    yield at_least("Mbit/s that both believe in at first", data.measure(TWO, first_estimates), 1.9 * CAPACITY)
    peak = data.measure(TWO, lambda results: load(results, rtts))
    yield between("most Mbit/s that come in a round trip", peak, low, high)


@study.predicate("I-fig14a-b", most=3)
def then_nothing_is_left(data: Data, most: float) -> Check:
    """The next estimate is near zero."""
    return at_most("Mbit/s left after the burst", data.measure(TWO, estimate), most)


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
    names = ", ".join(f"{period:g}" for period in PERIODS)
    yield falling(f"most Mbit/s, period {names} RTT", [data.measure(("period", p), load) for p in PERIODS])
    yield rising(f"messages, period {names} RTT", [data.measure(("period", p), messages) for p in PERIODS])


@study.predicate("I-fig14a-e")
def n_paths_n_times(data: Data) -> Iterator[Check]:
    """N paths believe in n times what there is."""
    one = data.measure(("paths", 1), load)
    for n in range(2, 5):
        yield between(
            f"load of {n} paths over {n} times that of one", data.measure(("paths", n), load) / (n * one), *ABOUT
        )


study.skip(
    "I-fig14a-f", "no fix is built: upstream edges know nothing of each other, nor of what a cloud's links share"
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """What comes to the shared link; drops against buffers; load and messages against the period."""
    results = data.runs(TWO)[0]
    shown = [Line.series(one, base.over_time(results, one, bin_s=0.2), 1e6) for one in "ij"]
    sizes = [float(buffer.removesuffix("bdp")) for buffer in BUFFERS]
    return [
        Panel("Two paths", "time (s)", "throughput (Mbit/s)", shown),
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
