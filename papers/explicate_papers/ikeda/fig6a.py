"""K-fig6a: use of the link in the first 30 s, against the number of flows (figure 6a). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate_papers.controls import Place, edit
from explicate_papers.ikeda import base
from explicate_papers.statistics import Check, above, at_least, at_most, between
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-fig6a")

SYSTEMS = (base.PROPOSED, base.VCP, base.TCP)
FLOWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
QUICK_FLOWS = (1, 2, 5, 8, 10, 20)
FLUID = {"t_rho": (0.68, 0.72), "t_d": (0.74, 0.85)}
"""Utilisation of the first 30 s in the fluid, by the scale of the additive increase: equation 5 or VCP's code."""


def numbers(effort: Effort) -> Sequence[int]:
    """Return the numbers of flows."""
    return effort.pick(FLOWS, QUICK_FLOWS)


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int], Case]:
    """Every system with every number of flows, all beginning together."""
    warmup = effort.choices["K-P13"]
    return {
        (system, flows): base.case(effort, system, flows=flows, warmup=warmup, of=("router",), every="250ms")
        for system in SYSTEMS
        for flows in numbers(effort)
    }


@study.predicate("K-fig6a-a", least=0.6, spread=0.2)
def high_for_any_number(data: Data, least: float, spread: float) -> Iterator[Check]:
    """The link is used whatever the number of flows."""
    samples = {flows: data.measure((base.PROPOSED, flows), base.utilisation) for flows in numbers(data.effort)}
    lowest = min(samples, key=lambda flows: samples[flows].mean)
    highest = max(samples, key=lambda flows: samples[flows].mean)
    yield at_least(f"least utilisation, with {lowest} flows", samples[lowest], least)
    yield at_most(f"utilisation: {highest} flows less {lowest}", samples[highest] - samples[lowest], spread)


@study.predicate("K-fig6a-b")
def above_vcp(data: Data) -> Iterator[Check]:
    """The proposed scheme uses more than VCP."""
    for flows in numbers(data.effort):
        proposed, vcp = (data.measure((system, flows), base.utilisation) for system in (base.PROPOSED, base.VCP))
        yield above(f"utilisation with {flows} flows, proposed over VCP", proposed, vcp)


@study.predicate("K-fig6a-c", tolerance=0.08)
def as_the_fluid(data: Data, tolerance: float) -> Iterator[Check]:
    """The fluid's mean over 30 s, for the additive increase in use."""
    low, high = FLUID[data.effort.choices["K-P2"]]
    samples = {flows: data.measure((base.PROPOSED, flows), base.utilisation) for flows in numbers(data.effort)}
    for flows, sample in samples.items():
        yield between(f"utilisation with {flows} flows", sample, low - tolerance, high + tolerance)
    few, many = min(samples), max(samples)
    yield above(f"utilisation with {many} flows over {few}", samples[many], samples[few])


study.control(
    "windows at most double in an interval",
    edit("off", base.growth_of(2), lambda label: label[0] == base.PROPOSED),
    ["K-fig6a-a", "K-fig6a-c"],
    "a single flow then takes half of the 30 s to fill the link",
)
study.control(
    "VCP in the place of the proposed scheme with 20 flows",
    Place("protocol", lambda label: (base.VCP, 20) if label == (base.PROPOSED, 20) else label),
    ["K-fig6a-b"],
    "VCP is not above itself",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Utilisation against the number of flows."""
    grid = numbers(data.effort)
    lines = [
        Line.of(system, grid, [data.measure((system, flows), base.utilisation) for flows in grid]) for system in SYSTEMS
    ]
    return [Panel("Link utilisation in the first 30 s", "flows", "utilisation", lines)]
