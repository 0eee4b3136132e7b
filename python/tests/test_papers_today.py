"""docs/papers-today.md: the page is what its command writes, and what it says of conclusions follows from verdicts."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from explicate_papers import stacks
from explicate_papers.judge import Verdict
from explicate_papers.lopez_pacheco import txt_lossfree
from explicate_papers.register import JUDGED, PAPERS, experiments, predicates
from explicate_papers.statistics import Check, Sample, at_least, at_most
from explicate_papers.verdicts import Block, Word

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("papers_today", SCRIPTS / "papers_today.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "papers_today", module)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_what_the_command_writes(script: Any) -> None:
    record = script.load()
    assert script.PAGE.read_text(encoding="utf-8") == script.page(record), "scripts/papers_today.py renews it"
    assert script.CLAIMS.read_text(encoding="utf-8") == script.claims_page(record), "scripts/papers_today.py renews it"


def test_the_page_has_one_screen_and_every_claim_has_a_row(script: Any) -> None:
    assert len(script.page(script.load()).splitlines()) <= 60
    rows = [line.split(" | ")[0] for line in script.claims_page(script.load()).splitlines()]
    for key, predicate in predicates().items():
        assert rows.count(f"| {key}") == (predicate.basis in JUDGED), key


def test_conclusions_rest_on_claims_of_their_own_paper(script: Any) -> None:
    rows = script.conclusions()
    homes = {predicate.id: one.paper.letter for one in experiments().values() for predicate in one.predicates}
    used = [claim for row in rows for claim in row["claims"]]
    assert len(set(used)) == len(used), "a claim decides one conclusion"
    assert {row["paper"] for row in rows} == set(PAPERS)
    for row in rows:
        assert row["claims"]
        assert {homes[claim] for claim in row["claims"]} == {row["paper"]}, row["says"]


def test_the_record_is_about_claims_that_there_are(script: Any) -> None:
    known = {word.value for word in Word} | {script.NOT_MEANINGFUL}
    for name, entry in script.load()["experiments"].items():
        claims = {predicate.id for predicate in experiments()[name].predicates}
        assert set(entry["claims"]) == claims, name
        assert set(entry.get("papers", {})) <= claims
        assert {one["verdict"] for one in entry["claims"].values()} <= known, name
        assert entry["seeds"]["first"] in ([1], [1, 1001]), name
        meaningless = set(stacks.meaningless("linux")) & claims
        assert {key for key, one in entry["claims"].items() if one["verdict"] == script.NOT_MEANINGFUL} == meaningless


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ({}, ("2 of 3", "–", "not yet run")),
        ({"c": "holds"}, ("2 of 3", "1 of 1", "not yet run")),
        ({"a": "holds", "c": "fails"}, ("2 of 3", "1 of 2", "so far; not yet run: b")),
        ({"a": "holds", "b": "holds", "c": "fails"}, ("2 of 3", "2 of 3", "yes")),
        ({"a": "holds", "b": "holds", "c": "holds"}, ("2 of 3", "3 of 3", "yes; now c holds")),
        ({"a": "holds", "b": "undecided", "c": "fails"}, ("2 of 3", "1 of 3", "**open**: b undecided")),
        ({"a": "holds", "b": "fails", "c": "fails"}, ("2 of 3", "1 of 3", "**in part**: b fails")),
        ({"a": "fails", "b": "fails", "c": "fails"}, ("2 of 3", "0 of 3", "**no**: a fails, b fails")),
        ({"a": "holds", "b": "not meaningful", "c": "fails"}, ("1 of 2", "1 of 2", "yes")),
    ],
)
def test_a_conclusion_survives_as_far_as_it_held(
    script: Any, hosts: dict[str, str], said: tuple[str, str, str]
) -> None:
    assert script.fate(["a", "b", "c"], {"a": "holds", "b": "holds", "c": "fails"}, hosts) == said


def test_what_never_held_is_not_lost(script: Any) -> None:
    assert script.fate(["a"], {"a": "fails"}, {"a": "fails"}) == ("0 of 1", "0 of 1", "did not hold")
    assert script.fate(["a"], {"a": "fails"}, {"a": "holds"}) == ("0 of 1", "1 of 1", "did not hold; now a holds")


def verdict(*blocks: tuple[Check, ...]) -> Verdict:
    predicate = experiments()["I-fig2"].predicates[0]
    made = tuple(
        Block(first, all(one.holds for one in checks), checks) for first, checks in zip((1, 1001), blocks, strict=True)
    )
    return Verdict("I-fig2", "quick", predicate, Word.HOLDS, made)


def test_the_checks_that_decide_are_those_that_differ(script: Any) -> None:
    five, one = Sample.of([5.0, 5.1]), Sample.of([1.0, 1.1])
    good, bad, both = at_least("rate", five, 2.0), at_least("rate", one, 2.0), at_most("loss", five, 3.0)
    usual, hosts = verdict((both, good), (both, good)), verdict((both, bad), (both, bad))
    assert script.deciding(usual, hosts) == (0, [1])
    assert script.numbers(hosts, [1]) == ["✗ rate: 1.05 ± 0.6353 (wanted ≥ 2)"]
    late = verdict((both, good), (both, bad))
    assert script.deciding(usual, late) == (1, [1]), "in the second block alone"
    assert script.numbers(late, [1], 1) == script.numbers(hosts, [1])
    wide = at_least("rate", Sample.of([2.0, 9.0]), 2.0)
    assert script.deciding(usual, verdict((both, wide), (both, wide))) == (0, [1]), "its interval contains the bound"
    assert script.numbers(verdict((good,) * 5, ()), range(5))[2:] == ["3 more"]


@pytest.mark.usefixtures("native_real")
def test_experiments_are_recorded_one_by_one_and_not_again(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {key: experiments()[key] for key in ("I-txt-lossfree", "Y-txt-symsize")}
    for name, file in {"RECORD": "record.json", "PAGE": "page.md", "CLAIMS": "claims.md"}.items():
        monkeypatch.setattr(script, name, tmp_path / file)
    monkeypatch.setattr(script, "experiments", lambda: chosen)
    monkeypatch.setattr(txt_lossfree, "SECONDS", 1)  # of five, each of 20,000 samples
    run = ["papers_today.py", "--run", "--jobs", "1", "--store", str(tmp_path / "store")]
    monkeypatch.setattr(sys, "argv", [*run, "--experiment", "Y-txt-symsize"])
    assert script.main() == 0
    assert "1 of 2 experiments are on record; not yet run: I-txt-lossfree" in capsys.readouterr().out
    kept = json.loads(script.RECORD.read_text(encoding="utf-8"))["experiments"]
    assert list(kept) == ["Y-txt-symsize"]
    monkeypatch.setattr(sys, "argv", run)
    assert script.main() == 0
    out = capsys.readouterr().out
    assert "I-txt-lossfree: " in out
    assert "Y-txt-symsize: " not in out
    kept = json.loads(script.RECORD.read_text(encoding="utf-8"))["experiments"]
    assert list(kept) == list(chosen)
    assert kept["I-txt-lossfree"]["claims"]["I-txt-lossfree-b"]["verdict"] == "not meaningful"
    assert any(row["setting"] == "recovery" for row in kept["I-txt-lossfree"]["replaced"])
    assert "| I-txt-lossfree-b |" in script.CLAIMS.read_text(encoding="utf-8")
