"""Judges of paper N on measured values that are made up, and its senders."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from explicate_papers.nychis import base, fig3
from explicate_papers.plan import effort
from explicate_papers.register import experiments
from explicate_papers.statistics import Check, Sample
from explicate_papers.study import Data, Label


class Rates(Data):
    """Throughputs in five seeds, by label."""

    def __init__(self, of: Callable[[Any], list[float]]) -> None:
        super().__init__(effort(experiments()["N-fig3"], "quick"), {}, lambda _: [])
        self._of = of

    def measure(self, label: Label, metric: object) -> Sample:
        return Sample.of(self._of(label))


def judged(of: Callable[[Any], list[float]]) -> list[Check]:
    rule = fig3.study.rules["N-fig3-i"]
    return list(rule.judge(Rates(of), **rule.bounds))  # type: ignore[arg-type]


@pytest.mark.parametrize(("last", "holds"), [(200.0, True), (97.0, False)])
def test_sack_is_compared_by_means_as_the_criterion_says(last: float, holds: bool) -> None:
    """In three seeds of five it is behind: only the mean counts; at 1 % it leads by a tenth and more."""

    def of(label: Any) -> list[float]:
        system, loss = label
        if system == base.XCP_NO_SACK:
            return [100.0] * 5
        return [120.0] * 5 if loss == 1.0 else [99.0, 99.0, 99.0, 105.0, last]

    checks = judged(of)
    assert all(check.holds for check in checks) is holds
    assert len(checks) == sum(loss >= 0.1 for loss in base.losses(Rates(of).effort)) + 1


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("rate halving", {"fractions": "kept"}),
        ("rate halving, cut", {"fractions": "cut"}),
        ("keep", {"on_loss": "keep"}),
    ],
)
def test_xcps_sender_is_that_of_the_choice(value: str, kept: dict[str, str]) -> None:
    """Linux 2.4's with rate halving, otherwise the draft's; the kernel without SACK has the recovery of N-P29."""
    chosen = effort(experiments()["N-fig3"], "quick", {"N-P4": value})
    sender = base.KERNEL if value in base.RATE_HALVING else base.XCP
    for system, protocol in ((base.XCP, sender), (base.XCP_NO_SACK, f"{sender}/newreno"), (base.TCP, base.TCP)):
        (group,) = tomllib.loads(base.wired(chosen, system).text)["flows"]
        assert group["protocol"] == protocol
        found = {key: group["params"][key] for key in ("fractions", "on_loss") if key in group["params"]}
        assert found == (kept if system != base.TCP else {})
