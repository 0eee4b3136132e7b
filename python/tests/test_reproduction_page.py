"""docs/reproduction.md: its counts add up, and every verdict other than "holds" is explained."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from explicate_papers import multiverse
from explicate_papers.plan import studies
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
    """All claims, with the six classes in turn, as `explicate reproduce --json` prints them."""
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
                    "verdict": word.value,
                    "blocks": [{"first_seed": first, **block} for first in (1, 1001)],
                    "checks": [{"text": f"rate {n}: 3 (wanted ≥ 4)", "met": False} for n in range(9)]
                    + [{"text": f"share {n}: 0.5 (wanted ≥ 0.4)", "met": True} for n in range(20)],
                    "decides": "9 of 29 checks are not met, marked ✗",
                    "enlarged": one.id == "I-fig2",
                    "runs": 8,
                }
            )
    return made


def record() -> dict[str, Any]:
    """A record of these verdicts, with a control of paper I."""
    trial = {"outcome": "flipped", "why": "share: 0.1"}
    holding = [row["predicate"] for row in rows() if row["verdict"] == "holds" and row["basis"] in JUDGED]
    starved = {"outcome": "not valid", "why": "too few bytes"}
    claims = {**dict.fromkeys(holding[:-2], trial), holding[-2]: starved}
    entry = {"kind": "off", "why": "no router speaks", "claims": claims}
    made: dict[str, Any] = {
        "quick": {},
        "older": [],
        "controls": {"quick": {"I-fig2": {"key": "", "controls": {"silence": entry}}}},
    }
    for row in rows():
        made["quick"].setdefault(row["experiment"], {})[row["predicate"]] = row["verdict"]
    script().note_measured(made, rows())
    return made


@pytest.fixture
def page() -> str:
    chosen = {key: "holds" for key in predicates() if key.startswith("I-")}
    others = {"I-P1=5ms": {"experiments": 1, "differs": {"I-fig2-a": "fails", "I-fig2-b": "fails"}, "errors": {}}}
    return str(script().page(record(), {"I": {"chosen": chosen, "alternatives": others}}))


def part(page: str, claim: str) -> str:
    """The section of a claim."""
    return re.split(r"\n\*\*|\n## ", page[page.index(f"**{claim}** ") + 2 :], maxsplit=1)[0]


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


def test_a_claim_shows_all_that_is_not_met_and_what_would_turn_it(page: str) -> None:
    claim = next(row["predicate"] for row in rows() if row["verdict"] == Word.FAILS and row["predicate"][0] == "I")
    said = part(page, claim)
    assert [f"- ✗ rate {n}: 3 (wanted ≥ 4)" in said for n in range(9)] == [True] * 9
    assert said.index("- ✗ rate 8") < said.index("- share 0")
    assert "- … and 12 more that are met" in said
    assert "What we measure: " in said
    assert "What decides it: 9 of 29 checks are not met, marked ✗ (seeds from 1: fails; seeds from 1001: fails" in said
    assert "What would turn it: " in said


def test_values_of_another_judge_are_not_shown() -> None:
    claim = next(row["predicate"] for row in rows() if row["verdict"] == Word.FAILS and row["predicate"][0] == "N")
    known = record()
    assert "- ✗ rate 0" in part(script().page(known, {}), claim)
    judge, *rest = known["measured"][claim]["frozen"].split(" ")
    assert judge == script().state(claim).split(" ")[0] != ""
    known["measured"][claim]["frozen"] = " ".join(["another", *rest])
    said = part(script().page(known, {}), claim)
    assert "- ✗ rate 0" not in said
    assert "No values of this judge are on record" in said
    known["measured"][claim]["frozen"] = ""
    said = part(script().page(known, {}), claim)
    assert "before the papers' hosts had ns-2's timer:\n\n- ✗ rate 0" in said


def test_values_of_claims_that_hold_are_not_recorded() -> None:
    known = record()
    verdicts = {row["predicate"]: row["verdict"] for row in rows()}
    assert set(known["measured"]) == {claim for claim, word in verdicts.items() if word != Word.HOLDS}
    held = [{**row, "verdict": "holds"} for row in rows()[:60]]
    script().note_measured(known, held)
    assert not {row["predicate"] for row in held} & set(known["measured"])


def test_results_of_a_folder_are_entered(tmp_path: Path) -> None:
    known: dict[str, Any] = {"quick": {}, "older": ["I-fig2", "I-fig4"], "controls": {}}
    mine = [row for row in rows() if row["experiment"] == "I-fig4"]
    (tmp_path / "verdicts.json").write_text(json.dumps(mine), encoding="utf-8")
    script().enter(known, tmp_path)
    assert known["quick"] == {"I-fig4": {row["predicate"]: row["verdict"] for row in mine}}
    assert known["older"] == ["I-fig2"]
    assert known["measured"]
    (tmp_path / "verdicts.json").write_text(json.dumps([{**mine[0], "stack": "linux"}]), encoding="utf-8")
    with pytest.raises(SystemExit, match="papers_today"):
        script().enter(known, tmp_path)


def test_claims_that_hold_have_a_table(page: str) -> None:
    held = [row["predicate"] for row in rows() if row["verdict"] == Word.HOLDS]
    for claim in held:
        assert f"\n| {claim} | " in page
    universes = {"I": {"alternatives": {"I-P1=5ms": {"differs": {"I-fig2-a": "fails"}}}}}
    (line,) = (line for line in script().holding("I", {"I-fig2-a": "holds"}, {}, universes) if "I-fig2-a" in line)
    assert "I-P1=5ms (fails)" in line
    assert predicates()["I-fig2-a"].statement in line


def test_the_committed_pages_are_up_to_date() -> None:
    known = json.loads((ROOT / "tests" / "papers.json").read_text(encoding="utf-8"))
    made = script().page(known, multiverse.load(script().UNIVERSES))
    assert script().DOCUMENT.read_text(encoding="utf-8") == made, "scripts/make_reproduction.py renews the page"
    assert script().FIGURES.read_text(encoding="utf-8") == script().figures_page()


def test_the_page_of_figures_has_every_experiment() -> None:
    page = script().figures_page()
    for key in experiments():
        assert page.count(f"\n| {key} | ") == 1, key


def test_both_texts_stand_side_by_side(page: str) -> None:
    assert "| criterion | judged instead, because |" in page
    assert studies()["I-txt-req"].rules["I-txt-req-a"].instead in page


def test_what_cannot_fail_has_its_reason() -> None:
    known = record()
    known["quick"]["Y-fig1"]["Y-fig1-c"] = "cannot fail"
    assert studies()["Y-fig1"].unfailing["Y-fig1-c"].rstrip(".")[1:] in part(script().page(known, {}), "Y-fig1-c")


def test_controls_and_enlargement_are_shown(page: str) -> None:
    assert "4 times the seeds of the plan: " in page
    assert "no router speaks" in page
    assert "[reasons, hashes, and verdicts before and after](reproduction-changes.md)" in page


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
