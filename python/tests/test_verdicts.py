"""Two blocks of seeds make one of six classes; small studies on the synthetic engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from explicate.cli import main
from explicate_papers import freeze, judge
from explicate_papers.judge import Attempt, Outcome, to_enlarge
from explicate_papers.plan import seeds
from explicate_papers.register import experiments
from explicate_papers.statistics import Check, Sample, above, at_least, between, fact, falling, in_most
from explicate_papers.store import Store
from explicate_papers.study import Case, Data, Effort, EmptyClassError, NotAttemptedError, Study
from explicate_papers.verdicts import Block, Word, classify, interval, is_open, open_checks, wilson

HIGH = at_least("rate", Sample.of([5.0, 5.1, 4.9]), 1.0)
LOW = at_least("rate", Sample.of([0.1, 0.2, 0.15]), 1.0)
OPEN_HIGH = at_least("share", Sample.of([1.0, 9.0]), 2.0)
OPEN_LOW = at_least("share", Sample.of([1.0, 9.0]), 6.0)


def block(*checks: Check) -> Block:
    return Block(1, all(check.holds for check in checks), checks)


@pytest.mark.parametrize(
    ("blocks", "marks", "word"),
    [
        pytest.param([block(HIGH), block(HIGH)], {}, Word.HOLDS, id="both"),
        pytest.param([block(LOW), block(LOW)], {}, Word.FAILS, id="neither"),
        pytest.param([block(HIGH), block(LOW)], {}, Word.DEPENDS, id="one of two"),
        pytest.param([block(OPEN_HIGH), block(OPEN_LOW)], {}, Word.DEPENDS, id="one of two, open too"),
        pytest.param([block(OPEN_HIGH), block(OPEN_HIGH)], {}, Word.UNDECIDED, id="holds, by little"),
        pytest.param([block(OPEN_LOW), block(OPEN_LOW)], {}, Word.UNDECIDED, id="fails, by little"),
        pytest.param([block(HIGH, OPEN_HIGH), block(HIGH, OPEN_HIGH)], {}, Word.UNDECIDED, id="one open is enough"),
        pytest.param([block(LOW, OPEN_LOW), block(LOW, OPEN_LOW)], {}, Word.FAILS, id="an open one cannot save it"),
        pytest.param([block(LOW, OPEN_HIGH), block(LOW, OPEN_HIGH)], {}, Word.FAILS, id="nor one that holds"),
        pytest.param([block(HIGH, OPEN_LOW), block(HIGH, OPEN_LOW)], {}, Word.UNDECIDED, id="fails by an open one"),
        pytest.param([block(HIGH)], {}, Word.HOLDS, id="deterministic"),
        pytest.param([block(LOW)], {}, Word.FAILS, id="deterministic, fails"),
        pytest.param([block(HIGH), block(HIGH)], {"instead": True}, Word.NOT_JUDGED, id="judged by something else"),
        pytest.param([block(LOW), block(LOW)], {"instead": True}, Word.NOT_JUDGED, id="which fails"),
        pytest.param([block(HIGH), block(HIGH)], {"unfailing": True}, Word.CANNOT_FAIL, id="no control"),
        pytest.param([block(LOW), block(LOW)], {"unfailing": True}, Word.FAILS, id="no control, and fails"),
        pytest.param([block(HIGH), block(LOW)], {"unfailing": True}, Word.DEPENDS, id="no control, one of two"),
        pytest.param([block(HIGH), Block(1001, None)], {}, Word.NOT_JUDGED, id="one block is not judged"),
        pytest.param([Block(1, False, note="no run is long"), block(LOW)], {}, Word.FAILS, id="an empty class"),
        pytest.param([], {}, Word.NOT_JUDGED, id="nothing"),
    ],
)
def test_every_claim_has_one_class(blocks: list[Block], marks: dict[str, bool], word: Word) -> None:
    assert classify(blocks, **marks) is word


def test_values_of_both_blocks_are_pooled() -> None:
    one, other = at_least("it", Sample.of([2.0, 2.2]), 1.0), at_least("it", Sample.of([2.1, 1.9]), 1.0)
    assert is_open([block(one)])  # two values alone have a wide interval
    assert not is_open([block(one), block(other)])
    assert open_checks([[one], [at_least("something else", Sample.of([2.1, 1.9]), 1.0)]]) == [[True], [True]]


def test_numbers_in_a_checks_name_do_not_part_the_blocks() -> None:
    one, other = (
        at_least("3.1 ± 0.2 s over 5 s", Sample.of([2.0, 2.2]), 1.0),
        at_least("2.9 s over 4 s", Sample.of([2.1, 1.9]), 1.0),
    )
    assert not is_open([block(one), block(other)])


def test_each_block_keeps_its_own_bound() -> None:
    """A slack that is a share of a measurement differs from block to block."""
    steps = [
        falling("it", [Sample.of([a] * 3), Sample.of([b] * 3)], 0.1, relative=True) for a, b in ((10, 10.9), (1, 1.09))
    ]
    assert all(step.holds for step in steps)
    assert open_checks([[step] for step in steps]) == [[False], [False]]
    assert steps[0].bounds != steps[1].bounds


def test_intervals() -> None:
    assert interval([3.0, 3.0, 3.0]) == (3.0, 3.0)
    low, high = interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), rel=1e-3)
    assert wilson([True] * 8 + [False] * 2) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson([True] * 8)[0] == pytest.approx(0.6756, abs=1e-4)


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (in_most("it", Sample.of([1] * 8)), True),
        (in_most("it", Sample.of([1] * 30)), False),
        (between("it", Sample.of([1.0, 1.1, 0.9]), 0.5, 3.0), False),
        (between("it", Sample.of([1.0, 1.1, 0.9]), 0.5, 1.1), True),
        (above("it", Sample.of([3.0, 3.0]), Sample.of([3.0, 3.0]), slack=0.1), False),
        (at_least("it", Sample.of([None, 3.0]), 1.0), False),
        (fact("it", holds=True, measured="so"), False),
    ],
)
def test_a_check_is_open_if_its_interval_contains_a_bound(check: Check, *, expected: bool) -> None:
    assert is_open([block(check)]) is expected


def test_values_that_are_all_alike_are_not_open_even_on_a_bound() -> None:
    """A count that never exceeds a hard limit: more seeds give no more information."""
    always = at_least("timeouts", Sample.of([1.0, 1.0, 1.0]), 1.0)
    assert classify([block(always), block(always)]) is Word.HOLDS
    nearly = at_least("timeouts", Sample.of([1.0, 1.0, 1.1]), 1.0)
    assert classify([block(nearly), block(nearly)]) is Word.UNDECIDED


def test_blocks_are_disjoint() -> None:
    assert list(seeds(0, 3)) == [1, 2, 3]
    assert list(seeds(1, 3)) == [1001, 1002, 1003]
    assert seeds(0, 1000)[-1] < seeds(1, 1)[0]
    with pytest.raises(ValueError, match="at most 1000"):
        seeds(0, 1001)


# ------------------------------------------------------------------------------------- whole studies

SCENARIO = 'name = "one"\nduration = "10s"\n[[flows]]\nname = "mine"\nprotocol = "xcp"\n'


def values(data: Data) -> Sample:
    return data.measure("one", lambda results: float(results.seed))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study that judges the numbers of the seeds."""
    study = Study("I-fig2")
    monkeypatch.setattr(judge, "studies", lambda: {study.id: study})

    @study.cases
    def cases(effort: Effort) -> dict[str, Case]:
        return {"one": Case(SCENARIO, seeds=2)}

    @study.predicate("I-fig2-a", least=0.5)
    def holds(data: Data, least: float) -> Check:
        return fact("seeds", holds=values(data).mean > least, measured="")

    @study.predicate("I-fig2-b", most=0.5)
    def seeds_decide(data: Data, most: float) -> Check:
        return fact("seeds", holds=values(data).mean < 1000 * most, measured="")

    @study.predicate("I-fig2-c", instead="the number of the seed, because", deterministic=False)
    def something_else(data: Data) -> Check:
        return fact("seeds", holds=True, measured="")

    @study.predicate("I-fig2-d", deterministic=True)
    def arithmetic(data: Data) -> Check:
        return fact("a sum", holds=True, measured="2")

    @study.predicate("I-fig2-e", least=400)
    def open_(data: Data, least: float) -> Check:
        return at_least("odd seeds", values(data).map(lambda seed: 2000 * (seed % 2)), least)

    @study.predicate("I-fig2-f")
    def empty(data: Data) -> Iterator[Check]:
        raise EmptyClassError("no run is long")

    @study.predicate("I-fig2-g")
    def not_yet(data: Data) -> Iterator[Check]:
        raise NotAttemptedError("this needs a router")

    return study


def judged(folder: Path, **more: object) -> Outcome:
    attempt = Attempt(experiments()["I-fig2"], "quick", **more)  # type: ignore[arg-type]
    store = Store(folder)
    store.perform(attempt.jobs, 1, lambda _done, _all: None)
    return attempt.judge(store)


@pytest.mark.usefixtures("made")
def test_a_study_is_judged_on_two_blocks(tmp_path: Path) -> None:
    outcome = judged(tmp_path)
    words = {verdict.predicate.id[-1]: verdict.word for verdict in outcome.verdicts}
    assert words == {
        "a": Word.HOLDS,
        "b": Word.DEPENDS,
        "c": Word.NOT_JUDGED,
        "d": Word.HOLDS,
        "e": Word.UNDECIDED,
        "f": Word.FAILS,
        "g": Word.NOT_JUDGED,
    }
    rows = {verdict.predicate.id[-1]: verdict.row() for verdict in outcome.verdicts}
    assert [one["holds"] for one in rows["b"]["blocks"]] == [True, False]
    assert [one["first_seed"] for one in rows["b"]["blocks"]] == [1, 1001]
    assert (rows["a"]["runs"], rows["a"]["verdict"], rows["a"]["pass"]) == (4, "holds", True)
    assert "judged instead: the number of the seed, because" in rows["c"]["note"]
    assert experiments()["I-fig2"].predicates[2].criterion in rows["c"]["note"]
    assert rows["d"]["deterministic"]
    assert len(rows["d"]["blocks"]) == 1
    assert rows["f"]["blocks"][0]["measured"] == "no run is long"
    assert rows["g"]["note"] == "this needs a router"


@pytest.mark.usefixtures("made")
def test_an_open_claim_enlarges_the_whole_experiment_once(tmp_path: Path) -> None:
    outcome = judged(tmp_path)
    assert to_enlarge([outcome]) == {"I-fig2": ["I-fig2-e"]}
    larger = judged(tmp_path, opened=["I-fig2-e"])
    assert {verdict.runs for verdict in larger.verdicts if verdict.holds} == {16, 8}
    assert all(verdict.row()["opened"] == ["I-fig2-e"] for verdict in larger.verdicts)
    assert to_enlarge([larger]) == {}


def test_a_claim_without_a_control_that_flips_it_cannot_fail(made: Study, tmp_path: Path) -> None:
    made.cannot_fail("I-fig2-d", "it is a sum")
    attempt = Attempt(experiments()["I-fig2"], "quick")
    store = Store(tmp_path)
    store.perform(attempt.jobs, 1, lambda _done, _all: None)
    by_id = {verdict.predicate.id[-1]: verdict for verdict in attempt.judge(store, {"I-fig2-a"}).verdicts}
    assert by_id["a"].word is Word.CANNOT_FAIL
    assert by_id["a"].note == "no control makes it fail"
    assert (by_id["d"].word, by_id["d"].note) == (Word.CANNOT_FAIL, "it is a sum")


def test_a_judge_that_cannot_run_ends_nothing_where_something_was_changed(made: Study, tmp_path: Path) -> None:
    def broken(data: Data) -> Check:
        raise KeyError("long")

    del made.rules["I-fig2-a"]
    made.predicate("I-fig2-a")(broken)
    verdict = judged(tmp_path, settings={"duration": "5s"}).verdicts[0]
    assert verdict.word is Word.NOT_JUDGED
    assert "the judge could not run: KeyError: 'long'" in verdict.note
    with pytest.raises(KeyError):
        judged(tmp_path)


@pytest.mark.usefixtures("made")
def test_the_command_enlarges_what_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "I-fig2", "--quick", "--enlarge", "--json", "-o", str(tmp_path)]) == 1, "one fails"
    rows = {row["predicate"][-1]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["a"]["opened"] == ["I-fig2-e"]
    assert (rows["a"]["runs"], rows["e"]["verdict"]) == (16, "holds")
    page = (tmp_path / "I-fig2.html").read_text(encoding="utf-8")
    assert "8 a case in each of 2 blocks; 4 times the plan&#x27;s, because of open claims: I-fig2-e" in page
    assert main(["reproduce", "I-fig2", "--quick", "-o", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "2 hold, 1 depend on seeds, 1 fail, 1 undecided, 0 cannot fail, 2 not judged" in out
    assert "seeds from 1001: fails" in out


@pytest.mark.usefixtures("made")
def test_other_seeds_have_pages_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "I-fig2", "--quick", "--seed", "4001", "--enlarge", "--json", "-o", str(tmp_path)]) == 1
    rows = {row["predicate"][-1]: row for row in json.loads(capsys.readouterr().out)}
    assert [one["first_seed"] for one in rows["a"]["blocks"]] == [4001, 5001]
    assert rows["a"]["runs"] == 16, "the larger experiment has these seeds, too"
    page = (tmp_path / "seed-4001" / "I-fig2.html").read_text(encoding="utf-8")
    assert "explicate reproduce I-fig2 --quick --seed 4001 -o papers" in page
    assert not (tmp_path / "I-fig2.html").exists()
    for other in ("--controls", "--multiverse", "--joint"):
        assert main(["reproduce", "I", "--seed", "4001", other]) == 2
        assert "leave out" in capsys.readouterr().err


@pytest.mark.usefixtures("made")
def test_what_no_control_flips_on_record_cannot_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims = {"I-fig2-a": {"outcome": "did not flip", "why": "it is still more"}}
    silence = {"kind": "off", "why": "no router speaks", "claims": claims}
    entry = {"key": freeze.of_experiment("I-fig2"), "controls": {"silence": silence}}
    (tmp_path / "controls.json").write_text(json.dumps({"quick": {"I-fig2": entry}}), encoding="utf-8")
    main(["reproduce", "I-fig2", "--quick", "--json", "-o", str(tmp_path)])
    assert json.loads(capsys.readouterr().out)[0]["verdict"] == "cannot fail"
    main(["reproduce", "I-fig2", "--quick", "-o", str(tmp_path)])
    assert "did not flip under control “silence”" in capsys.readouterr().out
    assert "did not flip" in (tmp_path / "I-fig2.html").read_text(encoding="utf-8")
