"""D-fig7a: five TCP flows against five of LR-LMXTCP in one queue, no link loses (figure 7a). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Sequence

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.statistics import Check, above, between
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

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
    """XTCP gets 3 to 4 times TCP's throughput."""
    return between("XTCP over TCP", data.measure(SYSTEM, base.ratio), low, high)


def tcp_timeouts(results: Results) -> float:
    """Return the timeouts of the TCP flows."""
    return metrics.total(results, "timeouts", "clean")


@study.predicate("D-fig7a-b", times=5)
def tcp_times_out(data: Data, times: float) -> Check:
    """TCP resorts to its timer, XTCP does not."""
    tcp, xtcp = data.measure(SYSTEM, tcp_timeouts), data.measure(SYSTEM, base.timeouts)
    return above(f"timeouts: TCP over {times:g} times XTCP", tcp, times * xtcp)


def panel(data: Data, system: str) -> Panel:
    """Return both sums over time, of the first seed."""
    results = data.runs(system)[0]
    return Panel(
        f"TCP against {system}", "time (s)", "throughput (Mbit/s)",
        [
            Line.series("TCP", base.over_time(results, base.CLEAN), 1e6),
            Line.series(system, base.over_time(results, base.LOSSY), 1e6),
        ],
    )  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, SYSTEM)]
