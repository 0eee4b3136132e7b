"""The two readings of claims in the papers: complete, and what was drawn can be drawn again."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

from explicate_papers.register import PAPERS, predicates

READINGS = Path(__file__).resolve().parents[2] / "papers" / "readings"
WORDS = {
    "statement_is": {"same", "stricter", "looser", "other", "not in the paper"},
    "kind": {"number", "ordering", "trend", "absence", "definition", "setting"},
    "sure": {"yes", "no"},
}


def drawn() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((READINGS / "draw.json").read_text(encoding="utf-8"))
    return made


def rows(letter: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads((READINGS / f"{letter}.json").read_text(encoding="utf-8"))
    return made


def test_each_claim_that_did_not_hold_has_both_readings() -> None:
    found = [row["id"] for letter in PAPERS for row in rows(letter)]
    assert sorted(found) == sorted(drawn()["not_holds"] + drawn()["drawn"] + drawn()["later"])
    assert len(found) == len(set(found)) == 173
    assert set(found) <= set(predicates())


@pytest.mark.parametrize("letter", PAPERS)
def test_both_readers_say_everything(letter: str) -> None:
    for row in rows(letter):
        assert row["id"].startswith(f"{letter}-")
        assert row["statement"] == predicates()[row["id"]].statement
        assert len(row["readers"]) == 2
        for reading in row["readers"]:
            assert all(reading[field].strip() for field in ("where", "says", "contradicts"))
            assert all(reading[field] in words for field, words in WORDS.items())
            assert bool(reading["statement_why"]) == (reading["statement_is"] != "same"), row["id"]


def test_the_draw_is_that_of_its_seed() -> None:
    """From the claims that held, in order of their names."""
    others = sorted(set(predicates()) - set(drawn()["not_holds"]))
    assert sorted(random.Random(drawn()["seed"]).sample(others, 40)) == drawn()["drawn"]


def test_judges_changed_only_where_the_readers_agree() -> None:
    read = {row["id"]: row["readers"] for letter in PAPERS for row in rows(letter)}
    changed = tomllib.loads((READINGS / "judged.toml").read_text(encoding="utf-8"))["claim"]
    assert len({one["id"] for one in changed}) == len(changed)
    for one in changed:
        first, second = read[one["id"]]
        assert first["statement_is"] == second["statement_is"] != "not in the paper", one["id"]
        assert one["was"] != predicates()[one["id"]].criterion, one["id"]
        assert one["sentence"].strip()
        assert one["reason"].strip()
