"""Y-txt-short: short flows beside the long ones (end of section III). Set-up: `base.py`, 1x2 antennas at 30 dB.

Short flows use the system of the long ones; they come at random, 20 a second each way, and take a tenth of the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers.statistics import Check, above, at_least, at_most
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.papers.yousefizadeh import base
from explicate.papers.yousefizadeh.base import CLEAR_DB, PACKET, SYSTEMS, TCP, VCP, XCP, packets

study = Study("Y-txt-short")

PER_SECOND, MEAN_PACKETS, SHAPE = 20, 30, 1.35


@study.cases
def cases(effort: Effort) -> dict[tuple[str, bool], Case]:
    """Every system without short flows and with them."""
    return {
        (system, short): base.case(
            effort, system, CLEAR_DB, antennas="1x2", beta=base.BETA_12, more=shorts(effort, system) if short else ""
        )
        for system in SYSTEMS
        for short in (False, True)
    }


def shorts(effort: Effort, system: str) -> str:
    """Return the groups of short flows."""
    size = f'{{ mean = "{MEAN_PACKETS * PACKET}B", law = "pareto", shape = {SHAPE} }}'
    return "\n\n".join(
        f'[[flows]]\nname = "short-{path}"\nprotocol = "{base.protocol(system)}"\npacket = "{PACKET}B"\n'
        f'path = "{path}"\nparams = {base.params(effort, system)}\narrivals = "{PER_SECOND}/s"\nsize = {size}'
        for path in ("long", "back")
    )


@study.predicate("Y-txt-short-a", percent=10)
def only_buffers_change(data: Data, percent: float) -> Iterator[Check]:
    """Who leads stays, and how much is used; the queues are others."""
    xcp, vcp, tcp = (packets(data, system, True) for system in SYSTEMS)
    for name, one in ((XCP, xcp), (VCP, vcp)):
        yield at_least(f"with short flows: plateau of {name} over {TCP}", one / tcp, 1 + percent / 100)
    yield above("with short flows: plateau of XCP over VCP, million packets", xcp, vcp)
    for system in SYSTEMS:
        one, other = (data.measure((system, short), base.utilisation) for short in (False, True))
        yield at_most(f"{system}: change of the utilisation", (other / one - 1).map(abs), percent / 100)
        one, other = (data.measure((system, short), base.queue) for short in (False, True))
        yield at_least(f"{system}: change of the mean queue", (other / one - 1).map(abs), percent / 100)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """What is delivered and what waits."""
    marks = (1.0, 2.0)
    return [
        Panel(
            title, "short flows", label,
            [Line.of(one, marks, [data.measure((one, short), metric) for short in (False, True)]) for one in SYSTEMS],
            names=("without", "with"),
        )
        for title, label, metric in (
            ("Utilisation", "IP bytes over the line's", base.utilisation),
            ("Mean queue", "packets", base.queue),
        )
    ]  # fmt: skip
