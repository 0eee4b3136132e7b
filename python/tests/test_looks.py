"""What a reader looks for in each experiment: every one has a row, and a row says what is missing or nothing is."""

from __future__ import annotations

from explicate_papers.looks import SHOWN, looks
from explicate_papers.plan import studies
from explicate_papers.register import experiments


def test_every_experiment_has_a_row_and_no_row_is_of_none() -> None:
    assert list(looks()) == list(experiments())


def test_a_row_says_what_is_missing_if_something_is() -> None:
    for key, look in looks().items():
        assert look.sought, key
        assert look.shown in SHOWN, key
        assert bool(look.lacks) == (look.shown != "yes"), key


def test_what_is_shown_is_drawn() -> None:
    for key, study in studies().items():
        assert (study.make_panels is None) == (looks()[key].shown == "no"), key
