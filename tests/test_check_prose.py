"""The list of phrases to avoid: it finds them, and leaves terms of the field alone."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_prose  # noqa: E402


@pytest.mark.parametrize(
    "text",
    [
        "Whoever sends a file hears of it",
        "nobody looks before that",
        "Links of one's own",
        "Each is perhaps nothing.",
        "what a law minds",
        "The router is told of departures",
    ],
)
def test_phrases_are_found(text: str) -> None:
    assert next(iter(check_prose.phrases(f"A line.\n{text}\n"))).startswith("line 2: avoid `")


@pytest.mark.parametrize("text", ["a station that cannot hear another", "reminds", "its own link", "See the table"])
def test_terms_of_the_field_pass(text: str) -> None:
    assert not list(check_prose.phrases(text))


def test_no_page_has_one() -> None:
    assert not list(check_prose.bad_prose())
