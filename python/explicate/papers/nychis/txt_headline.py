"""N-txt-headline: XCP delivers 200 % of TCP in some cases (abstract, conclusion). Set-up: figure 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from explicate.papers.nychis import base
from explicate.papers.statistics import Check, Sample, at_least
from explicate.papers.study import Case, Data, Effort, Study

study = Study("N-txt-headline")

TUNED = "tuned"


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems at every loss rate up to 5 %, and XCP with the tuned capacity."""
    both: dict[object, Case] = {
        (system, loss): base.chain(effort, system, loss)
        for system in (base.TCP, base.XCP)
        for loss in base.losses(effort)
        if loss <= 5
    }
    tuned: dict[object, Case] = {
        (TUNED, loss): base.chain(effort, base.XCP, loss, capacity=base.TUNED)
        for loss in base.losses(effort)
        if loss <= 5
    }
    return {**both, **tuned}


@study.predicate("N-txt-headline-a", told_54=1.8, tuned=2.1)
def twice(data: Data, told_54: float, tuned: float) -> Iterator[Check]:
    """Twice TCP with the default capacity, more with the tuned one."""
    for system, least in ((base.XCP, told_54), (TUNED, tuned)):
        ratios = {
            loss: base.rate(data, system, loss).mean / base.rate(data, base.TCP, loss).mean
            for loss in base.losses(data.effort)
            if loss <= 5
        }
        best = max(ratios, key=lambda loss: ratios[loss])
        name = "told 54" if system == base.XCP else "told 24"
        yield at_least(f"XCP, {name}, over TCP at {best:g} %", Sample.of([ratios[best]]), least)
