"""Y-txt-short: short flows beside the long ones (end of section III). Set-up: `base.py`, 1x2 antennas at 30 dB.

Short flows use the system of the long ones and start at random (Y-P17).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from explicate.results import Results
from explicate_papers.controls import Place
from explicate_papers.statistics import Check, Sample, at_least, exceeds
from explicate_papers.study import Case, Data, Effort, Panel, Study
from explicate_papers.yousefizadeh import base, fig3
from explicate_papers.yousefizadeh.base import CLEAR_DB, PACKET, SYSTEMS, TCP, VCP, XCP, packets

study = Study("Y-txt-short")

MEAN_PACKETS, SHAPE = 30, 1.35
Key = tuple[str, bool]


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """Every system without short flows and with them."""
    return {
        (system, short): base.case(
            effort, system, CLEAR_DB, antennas="1x2", beta=base.BETA_12, more=shorts(effort, system) if short else ()
        )
        for system in SYSTEMS
        for short in (False, True)
    }


def shorts(effort: Effort, system: str) -> list[base.Flows]:
    """Return the groups of short flows."""
    size = {"mean": f"{MEAN_PACKETS * PACKET}B", "law": "pareto", "shape": SHAPE}
    arrivals = effort.choices["Y-P17"]
    return [
        base.group(effort, system, f"short-{path}", path, arrivals=arrivals, size=size) for path in ("long", "back")
    ]


@study.predicate("Y-txt-short-a")
def mostly_buffers_change(data: Data) -> Iterator[Check]:
    """Who leads stays, and how much is used; the queues are others."""
    xcp, vcp, tcp = (packets(data, system, True) for system in SYSTEMS)
    for name, one in ((XCP, xcp), (VCP, vcp)):
        times = fig3.study.rules["Y-fig3-c"].bounds["times"]
        yield at_least(f"with short flows: plateau of {name} over {TCP}", one / tcp, times)
    yield base.at_least_as_high("with short flows: plateau of XCP and VCP, million packets", xcp, vcp)
    for system in SYSTEMS:
        queue, used = (change(data, system, metric) for metric in (base.queue, base.utilisation))
        yield exceeds(f"{system}: change of the mean queue over that of the utilisation, percent", queue, used)


def change(data: Data, system: str, metric: Callable[[Results], float]) -> Sample:
    """Return the size of a mean change that short flows make, percent."""
    made = 100 * (measure(data, system, True, metric) / measure(data, system, False, metric) - 1)
    return made if made.mean >= 0 else -made


def measure(data: Data, system: str, short: bool, metric: Callable[[Results], float]) -> Sample:
    """Return a measure of a system, with short flows or without."""
    return data.measure((system, short), metric)


def none_short(label: Key) -> Key:
    """Return the label without short flows."""
    return label[0], False


study.control(
    "no short flows", Place("off", none_short), ["Y-txt-short-a"],
    "Without short flows nothing moves, the queues neither.",
)  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Deliveries and queues."""
    marks = (1.0, 2.0)
    return [
        Panel(
            title, "short flows", label,
            [base.line(one, marks, [data.measure((one, short), metric) for short in (False, True)]) for one in SYSTEMS],
            names=("without", "with"),
        )
        for title, label, metric in (
            ("Utilisation", "IP bytes over the line's", base.utilisation),
            ("Mean queue", "packets", base.queue),
        )
    ]  # fmt: skip
