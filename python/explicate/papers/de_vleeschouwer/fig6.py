"""D-fig6: losses in bursts of X consecutive packets (figure 6). Set-up: `base.py`; the rate counts packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.statistics import Check, Sample, above, at_least, close
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("D-fig6")

SYSTEMS = ("LR-XCP", "LR-LMXCP")


LONG_S = 1000
"""Where few bursts come (to 1 %) the runs are longer: their number decides how well the loss rate is known."""


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    return effort.pick((0.5, 1.0, 2.0, 5.0, 8.0, 10.0), (0.5, 1.0, 5.0, 10.0))


def bursts(effort: Effort) -> Sequence[int]:
    """Return the lengths of a burst."""
    return effort.pick((1, 2, 3, 4), (1, 4))


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int, float], Case]:
    """Both systems, every burst, every loss rate."""
    return {
        (system, burst, loss): base.case(
            effort, system, loss, burst=burst, params=base.silent(effort), seconds=LONG_S if loss <= 1 else None
        )
        for system in SYSTEMS
        for burst in bursts(effort)
        for loss in losses(effort)
    }


def gap(data: Data, system: str, burst: int, loss: float) -> Sample:
    """Return how much more the loss-free flows get, Mbit/s."""
    label = (system, burst, loss)
    return data.measure(label, base.clean_mbps) - data.measure(label, base.lossy_mbps)


@study.predicate("D-fig6-a", from_percent=5)
def timer_more_sensitive(data: Data, from_percent: float) -> Iterator[Check]:
    """Bursts cost the timer more than the monitor."""
    for loss in losses(data.effort):
        if loss >= from_percent:
            timer, monitor = (gap(data, system, 4, loss) - gap(data, system, 1, loss) for system in SYSTEMS)
            yield above(f"growth of the gap from B1 to B4 at {loss:g} %, Mbit/s: LR-XCP over LR-LMXCP", timer, monitor)


@study.predicate("D-fig6-b", least=0.9, up_to_percent=1)
def competitive_at_low_loss(data: Data, least: float, up_to_percent: float) -> Iterator[Check]:
    """At low loss cumulative ACKs keep up."""
    for loss in losses(data.effort):
        if loss <= up_to_percent:
            timer, monitor = (base.fairness(data, system, 4, loss) for system in SYSTEMS)
            yield at_least(f"F(LR-XCP) over F(LR-LMXCP), B4, {loss:g} %", timer / monitor, least)


@study.predicate("D-fig6-c")
def loss_free_above(data: Data) -> Iterator[Check]:
    """The loss-free half gets the upper half."""
    for label in data.labels:
        clean, lossy = (data.measure(label, metric) for metric in (base.clean_mbps, base.lossy_mbps))
        yield above(f"{label[0]}, B{label[1]}, {label[2]:g} %: loss-free over lossy, Mbit/s", clean, lossy)


def lost_percent(results: Results) -> float:
    """Return what the lossy link lost of the packets that crossed it, percent."""
    sent = metrics.link(results, base.LOSSY, "utilisation") * base.RATE_MBPS * 1e6 / 8 / 1000
    seconds = metrics.end_s(results) - base.WARMUP_S
    return 100 * metrics.link(results, base.LOSSY, "drops_channel") / (sent * seconds)


@study.predicate("D-fig6-d", percent=5)
def rate_counts_packets(data: Data, percent: float) -> Iterator[Check]:
    """The axis is events times X."""
    for label in data.labels:
        lost, wanted = data.measure(label, lost_percent), Sample.of([label[2]] * len(data.runs(label)))
        yield close(f"{label[0]}, B{label[1]}: loss rate, %", lost, wanted, percent / 100 * label[2])


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums against the loss rate: the upper curves are loss-free."""
    grid = losses(data.effort)
    panels = []
    for system in SYSTEMS:
        lines = []
        for burst in bursts(data.effort):
            for name, metric in (("loss-free", base.clean_mbps), ("lossy", base.lossy_mbps)):
                samples = [data.measure((system, burst, loss), metric) for loss in grid]
                lines.append(Line.of(f"B{burst}, {name}", grid, samples))
        panels.append(Panel(system, "loss rate (%)", "throughput (Mbit/s)", lines))
    return panels
