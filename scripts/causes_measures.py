"""Measures that no judge has, for labels of causes that still need them: `scripts/make_causes.py --run` takes them.

Each has an experiment, whose quick set is run, and checks in the place of a claim's judge, which stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.de_vleeschouwer import fig9, txt_abl
from explicate_papers.statistics import Check, above, exceeds
from explicate_papers.study import Case, Data, Effort
from explicate_papers.yousefizadeh import base, txt_intro


@dataclass(frozen=True)
class Measure:
    """An experiment, what is measured in words, the checks, and the cases if they are not the experiment's."""

    experiment: str
    what: str
    checks: Callable[[Data], Iterator[Check]]
    cases: Callable[[Effort], Mapping[Any, Case]] | None = None


def resets(data: Data) -> Iterator[Check]:
    """D-fig9-d: timeouts, after which a window is one segment; neither sender has an artificial back-off."""

    def timeouts(results: Results) -> float:
        return sum(metrics.total(results, "timeouts", group) for group in ("clean", "lossy"))

    for delay in fig9.delays(data.effort):
        tcp, monitor = (data.measure((system, delay), timeouts) for system in (fig9.TCP, fig9.MONITOR))
        yield above(f"resets at {delay:g} ms: TCP over {fig9.MONITOR}", tcp, monitor)


def deflation_with_timer(data: Data) -> Iterator[Check]:
    """D-txt-abl-c: the gain by deflation with the reset and without, where all four senders have the timer."""

    def fairness(*on: str) -> Any:
        return txt_abl.fairness(data, "xcp", *on)

    deflation, reset, timer = txt_abl.ALL
    together = fairness(deflation, reset, timer) - fairness(reset, timer)
    alone = fairness(deflation, timer) - fairness(timer)
    yield exceeds("gain in F by partial deflation, with the timer: with the reset over without", together, alone)


def one_way(effort: Effort) -> dict[str, Case]:
    """Y-txt-intro-c: the cases of the experiment with data in one direction."""
    return {
        system: base.case(effort, system, 100, fec=(1.0, 1.0), session=False, sampling=("queue",), two_way=False)
        for system in (*base.SYSTEMS, base.DROPTAIL)
    }


MEASURES = {
    "resets": Measure("D-fig9", "resets to one segment instead of all decreases of the window", resets),
    "timer": Measure("D-txt-abl", "deflation where all senders have the timer", deflation_with_timer),
    "one-way": Measure("Y-txt-intro", "data in one direction", txt_intro.routers_that_say_it, one_way),
}
"""The measures, by the word after `--by` in papers/readings/needed.toml."""
