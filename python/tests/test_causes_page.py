"""docs/reproduction-causes.md: it is what its command writes, and every claim that does not hold has its cause."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from explicate_papers.verdicts import Word

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_causes", SCRIPTS / "make_causes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("make_criteria", None)


def test_the_page_is_what_the_command_writes(script: Any) -> None:
    assert script.DOCUMENT.read_text(encoding="utf-8") == script.page(), "scripts/make_causes.py renews it"


def test_each_claim_that_does_not_hold_has_a_cause_by_two_readers(script: Any) -> None:
    words = script.make_criteria.words()
    causes = {cause["id"]: cause for cause in script.causes()}
    assert set(causes) == {claim for claim, word in words.items() if word != Word.HOLDS}
    for claim, cause in causes.items():
        assert cause["verdict"] == words[claim], f"{claim}: it was labelled when its verdict was another"
        assert len(cause["readers"]) == 2, claim
        for reader in cause["readers"]:
            assert reader["label"] in script.LABELS, claim
            assert reader["evidence"], claim


def test_a_label_carries_what_it_promises(script: Any) -> None:
    """A number for arithmetic and for seeds; the choice that turns a claim, or that none is named yet."""
    for cause in script.causes():
        for reader in cause["readers"]:
            claim, evidence = cause["id"], reader["evidence"] + reader["missing"]
            if reader["label"] in {"paper", "seeds"}:
                assert any(sign.isdigit() for sign in evidence), claim
            if reader["label"] == "open parameter":
                assert re.search(rf"{claim[0]}-[PX]\d|no choice of ours|not a numbered choice", evidence), claim


def test_what_can_not_fail_is_by_construction(script: Any) -> None:
    for cause in script.causes():
        if cause["verdict"] == Word.CANNOT_FAIL:
            assert {reader["label"] for reader in cause["readers"]} == {"construction"}, cause["id"]
