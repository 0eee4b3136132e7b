"""D-fig7a: five TCP flows against five of LR-LMXTCP in one queue, no link loses (figure 7a). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Sequence

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, above, between
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig7a")

SYSTEM = "LR-LMXTCP"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """TCP on the clean side, the other system on the side that is lossy elsewhere."""
    return {SYSTEM: beside_tcp(effort, SYSTEM)}


def beside_tcp(effort: Effort, system: str) -> Case:
    """Return the network with `system` beside TCP, which keeps its own threshold of duplicates."""
    return base.case(effort, system, 0.0, clean=base.tcp(effort), params=base.silent(effort), clean_params={})


@study.predicate("D-fig7a-a", low=2.3, high=5)
def three_to_four_times(data: Data, low: float, high: float) -> Check:
    """XTCP has 3 to 4 times TCP's throughput."""
    return between("XTCP over TCP", base.fairness(data, SYSTEM), low, high)


def tcp_timeouts(results: Results) -> float:
    """Return the timeouts of the TCP flows."""
    return metrics.total(results, "timeouts", "clean")


@study.predicate("D-fig7a-b", times=5)
def tcp_times_out(data: Data, times: float) -> Check:
    """TCP resorts to its timer, XTCP does not."""
    tcp, xtcp = data.measure(SYSTEM, tcp_timeouts), data.measure(SYSTEM, base.timeouts)
    return above(f"timeouts: TCP over {times:g} times XTCP", tcp, times * xtcp)


study.control(
    "TCP on both sides",
    base.instead_of(SYSTEM, "reno"),
    ["D-fig7a-a", "D-fig7a-b"],
    "flows that are alike get alike, and time out alike",
)


SHOWN_S, BIN_S = 200, 5
"""A panel has the first seconds, in bins: as many points as a printed trace can show."""


def panel(data: Data, system: str) -> Panel:
    """Return both sums over time, of the first seed."""
    results = data.runs(system)[0]
    lines = [
        Line.series(name, base.in_bins(base.over_time(results, link), BIN_S, SHOWN_S), 1e6)
        for name, link in (("TCP", base.CLEAN), (system, base.LOSSY))
    ]
    return Panel(f"TCP against {system}, first seed", "time (s)", f"throughput in {BIN_S} s (Mbit/s)", lines)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time, and their ratio beside the text's "three to four times"."""
    ratio = base.fairness(data, SYSTEM)
    lines = [Line.of("simulated", [1], [ratio]), Line("paper", [1, 1], [3, 4])]
    return [panel(data, SYSTEM), Panel("XTCP over TCP", "", "ratio of the sums", lines, names=[SYSTEM])]
