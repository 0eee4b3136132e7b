"""I-txt-lossfree's judge, on samples and records that were written by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import polars as pl
import pytest

from explicate.results import Results
from explicate_papers.lopez_pacheco import txt_lossfree
from explicate_papers.lopez_pacheco.txt_lossfree import Step

PACKET, RTT_MS = 1000.0, 100.0
SAMPLE_S = 50e-6


def replay(windows: list[float], acks: list[tuple[int, int, int]], expires: int = 0) -> list[Step]:
    """Judge a window a sample, with acknowledgements (sample, number, packets of feedback) and the timer."""
    rows = []
    for place, window in enumerate(windows):
        timer_ms = 800.0 if expires and place >= expires else 400.0
        for name, value in (("cwnd", window), ("srtt_ms", RTT_MS), ("rto_ms", timer_ms)):
            rows.append((place * SAMPLE_S, txt_lossfree.FLOW, name, value))
    samples = pl.DataFrame(rows, schema=["time_s", "object", "variable", "value"], orient="row")
    lines = [
        f"   {(place - 0.5) * SAMPLE_S:.9f}            delivered bulk.0 ack {number} packet {count} 72 B "
        f"feedback {round(packets * PACKET / (RTT_MS * 1e-3)):+d}"
        for count, (place, number, packets) in enumerate(acks)
    ]
    results = SimpleNamespace(samples=samples, trace="\n".join(lines))
    return txt_lossfree.steps(cast("Results", results), PACKET)


def test_the_update_rule_and_its_floor() -> None:
    """Feedback is added, and the window stays one packet at least."""
    found = replay([10.0, 12.0, 9.0, 1.0, 1.5], [(1, 1, 2), (2, 2, -3), (3, 3, -20), (4, 4, 2)])
    assert [step.as_told for step in found] == [True, True, True, False]


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (52.0, True),  # halved when the loss is found, and the acknowledgement's feedback then
        (102.0, True),  # not halved: the recovery continues
        (51.0, False),  # half of window and feedback
        (50.0, False),  # no feedback
        (54.0, False),
    ],
)
def test_the_third_duplicate_halves_the_window_that_its_feedback_finds(after: float, told: bool) -> None:
    """100 packets, three duplicates, and 2 packets of feedback with the last of them."""
    acks = [(1, 7, 0), (2, 7, 0), (3, 7, 0), (4, 7, 2)]
    assert [step.as_told for step in replay([100.0] * 4 + [after], acks)] == [True] * 3 + [told]


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (1.0, True),  # the acknowledgement came first
        (4.0, True),  # the timer expired first
        (3.0, False),
        (33.0, False),  # no timeout
    ],
)
def test_an_acknowledgement_and_the_timer_in_one_sample(after: float, told: bool) -> None:
    """30 packets, and 3 packets of feedback in the sample in which the timer expires."""
    (step,) = replay([30.0, after], [(1, 7, 3)], expires=1)
    assert (step.expired, step.as_told) == (True, told)


def test_one_packet_without_a_timeout_is_no_rule() -> None:
    """Only the timer resets the window."""
    (step,) = replay([30.0, 1.0], [(1, 7, 3)])
    assert not step.as_told


@pytest.mark.parametrize(("after", "told"), [(1.0, True), (30.0, False)])
def test_the_timer_alone(after: float, told: bool) -> None:
    """Without an acknowledgement the window is one packet."""
    (step,) = replay([30.0, after], [], expires=1)
    assert (step.acknowledged, step.as_told) == (False, told)
