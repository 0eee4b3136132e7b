"""I-fig10: two clouds and an XCP-i router feed an XCP-i router (figures 9 and 10).

Set-up: a cloud of 10 Mbit/s with j0 and j1, one of 30 with i, a path of XCP-i routers of 80 with k; together they go
into 50 Mbit/s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.agents import tcp_for
from explicate_papers.controls import Rewrite
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, at_least, at_most, between
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("I-fig10")

SENDERS = ("j0", "j1", "i", "k")
EVEN, UNEVEN = "even", "uneven"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """All flows start in the same way; or j0 with thirty times the window of j1."""
    cloud, path = map(float, effort.choices["I-P15"].split("/"))
    links: list[tuple[str, str, float]] = [("j0", "ej", 80), ("j1", "ej", 80), ("ej", "cj", 80), ("cj", "r1", 10)]
    links += [("i", "ei", 80), ("ei", "ci", 80), ("ci", "r1", cloud), ("k", "ek", 80), ("ek", "r1", path)]
    links += [("r1", "r2", 50)] + [("r2", f"d{one}", 80) for one in SENDERS]
    network = base.Network(links, {"cj", "ci"})

    def case(label: str, windows: dict[str, int]) -> Case:
        starts = {"j1": effort.choices["I-P14"]}
        flows = [
            base.flow(
                effort,
                one,
                base.XCPI,
                (one, f"d{one}"),
                start=starts.get(one, "0s"),
                params={"initial_window": windows.get(one, 3)},
            )
            for one in SENDERS
        ]
        return Case(base.scenario(effort, f"I-fig10-{label}", network, flows))

    return {EVEN: case(EVEN, {}), UNEVEN: case(UNEVEN, {"j0": 30, "j1": 1})}


def merge_is_plain(_: str, case: Case) -> Case:
    """Return the case with no control on the ports of r1."""
    return base.plain_at(case, lambda node: node == "r1")


def sums(results: Results) -> float:
    """Return the greatest sum of the throughputs in 1 s, Mbit/s."""
    return metrics.largest(_together(results)) / 1e6


def late_sum(results: Results) -> float:
    """Return the mean sum after 10 s, Mbit/s."""
    return metrics.mean(_together(results).filter(_together(results)["time_s"] > 10)) / 1e6


def _together(results: Results) -> pl.DataFrame:
    first, *rest = (base.over_time(results, one) for one in SENDERS)
    return first.with_columns(value=first["value"] + sum(one["value"] for one in rest))


@study.predicate("I-fig10-a", capacity=50, percent=1)
def never_beyond(data: Data, capacity: float, percent: float) -> Check:
    """The sum stays below the output's capacity."""
    return at_most("most Mbit/s in 1 s", data.measure(EVEN, sums), capacity * (1 + percent / 100))


@study.predicate("I-fig10-b", low=4.5, high=5.2, apart=0.3)
def the_cloud_is_shared(data: Data, low: float, high: float, apart: float) -> Iterator[Check]:
    """j0 and j1 have 5 Mbit/s each."""
    one, other = (data.measure(EVEN, base.rate(name)) for name in ("j0", "j1"))
    yield between("Mbit/s of j0", one, low, high)
    yield between("Mbit/s of j1", other, low, high)
    yield at_most("apart", (one - other).map(abs), apart)


@study.predicate("I-fig10-c", fair=20, percent=10)
def the_rest_is_shared(data: Data, fair: float, percent: float) -> Iterator[Check]:
    """I and k share the remaining rate."""
    for name in ("i", "k"):
        ours = data.measure(EVEN, base.rate(name))
        yield between(f"Mbit/s of {name}", ours, fair * (1 - percent / 100), fair * (1 + percent / 100))
    ratio = data.measure(EVEN, base.rate("i")) / data.measure(EVEN, base.rate("k"))
    yield between("i over k", ratio, 1 - percent / 100, 1 + percent / 100)


@study.predicate("I-fig10-d", by_s=30, share=5)
def unequal_windows_converge(data: Data, by_s: float, share: float) -> Iterator[Check]:
    """The virtual router is fair inside the cloud; the tolerance around 5 Mbit/s is that of I-fig10-b."""
    as_five = study.rules["I-fig10-b"].bounds

    def late(name: str) -> base.Metric:
        return lambda results: metrics.mean(base.over_time(results, name, start_s=by_s)) / 1e6

    for name in ("j0", "j1"):
        what = f"Mbit/s of {name} after {by_s:g} s, of {share:g}"
        yield between(what, data.measure(UNEVEN, late(name)), as_five["low"], as_five["high"])


@study.predicate("I-fig10-e", share=0.93, capacity=50)
def well_used(data: Data, share: float, capacity: float) -> Check:
    """The merge is nearly full."""
    return at_least("Mbit/s after 10 s", data.measure(EVEN, late_sum), share * capacity)


study.cannot_fail("I-fig10-a", "what the receivers get has crossed one link of 50 Mbit/s, which carries no more")
study.control(
    base.XCP_FOR_XCPI,
    base.xcp_instead(EVEN, UNEVEN),
    ["I-fig10-b", "I-fig10-c", "I-fig10-d", "I-fig10-e"],
    base.WHY_XCP,
)
study.control(
    "the router at the merge is plain",
    Rewrite("off", merge_is_plain),
    ["I-fig10-c"],
    "without the fairness controller of the shared link nothing makes i and k equal: three edges each measure the same "
    "link and hand out all of it",
)
study.control(
    "TCP runs in the place of k",
    tcp_for(["k"], lambda label: label == EVEN),
    ["I-fig10-c"],
    "TCP does not read the feedback of the shared link, so nothing makes k equal to i",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Windows and throughputs over time, and the sum of the throughputs."""
    return base.panels(data, EVEN, SENDERS, total=True, marks={"link of the merge": 50.0, "paper, j0 and j1": 5.0})
