"""N-txt-linktest: each hop alone carries about 3000 KB/s (section IV). Set-up: `base.py`; TCP for 60 s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate_papers.controls import Chosen
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, between
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-linktest")

HOPS = (1, 2, 3)
PAPER_KBPS = 3000


@study.cases
def cases(effort: Effort) -> Mapping[int, Case]:
    """Every hop of the chain."""
    return {hop: base.link_test(effort, hop=hop) for hop in HOPS}


@study.predicate("N-txt-linktest-a", low=2700, high=3300)
def about_3000(data: Data, low: float, high: float) -> Iterator[Check]:
    """3000 KB/s in the paper."""
    for hop in HOPS:
        yield between(f"KB/s of hop {hop}", data.measure(hop, base.kilobytes), low, high)


study.control(
    "single frames",
    Chosen("N-P3", "0s"),
    ["N-txt-linktest-a"],
    "With RTS and CTS for every frame the standard's timing leaves 2500 KB/s; only bursts of frames reach 3000.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Every run."""
    lines = [
        Line(f"n{hop} to n{hop + 1}", list(range(1, 1 + len(rates.values))), list(rates), points=True)
        for hop in HOPS
        for rates in [data.measure(hop, base.kilobytes)]
    ]
    lines.append(Line("paper: around 3000", [1], [PAPER_KBPS], points=True))
    return [Panel("Link tests", "run", "throughput (KB/s)", lines)]
