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
        "Unit in which the law is told round trips",
        "From a cloud of which nothing is known yet",
        "Somebody else's crate",
        "The law hears nothing",
    ],
)
def test_phrases_are_found(text: str) -> None:
    assert next(iter(check_prose.phrases(f"A line.\n{text}\n"))).startswith("line 2: avoid `")


@pytest.mark.parametrize(
    "text",
    [
        "a station that cannot hear another",
        "reminds",
        "its own link",
        "See the table",
        "a router that reports its load",
    ],
)
def test_terms_of_the_field_pass(text: str) -> None:
    assert not list(check_prose.phrases(text))


def test_no_page_has_one() -> None:
    assert not list(check_prose.bad_prose())


def test_an_arrow_that_the_shell_would_take_is_found() -> None:
    block = "```sh\nexplicate run x.toml --set link.r1->r2.rate=5Mbit/s\n```\n"
    assert "quote it" in next(check_prose.wrong_commands(block))
    quoted = block.replace("link.r1->r2.rate=5Mbit/s", "'link.r1->r2.rate=5Mbit/s'")
    assert not list(check_prose.wrong_commands(quoted))


def test_commands_of_blocks_with_a_title_are_seen() -> None:
    assert next(check_prose.wrong_commands('```sh title="a"\nexplicate rnu x.toml\n```\n'))
