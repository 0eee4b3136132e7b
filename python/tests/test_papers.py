"""The papers' experiments: the register, the statistics, the store, and that verdicts come from runs."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from explicate.cli import main
from explicate.source import Source
from explicate_papers import command, store
from explicate_papers.evidence import CAUSES
from explicate_papers.gallery import choice_table
from explicate_papers.judge import Outcome, attempts, explanations
from explicate_papers.multiverse import alternatives
from explicate_papers.plan import EFFORTS, Reads, choices, effort, studies
from explicate_papers.register import PAPERS, experiments, predicates
from explicate_papers.statistics import (
    Sample,
    above,
    at_least,
    average,
    exceeds,
    falling,
    in_most,
    rising,
    standard_errors,
)
from explicate_papers.store import Job, Store
from explicate_papers.study import Case, Effort, Study
from explicate_papers.verdicts import Word

ROOT = Path(__file__).resolve().parents[2]
CRITERIA = Path(__file__).with_name("criteria.json")
"""For each predicate that has been written the hash of its criterion and its bounds, as they came in."""


def fingerprint(criterion: str) -> str:
    return hashlib.sha256(criterion.encode()).hexdigest()[:12]


def test_the_register_is_whole() -> None:
    assert len(experiments()) == 82
    assert len(predicates()) == 304


def test_no_criterion_is_looser_than_when_it_came_in() -> None:
    known = json.loads(CRITERIA.read_text(encoding="utf-8"))
    now = {
        key: {"criterion": fingerprint(predicates()[key].criterion), "bounds": dict(rule.bounds)}
        for study in studies().values()
        for key, rule in study.rules.items()
    }
    assert now == known, f"a criterion or its bounds changed; new ones are entered in {CRITERIA.name} with the figure"


def test_bounds_are_the_numbers_of_the_criterion() -> None:
    """Or of the statement that is judged instead, which is shown and never makes the claim hold."""
    for study in studies().values():
        for key, rule in study.rules.items():
            text = f"{predicates()[key].criterion} {rule.instead}"
            numbers = {float(found) for found in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)}
            strange = {name: bound for name, bound in rule.bounds.items() if abs(bound) not in numbers}
            assert not strange, f"{key}: {strange} are no numbers of its criterion: {text}"


@pytest.mark.parametrize("name", EFFORTS)
def test_every_effort_has_seeds_and_seconds(name: str) -> None:
    for experiment in experiments().values():
        made = effort(experiment, name)
        assert made.seeds >= 1
        assert made.seconds > 0


def _number(parameter: str) -> int:
    return int(parameter.split("-P")[1])


def test_choices_name_parameters_of_their_paper() -> None:
    """Those of the register, or additional ones, numbered after its last."""
    for paper in PAPERS.values():
        known = {
            missing.param_id
            for experiment in experiments().values()
            if experiment.paper is paper
            for missing in experiment.not_given
        }
        found_by_us = sorted(set(choices(paper)) - known, key=_number)
        listed = max(map(_number, known))
        assert [_number(key) for key in found_by_us] == [listed + 1 + i for i in range(len(found_by_us))]
        assert all(key.startswith(f"{paper.letter}-P") for key in found_by_us)
        for choice in choices(paper).values():
            assert choice.used not in choice.others


def test_what_fails_is_explained() -> None:
    record = json.loads((ROOT / "tests" / "papers.json").read_text(encoding="utf-8"))
    words: dict[str, set[str]] = {}
    for verdicts_by_experiment in (record["quick"] | record["quick, enlarged"], record["all"]):
        for verdicts in verdicts_by_experiment.values():
            for key, word in verdicts.items():
                words.setdefault(key, set()).add(word)
    assert words, "nothing on record"
    failing = {key for key, seen in words.items() if Word.FAILS in seen}
    told = {key: text for paper in PAPERS.values() for key, text in explanations(paper).items()}
    assert sorted(failing - set(told)) == []
    assert sorted(key for key in told if words.get(key) == {Word.HOLDS}) == [], "explained, but they hold"
    for key, text in told.items():
        assert text["cause"] in CAUSES, key
        assert len(text["tried"]) >= 2, key
        assert text["text"], key


def test_quick_and_all_agree() -> None:
    """On 95 % of the claims that both efforts decide, once both are on record."""
    record = json.loads((ROOT / "tests" / "papers.json").read_text(encoding="utf-8"))
    decided = {Word.HOLDS, Word.FAILS, Word.CANNOT_FAIL}
    both = [
        (word, verdicts[key])
        for name, verdicts in record["all"].items()
        for key, word in record["quick"][name].items()
        if {word, verdicts[key]} <= decided
    ]
    assert record["quick"], "nothing on record"
    if record["all"]:
        assert len(both) > 100, "both efforts decide too little"
        assert sum(quick == complete for quick, complete in both) >= 0.95 * len(both)


def test_controllers_take_every_round_trip_by_the_clock_of_their_case() -> None:
    ticks, own = 'clock_tick = "10ms"', 'clock_tick = "10ms", rtt_resolution = "0s"'
    case = Case("".join(f"[[flows]]\nparams = {{ {params} }}\n" for params in ("", ticks, own)))
    made = dict(case.overrides())
    assert made["stack"] == "ns2"
    assert [made[f"flows.{group}.params.rtt_resolution"] for group in range(3)] == ["0s", "10ms", "0s"]
    chosen = dict(replace(case, settings={"stack": "rfc", "flows.0.params.rtt_resolution": "auto"}).overrides())
    assert (chosen["stack"], chosen["flows.0.params.rtt_resolution"]) == ("rfc", "auto")


@pytest.mark.usefixtures("native_real")
def test_every_host_of_the_papers_is_ns2s() -> None:
    """Whatever the default is, for papers do not follow it."""
    for study in studies().values():
        for case in list(study.make_cases(effort(study.experiment, "quick")).values())[:1]:
            resolved = Source.of(case.text).check(case.overrides())["resolved"]
            for group in tomllib.loads(resolved)["flows"]:
                assert (group["stack"], group["params"].get("rto", "ns2")) == ("ns2", "ns2"), study.id


@pytest.mark.usefixtures("native_real")
def test_so_are_those_of_the_scenarios_that_show_papers() -> None:
    shown = [path for kind in ("paper-*", "xcp-i-*") for path in sorted((ROOT / "scenarios").glob(f"{kind}.toml"))]
    assert len(shown) == 15
    for path in shown:
        flows = Source.of(path).check()["resolved"]
        assert {group["stack"] for group in tomllib.loads(flows)["flows"]} == {"ns2"}, path.name


def test_every_claim_has_a_control() -> None:
    """Or a reason why no control makes it fail, or why it is not judged."""
    missing = [
        predicate.id
        for study in studies().values()
        for predicate in study.experiment.predicates
        if predicate.id not in study.unfailing
        and predicate.id not in study.skipped
        and not any(predicate.id in control.flips for control in study.controls.values())
    ]
    assert not missing, f"{len(missing)} claims without a control or a reason: {', '.join(missing)}"


def test_the_shard_names_what_there_is() -> None:
    shard = json.loads((ROOT / "tests" / "papers.json").read_text(encoding="utf-8"))["shard"]
    assert set(shard["verdicts"]) <= set(experiments())
    assert set(shard["controls"]) <= set(shard["verdicts"])
    names = {one.name for letter in PAPERS for one in alternatives(letter)}
    assert set(shard["multiverse"]) <= names
    for name, chosen in shard["multiverse"].items():
        assert chosen
        assert all(key in experiments() and key[0] == name[0] for key in chosen), name


@pytest.mark.papers
@pytest.mark.usefixtures("native_real")
@pytest.mark.parametrize("letter", [pytest.param(letter, id=f"{letter}:") for letter in PAPERS])
def test_alternatives_can_be_run(letter: str) -> None:
    """Each alternative of a choice gives scenarios that the engine accepts."""
    wrong = []
    for study in (one for one in studies().values() if one.experiment.paper.letter == letter):
        before = effort(study.experiment, "quick")
        cases = study.make_cases(before)
        assert isinstance(before.choices, Reads)
        for one in alternatives(study.experiment.paper.letter):
            if one.choice.id in before.choices.read:
                try:
                    made = study.make_cases(effort(study.experiment, "quick", {one.choice.id: one.value}))
                    for label, case in made.items():
                        if case != cases.get(label):
                            Job.of(case, [1])
                except (KeyError, ValueError) as error:
                    wrong.append(f"{study.id} with {one.name}: {str(error).splitlines()[0]}")
    assert wrong == []


def test_controls_can_be_made() -> None:
    for study in studies().values():
        made = effort(study.experiment, "quick")
        before = study.make_cases(made)
        for control in study.controls.values():
            after = control.mutation.apply(study.make_cases, made)
            assert set(after) == set(before), f"{study.id}, control {control.name}"
            assert after != before, f"{study.id}: control {control.name} changes nothing"


def test_a_sample_knows_its_interval() -> None:
    sample = Sample.of([1.0, 2.0, 3.0])
    assert sample.mean == 2.0
    assert sample.margin == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)
    assert math.isnan(Sample.of([1.0]).margin)
    assert str(Sample.of([5.0])) == "5"


def test_samples_are_paired_by_seed() -> None:
    one, other = Sample.of([1.0, 5.0]), Sample.of([2.0, 4.0])
    assert (one - other).values == (-1.0, 1.0)
    assert (2 * one / other).values == (1.0, 2.5)
    assert (1 - one).values == (0.0, -4.0)
    with pytest.raises(ValueError, match="paired"):
        one + Sample.of([1.0])


def test_an_ordering_wants_the_mean_and_most_seeds() -> None:
    low = Sample.of([0.0] * 5)
    assert above("it", Sample.of([1, 1, 1, 1, -1]), low).holds
    assert not above("it", Sample.of([10, 1, 1, -1, -1]), low).holds
    assert not above("it", Sample.of([0.1, 0.1, 0.1, 0.1, -9]), low).holds
    assert in_most("it", Sample.of([1, 1, 1, 1, 0])).holds
    assert not in_most("it", Sample.of([1, 1, 1, 0, 0])).holds


def test_averages_are_compared_by_the_mean_alone() -> None:
    low = Sample.of([0, 0, 0, 0, 0])
    assert exceeds("it", Sample.of([10, 1, 1, -1, -1]), low).holds
    assert not exceeds("it", Sample.of([0.1, 0.1, 0.1, 0.1, -9]), low).holds
    assert not exceeds("it", low, low).holds
    assert not exceeds("it", Sample.of([math.nan, 1]), Sample.of([0, 0])).holds
    assert average([Sample.of([1, 2]), Sample.of([3, 6])]) == Sample.of([2, 4])


def test_the_worst_of_many_checks_fails_by_chance_as_seldom_as_one() -> None:
    assert standard_errors(1) == pytest.approx(2.576, abs=1e-3)  # a normal's 99 % interval
    assert standard_errors(84) == pytest.approx(3.85, abs=0.01)
    assert standard_errors(1, chance=0.05) == pytest.approx(1.960, abs=1e-3)
    for checks in (1, 21, 84):
        within = math.erf(standard_errors(checks) / math.sqrt(2))
        assert within**checks == pytest.approx(0.99)


def test_nothing_measured_holds_nothing() -> None:
    assert not at_least("it", Sample.of([None, 3.0]), 1.0).holds


def test_slack_bounds_a_step() -> None:
    samples = [Sample.of([value]) for value in (3.0, 2.0, 2.05)]
    assert falling("it", samples, 0.1).holds
    assert not falling("it", samples).holds
    assert rising("it", samples[::-1], 0.1).holds


def test_a_study_takes_only_its_own_predicates_and_once() -> None:
    study = Study("I-fig2")
    study.skip("I-fig2-a", "for the test")
    with pytest.raises(ValueError, match="twice"):
        study.predicate("I-fig2-a")
    with pytest.raises(ValueError, match="has no predicate"):
        study.predicate("D-fig3-a")


@pytest.mark.usefixtures("native_real")
def test_what_was_run_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (attempt,) = attempts([experiments()["I-fig2"]], "quick")
    jobs = attempt.block_jobs(0)
    kept = Store(tmp_path)
    kept.perform(jobs, 2, lambda _done, _all: None)
    before = attempt.judge_block(kept, 0)
    monkeypatch.setattr(store, "run_source", lambda *_a, **_k: pytest.fail("it ran again"))
    kept.perform(jobs, 2, lambda _done, _all: None)
    assert attempt.judge_block(kept, 0) == before
    Store(tmp_path / "other", kept).perform(jobs, 2, lambda _done, _all: None)
    assert attempt.judge_block(Store(tmp_path / "other", kept), 0) == before


@pytest.mark.usefixtures("native_real")
def test_an_interrupted_run_keeps_what_has_finished(tmp_path: Path) -> None:
    (attempt,) = attempts([experiments()["I-fig2"]], "quick")

    def interrupt(done: float, _all: float) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).perform(attempt.jobs, 1, interrupt)
    assert any(Store(tmp_path).has(job) for job in attempt.jobs)
    assert not list(tmp_path.glob("unfinished-*"))


def test_an_old_number_of_a_paper_still_works_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    for number, letter in {"000": "N", "001": "I", "002": "Y", "003": "D", "004": "K"}.items():
        assert command.chosen([number]) == command.chosen([letter])
    assert "paper 003 is now called D or de_vleeschouwer" in capsys.readouterr().err


def test_experiments_are_chosen_by_paper_or_id() -> None:
    assert [one.id for one in command.chosen(["D-fig3"])] == ["D-fig3"]
    papers = {name: command.chosen([name]) for name in ("D", "d", "de_vleeschouwer", "De-Vleeschouwer")}
    assert all(found == papers["D"] for found in papers.values())
    assert len(command.chosen(["all"])) == 82


def test_a_wrong_name_is_answered_with_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "D-fig33"]) == 2
    assert "D-fig3" in capsys.readouterr().err
    assert main(["reproduce"]) == 2
    assert "--list" in capsys.readouterr().err
    assert main(["reproduce", "D", "--choice", "D-P99=1"]) == 2
    assert main(["reproduce", "D", "--choice", "K-P4=2"]) == 2
    assert "D-P99" in capsys.readouterr().err


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(key in out for key in experiments())


def test_a_page_tells_the_choices_that_the_register_does_not_name() -> None:
    named = {missing.param_id for one in experiments().values() for missing in one.not_given}
    for one in experiments().values():
        page = choice_table(Outcome(one, effort(one, "quick"), ()))
        mine = {missing.param_id for missing in one.not_given}
        for key, choice in choices(one.paper).items():
            assert (f">{key}<" in page) == (key in mine or key not in named), (one.id, key)
            assert f">{key}<" not in page or escape(choice.used) in page, (one.id, key)


@pytest.mark.usefixtures("native_real")
def test_the_command_prints_verdicts_and_writes_the_gallery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["reproduce", "I-fig2", "--quick", "--json", "-o", str(tmp_path)])
    rows = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in rows} <= set(Word)
    assert [block["first_seed"] for block in rows[0]["blocks"]] == [1, 1001]
    assert [row["predicate"] for row in rows] == [one.id for one in experiments()["I-fig2"].predicates]
    assert status == (1 if any(row["verdict"] == "fails" for row in rows) else 0)
    assert set(rows[0]) == {
        "experiment", "effort", "predicate", "basis", "statement", "criterion", "verdict", "blocks", "checks",
        "decides", "instead", "deterministic", "enlarged", "opened", "measured", "runs", "pass", "note",
    }  # fmt: skip
    assert (tmp_path / "index.html").is_file()
    assert "Sensitivity of plain XCP" in (tmp_path / "I-fig2.html").read_text(encoding="utf-8")
    for path in (tmp_path / "scenarios").iterdir():
        assert main(["check", str(path)]) == 0


def test_a_choice_can_be_read_as_keys_of_a_scenario() -> None:
    used = Reads({"A": 'phi = 1.001, target = "20pkt"', "B": '{ pause = { from = "1s" } }', "C": "two hops"})
    made = Effort("quick", 1, 1.0, used)
    assert made.table("A") == {"phi": 1.001, "target": "20pkt"}
    assert made.table("B") == {"pause": {"from": "1s"}}
    assert used.read == {"A", "B"}, "what is read of a choice is on record"
    with pytest.raises(tomllib.TOMLDecodeError):
        made.table("C")
