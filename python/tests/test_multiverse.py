"""The multiverse: one choice after another, resumable; a small study on the synthetic engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from explicate.cli import main
from explicate_papers import freeze, judge, multiverse, plan
from explicate_papers.multiverse import Alternative, Span
from explicate_papers.plan import Choice
from explicate_papers.register import PAPERS
from explicate_papers.statistics import Check, Sample, fact
from explicate_papers.store import Job, Store
from explicate_papers.study import Case, Data, Effort, Study
from explicate_papers.verdicts import Block

SCENARIO = 'name = "one"\nduration = "10s"\n[[flows]]\nname = "mine"\nprotocol = "{}"\n'
CHOICES = {
    "I-P1": Choice("I-P1", "protocol", "xcp", ("newreno", "vcp"), ""),
    "I-P2": Choice("I-P2", "read by the judge", "1", ("2",), ""),
    "I-P3": Choice("I-P3", "never read", "1", ("2",), ""),
    "I-P4": Choice("I-P4", "cannot be", "1", ("2",), ""),
}


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study("I-fig2")
    for place in (judge, multiverse):
        monkeypatch.setattr(place, "studies", lambda: {study.id: study})
    for place in (plan, multiverse):
        monkeypatch.setattr(place, "choices", lambda _: CHOICES)
    monkeypatch.setattr(freeze, "of_paper", lambda _: "as it is")

    @study.cases
    def cases(effort: Effort) -> dict[str, Case]:
        {"1": True}[effort.choices["I-P4"]]
        return {"one": Case(SCENARIO.format(effort.choices["I-P1"]), seeds=2)}

    @study.predicate("I-fig2-a")
    def xcp(data: Data) -> Check:
        return fact("protocol", holds=data.runs("one")[0].flows["protocol"][0] == "xcp", measured="")

    @study.predicate("I-fig2-b")
    def reads(data: Data) -> Check:
        return fact("choice", holds=data.effort.choices["I-P2"] == "2", measured="")

    @study.predicate("I-fig2-c", instead="nothing, because")
    def something_else(data: Data) -> Check:
        return fact("it", holds=True, measured="")

    study.cannot_fail("I-fig2-c", "it is a sum")


class Counted:
    """The runs, and the times at which the record was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "runs")
        self.runs = 0
        self.written: list[int] = []

    def __call__(self, jobs: Sequence[Job], store: Store) -> None:
        self.runs += sum(not store.has(job) for job in jobs)
        store.perform(jobs, 1, lambda _done, _all: None)

    def fill(self, entry: dict[str, Any]) -> dict[str, Any]:
        paper = multiverse.Paper("I", entry)
        note = lambda: self.written.append(len(paper.entry["alternatives"]))  # noqa: E731
        paper.run(multiverse.alternatives("I"), self, self.store, self.folder, note)
        return paper.entry


def test_each_choice_is_replaced_by_each_alternative(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    entry = counted.fill({})
    assert entry["chosen"]["I-fig2-a"] == "holds"
    assert entry["chosen"]["I-fig2-b"] == "fails"
    assert entry["chosen"]["I-fig2-c"] == "cannot fail"
    found = {line.name: (line.held, dict(line.differs)) for line in multiverse.lines(entry)}
    assert found["I-P1=newreno"] == (0, {"I-fig2-a": "fails"})
    assert found["I-P1=vcp"] == (0, {"I-fig2-a": "fails"})
    assert found["I-P2=2"] == (2, {"I-fig2-b": "holds"})
    assert found["I-P3=2"] == (1, {})
    assert entry["alternatives"]["I-P3=2"]["experiments"] == 0
    assert "cannot be made" in entry["alternatives"]["I-P4=2"]["errors"]["I-fig2"]
    assert multiverse.span({"I": entry}) == Span(0, 1, 2, 4), "what cannot be run does not count"
    assert [line.name for line in multiverse.lines(entry) if not line.whole] == ["I-P4=2"]
    assert counted.runs == 2 * 3
    assert counted.written == [0, 1, 2, 3, 4, 5]
    assert [path.name for path in tmp_path.iterdir()] == ["runs"], "runs of alternatives are not kept"


def test_it_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(tmp_path)
    entry = counted.fill({})
    del entry["alternatives"]["I-P1=vcp"]
    counted.runs = 0
    assert set(counted.fill(entry)["alternatives"]) == {one.name for one in multiverse.alternatives("I")}
    assert counted.runs == 2
    monkeypatch.setattr(freeze, "of_paper", lambda _: "changed since")
    counted.runs = 0
    counted.fill(entry)
    assert counted.runs == 4, "other judges begin anew"


def test_another_engine_repeats_the_choices_and_keeps_what_gives_the_same(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    entry = counted.fill({})
    counted.runs = 0
    again = counted.fill({**entry, "engine": "another"})
    assert (again, counted.runs, counted.written[-1]) == (entry, 0, 5), "the runs of the choices are in the store"
    changed = counted.fill({**entry, "engine": "another", "results": "other", "alternatives": {"gone": {}}})
    assert changed == entry


def test_what_was_measured_is_compared_to_nine_digits() -> None:
    def measured(value: float, *, holds: bool = True) -> dict[str, Block]:
        return {"I-fig2-a": Block(1, holds, (Check("mean", "", "> 0", holds, Sample.of([value, 1e-30]), (0.0,)),))}

    assert multiverse.digest(measured(0.1 + 0.2)) == multiverse.digest(measured(0.3))
    assert multiverse.digest(measured(0.3)) != multiverse.digest(measured(0.300001))
    assert multiverse.digest(measured(0.3)) != multiverse.digest(measured(0.3, holds=False))


def test_a_choice_by_claim(tmp_path: Path) -> None:
    entry = Counted(tmp_path).fill({})
    head, *body = multiverse.by_claim(entry, CHOICES["I-P1"])
    assert head == ["claim", "xcp (used)", "newreno", "vcp"]
    assert body[0] == ["I-fig2-a", "holds", "fails", "fails"]
    assert body[-1][1:] == ["1", "0", "0"]
    del entry["alternatives"]["I-P1=vcp"]
    assert multiverse.by_claim(entry, CHOICES["I-P1"])[1][3] == "not run"


def test_alternatives_have_the_names_that_the_command_takes() -> None:
    assert Alternative(CHOICES["I-P1"], "reno").name == "I-P1=reno"
    assert [one.name for one in multiverse.alternatives("I", {"I-P2"})] == ["I-P2=2"]


def test_the_command_refuses_what_it_cannot_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--multiverse", "I-fig2"]) == 2
    assert "takes papers" in capsys.readouterr().err
    assert main(["reproduce", "--multiverse", "I", "--choice", "I-P1=reno"]) == 2
    assert main(["reproduce", "--law-table", "D"]) == 2
    assert main(["reproduce", "I-fig2", "--controls", "--set", "duration=5s"]) == 2
    assert PAPERS
