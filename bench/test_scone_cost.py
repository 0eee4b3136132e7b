"""The check of the SCONE element's cost can fail, and names the frame; SCONE packets have no limit."""

import pytest
from scone_cost import CASES, LIMIT, judge, table

OTHERS = [name for name, words in CASES.items() if "opening" not in words]


def counts(changed="", ratio=LIMIT):
    return {name: (1000.0, 1000.0 * (ratio if name == changed else LIMIT)) for name in CASES}


def test_counts_at_the_limit_pass():
    assert list(judge(counts())) == []


@pytest.mark.parametrize("name", OTHERS)
def test_a_frame_over_the_limit_fails_and_is_named(name):
    (told,) = judge(counts(name, 1.06))
    assert told == f"SCONE element, {name}: +6.0% instructions a frame, limit +5%"


def test_what_is_rewritten_may_cost_more():
    (name, *_) = [name for name in CASES if name not in OTHERS]
    assert list(judge(counts(name, 2.0))) == []
    assert f"| {name} | 1,000 | 2,000 | 2.000 |" in table(counts(name, 2.0))
