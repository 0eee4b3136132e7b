"""Hashes of judges cover names and numbers, also in helpers, but neither comments nor layout."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from explicate_papers import cases, freeze, inputs
from explicate_papers.freeze import Change, digest, parsed, unrecorded
from explicate_papers.plan import studies
from explicate_papers.register import PAPERS
from explicate_papers.study import Case, Study

ROOT = Path(__file__).resolve().parents[2]
BEFORE = '''\
"""A module."""

from explicate_papers import metrics
from explicate_papers.statistics import at_least

MOST = 5.0


def rate(results):
    """Return the rate."""
    return metrics.link(results, "a", "b") / MOST


def unused(results):
    return 1


@study.predicate("X-a", least=0.5)
def judge(data, least):
    """It is fast."""
    # the mean
    return at_least("rate", data.measure("one", rate), least)
'''


def hashed(text: str) -> str:
    syntax = parsed(text)
    chosen = freeze._statements(syntax, "predicate", "X-a")
    assert len(chosen) == 1
    return digest(chosen, "explicate_papers.nychis.new", syntax)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    # the mean\n", ""),
        ("It is fast.", "It is quick, as the text says."),
        ('    """Return the rate."""\n', ""),
        ("\n\n\ndef unused", "\n\n\n\n\ndef unused"),
        (
            'at_least("rate", data.measure("one", rate), least)',
            'at_least(\n        "rate", data.measure("one", rate), least\n    )',
        ),
        ("return 1", "return 2"),
    ],
)
def test_words_and_layout_do_not_count(old: str, new: str) -> None:
    assert old in BEFORE
    assert hashed(BEFORE.replace(old, new)) == hashed(BEFORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("least=0.5", "least=0.4"),
        ("def judge", "def another"),
        ("rate", "speed"),
        ("MOST = 5.0", "MOST = 4.0"),
        ("at_least", "at_most"),
        ('"b"', '"c"'),
        ("metrics.link", "metrics.total"),
        ("least", "lowest"),
    ],
)
def test_names_numbers_and_helpers_count(old: str, new: str) -> None:
    assert old in BEFORE
    assert hashed(BEFORE.replace(old, new)) != hashed(BEFORE)


def test_a_hash_follows_helpers_into_other_modules() -> None:
    syntax = parsed(BEFORE)
    judged = freeze._statements(syntax, "predicate", "X-a")
    used = freeze.closure(judged, "explicate_papers.nychis.new", syntax)
    assert "explicate.papers.metrics:link" in used
    assert "explicate.papers.statistics:at_least" in used
    assert "explicate.papers.statistics:Sample" in used
    assert "explicate.papers.nychis.new:unused" not in used


def test_every_judge_is_found() -> None:
    for study in studies().values():
        syntax = freeze.module(study.module)
        assert syntax is not None
        for claim in study.rules:
            found = freeze._statements(syntax, "predicate", claim)
            assert [one for one in found if freeze._names(one, claim) or isinstance(one, ast.For)], claim


def test_cases_and_controls_are_found() -> None:
    for study in studies().values():
        syntax = freeze.module(study.module)
        assert syntax is not None
        made = study.make_cases.__module__ != Study.__module__
        assert bool(freeze._statements(syntax, "cases")) is made, study.id
        assert bool(freeze._statements(syntax, "control")) is bool(study.controls), study.id


def test_a_change_needs_an_entry() -> None:
    before = {"X-a": "1", "X-b": "2", "X-c": "3"}
    now = {"X-a": "1", "X-b": "9", "X-d": "4"}
    assert unrecorded(before, [], now) == [
        "X-b changed since the freeze",
        "X-c is gone since the freeze",
        "X-d is new since the freeze",
    ]
    said = [Change("X-b", "9", "a bound was misread", "holds", "fails")]
    assert unrecorded({"X-a": "1", "X-b": "2"}, said, {"X-a": "1", "X-b": "9"}) == []
    assert unrecorded({"X-a": "1", "X-b": "2"}, said, {"X-a": "1", "X-b": "8"}) == ["X-b changed since the freeze"]


def test_modules_that_moved_keep_the_names_of_the_freeze() -> None:
    assert freeze.frozen_name("explicate_papers.nychis.fig3") == "explicate.papers.nychis.fig3"
    assert freeze.frozen_name("explicate_papers") == "explicate.papers"
    assert freeze.frozen_name("explicate_papers_of_others.fig3") == "explicate_papers_of_others.fig3"


def test_a_move_that_is_not_entered_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hashed(BEFORE)
    monkeypatch.setattr(freeze, "moves", tuple)
    assert hashed(BEFORE) != before


def test_a_rewrite_counts_as_what_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    study = studies()["I-fig2"]
    made = freeze._experiment_digest(study)
    entries = (freeze.Rewrite("I-fig2", "first", "second", "a"), freeze.Rewrite("I-fig2", "second", made, "b"))
    monkeypatch.setattr(freeze, "rewrites", lambda: entries)
    assert freeze.experiment_digest(study) == "first"
    other = studies()["I-fig4"]
    assert freeze.experiment_digest(other) == freeze._experiment_digest(other)


@pytest.mark.papers
@pytest.mark.parametrize("letter", [pytest.param(letter, id=f"{letter}:") for letter in PAPERS])
def test_experiments_run_what_is_on_record(letter: str) -> None:
    now = {key: cases.digest(study) for key, study in studies().items() if study.experiment.paper.letter == letter}
    known = {key: value for key, value in cases.on_record().items() if key.startswith(f"{letter}-")}
    assert now
    assert now == known, "`scripts/freeze_papers.py --cases` records what experiments run"


def test_the_record_has_experiments_of_papers_alone() -> None:
    assert cases.on_record().keys() == studies().keys()


def test_what_is_run_is_more_than_the_code_of_an_experiment() -> None:
    case = Case('name = "x"\nduration = "1s"\n')
    assert cases.content(case) == cases.content(Case('duration = "1s"\n\n# later\nname = "x"\n'))
    assert cases.content(case) != cases.content(Case('name = "x"\nduration = "2s"\n'))
    assert cases.content(case) != cases.content(replace(case, seeds=2))
    assert cases.content(case) != cases.content(replace(case, settings={"seed": 1}))


def test_hosts_are_part_of_what_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case('[[flows]]\nname = "one"\n')
    before = cases.content(case)
    monkeypatch.setattr(inputs, "STACK", "rfc")
    assert cases.content(case) != before


def test_what_the_engine_reads_alike_is_alike() -> None:
    case = Case('name = "x"\nrate = 1\n', settings={"sampling.of": '["cwnd"]', "link.a->b.queue": '{ limit = "1pkt" }'})
    assert cases.content(case) == cases.content(replace(case, text='name = "x"\nrate = 1.0\n'))
    assert cases.content(case) != cases.content(replace(case, text='name = "x"\nrate = true\n'))
    built = {"sampling.of": ["cwnd"], "link.a->b.queue": {"limit": "1pkt"}}
    assert cases.content(case) == cases.content(replace(case, settings=built))
    assert cases.content(case) != cases.content(replace(case, settings={**built, "sampling.of": ["queue"]}))
    every = [cases.content(replace(case, settings={"duration": value})) for value in ("5s", "5", 5, True, "[5")]
    assert len(set(every)) == 4, "a number is the same with quotes and without"


def test_the_ledger_gives_reasons() -> None:
    assert all(change.reason and change.id for change in freeze.ledger())
    assert all(move.reason for move in freeze.moves())
    assert all(rewrite.reason for rewrite in freeze.rewrites())


def _script() -> Any:
    spec = spec_from_file_location("freeze_papers", ROOT / "scripts" / "freeze_papers.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_only_what_runs_the_same_is_entered_as_rewritten(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = _script()
    written: list[freeze.Rewrite] = []
    monkeypatch.setattr(script, "write", lambda _, rewrites: written.extend(rewrites))
    digests = dict(cases.on_record())
    monkeypatch.setattr(cases, "digest", lambda study: digests[study.id])
    before, now = {"I-fig2": "1", "I-fig2-a": "2"}, {"I-fig2": "8", "I-fig2-a": "9"}
    assert script.rewritten("why", set(), before, now) == 1
    assert "I-fig2-a" in capsys.readouterr().err
    assert script.rewritten("why", {"I-fig2-a"}, before, now) == 0
    assert written[-2:] == [freeze.Rewrite("I-fig2", "1", "8", "why"), freeze.Rewrite("I-fig2-a", "2", "9", "why")]
    digests["I-fig2"] = "other"
    written.clear()
    assert script.rewritten("why", {"I-fig2-a"}, before, now) == 1
    assert not written


def test_verdicts_that_differ_show_no_rewrite(tmp_path: Path) -> None:
    script = _script()
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text('[{"predicate": "I-fig2-a", "verdict": "holds"}]', encoding="utf-8")
    other.write_text('[{"predicate": "I-fig2-a", "verdict": "fails"}]', encoding="utf-8")
    assert script.same_verdicts([one, one]) == {"I-fig2-a"}
    with pytest.raises(SystemExit, match="differ"):
        script.same_verdicts([one, other])


def test_only_experiments_that_were_judged_anew_get_verdicts_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = _script()
    verdicts = {"I-fig2": {"I-fig2-a": "fails"}, "I-fig6": {"I-fig6-a": "holds"}}
    record = {"older": ["I-fig6"], "quick": verdicts, "all": {}}
    (tmp_path / "papers.json").write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(script, "RECORD", tmp_path / "papers.json")
    monkeypatch.setattr(
        freeze, "ledger", lambda: [Change(one, "1", "why", "holds", "") for one in ("I-fig2-a", "I-fig6-a")]
    )
    written: list[Change] = []
    monkeypatch.setattr(script, "write", lambda changes, _: written.extend(changes))
    monkeypatch.setattr("sys.argv", ["freeze_papers.py", "--after"])
    assert script.main() == 0
    assert [(one.id, one.after) for one in written] == [("I-fig2-a", "fails"), ("I-fig6-a", "")]


def test_a_claim_has_the_reason_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "judged.toml"
    file.write_text('[[claim]]\nid = "I-fig2-a"\nreason = "its sentence"\n', encoding="utf-8")
    assert _script().reasons(file) == {"I-fig2-a": "its sentence"}
    assert _script().reasons(None) == {}
