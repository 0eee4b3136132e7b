"""D-fig5: fairness against the receiver's window at 5 % loss (figure 5). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, Sample, above, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig5")

LOSS = 5.0
SYSTEMS = ("LR-LMXCP", "LR-XCP")
THRESHOLDS = (1, 3)
ENOUGH = 1000
"""A window that never binds."""
SMALL = 20
"""About twice the congestion window: up to here a quick sweep has every point."""


def windows(effort: Effort) -> Sequence[int]:
    """Return the receiver's windows, packets (D-P14); a quick sweep leaves out every other one of the larger ones."""
    every = [int(window) for window in base.points(effort, "D-P14")]
    small = [window for window in every if window <= SMALL]
    large = every[len(small) :]
    return [*small, *effort.pick(large, large[1::2]), ENOUGH]


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int, int], Case]:
    """Both systems, both thresholds, every window."""
    return {
        (system, threshold, window): base.case(
            effort, system, LOSS, params={"dupackthreshold": threshold, "receiver_window": window}
        )
        for system in SYSTEMS
        for threshold in THRESHOLDS
        for window in windows(effort)
    }


def mean_window(results: Results) -> float:
    """Return the mean congestion window of the lossy flows, packets."""
    start_s = base.warmup_s(results)
    return sum(metrics.mean(metrics.series(results, f"lossy.{i}", "cwnd", start_s)) for i in range(5)) / 5


def kept(data: Data, system: str, threshold: int, window: int) -> Sample:
    """Return F as a share of its value without a limit."""
    return base.fairness(data, system, threshold, window) / base.fairness(data, system, threshold, ENOUGH)


def degrades_late(data: Data, system: str, threshold: int, least: float, times: float, most: float) -> Iterator[Check]:
    """Yield the checks of one curve: flat while the window is several times cwnd, down when it is as small."""
    cwnd = data.measure((system, threshold, ENOUGH), mean_window).mean
    grid = windows(data.effort)
    for window in grid:
        if window >= times * cwnd:
            share = kept(data, system, threshold, window)
            yield at_least(f"{system}, D{threshold}: F({window}) / F(∞), cwnd {cwnd:.1f}", share, least)
    nearest = min(grid, key=lambda window: abs(window - cwnd))
    share = kept(data, system, threshold, nearest)
    yield at_most(f"{system}, D{threshold}: F({nearest}) / F(∞), cwnd {cwnd:.1f}", share, most)


@study.predicate("D-fig5-a", least=0.95, times=4, most=0.9)
def monitor_degrades_late(data: Data, least: float, times: float, most: float) -> Iterator[Check]:
    """The monitor suffers only when the window gets as small as cwnd."""
    yield from degrades_late(data, "LR-LMXCP", 3, least, times, most)


@study.predicate("D-fig5-b")
def timer_degrades_late(data: Data) -> Iterator[Check]:
    """So does the timer: the bounds are those of the monitor."""
    yield from degrades_late(data, "LR-XCP", 3, **study.rules["D-fig5-a"].bounds)


@study.predicate("D-fig5-c")
def both_thresholds(data: Data) -> Iterator[Check]:
    """Both systems with thresholds 1 and 3."""
    for system in SYSTEMS:
        for threshold in THRESHOLDS:
            yield from degrades_late(data, system, threshold, **study.rules["D-fig5-a"].bounds)


@study.predicate("D-fig5-d", least=0.95)
def small_threshold_needs_less(data: Data, least: float) -> Check:
    """Retransmitting earlier needs a smaller buffer."""

    def smallest(threshold: int) -> Sample:
        shares = {window: kept(data, "LR-LMXCP", threshold, window).values for window in windows(data.effort)}
        seeds = range(len(shares[ENOUGH]))
        kept_by = ([window for window, share in shares.items() if share[i] >= least] for i in seeds)
        return Sample.of(min(found, default=None) for found in kept_by)

    return above("smallest window that keeps F, packets: D3 over D1", smallest(3), smallest(1), slack=base.NOTHING)


study.control(
    "the window never binds",
    Place("flat", lambda label: (*label[:2], ENOUGH)),
    ["D-fig5-a", "D-fig5-b", "D-fig5-c"],
    "a receiver that has room for all costs nothing",
)
study.control(
    "thresholds exchanged",
    exchange(1, 3),
    ["D-fig5-d"],
    "who waits for three duplicates has more out of order at the receiver until the hole is filled",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F against the receiver's window, and the throughput of the lossy half.

    A window below cwnd stops both halves, so F rises again there; what the lossy flows carry does not.
    """
    grid = windows(data.effort)
    labels = {f"{system}, D{threshold}": (system, threshold) for system in SYSTEMS for threshold in THRESHOLDS}
    ratios = [Line.of(name, grid, [base.fairness(data, *label, w) for w in grid]) for name, label in labels.items()]
    lossy = [Line.of(name, grid, [base.sums(data, *label, w)[1] for w in grid]) for name, label in labels.items()]
    cwnd = data.measure((SYSTEMS[0], max(THRESHOLDS), ENOUGH), mean_window).mean
    x, top = "receiver window (packets)", max(y for line in lossy for y in line.y)
    panels = (
        Panel("Fairness ratio at 5 % loss", x, "lossy / loss-free throughput", ratios, "x"),
        Panel("Lossy half at 5 % loss", x, "sum of throughput (Mbit/s)", lossy, "x"),
    )
    return [
        replace(panel, lines=[*panel.lines, Line(f"mean cwnd of {SYSTEMS[0]}", [cwnd, cwnd * 1.001], [0.0, high])])
        for panel, high in zip(panels, (1.0, top), strict=True)
    ]
