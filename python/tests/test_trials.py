"""Controls: the definition of a flip, and a single run of each; small studies on the synthetic engine."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from explicate.results import Results
from explicate_papers import freeze, judge, trials
from explicate_papers.controls import Settings, edit
from explicate_papers.judge import Attempt
from explicate_papers.plan import effort
from explicate_papers.register import experiments
from explicate_papers.statistics import Check, Sample, at_least, fact
from explicate_papers.store import Store
from explicate_papers.study import Case, Data, Empty, EmptyClassError, NotAttemptedError, Study
from explicate_papers.trials import FLIPPED, IDLE, INVALID, KEPT, judged
from explicate_papers.verdicts import Block

YES, NO = fact("it", holds=True, measured="so"), fact("it", holds=False, measured="not so")
EMPTY = Empty.of("time", "in 1 of 2 runs there is none")
OPEN = at_least("share", Sample.of([1.0, 9.0]), 6.0)
HOLDS, FAILS = Block(1, True, (YES,)), Block(1, False, (NO,))


@pytest.mark.parametrize(
    ("original", "mutated", "starved", "outcome"),
    [
        pytest.param(HOLDS, FAILS, "", FLIPPED, id="a plain failure"),
        pytest.param(HOLDS, HOLDS, "", KEPT, id="it still holds"),
        pytest.param(FAILS, FAILS, "", IDLE, id="it did not hold before"),
        pytest.param(Block(1, None), FAILS, "", IDLE, id="it was not judged before"),
        pytest.param(HOLDS, FAILS, "case one delivers 1", INVALID, id="next to nothing arrives"),
        pytest.param(HOLDS, Block(1, None, note="KeyError"), "", INVALID, id="an error"),
        pytest.param(HOLDS, Block(1, False, note="no run is long"), "", INVALID, id="an empty class"),
        pytest.param(HOLDS, Block(1, False, (YES, EMPTY)), "", INVALID, id="an empty class beside what holds"),
        pytest.param(HOLDS, Block(1, False, (OPEN, EMPTY)), "", INVALID, id="an empty class beside what is open"),
        pytest.param(HOLDS, Block(1, False, (NO, EMPTY)), "", FLIPPED, id="an empty class beside a plain failure"),
        pytest.param(HOLDS, Block(1, False, (OPEN,)), "", INVALID, id="open"),
        pytest.param(HOLDS, Block(1, False, (OPEN, NO)), "", FLIPPED, id="an open check beside a plain one"),
    ],
)
def test_a_flip_is_a_plain_failure(original: Block, mutated: Block, starved: str, outcome: str) -> None:
    assert judged(original, mutated, starved).outcome == outcome


SCENARIO = 'name = "one"\nduration = "10s"\n[[flows]]\nname = "mine"\nprotocol = "xcp"\n'


def test_an_edit_changes_the_scenarios_that_it_chooses() -> None:
    def reno(content: dict[str, Any]) -> None:
        content["flows"][0]["protocol"] = "newreno"

    study, kept = Study("I-fig2"), {"duration": "5s"}
    study.cases(lambda _: {label: Case(SCENARIO, kept, seeds=3) for label in ("one", "other")})
    made = edit("protocol", reno, lambda label: label == "one").apply(
        study.make_cases, effort(study.experiment, "quick")
    )
    assert made["other"] == Case(SCENARIO, kept, seeds=3)
    assert (made["one"].settings, made["one"].seeds) == (kept, 3)
    before = tomllib.loads(SCENARIO)
    assert tomllib.loads(made["one"].text) == {**before, "flows": [{**before["flows"][0], "protocol": "newreno"}]}


def protocol(results: Results) -> str:
    return str(results.flows["protocol"][0])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study whose judges depend on the protocol, with two controls."""
    study = Study("I-fig2")
    for place in (judge, trials):
        monkeypatch.setattr(place, "studies", lambda: {study.id: study})
    monkeypatch.setattr(freeze, "of_experiment", lambda _: "as it is")
    study.cases(lambda _: {"one": Case(SCENARIO, seeds=2), "two": Case(SCENARIO, seeds=1)})

    @study.predicate("I-fig2-a")
    def xcp(data: Data) -> Check:
        return fact("protocol", holds=protocol(data.runs("one")[0]) == "xcp", measured=protocol(data.runs("one")[0]))

    @study.predicate("I-fig2-b")
    def anything(data: Data) -> Check:
        return fact("protocol", holds=True, measured="any")

    @study.predicate("I-fig2-c")
    def classes(data: Data) -> Check:
        if protocol(data.runs("one")[0]) != "xcp":
            raise EmptyClassError("no run has XCP")
        return YES

    @study.predicate("I-fig2-d")
    def errors(data: Data) -> Check:
        return fact("protocol", holds={"xcp": True}[protocol(data.runs("one")[0])], measured="")

    @study.predicate("I-fig2-e")
    def not_yet(data: Data) -> Check:
        raise NotAttemptedError("later")

    def first(label: Any) -> bool:
        return bool(label == "one")

    claims = [f"I-fig2-{letter}" for letter in "abcde"]
    reno = Settings("protocol", {"flows.0.protocol": "newreno"}, first)
    study.control("reno", reno, claims, why="Reno has no routers")
    study.control("wrong", Settings("off", {"durration": 1}, first), ["I-fig2-a"], why="it cannot be run")
    return study


def run(folder: Path) -> dict[str, Any]:
    store, kept = Store(folder), folder / "controls.json"

    def perform(attempt: Attempt) -> None:
        store.perform(attempt.block_jobs(0), 1, lambda _done, _all: None)

    one = experiments()["I-fig2"]
    trials.run([one], "quick", perform, store, lambda key, entry: trials.save(kept, "quick", {key: entry}))
    return trials.load(kept, "quick")


@pytest.mark.usefixtures("made")
def test_controls_are_run_and_go_on_record(tmp_path: Path) -> None:
    entries = run(tmp_path)
    done = {(claim[-1], name): outcome for claim, outcome, name in trials.outcomes(entries)}
    assert done == {
        ("a", "reno"): FLIPPED,
        ("b", "reno"): KEPT,
        ("c", "reno"): INVALID,
        ("d", "reno"): INVALID,
        ("e", "reno"): IDLE,
        ("a", "wrong"): INVALID,
    }
    assert trials.unfailing(entries) == {"I-fig2-b"}
    assert trials.flipped(entries) == {"I-fig2-a"}
    said = entries["I-fig2"]["controls"]["reno"]["claims"]
    assert "no run has XCP" in said["I-fig2-c"]["why"]
    assert "KeyError" in said["I-fig2-d"]["why"]
    assert entries["I-fig2"]["controls"]["wrong"]["claims"]["I-fig2-a"]["why"].startswith("it could not be run")


@pytest.mark.usefixtures("made")
def test_a_record_of_other_judges_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    monkeypatch.setattr(freeze, "of_experiment", lambda _: "changed since")
    assert trials.load(tmp_path / "controls.json", "quick") == {}
    assert trials.load(tmp_path / "none.json", "quick") == {}


@pytest.mark.usefixtures("made")
def test_a_mutated_case_must_carry_a_tenth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "delivered", lambda results: 100.0 if protocol(results) == "xcp" else 9.9)
    done = {(claim[-1], name): outcome for claim, outcome, name in trials.outcomes(run(tmp_path))}
    assert done["a", "reno"] == INVALID
    monkeypatch.setattr(trials, "delivered", lambda results: 100.0 if protocol(results) == "xcp" else 10.1)
    done = {(claim[-1], name): outcome for claim, outcome, name in trials.outcomes(run(tmp_path))}
    assert done["a", "reno"] == FLIPPED


def test_a_control_that_is_open_is_repeated_with_more_seeds(tmp_path: Path, made: Study) -> None:
    seeds: list[int] = []

    @made.predicate("I-fig2-f")
    def scattered(data: Data) -> Check:
        runs = data.runs("one")
        if protocol(runs[0]) == "xcp":
            return YES
        seeds.append(len(runs))
        return at_least("share", Sample.of(4.0 + number % 2 for number in range(len(runs))), 5.5)

    made.control("other", Settings("protocol", {"flows.0.protocol": "newreno"}), ["I-fig2-f"], why="")
    done = {(claim[-1], name): outcome for claim, outcome, name in trials.outcomes(run(tmp_path))}
    assert set(seeds) == {2, 8}, "of two seeds the interval contains the bound"
    assert done["f", "other"] == FLIPPED


def test_controls_are_of_the_closed_list(made: Study) -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        made.control("new", Settings("colour", {}), ["I-fig2-a"], why="")
    with pytest.raises(ValueError, match="twice"):
        made.control("reno", Settings("off", {}), ["I-fig2-a"], why="")
    with pytest.raises(ValueError, match="has no predicate"):
        made.control("new", Settings("off", {}), ["D-fig3-a"], why="")
