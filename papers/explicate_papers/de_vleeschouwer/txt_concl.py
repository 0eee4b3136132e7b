"""D-txt-concl: the paper's overall conclusions (abstract, sections 1, 8.2, 10). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from explicate_papers.controls import Place
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, Sample, above, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-concl")

XCP, XTCP, QUEUED = "LR-LMXCP", "LR-LMXTCP", "LR-LMXCPQ"
FAMILY = ("LR-XCP", "LR-XTCP", XCP, XTCP)
LOSSES = (1.0, 5.0, 10.0)
BURST = 4


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int, float], Case]:
    """Both controls with and without packet numbers; bursts and the queue of section 7.2 for those with them."""
    made = {(system, 1, loss): base.case(effort, system, loss) for system in FAMILY for loss in LOSSES}
    for burst in (1, BURST):
        for loss in (1.0, 5.0):
            made[XTCP, burst, loss] = base.case(effort, XTCP, loss, burst=burst)
            one = base.case(effort, XCP, loss, burst=burst, queue=base.discipline(effort.choices, QUEUED))
            made[QUEUED, burst, loss] = replace(one, settings=base.keeps_a_queue(effort))
    return made


@study.predicate("D-txt-concl-a", use=0.97, fair=0.8, up_to_percent=5)
def full_and_fair(data: Data, use: float, fair: float, up_to_percent: float) -> Iterator[Check]:
    """With packet numbers both controls fill the link and share it, bursts or not."""
    for system, burst, loss in data.labels:
        if system in (XTCP, QUEUED) and loss <= up_to_percent:
            label, name = (system, burst, loss), f"{system}, B{burst}, {loss:g} %"
            yield at_least(f"utilisation of {name}", data.measure(label, base.utilisation), use)
            yield at_least(f"F of {name}", base.fairness(data, *label), fair)


def fairness(data: Data, system: str, loss: float) -> Sample:
    """Return F with losses one by one."""
    return base.fairness(data, system, 1, loss)


@study.predicate("D-txt-concl-b", from_percent=5)
def either_feedback_is_needed(data: Data, from_percent: float) -> Iterator[Check]:
    """Coarse flags with cumulative acknowledgements are worst."""
    for loss in LOSSES:
        if loss >= from_percent:
            for other in ("LR-XCP", XTCP):
                better, worse = fairness(data, other, loss), fairness(data, "LR-XTCP", loss)
                yield above(f"F at {loss:g} %: {other} over LR-XTCP", better, worse)


@study.predicate("D-txt-concl-c", from_percent=5, most=0.7)
def packet_numbers_matter_more_to_flags(data: Data, from_percent: float, most: float) -> Iterator[Check]:
    """They gain XTCP more than XCP, and without them it is not fair."""
    for loss in LOSSES:
        if loss >= from_percent:
            coarse = fairness(data, XTCP, loss) - fairness(data, "LR-XTCP", loss)
            fine = fairness(data, XCP, loss) - fairness(data, "LR-XCP", loss)
            yield above(f"gain in F at {loss:g} %: XTCP over XCP", coarse, fine)
            yield at_most(f"F of LR-XTCP at {loss:g} %", fairness(data, "LR-XTCP", loss), most)


def without_numbers(label: tuple[str, int, float]) -> tuple[str, int, float]:
    """Return the label of the system without packet numbers in the place of one with them."""
    plain = {XTCP: "LR-XTCP", QUEUED: "LR-XCP"}.get(label[0])
    return (plain, 1, label[2]) if plain else label


def other_control(label: tuple[str, int, float]) -> tuple[str, int, float]:
    """Return the label of the system with the other control, among those whose losses come one by one."""
    other = {XCP: XTCP, XTCP: XCP, "LR-XCP": "LR-XTCP", "LR-XTCP": "LR-XCP"}.get(label[0])
    return (other, 1, label[2]) if other and label[1] == 1 else label


study.control(
    "cumulative acknowledgements in the place of packet numbers",
    Place("off", without_numbers),
    ["D-txt-concl-a"],
    "with flags they repair too little, as the paper concludes",
)
study.control(
    "fine feedback and flags exchanged",
    Place("exchange", other_control),
    ["D-txt-concl-b", "D-txt-concl-c"],
    "fine feedback needs packet numbers less",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F and the use of the bottleneck against the loss rate."""

    def lines(measured: Callable[[str, float], Sample]) -> list[Line]:
        return [Line.of(system, LOSSES, [measured(system, loss) for loss in LOSSES]) for system in FAMILY]

    ratios = lines(lambda system, loss: fairness(data, system, loss))
    uses = lines(lambda system, loss: data.measure((system, 1, loss), base.utilisation))
    queued = [label for label in data.labels if label[:2] == (QUEUED, 1)]
    uses.append(
        Line.of(QUEUED, [loss for *_, loss in queued], [data.measure(label, base.utilisation) for label in queued])
    )
    return [
        Panel("Fairness ratio", "loss rate (%)", "lossy / loss-free throughput", ratios),
        Panel("Use of the bottleneck", "loss rate (%)", "utilisation", uses, y_from=0.9),
    ]
