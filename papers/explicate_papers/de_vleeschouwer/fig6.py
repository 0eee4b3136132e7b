"""D-fig6: losses in bursts of X consecutive packets (figure 6). Set-up: `base.py`; the rate counts packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, edit
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, Sample, above, at_least, average, close, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig6")

SYSTEMS = ("LR-XCP", "LR-LMXCP")
LEAST, GREATEST = 0.5, 10.0
SHOWN = (1, 4)

LONG_S = 1000
"""Where few bursts come (to 1 %) the runs are longer: their number decides how well the loss rate is known."""


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent: those of the other figures from 0.5 to 10."""
    every = [loss for loss in base.points(effort, "D-P10") if LEAST <= loss <= GREATEST]
    return effort.pick(every, [loss for loss in every if loss <= 1 or loss in (5.0, 10.0)])


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
    """Return the lead of the loss-free flows, Mbit/s."""
    clean, lossy = base.sums(data, system, burst, loss)
    return clean - lossy


@study.predicate("D-fig6-a")
def timer_more_sensitive(data: Data) -> Check:
    """Bursts cost the timer more than the monitor."""
    timer, monitor = (
        average([gap(data, system, 4, loss) - gap(data, system, 1, loss) for loss in losses(data.effort)])
        for system in SYSTEMS
    )
    return exceeds("mean growth of the gap from B1 to B4, Mbit/s: LR-XCP over LR-LMXCP", timer, monitor)


@study.predicate("D-fig6-b", least=0.9, up_to_percent=1)
def competitive_at_low_loss(data: Data, least: float, up_to_percent: float) -> Iterator[Check]:
    """At low loss cumulative ACKs keep up."""
    for loss in losses(data.effort):
        if loss <= up_to_percent:
            timer, monitor = (base.fairness(data, system, 4, loss) for system in SYSTEMS)
            yield at_least(f"F(LR-XCP) over F(LR-LMXCP), B4, {loss:g} %", timer / monitor, least)


@study.predicate("D-fig6-c")
def loss_free_above(data: Data) -> Iterator[Check]:
    """The loss-free half has more than half of the throughput."""
    for label in data.labels:
        clean, lossy = base.sums(data, *label)
        name = f"{label[0]}, B{label[1]}, {label[2]:g} %: loss-free over lossy, Mbit/s"
        yield above(name, clean, lossy, slack=base.NOTHING)


def lost_percent(results: Results) -> float:
    """Return the loss rate of the lossy link, percent."""
    sent = metrics.link(results, base.LOSSY, "utilisation") * base.RATE_MBPS * 1e6 / 8 / 1000
    seconds = metrics.end_s(results) - base.warmup_s(results)
    return 100 * metrics.link(results, base.LOSSY, "drops_channel") / (sent * seconds)


@study.predicate("D-fig6-d", percent=5)
def rate_counts_packets(data: Data, percent: float) -> Iterator[Check]:
    """The axis is events times X."""
    for label in data.labels:
        lost, wanted = data.measure(label, lost_percent), Sample.of([label[2]] * len(data.runs(label)))
        yield close(f"{label[0]}, B{label[1]}: loss rate, %", lost, wanted, percent / 100 * label[2])


def other_half(content: dict[str, Any]) -> None:
    """Put the losses on the link of the other half."""
    for link in content["link"]:
        if link.get("name") == base.LOSSY:
            link["name"] = base.CLEAN


study.control(
    "bursts of one packet",
    Place("flat", lambda label: (label[0], 1, label[2])),
    ["D-fig6-a"],
    "it is several losses in a window that cost the timer's sender round trips: losses one by one make no gap grow",
)
study.control(
    "the loss monitor in the timer's place",
    Place("protocol", lambda label: (SYSTEMS[1], *label[1:])),
    ["D-fig6-a"],
    "the timer's sender repairs one loss in a round trip, says the text; the monitor's repairs several",
)
study.control(
    "Reno's recovery in the timer's place",
    base.instead_of("LR-XCP", "XCP_dumb"),
    ["D-fig6-b"],
    "a sender that halves its window and is reset by a burst is no match at low loss either",
)
study.control(
    "the other half loses",
    edit("exchange", other_half),
    ["D-fig6-c"],
    "then the half that is called loss-free has the losses",
)
study.control("nothing is lost", base.LOSSES_OFF, ["D-fig6-d"], "the rate that is counted is then zero")


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums against the loss rate for X = 1 and 4, as in the figure: the upper curves are loss-free."""
    grid = losses(data.effort)
    lines = []
    for system in SYSTEMS:
        for burst in SHOWN:
            both = [base.sums(data, system, burst, loss) for loss in grid]
            for name, samples in zip(("loss-free", "lossy"), zip(*both, strict=True), strict=True):
                lines.append(Line.of(f"{system}, B{burst}, {name}", grid, samples))
    return [Panel("Bursts of X lost packets", "loss rate (%)", "throughput (Mbit/s)", lines)]
