"""D-txt-abl: what each mechanism of section 4 contributes (sections 4.1 to 4.4). Set-up: `base.py`, 5 % loss.

The switches are those of the recovery `loss_resilient`, over a window that losses leave alone (XCP) or halve (TCP).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.statistics import Check, Sample, above, at_least, at_most, close
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

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
ONCE = 1.0


def name(law: str, on: Sequence[str]) -> tuple[str, str]:
    """Return the label of a law with these switches on."""
    return law, "".join(LETTERS[switch] for switch in on) or "none"


@study.cases
def cases(effort: Effort) -> dict[str | tuple[str, str], Case]:
    """The paper's three steps, and the switches by themselves."""
    made: dict[str | tuple[str, str], Case] = {system: base.case(effort, system, LOSS) for system in SYSTEMS}
    often = {"sampling.every": "200ms", "sampling.of": '["flow"]'}
    for law, params in LAWS.items():
        for on in ON[law]:
            switches = {switch: switch in on for switch in SWITCHES}
            one = base.case(effort, f"{law}/loss_resilient", LOSS, params={**params, **switches})
            made[name(law, on)] = replace(one, settings=often)
    return made


def fairness(data: Data, law: str, *on: str) -> Sample:
    """Return F of a law with these switches on."""
    return data.measure(name(law, on), base.ratio)


@study.predicate("D-txt-abl-a")
def each_step_helps(data: Data) -> Iterator[Check]:
    """XCP_dumb, XCP, LR-XCP: fairer and fairer."""
    for worse, better in pairwise(SYSTEMS):
        one, other = (data.measure(system, base.ratio) for system in (better, worse))
        yield above(f"F: {better} over {worse}", one, other)


def times_full(room: int) -> Callable[[Results], float]:
    """Return the metric: how often in 100 s a lossy flow's send-out window reaches the `room` of its receiver."""

    def times(results: Results) -> float:
        count = 0
        for i in range(5):
            cwnd, inflation = (metrics.series(results, f"lossy.{i}", what)["value"] for what in ("cwnd", "inflation"))
            full = cwnd + inflation >= room
            count += int((full & ~full.shift(1, fill_value=False)).sum())
        return 100 * count / metrics.end_s(results) / 5

    return times


@study.predicate("D-txt-abl-b")
def window_runs_away_without_timer(data: Data) -> Iterator[Check]:
    """With the reset but without the timer a segment that is lost twice opens the window to its end."""
    full = times_full(int(data.effort.choices["D-P6"]))
    without, timed = (name("xcp", on) for on in ((DEFLATION, RESET), ALL))
    yield at_least("times in 100 s that swnd reaches rwnd, reset alone", data.measure(without, full), ONCE)
    seldom = data.measure(timed, full)
    yield above("one over the times in 100 s that swnd reaches rwnd, with the timer", seldom * 0 + ONCE, seldom)


@study.predicate("D-txt-abl-c")
def reset_needs_deflation(data: Data) -> Check:
    """The reset pays with partial deflation. The timer is on in all four: the reset alone is harmful (b)."""
    together = fairness(data, "xcp", *ALL) - fairness(data, "xcp", RESET, TIMER)
    alone = fairness(data, "xcp", DEFLATION, TIMER) - fairness(data, "xcp", TIMER)
    return above("gain in F by partial deflation: with the reset over without", together, alone)


@study.predicate("D-txt-abl-d", most=0.05)
def nothing_for_tcp(data: Data, most: float) -> Iterator[Check]:
    """TCP's window is halved anyway."""
    plain, deflated = fairness(data, "reno"), fairness(data, "reno", DEFLATION)
    yield close("F of TCP: with partial deflation and without", deflated, plain, most)
    timed, reset = (fairness(data, "reno", *on) for on in (ALL, (DEFLATION,)))
    yield at_most("F of TCP: with the timer, less with the connection reset", timed - reset, 0)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F of every set of switches, in the order of F."""
    panels = []
    for law in LAWS:
        sets = sorted(ON[law], key=lambda on: fairness(data, law, *on).mean)
        line = Line.of(law, list(range(1, len(sets) + 1)), [fairness(data, law, *on) for on in sets])
        names = [name(law, on)[1] for on in sets]
        panels.append(Panel(law, SWITCHED, "lossy / loss-free throughput", [line], names=names))
    return panels
