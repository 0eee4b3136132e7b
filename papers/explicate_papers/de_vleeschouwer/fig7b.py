"""D-fig7b: five TCP flows against five of LR-LMXTCP_TCPfriend (figure 7b). Set-up: as D-fig7a."""

from __future__ import annotations

import math
from collections.abc import Sequence

from explicate_papers.controls import Place
from explicate_papers.de_vleeschouwer import base
from explicate_papers.de_vleeschouwer.fig7a import beside_tcp, panel
from explicate_papers.statistics import Check, above, at_least, between
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("D-fig7b")

UNFRIENDLY, FRIEND = "LR-LMXTCP", "LR-LMXTCP_TCPfriend"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The panel's system, and that of panel (a)."""
    return {system: beside_tcp(effort, system) for system in (UNFRIENDLY, FRIEND)}


@study.predicate("D-fig7b-a", low=0.7, high=1.4)
def fair(data: Data, low: float, high: float) -> Check:
    """Both have about the same throughput."""
    return between("XTCP over TCP", base.fairness(data, FRIEND), low, high)


@study.predicate("D-fig7b-b", least=0.97)
def full(data: Data, least: float) -> Check:
    """The link is full."""
    return at_least("utilisation", data.measure(FRIEND, base.utilisation), least)


@study.predicate("D-fig7b-c", share=0.5)
def closer_to_one(data: Data, share: float) -> Check:
    """The back-off cures most of the unfairness."""
    a, b = (base.fairness(data, system).map(distance) for system in (UNFRIENDLY, FRIEND))
    return above(f"|ln ratio|: {share:g} times (a) over (b)", share * a, b)


def distance(ratio: float) -> float:
    """Return how far a ratio is from one, |ln ratio|; infinite if one side has no throughput."""
    return abs(math.log(ratio)) if ratio > 0 else math.inf


study.control(
    "the back-off switched off",
    Place("off", lambda _: UNFRIENDLY),
    ["D-fig7b-a", "D-fig7b-c"],
    "without it the sender of panel (b) is that of panel (a), which takes three to four times as much",
)
study.cannot_fail(
    "D-fig7b-b", "ten flows over a queue of two thirds of the path fill it whatever TCP-like sender they have"
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, FRIEND)]
