"""The check of the event queue's cost can fail, and names the pattern; it has a limit for every pattern."""

import re

import pytest
from cost_queue import LIMITS, SIZES, judge, table
from shared import ROOT


def counts(changed="", factor=1.0):
    return {(n, size): limit * (factor if n == changed else 1.0) for n, limit in LIMITS.items() for size in SIZES}


def test_counts_at_their_limits_pass():
    assert list(judge(counts())) == []


@pytest.mark.parametrize("name", LIMITS)
def test_a_count_over_its_limit_fails_and_names_the_pattern(name):
    (told,) = judge(counts(name, 1.01))
    assert told.startswith(f"event queue, {name}: ")


def test_every_pattern_has_a_limit_and_a_row():
    text = (ROOT / "crates/explicate-sim/src/adversaries.rs").read_text(encoding="utf-8")
    assert re.findall(r'^    \("(.+)", \|', text, flags=re.MULTILINE) == list(LIMITS)
    assert all(f"| {name} |" in table(counts()) for name in LIMITS)
