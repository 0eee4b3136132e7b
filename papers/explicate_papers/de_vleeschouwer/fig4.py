"""D-fig4: use of the bottleneck against loss rate with a persistent queue (figure 4). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, at_least, at_most, average, exceeds, near, number
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig4")

WITHOUT, WITH = "LR-XCP_PA", "LR-XCPQ_PA"


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Both routers at every loss rate."""
    made = {}
    for loss in base.losses(effort):
        for system in (WITHOUT, WITH):
            made[system, loss] = base.case(effort, system, loss, params=base.silent(effort))
        made[WITH, loss] = replace(made[WITH, loss], settings=base.keeps_a_queue(effort))
    return made


@study.predicate("D-fig4-a", least=0.97, up_to_percent=10, grade=0.95, grade_percent=20)
def queue_preserves_use(
    data: Data, least: float, up_to_percent: float, grade: float, grade_percent: float
) -> Iterator[Check]:
    """With ten packets in the queue the link stays busy. The verdict reports the grade and does not depend on it."""
    used = {loss: data.measure((WITH, loss), base.utilisation) for loss in base.losses(data.effort)}
    low = {loss: one for loss, one in used.items() if loss <= up_to_percent}
    lowest = min((one.mean, loss) for loss, one in used.items() if loss <= grade_percent)
    graded = "reached" if lowest[0] >= grade else "missed"
    for loss, one in low.items():
        check = at_least(f"utilisation with the queue at {loss:g} %", one, least)
        if loss == max(low):
            told = f"grade of {grade:g} {graded}: least {number(lowest[0])}, at {lowest[1]:g} %"
            check = replace(check, measured=f"{check.measured} ({told})")
        yield check
    yield gain(data)


def gain(data: Data) -> Check:
    """Check that the queue brings use, averaged over the positive loss rates."""
    grid = [loss for loss in base.losses(data.effort) if loss > 0]
    with_it, without = (
        average([data.measure((system, loss), base.utilisation) for loss in grid]) for system in (WITH, WITHOUT)
    )
    return exceeds("mean utilisation under loss: with the queue over without", with_it, without)


@study.predicate("D-fig4-b", most=0.985)
def without_it_use_falls(data: Data, most: float) -> Iterator[Check]:
    """Without it the link idles when packets are lost."""
    grid = base.losses(data.effort)
    none, greatest = (data.measure((WITHOUT, loss), base.utilisation) for loss in (grid[0], grid[-1]))
    yield exceeds(f"utilisation without the queue: at {grid[0]:g} % over {grid[-1]:g} %", none, greatest)
    yield at_most(f"utilisation without the queue at {grid[-1]:g} %", greatest, most)
    yield gain(data)


def smooth_queue(results: Results) -> float:
    """Return the mean over time of the router's mean queue, packets."""
    return metrics.mean(metrics.series(results, base.BOTTLENECK, "mean_queue_bytes", base.warmup_s(results))) / 1000


@study.predicate("D-fig4-c", target=10, tolerance=3)
def queue_near_target(data: Data, target: float, tolerance: float) -> Check:
    """The standing queue is near its target."""
    return near(
        "the router's mean queue without loss, packets", data.measure((WITH, 0.0), smooth_queue), target, tolerance
    )


study.control(
    "without the persistent queue",
    Place("off", lambda label: (WITHOUT, label[1])),
    ["D-fig4-a", "D-fig4-b", "D-fig4-c"],
    "the paper's reasoning: only what waits bridges the pauses after losses, and XCP aims at an empty queue",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Utilisation against the loss rate."""
    grid = base.losses(data.effort)
    lines = [
        Line.of(system, grid, [data.measure((system, loss), base.utilisation) for loss in grid])
        for system in (WITHOUT, WITH)
    ]
    return [Panel("Use of the bottleneck", "loss rate (%)", "utilisation", lines, y_from=0.9)]
