"""Joint settings: pairs and triples of choices against published numbers; small studies on the synthetic engine."""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from explicate.cli import main
from explicate.errors import BadInputError
from explicate_papers import joint, judge, multiverse, plan
from explicate_papers.joint import AS_ARGUED, Moved, Search
from explicate_papers.judge import Attempt
from explicate_papers.plan import Choice
from explicate_papers.published import Number, distance, measure_of, parsed, published
from explicate_papers.register import PAPERS, experiments
from explicate_papers.store import Job, Store
from explicate_papers.study import Case, Data, Effort, EmptyClassError, Label, Study

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_joint.py"
SCENARIO = 'name = "one"\nduration = "10s"\n[[flows]]\nname = "mine"\nprotocol = "{}"\n'
CHOICES = {
    "I-P1": Choice("I-P1", "protocol", "xcp", ("newreno",), ""),
    "I-P2": Choice("I-P2", "read by the measure", "1", ("2",), ""),
    "I-P3": Choice("I-P3", "never read", "1", ("2",), ""),
    "I-P4": Choice("I-P4", "read by the measure", "1", ("2", "3"), ""),
}
TEXT = """
seeds = 2
left_out = ["a bound"]
[[number]]
experiment = "I-fig2"
place = "section II"
what = "the first"
unit = "MB"
value = 10
measure = "first"
[[number]]
experiment = "I-fig6"
place = "section III"
what = "the second"
unit = ""
value = [3, 4]
measure = "second"
of = [2]
"""
FIRST = {("1", "1"): 20.0, ("2", "1"): 60.0, ("1", "2"): 2.0, ("2", "2"): 11.0, ("1", "3"): 0.0, ("2", "3"): 40.0}
"""What is measured with the values of I-P2 and I-P4: each change is worse alone, and both together are near 10."""


def first(data: Data) -> float:
    assert len(data.runs("one")) == 2
    choices = data.effort.choices
    if choices["I-P1"] == "newreno" and choices["I-P4"] == "3":
        raise EmptyClassError("no run is of the class")
    return FIRST[choices["I-P2"], choices["I-P4"]]


def second(data: Data, factor: float) -> float:
    return factor * {"xcp": 1.75, "newreno": 3.0}[data.runs("one")[0].flows["protocol"][0]]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {}
    for key in ("I-fig2", "I-fig6"):
        made[key] = study = Study(key)

        @study.cases
        def cases(effort: Effort, key: str = key) -> dict[str, Case]:
            protocol = effort.choices["I-P1"] if key == "I-fig6" else "xcp"
            return {"one": Case(SCENARIO.format(protocol)), "not asked for": Case(SCENARIO.format("vcp"))}

    monkeypatch.setattr(judge, "studies", lambda: made)
    for place in (plan, joint):
        monkeypatch.setattr(place, "choices", lambda _: CHOICES)
    monkeypatch.setattr(joint, "published", lambda _: parsed(TEXT, "here"))
    monkeypatch.setattr(joint, "measure_of", lambda _, one: {"first": first, "second": second}[one.measure])
    monkeypatch.setattr(joint, "state", lambda _: "as it is")


def moved() -> list[Moved]:
    return [Moved(CHOICES[key], 1, 1) for key in ("I-P4", "I-P3", "I-P2", "I-P1")]


class Counted:
    """The runs that were made, and the sets that were noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "runs")
        self.jobs: list[Job] = []
        self.noted: list[str] = []

    def perform(self, jobs: Sequence[Job], store: Store) -> None:
        self.jobs += [job for job in jobs if not store.has(job)]
        store.perform(jobs, 1, lambda _done, _all: None)

    def fill(self, entry: Mapping[str, Any], clock: Callable[[], float] = lambda: 0.0) -> tuple[dict[str, Any], bool]:
        search = Search("I", entry, moved())
        whole = search.run(self.perform, self.store, self.folder, self.noted.append, 1.0, clock)
        return search.entry, whole


@pytest.mark.usefixtures("fakes")
def test_a_pair_is_found_that_no_single_change_shows(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    entry, whole = counted.fill({})
    assert whole
    far = {name: one["distance"] for name, one in entry["sets"].items()}
    assert far[AS_ARGUED] == pytest.approx(math.log(2) / 2), "3.5 lies in the range"
    assert (
        min(far["I-P2=2"], far["I-P4=2"]) > far[AS_ARGUED] > far["I-P2=2, I-P4=2"] == pytest.approx(math.log(1.1) / 2)
    )
    fit = joint.best(entry)
    assert fit is not None
    assert fit["set"] == {"I-P4": "2", "I-P2": "2"}
    assert fit["numbers"] == [11.0, 3.5]
    assert entry["choices"] == ["I-P4", "I-P2", "I-P1"], "what no experiment reads cannot matter"
    assert far["I-P1=newreno, I-P2=2, I-P4=2"] == pytest.approx((math.log(1.1) + math.log(1.5)) / 2), "a triple"
    sizes = [len(one["set"]) for one in entry["sets"].values()]
    assert [sizes.count(size) for size in range(4)] == [1, 4, 5, 2]
    assert list(entry["sets"]) == counted.noted
    assert [path.name for path in tmp_path.iterdir()] == ["runs"], "runs of pairs are not kept"


@pytest.mark.usefixtures("fakes")
def test_runs_are_those_that_measures_ask_for_on_seeds_of_no_judge(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    entry, _ = counted.fill({})
    assert {job.seed for job in counted.jobs} == {9001, 9002}
    judged = {seed for block in range(plan.BLOCKS) for seed in plan.seeds(block, plan.APART)}
    assert judged.isdisjoint(job.seed for job in counted.jobs)
    # Both experiments have the same runs with XCP, and only one of them has those with NewReno.
    assert len(counted.jobs) == 4
    assert entry["reads"] == {"I-fig2": ["I-P1", "I-P2", "I-P4"], "I-fig6": ["I-P1"]}
    assert {key: one["runs"] for key, one in entry["costs"].items()} == {"I-fig2": 2, "I-fig6": 2}


@pytest.mark.usefixtures("fakes")
def test_what_cannot_be_measured_has_a_reason_and_no_distance(tmp_path: Path) -> None:
    sets = Counted(tmp_path).fill({})[0]["sets"]
    zero, empty = sets["I-P4=3"], sets["I-P1=newreno, I-P4=3"]
    assert zero["distance"] is empty["distance"] is None
    assert "ours is 0, and a ratio to 10 has a logarithm only above 0" in zero["errors"]["I-fig2 first()"]
    assert empty["errors"] == {"I-fig2 first()": "no run is of the class"}
    assert empty["numbers"] == [None, 6.0]


@pytest.mark.usefixtures("fakes")
def test_it_stops_when_the_time_is_over_and_goes_on(tmp_path: Path) -> None:
    ticks = iter(range(0, 10**6, 600))
    counted = Counted(tmp_path / "one")
    entry, whole = counted.fill({}, lambda: next(ticks))
    assert not whole
    assert 0 < len(entry["sets"]) < 12
    assert entry["sets"].keys() == set(counted.noted)
    kept = json.loads(json.dumps(entry))
    again, whole = counted.fill(kept)
    assert whole
    assert again["sets"] == Counted(tmp_path / "other").fill({})[0]["sets"]
    assert len(counted.noted) == len(set(counted.noted)) == 12, "no set is tried twice"
    before = len(counted.jobs)
    assert counted.fill(again) == (again, True)
    assert len(counted.jobs) == before


@pytest.mark.usefixtures("fakes")
def test_another_engine_measures_the_choices_again_and_keeps_what_agrees(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    entry, _ = counted.fill({})
    counted.noted.clear()
    again, _ = counted.fill({**entry, "engine": "another"})
    assert (again["sets"], counted.noted) == (entry["sets"], [AS_ARGUED])
    old = {**entry["sets"], AS_ARGUED: {**entry["sets"][AS_ARGUED], "numbers": [20.1, 3.5]}}
    counted.noted.clear()
    again, _ = counted.fill({**entry, "engine": "another", "sets": old})
    assert (again["sets"], len(counted.noted)) == (entry["sets"], 12)
    counted.noted.clear()
    counted.fill({**entry, "state": "other cases"})
    assert len(counted.noted) == 12


@pytest.mark.usefixtures("fakes")
def test_an_experiment_that_cannot_be_made_is_an_error_of_its_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(experiment: Any, name: str, choices: Mapping[str, str]) -> Attempt:
        if choices.get("I-P1") == "newreno":
            raise BadInputError("it cannot be made")
        return Attempt(experiment, name, choices)

    monkeypatch.setattr(joint, "Attempt", refuses)
    sets = Counted(tmp_path).fill({})[0]["sets"]
    assert sets["I-P1=newreno"]["errors"] == {"I-fig2": "it cannot be made", "I-fig6": "it cannot be made"}
    assert sets["I-P1=newreno"]["distance"] is None
    assert sets["I-P2=2"]["errors"] == {}


@pytest.mark.usefixtures("fakes")
def test_the_cost_counts_what_is_left(tmp_path: Path) -> None:
    search = Search("I", {}, moved())
    assert search.cost()[0].runs == 0, "nothing is known before the first set"
    ticks = iter(range(0, 10**6, 1500))
    counted = Counted(tmp_path)
    search.run(counted.perform, counted.store, tmp_path, counted.noted.append, 1.0, lambda: next(ticks))
    search.entry["costs"] = {"I-fig2": {"runs": 10, "made": 5, "cpu_s": 1.0}}
    done = len(search.sets)
    two, three = search.cost()
    assert two.sets == 10 - done
    assert two.runs == 10 * (10 - done), "each set changes something that the experiment reads"
    assert two.seconds == pytest.approx(0.2 * two.runs)
    assert three.sets == joint.BEST_PAIRS * 2
    search.run(counted.perform, counted.store, tmp_path, counted.noted.append)
    assert [one.sets for one in search.cost()] == [0, 0]


def test_a_distance_needs_numbers_above_zero() -> None:
    one = Number("I-fig2", "", "", "MB", 3.0, 4.0, "first")
    assert one.distance(3.7) == 0
    assert one.distance(1.5) == one.distance(8.0) == pytest.approx(math.log(2))
    assert one.text == "3 to 4"
    for ours in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="logarithm"):
            one.distance(ours)
    assert distance([one, one], [6.0, 3.0]) == pytest.approx(math.log(1.5) / 2)
    assert distance([one, one], [6.0, None]) is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("value = 10", "value = 0", "value is 0; only numbers above 0"),
        ("value = 10", "value = -3.5", "value is -3.5"),
        ("value = 10", "value = nan", "write a number"),
        ("value = [3, 4]", "value = [4, 3]", "the lower end first"),
        ("value = [3, 4]", "value = [1, 2, 3]", "two ends"),
        ('unit = "MB"', "", "'the first' has no unit"),
        ('"I-fig6"', '"I-fig99"', "there is no experiment I-fig99"),
        ("of = [2]", "of = [2]\n" + TEXT.partition("left_out")[2].partition("\n")[2], "is there twice"),
        ("seeds = 2", "seeds = 0", "seeds is 0"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(BadInputError, match=r"^here: ") as caught:
        parsed(TEXT.replace(old, new, 1), "here")
    assert said in str(caught.value)


def test_choices_are_ranked_by_the_figures_that_they_move() -> None:
    def alternative(*claims: str, **errors: str) -> dict[str, Any]:
        return {"differs": dict.fromkeys(claims, "fails"), "errors": errors}

    tried = {
        "I-P1=5ms": alternative("I-fig2-a", "I-fig2-b", "I-fig2-c"),
        "I-P2=1500B": alternative("I-fig2-a"),
        "I-P2=other": alternative("I-fig6-a"),
        "I-P3=1.0bdp": alternative("I-fig6-a", "I-fig8-a", **{"I-fig8": "it could not be run"}),
    }
    made = joint.ranking("I", {"I": {"alternatives": tried}})
    assert [(one.choice.id, one.figures, one.claims) for one in made[:3]] == [
        ("I-P2", 2, 2), ("I-P1", 1, 3), ("I-P3", 1, 1),
    ]  # fmt: skip
    assert {one.claims for one in made[3:]} == {0}
    with pytest.raises(BadInputError, match=r"reproduce I --multiverse"):
        joint.ranking("I", {"N": {"alternatives": tried}})


class AskedError(Exception):
    """A measure asked for a case."""


@pytest.mark.parametrize("letter", PAPERS)
def test_each_number_of_a_paper_has_a_measure_that_asks_for_cases(letter: str) -> None:
    known = published(PAPERS[letter])
    assert known.numbers or known.left_out
    for one in known.numbers:
        measure = measure_of(PAPERS[letter], one)
        inspect.signature(measure).bind(None, *one.of)
        attempt = Attempt(experiments()[one.experiment], joint.EFFORT)
        cases = attempt.cases

        def load(label: Label, cases: Mapping[Label, Case] = cases) -> Any:
            assert label in cases
            raise AskedError

        with pytest.raises(AskedError):
            measure(Data(attempt.effort, cases, load), *one.of)
    if known.numbers:
        assert len(joint.state(letter)) == 16


class Script:
    """scripts/make_joint.py."""

    loaded: ClassVar[Any] = None

    @classmethod
    def load(cls) -> Any:
        if cls.loaded is None:
            spec = importlib.util.spec_from_file_location("make_joint", SCRIPT)
            assert spec is not None
            assert spec.loader is not None
            cls.loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(cls.loaded)
        return cls.loaded


def test_the_page_is_what_its_script_writes() -> None:
    script = Script.load()
    text = script.page(multiverse.load(script.RECORD))
    assert script.DOCUMENT.read_text(encoding="utf-8") == text, "scripts/make_joint.py renews it"


def test_the_page_says_what_has_not_been_run() -> None:
    text = Script.load().page({})
    assert text.count("It has not been run yet.") == len(PAPERS) - 1
    assert "| I-fig2: TCP, plain routers (a), in a minute | MB | 215.004 | section II-B |" in text
    assert "The paper states no result as a number." in text


@pytest.mark.usefixtures("fakes")
def test_the_page_has_both_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script.load()
    monkeypatch.setattr(script, "choices", lambda _: CHOICES)
    entry, _ = Counted(tmp_path).fill({})
    text = "\n".join(script.of_paper("I", entry))
    assert "| number | unit | paper | as argued | best fit (fitted, 12 sets tried) | where |" in text
    assert "| I-fig2: the first | MB | 10 | 20 | 11 | section II |" in text
    assert "| distance: mean of \\|ln(ours / paper)\\| |  |  | 0.347 | 0.048 |  |" in text
    assert (
        "10 of 10 sets of at most two changes have been tried, and 2 of 2 sets of three, around the best pairs." in text
    )
    assert "have no distance" in text
    assert "Best fit: I-P2=2, I-P4=2." in text
    assert "older than the cases" not in text
    assert "older than the cases" in "\n".join(script.of_paper("I", {**entry, "state": "before"}))


@pytest.mark.usefixtures("fakes")
def test_the_command_shows_and_keeps_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    universes = {"I": {"alternatives": {"I-P2=2": {"differs": {"I-fig2-a": "fails"}, "errors": {}}}}}
    (tmp_path / joint.UNIVERSES).write_text(json.dumps(universes), encoding="utf-8")
    assert main(["reproduce", "I", "--joint", "--jobs", "1", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "best fit (fitted, 12 sets tried)" in shown.out
    assert "2 numbers, 3 choices with 4 alternatives; 9 sets of at most two changes left" in shown.err
    record = json.loads((tmp_path / joint.FILE).read_text(encoding="utf-8"))
    assert len(record["I"]["sets"]) == 12
    assert main(["reproduce", "I", "--joint", "--json", "-o", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == record


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["X"], "--joint takes papers (N, I, Y, D, K) or all, not X"),
        (["N-fig3"], "not N-fig3"),
        ([], "--joint takes papers"),
        (["N", "--choice", "N-P4=keep"], "leave out all other options"),
        (["N", "--hours", "0"], "not a number of hours above 0"),
        (["N", "--hours", "soon"], "not a number of hours above 0"),
        (["N"], "reproduce N --multiverse"),
        (["N", "--multiverse"], "leave out all other options"),
        (["Y"], "nothing of paper Y can be fitted"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "--joint", *arguments, "-o", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


def test_hours_need_joint_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "N-fig3", "--hours", "1"]) == 2
    assert "--hours is the time of --joint" in capsys.readouterr().err


@pytest.mark.usefixtures("fakes")
def test_no_time_is_an_error(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    for hours in (0.0, -1.0, math.nan):
        with pytest.raises(BadInputError, match="give more than 0"):
            Search("I", {}, moved()).run(counted.perform, counted.store, tmp_path, counted.noted.append, hours)
