"""docs/reproduction.md: its counts add up, and every verdict other than "holds" is explained."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from explicate_papers import multiverse
from explicate_papers.register import JUDGED, experiments, predicates
from explicate_papers.verdicts import Word

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "make_reproduction.py"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("make_reproduction", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows() -> list[dict[str, Any]]:
    """All claims, with the six classes in turn."""
    words = list(Word)
    made: list[dict[str, Any]] = []
    for one in experiments().values():
        for predicate in one.predicates:
            word = words[len(made) % len(words)]
            block = {"holds": word is Word.HOLDS, "measured": "share: 0.5 (wanted ≥ 0.4); rate: 3 (wanted ≥ 4)"}
            made.append(
                {
                    "experiment": one.id,
                    "effort": "quick",
                    "predicate": predicate.id,
                    "basis": predicate.basis,
                    "statement": predicate.statement,
                    "criterion": predicate.criterion,
                    "verdict": word.value,
                    "blocks": [{"first_seed": first, **block} for first in (1, 1001)],
                    "checks": [{"text": f"rate {n}: 3 (wanted ≥ 4)", "met": False} for n in range(9)]
                    + [{"text": f"share {n}: 0.5 (wanted ≥ 0.4)", "met": True} for n in range(20)],
                    "decides": "9 of 29 checks are not met, marked ✗",
                    "instead": "the mean, because packets are few" if word is Word.NOT_JUDGED else "",
                    "deterministic": False,
                    "enlarged": one.id == "I-fig2",
                    "opened": ["I-fig2-e"] if one.id == "I-fig2" else [],
                    "measured": block["measured"],
                    "runs": 8,
                    "pass": None,
                    "note": "",
                }
            )
    return made


@pytest.fixture
def page() -> str:
    trial = {"outcome": "flipped", "why": "share: 0.1"}
    holding = [row["predicate"] for row in rows() if row["verdict"] == "holds" and row["basis"] in JUDGED]
    starved = {"outcome": "not valid", "why": "too few bytes"}
    claims = {**dict.fromkeys(holding[:-2], trial), holding[-2]: starved}
    entry = {"kind": "off", "why": "no router speaks", "claims": claims}
    chosen = {key: "holds" for key in predicates() if key.startswith("I-")}
    others = {"I-P1=5ms": {"experiments": 1, "differs": {"I-fig2-a": "fails", "I-fig2-b": "fails"}, "errors": {}}}
    controls = {"I-fig2": {"key": "", "controls": {"silence": entry}}}
    return str(script().page(rows(), controls, {"I": {"chosen": chosen, "alternatives": others}}))


def test_the_counts_of_the_headline_add_up(page: str) -> None:
    (line,) = (line for line in page.splitlines() if line.startswith("**") and "two blocks of seeds" in line)
    numbers = [int(found) for found in re.findall(r"(?:\*\*|; )(\d+)", line)]
    claims = [row for row in rows() if row["basis"] in JUDGED]
    assert sum(numbers) == len(claims) == 239
    assert "1 hold, and their controls have not been run yet" in line
    assert "1 holds without such a control" in line


def test_the_multiverse_has_its_span(page: str) -> None:
    authors = sum(key.startswith("I-") and one.basis in JUDGED for key, one in predicates().items())
    assert f"Between {authors - 2} and {authors} of the claims of paper I hold over all single changes" in page
    assert "the other alternatives have not been run yet" in page
    assert "made before the papers' hosts had ns-2's timer" in page
    assert "I-fig2-a fails; I-fig2-b fails" in page
    assert "claim by claim" in page


def test_what_it_says_of_the_multiverse_is_renewed_alone(page: str) -> None:
    chosen = {key: "holds" for key in predicates() if key.startswith("K-")}
    others = {"K-P1=1": {"experiments": 1, "differs": {"K-fig1-a": "fails"}, "errors": {}}}
    universes = {"K": {"chosen": chosen, "alternatives": others}}
    record = json.loads((ROOT / "tests" / "papers.json").read_text(encoding="utf-8"))
    renewed = str(script().renewed(page, universes, record))
    assert "of the claims of paper K" in renewed
    assert "K-fig1-a fails" in renewed
    assert "I-fig2-a fails; I-fig2-b fails" not in renewed
    assert script().renewed(renewed, universes, record) == renewed
    kept = [line for line in page.splitlines() if line.startswith("What we measure: ")]
    assert kept == [line for line in renewed.splitlines() if line.startswith("What we measure: ")]
    with pytest.raises(SystemExit, match="make it from a folder"):
        script().renewed("# Another page", universes, record)


def test_a_claim_shows_all_that_is_not_met_and_what_would_turn_it(page: str) -> None:
    claim = next(row["predicate"] for row in rows() if row["verdict"] == Word.FAILS and row["predicate"][0] == "I")
    part = page[page.index(f"**{claim}** fails: ") :].split("\n**", 1)[0]
    assert [f"- ✗ rate {n}: 3 (wanted ≥ 4)" in part for n in range(9)] == [True] * 9
    assert part.index("- ✗ rate 8") < part.index("- share 0")
    assert "- … and 12 more that are met" in part
    assert "What we measure: " in part
    assert "What decides it: 9 of 29 checks are not met, marked ✗ (seeds from 1: fails; seeds from 1001: fails" in part
    assert "What would turn it: " in part


def test_claims_that_hold_have_a_table(page: str) -> None:
    held = [row["predicate"] for row in rows() if row["verdict"] == Word.HOLDS]
    for claim in held:
        assert f"\n| {claim} | " in page
    universes = {"I": {"alternatives": {"I-P1=5ms": {"differs": {"I-fig2-a": "fails"}}}}}
    (line,) = (line for line in script().holding("I", {"I-fig2-a": "holds"}, {}, universes) if "I-fig2-a" in line)
    assert "I-P1=5ms (fails)" in line
    assert predicates()["I-fig2-a"].statement in line


def test_the_committed_pages_are_up_to_date() -> None:
    record = json.loads((ROOT / "tests" / "papers.json").read_text(encoding="utf-8"))
    committed = script().DOCUMENT.read_text(encoding="utf-8")
    renewed = script().renewed(committed, multiverse.load(script().UNIVERSES), record)
    assert renewed == committed, "scripts/make_reproduction.py renews the page"
    assert script().FIGURES.read_text(encoding="utf-8") == script().figures_page()


def test_the_page_of_figures_has_every_experiment() -> None:
    page = script().figures_page()
    for key in experiments():
        assert page.count(f"\n| {key} | ") == 1, key


def test_verdicts_that_moved_are_those_on_record(page: str) -> None:
    record = json.loads((ROOT / "tests" / "papers.json").read_text(encoding="utf-8"))
    assert set(record["older"]) <= set(experiments())
    verdicts = {claim: word for words in record["quick"].values() for claim, word in words.items()}
    moved = tomllib.loads(script().MOVED.read_text(encoding="utf-8"))["moved"]
    older = {predicate.id for key in record["older"] for predicate in experiments()[key].predicates}
    for one in moved:
        assert one["after"] == verdicts[one["claim"]] != one["before"], one["claim"]
        assert one["claim"] not in older, "not judged again"
        assert f"| {one['claim']} | {one['before']} | {one['after']} |" in page
    again = len(experiments()) - len(record["older"])
    assert f"{again} of {len(experiments())} experiments have been judged again" in page
    assert all(key in page for key in record["older"])
    committed = script().DOCUMENT.read_text(encoding="utf-8")
    part = "\n".join(script().said_of_moved(whole=False))
    assert part in committed, "scripts/make_reproduction.py renews the page"


def test_both_texts_stand_side_by_side(page: str) -> None:
    assert "| criterion | judged instead, because |" in page
    assert "the mean, because packets are few" in page


def test_controls_and_enlargement_are_shown(page: str) -> None:
    assert "Enlarged to 4 times the seeds, with the claims that were open: I-fig2 (I-fig2-e)." in page
    assert "no router speaks" in page
    assert "Changes since the freeze" in page


def test_exchanges_are_counted_apart() -> None:
    off = {"kind": "off", "claims": {"I-fig2-a": {"outcome": "flipped"}, "I-fig2-b": {"outcome": "did not flip"}}}
    exchange = {"kind": "exchange", "claims": {f"I-fig2-{one}": {"outcome": "flipped"} for one in "abc"}}
    controls = {"I-fig2": {"controls": {"silence": off, "places": exchange}}}
    said = script().said_of_exchanges
    (line,) = said({"I-fig2-a", "I-fig2-b"}, controls)
    assert line.startswith("Of the 2, 1 fail under exchanges of two variants alone.")
    assert not list(said({"I-fig2-a"}, controls))


def test_a_span_needs_alternatives() -> None:
    assert multiverse.span({}) is None
    assert multiverse.span({"I": {"chosen": {"I-fig2-a": "holds"}, "alternatives": {}}}) is None
