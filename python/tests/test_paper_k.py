"""Judges of paper K on measured times that are made up."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from explicate_papers.ikeda import fig5
from explicate_papers.judge import Attempt
from explicate_papers.plan import choices, effort
from explicate_papers.register import PAPERS, experiments
from explicate_papers.statistics import Check, Sample
from explicate_papers.study import Data, Empty, Label


class Times(Data):
    """Starts that take so long, by label, in two seeds."""

    def __init__(self, of: Callable[[Any], tuple[float, float]]) -> None:
        one = effort(experiments()["K-fig5"], "quick")
        super().__init__(one, Attempt(experiments()["K-fig5"], "quick").cases, lambda _: [])
        self._of = of

    def measure(self, label: Label, metric: object) -> Sample:
        return Sample(self._of(label))


def judged(claim: str, of: Callable[[Any], tuple[float, float]]) -> list[Check]:
    rule = fig5.study.rules[claim]
    return list(rule.judge(Times(of), **rule.bounds))  # type: ignore[arg-type]


def late(label: Any) -> tuple[float, float]:
    """Return 5 s, and nothing for two of the classes."""
    never = (("growth", 1000.0, 10.0), ("growth", 100.0, 1000.0))
    return (5.0, math.inf if label in never else 5.0)


def test_every_empty_class_is_named_in_words() -> None:
    checks = judged("K-fig5-e", lambda label: (0.0, 0.0) if "drops" in str(label) else late(label))
    empty = [check for check in checks if isinstance(check, Empty)]
    assert [check.what for check in empty] == ["s to 80 %, 1 + epsilon = 1000, 10 Mbit/s"]
    assert all("in 1 of 2 runs" in check.measured and not check.holds for check in empty)
    assert len(checks) == len(empty), "nothing is compared with a time that there is not"


@pytest.mark.parametrize("claim", ["K-fig5-a", "K-fig5-b", "K-fig5-c", "K-fig5-d", "K-fig5-f"])
def test_what_is_there_is_judged_beside_an_empty_class(claim: str) -> None:
    every = judged(claim, lambda _: (5.0, 5.0))
    gone = {"K-fig5-f": ("1.25s", 10.0)}.get(claim, ("k", 0.33, 10.0))
    some = judged(claim, lambda label: (5.0, math.inf if label == gone else 5.0))
    left = [str(check) for check in some if not isinstance(check, Empty)]
    assert len(some) - len(left) == 1
    assert 0 < len(left) < len(every)
    assert set(left) < set(map(str, every))


def test_times_are_set_up_too() -> None:
    (first, *_) = judged("K-fig5-b", lambda _: (5.0, 5.0))
    assert first.sample == Sample((5.0, 5.0))


@pytest.mark.parametrize(("value", "least", "tick"), [("200ms/10ms", "200ms", "10ms"), ("1s/0ms", "1s", "0ms")])
@pytest.mark.parametrize("name", ["K-fig4", "K-txt-table"])
def test_the_tick_comes_with_the_least_timeout(name: str, value: str, least: str, tick: str) -> None:
    made = [tomllib.loads(case.text) for case in Attempt(experiments()[name], "quick", {"K-P18": value}).cases.values()]
    params = [group["params"] for content in made for group in content["flows"] if "params" in group]
    timed = [one for one in params if "min_rto" in one]
    assert timed
    for one in timed:
        assert (one["min_rto"], one["clock_tick"], one["rtt_resolution"]) == (least, tick, "0s")


def test_every_timer_of_the_table_names_both() -> None:
    timer = choices(PAPERS["K"])["K-P18"]
    assert all(len(value.split("/")) == 2 for value in (timer.used, *timer.others))
