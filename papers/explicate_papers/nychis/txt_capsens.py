"""N-txt-capsens: XCP's routers are configured with a wrong capacity (section V-C). Set-up: `base.py`.

A wire of 24 Mbit/s with the hop's round trip, and the hop itself; one flow and thirty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from explicate.results import Results
from explicate_papers.controls import Place
from explicate_papers.nychis import base
from explicate_papers.nychis.fig9 import two_stations
from explicate_papers.statistics import Check, average, exceeds, fact, near
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-capsens")

TRUE = 24.0
RATIOS = (0.5, 0.7, 0.83, 0.9, 1.0, 1.1, 1.5, 2.25)
COUNTS = (1, 30)
WIRED, AIR = "wire", "air"


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both links, one flow and thirty, all ratios."""
    runs: dict[object, Case] = {}
    for ratio in RATIOS:
        told = ratio * TRUE
        for count in COUNTS:
            runs[WIRED, count, ratio] = base.wired(effort, base.XCP, rate=TRUE, believed=told, count=count)
        runs[AIR, 1, ratio] = base.chain(effort, base.XCP, capacity=told)
        runs[AIR, 30, ratio] = two_stations(effort, told, effort.seconds)
    return runs


@study.predicate("N-txt-capsens-a", within=0.1)
def too_little_under_uses(data: Data, within: float) -> Iterator[Check]:
    """The link is used as far as it is known."""
    for count in COUNTS:
        for ratio in RATIOS:
            if ratio < 1:
                used = data.measure((WIRED, count, ratio), base.wire_use)
                what = f"{count} flow{'s' if count > 1 else ''}: use of the wire, told {ratio:g}"
                yield near(what, used, ratio, within)


@study.predicate("N-txt-capsens-b")
def too_much_fills_the_queue(data: Data) -> Iterator[Check]:
    """A queue builds up."""
    for count in COUNTS:
        told = average([data.measure((WIRED, count, ratio), base.wire_queue) for ratio in RATIOS if ratio > 1])
        what = f"mean queue, packets, {count} flow{'s' if count > 1 else ''}: told too much over told the truth"
        yield exceeds(what, told, data.measure((WIRED, count, 1.0), base.wire_queue))


@study.predicate("N-txt-capsens-c")
def both_cost_on_the_air(data: Data) -> Iterator[Check]:
    """Wrong either way, the hop carries less."""
    for count in COUNTS:
        samples = {ratio: data.measure((AIR, count, ratio), base.goodput) for ratio in RATIOS}
        best = max(RATIOS, key=lambda ratio: samples[ratio].mean)
        ends = (RATIOS[0], RATIOS[-1])
        what = f"{count}: best capacity to tell over 24 Mbit/s"
        yield fact(what, holds=best not in ends, measured=f"{best:g}", wanted="at neither end")
        for end in ends:
            what = f"KB/s of {count}, told {best:g} (best) over {end:g}"
            yield exceeds(what, samples[best], samples[end])


study.control(
    "configured with the true capacity",
    Place("told", lambda label: (*label[:2], 1.0)),
    ["N-txt-capsens-a", "N-txt-capsens-b", "N-txt-capsens-c"],
    "The wrong capacity makes the difference: with the true one all runs use the whole link with a short queue.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Use and queue of the wire, throughput of the hop."""
    grid = list(RATIOS)

    def lines(link: str, metric: Callable[[Results], float]) -> list[Line]:
        return [
            Line.of(
                f"{count} flow{'s' if count > 1 else ''}", grid, [data.measure((link, count, r), metric) for r in grid]
            )
            for count in COUNTS
        ]

    told = "capacity told over 24 Mbit/s"
    return [
        Panel("Wire", told, "use", lines(WIRED, base.wire_use)),
        Panel("Wire", told, "queue (packets)", lines(WIRED, base.wire_queue)),
        Panel("Air", told, "goodput (KB/s)", lines(AIR, base.goodput)),
    ]
