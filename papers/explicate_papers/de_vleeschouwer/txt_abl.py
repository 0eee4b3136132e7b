"""D-txt-abl: the contribution of each mechanism of section 4 (sections 4.1 to 4.4). Set-up: `base.py`, 5 % loss.

The switches are those of the recovery `loss_resilient`, over a window that losses do not change (XCP) or halve (TCP).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, Sample, above, at_least, close, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-abl")

DEFLATION, PARTIAL, RESET, TIMER = "partial_deflation", "partial_ack", "restart_on_any", "retransmission_timer"
SWITCHES = (DEFLATION, PARTIAL, RESET, TIMER)
LETTERS = dict(zip(SWITCHES, "DPRT", strict=True))
SYSTEMS = ("XCP_dumb", "XCP", "LR-XCP")
LAWS = {"xcp": {"on_loss": "keep"}, "reno": {}}
ALL = (DEFLATION, RESET, TIMER)
ON: dict[str, tuple[tuple[str, ...], ...]] = {
    "xcp": ((), *((one,) for one in ALL), *combinations(ALL, 2), ALL, (PARTIAL, RESET, TIMER), SWITCHES),
    "reno": ((), (DEFLATION,), (DEFLATION, RESET), ALL),
}
SWITCHED = "D deflation, P partial ACKs, R reset, T timer"
LOSS = 5.0


def name(law: str, on: Sequence[str]) -> tuple[str, str]:
    """Return the label of a controller with these switches on."""
    return law, "".join(LETTERS[switch] for switch in on) or "none"


@study.cases
def cases(effort: Effort) -> dict[str | tuple[str, str], Case]:
    """The paper's three steps, and the switches by themselves."""
    made: dict[str | tuple[str, str], Case] = {system: base.case(effort, system, LOSS) for system in SYSTEMS}
    often = {"sampling.every": "200ms", "sampling.of": ["flow"]}
    for law, params in LAWS.items():
        for on in ON[law]:
            switches = {switch: switch in on for switch in SWITCHES}
            one = base.case(effort, f"{law}/loss_resilient", LOSS, params={**params, **switches})
            made[name(law, on)] = replace(one, settings=often)
    return made


def fairness(data: Data, law: str, *on: str) -> Sample:
    """Return F of a controller with these switches on."""
    return base.fairness(data, *name(law, on))


@study.predicate("D-txt-abl-a")
def each_step_helps(data: Data) -> Iterator[Check]:
    """XCP_dumb, XCP, LR-XCP: fairer and fairer."""
    for worse, better in pairwise(SYSTEMS):
        one, other = (base.fairness(data, system) for system in (better, worse))
        yield above(f"F: {better} over {worse}", one, other)


def times_full(room: int, seconds: float) -> Callable[[Results], float]:
    """Return the metric: how often in `seconds` a lossy flow's send-out window reaches the `room` of its receiver."""

    def times(results: Results) -> float:
        count = 0
        for i in range(5):
            cwnd, inflation = (metrics.series(results, f"lossy.{i}", what)["value"] for what in ("cwnd", "inflation"))
            full = cwnd + inflation >= room
            count += int((full & ~full.shift(1, fill_value=False)).sum())
        return seconds * count / metrics.end_s(results) / 5

    return times


@study.predicate("D-txt-abl-b", seconds=100)
def window_runs_away_without_timer(data: Data, seconds: float) -> Iterator[Check]:
    """With the reset but without the timer a segment that is lost twice opens the window to its end."""
    full = times_full(int(data.effort.choices["D-P6"]), seconds)
    without, seldom = (data.measure(name("xcp", on), full) for on in ((DEFLATION, RESET), ALL))
    yield at_least(f"times in {seconds:g} s that swnd reaches rwnd, reset alone", without, 1)
    yield above(f"one over the times in {seconds:g} s that swnd reaches rwnd, with the timer", seldom * 0 + 1, seldom)


@study.predicate("D-txt-abl-c")
def reset_needs_deflation(data: Data) -> Check:
    """The reset pays with partial deflation; neither has the timer."""
    together = fairness(data, "xcp", DEFLATION, RESET) - fairness(data, "xcp", RESET)
    alone = fairness(data, "xcp", DEFLATION) - fairness(data, "xcp")
    return exceeds("gain in F by partial deflation: with the reset over without", together, alone)


@study.predicate("D-txt-abl-d", most=0.05)
def nothing_for_tcp(data: Data, most: float) -> Iterator[Check]:
    """TCP's window is halved anyway."""
    plain, deflated = fairness(data, "reno"), fairness(data, "reno", DEFLATION)
    yield close("F of TCP: with partial deflation and without", deflated, plain, most)
    timed, reset = (fairness(data, "reno", *on) for on in (ALL, (DEFLATION,)))
    yield above("F of TCP: with the connection reset over with the timer", reset, timed, slack=base.NOTHING)


study.control(
    "the first step and the last exchanged",
    exchange(SYSTEMS[0], SYSTEMS[-1]),
    ["D-txt-abl-a"],
    "Reno's recovery halves the window at each loss",
)
study.control(
    "with the timer and without exchanged",
    exchange("DR", "DRT"),
    ["D-txt-abl-b"],
    "what is lost twice is then resent, and the window's head moves on",
)


BESIDE_RESET: dict[str | tuple[str, str], tuple[str, str]] = {("xcp", "DR"): ("xcp", "R"), ("xcp", "R"): ("xcp", "DR")}
"""Where deflation is added to the reset, and where it is taken away."""

study.control(
    "with deflation and without exchanged beside the reset",
    Place("exchange", lambda label: BESIDE_RESET.get(label, label)),
    ["D-txt-abl-c"],
    "a window that loses its inflation upon new data leaves less in flight than it allows",
)
study.control(
    "loss-resilient XCP in the place of TCP with deflation",
    Place("protocol", lambda label: "LR-XCP" if label == ("reno", "D") else label),
    ["D-txt-abl-d"],
    "explicit control gains from the mechanisms from which TCP does not",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F of every set of switches, in the order of F."""
    panels = []
    for law in LAWS:
        sets = sorted(ON[law], key=lambda on: fairness(data, law, *on).mean)
        line = Line.of(law, list(range(1, len(sets) + 1)), [fairness(data, law, *on) for on in sets])
        names = [name(law, on)[1] for on in sets]
        panels.append(Panel(law, SWITCHED, "lossy / loss-free throughput", [line], names=names, compared=True))
    return panels
