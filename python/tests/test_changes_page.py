"""docs/reproduction-changes.md: it is what its command writes, and has every entry of the ledger with its hashes."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explicate_papers import freeze
from explicate_papers.freeze import Change

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_changes", SCRIPTS / "make_changes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_changes", module)  # a dataclass looks there for its annotations
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("make_criteria", None)


def test_the_page_is_what_the_command_writes(script: Any) -> None:
    assert script.DOCUMENT.read_text(encoding="utf-8") == script.page(), "scripts/make_changes.py renews it"


def test_every_entry_of_the_ledger_has_a_row_and_its_reason(script: Any) -> None:
    reasons, _, rest = script.page().partition("## Entries")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| (new|`[0-9a-f]{16}`) \| `([0-9a-f]{16})` \|", rest, re.M)
    assert [(row[1], row[3]) for row in rows] == [(one.id, one.hash) for one in freeze.ledger()]
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    for one in freeze.ledger():
        assert script.make_criteria.plain(one.reason) in reasons, one.id


def test_each_hash_follows_from_the_one_before(script: Any) -> None:
    known = dict(freeze.frozen())
    for one in script.entries():
        assert one.old == known.get(one.change.id, "")
        assert one.old != one.change.hash or one.change.before != one.change.after, one.change.id
        known[one.change.id] = one.change.hash


def test_a_claim_that_is_new_has_no_hash_before(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [Change("X-a", "1", "why", "", "holds"), Change("X-a", "2", "why not", "holds", "fails")]
    monkeypatch.setattr(freeze, "ledger", lambda: made)
    assert [one.old for one in script.entries()] == ["", "1"]
    assert [line for line in script.hashes(script.entries()) if "X-a" in line] == [
        "| 1 | X-a | new | `1` | – | holds |",
        "| 2 | X-a | `1` | `2` | holds | fails |",
    ]


def test_neighbours_become_a_span(script: Any) -> None:
    assert script.span([4]) == "4"
    assert script.span([1, 2, 4, 6, 7, 8]) == "1 to 2, 4, 6 to 8"
