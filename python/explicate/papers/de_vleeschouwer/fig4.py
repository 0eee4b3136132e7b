"""D-fig4: use of the bottleneck against loss rate with a persistent queue (figure 4). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.de_vleeschouwer.fig3 import losses
from explicate.papers.statistics import Check, above, at_least, near, rising
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("D-fig4")

WITHOUT, WITH = "LR-XCP_PA", "LR-XCPQ_PA"


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Both routers at every loss rate."""
    params = base.silent(effort)
    return {
        (system, loss): base.case(effort, system, loss, params=params)
        for system in (WITHOUT, WITH)
        for loss in losses(effort)
    }


@study.predicate("D-fig4-a", least=0.97, up_to_percent=10)
def queue_preserves_use(data: Data, least: float, up_to_percent: float) -> Iterator[Check]:
    """With ten packets in the queue the link stays busy."""
    for loss in losses(data.effort):
        if loss <= up_to_percent:
            used = data.measure((WITH, loss), base.utilisation)
            yield at_least(f"utilisation with the queue at {loss:g} %", used, least)


@study.predicate("D-fig4-b", gain=0.02, from_percent=5)
def without_it_use_falls(data: Data, gain: float, from_percent: float) -> Iterator[Check]:
    """Without it the link idles, the more the greater the loss."""
    grid = losses(data.effort)
    free, high = (data.measure((WITHOUT, loss), base.utilisation) for loss in (grid[0], grid[-1]))
    yield above("utilisation without the queue: no loss over the greatest", free, high)
    gains = {
        loss: data.measure((WITH, loss), base.utilisation) - data.measure((WITHOUT, loss), base.utilisation)
        for loss in grid
        if loss >= from_percent
    }
    for loss, one in gains.items():
        yield at_least(f"gain at {loss:g} %", one, gain)
    yield rising("gain", list(gains.values()))


def smooth_queue(results: Results) -> float:
    """Return the mean of the queue samples, packets."""
    return metrics.mean(metrics.series(results, base.BOTTLENECK, "queue_packets", base.WARMUP_S))


@study.predicate("D-fig4-c", target=10, tolerance=3)
def queue_near_target(data: Data, target: float, tolerance: float) -> Check:
    """The standing queue is near its target."""
    return near("mean queue without loss, packets", data.measure((WITH, 0.0), smooth_queue), target, tolerance)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Utilisation against the loss rate."""
    grid = losses(data.effort)
    lines = [
        Line.of(system, grid, [data.measure((system, loss), base.utilisation) for loss in grid])
        for system in (WITHOUT, WITH)
    ]
    return [Panel("Use of the bottleneck", "loss rate (%)", "utilisation", lines, y_from=0.9)]
