"""docs/reproduction-criteria.md: it is what its command writes, and what it says of judges is so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from explicate_papers import freeze
from explicate_papers.plan import studies
from explicate_papers.register import JUDGED, predicates

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_criteria.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("make_criteria", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_criteria", module)  # a dataclass looks there for its annotations
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_command_writes(script: Any) -> None:
    assert script.DOCUMENT.read_text(encoding="utf-8") == script.page(), "scripts/make_criteria.py renews it"


def test_each_row_has_the_hash_that_is_frozen_now(script: Any) -> None:
    homes = {predicate.id: study for study in studies().values() for predicate in study.experiment.predicates}
    rows = script.changed()
    assert rows
    for one in rows:
        assert one.new == freeze.judge_digest(homes[one.id], one.id) != one.old, one.id
        assert one.before, one.id


def test_a_change_that_is_not_in_the_ledger_stops_the_page(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = script.changed()[0]
    monkeypatch.setattr(freeze, "ledger", list)
    with pytest.raises(SystemExit, match=lost.id):
        script.changed()


def test_every_claim_of_the_authors_is_counted_once(script: Any) -> None:
    authors = [key for key, one in predicates().items() if one.basis in JUDGED]
    rows = [re.findall(r"\| (\d+)", line) for line in script.counts() if line.startswith("| ") and "---" not in line]
    numbers = [list(map(int, row)) for row in rows if row]
    assert len(numbers) == len(script.STANDINGS)
    assert sum(row[-1] for row in numbers) == len(authors)
    assert all(sum(row[:-1]) == row[-1] for row in numbers)


def test_rules_and_formulas_are_so_for_both_readers(script: Any) -> None:
    read = script.readings()
    for key in script._toml("standing.toml")["by_construction"]:
        assert {one["kind"] for one in read[key]} <= {"definition", "setting"}, key
    missing = [
        key
        for key, readers in read.items()
        if all(one["kind"] == "definition" for one in readers) and script.standings()[key] == "the paper's sentence"
    ]
    assert missing == []
