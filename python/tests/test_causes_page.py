"""docs/reproduction-causes.md: it is what its command writes, and every claim that does not hold has its cause."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from explicate_papers.evidence import CAUSES
from explicate_papers.judge import explanations
from explicate_papers.register import PAPERS, experiments
from explicate_papers.statistics import Sample, at_least
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
    for name in ("make_criteria", "causes_measures", "make_reproduction"):
        sys.modules.pop(name, None)


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


def test_what_can_not_fail_is_by_construction_or_our_bound(script: Any) -> None:
    for cause in script.causes():
        if cause["verdict"] == Word.CANNOT_FAIL:
            assert {reader["label"] for reader in cause["readers"]} in ({"construction"}, {"ours"}), cause["id"]


ALIKE = {
    "paper": {"paper"},
    "parameter": {"open parameter"},
    "ours": {"ours"},
    "register": {"ours"},
    "seeds": {"seeds"},
    "open": {"not reproduced"},
}
"""For each cause of an explanation the labels of readers that say the same."""


def test_an_explanation_has_the_cause_that_a_reader_gives(script: Any) -> None:
    """Otherwise needed.toml says what has been measured since the readers gave their labels."""
    assert set(ALIKE) == set(CAUSES)
    assert {label for labels in ALIKE.values() for label in labels} | {"construction"} == set(script.LABELS)
    told = {key: said["cause"] for paper in PAPERS.values() for key, said in explanations(paper).items()}
    for cause in script.causes():
        claim = cause["id"]
        if claim in told and cause["verdict"] != Word.CANNOT_FAIL:
            labels = {reader["label"] for reader in cause["readers"]}
            assert ALIKE[told[claim]] & labels or "known" in script.needed()[claim], (claim, told[claim], labels)


def test_each_label_that_lacks_a_measurement_has_its_runs_or_what_to_write(script: Any) -> None:
    lacking = {cause["id"] for cause in script.causes() if any(reader["missing"] for reader in cause["readers"])}
    assert set(script.needed()) == lacking
    for claim, row in script.needed().items():
        assert row.keys() & {"runs", "build"}, claim
        assert row.keys() <= {"id", "runs", "build", "known"}, claim
        assert all(run.startswith(f"{claim[0]}-") for run in row.get("runs", [])), claim
    names = {run.split()[0] for run in script.runs()}
    assert names <= set(experiments())
    assert names == set(script.plan()["seconds"])


def test_every_run_can_be_prepared(script: Any) -> None:
    for run in script.runs():
        made, measure = script.prepared(run)
        assert made.cases, run
        assert bool(made.opened) is ("--enlarge" in run), run
        assert made.changed is ("--choice" in run), run
        assert (measure is not None) is ("--by" in run), run
        assert measure is None or measure.experiment == made.experiment.id, run
        assert script.expected_s(run) > 0, run
    assert {measure.what for _, measure in map(script.prepared, script.runs()) if measure} == {
        measure.what for measure in script.MEASURES.values()
    }


def test_data_one_way_has_one_group_of_flows(script: Any) -> None:
    """The experiment has a second in the other direction; links are the same."""
    made, _ = script.prepared("Y-txt-intro --by one-way")
    usual, _ = script.prepared("Y-txt-short --choice Y-P17=10/s")
    for case in made.cases.values():
        assert case.text.count("[[flows]]") == 1
    assert all(case.text.count("[[flows]]") >= 2 for case in usual.cases.values())


def test_a_measure_takes_the_place_of_the_judge(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        blocks = 2

        def data(self, store: Any, block: int) -> int:
            return block

        def block_jobs(self, block: int) -> list[int]:
            return [1, 2]

    def checks(block: int) -> Any:
        values = (1.0, 1.1, 0.9) if block == 0 else (1.0, 1.05, 0.95)
        yield at_least("resets", Sample(values), 0.5)

    measure = script.Measure("D-fig9", "resets", checks)
    monkeypatch.setattr(script, "prepared", lambda _: (Made(), measure))
    (made,) = script.judged("D-fig9 --by resets", ["D-fig9-d"], None, set()).values()
    assert made["verdict"] == "holds"
    assert made["measured"] == ["resets: 1 ± 0.07422 (wanted ≥ 0.5)"]


def test_what_was_measured_since_takes_the_place_of_what_lacks(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"id": "D-fig8-d", "runs": ["D-fig8 --enlarge"]}
    monkeypatch.setattr(script, "needed", lambda: {"D-fig8-d": row})
    cause = next(one for one in script.causes() if one["id"] == "D-fig8-d")
    assert script.lacks(cause) == cause["readers"][0]["missing"]
    assert script.since("D-fig8-d") == []
    said = {"verdict": "fails", "measured": ["F: 0.9", "U: 0.8"]}
    monkeypatch.setattr(script, "measured", lambda: {"D-fig8 --enlarge": {"claims": {"D-fig8-d": said}}})
    assert script.lacks(cause) == ""
    assert script.since("D-fig8-d") == ["`explicate reproduce D-fig8 --enlarge --quick`: fails; F: 0.9; U: 0.8"]
    row["build"] = "a counter"
    assert script.lacks(cause) == cause["readers"][0]["missing"]


def test_what_was_measured_by_another_judge_does_not_count(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "MEASURED", tmp_path / "causes.json")
    assert script.measured() == {}
    one = {"claims": {"D-fig8-d": {"frozen": script.state("D-fig8-d"), "verdict": "fails", "measured": []}}}
    other = {"claims": {"D-fig6-a": {"frozen": "another", "verdict": "fails", "measured": []}}}
    script.MEASURED.write_text(json.dumps({"D-fig8 --enlarge": one, "D-fig6": other}), encoding="utf-8")
    assert script.measured() == {"D-fig8 --enlarge": one}
