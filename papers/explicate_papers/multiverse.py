"""The multiverse: each choice of a paper replaced by each of its alternatives, one at a time, and the claims that hold.

Quick effort, first block of seeds. Each alternative is recorded as soon as it is judged. Records are kept while the
frozen judges are the same and the choices as they are give the same measurements: another engine alone repeats these.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explicate.files import write_text
from explicate.identity import engine_digest
from explicate_papers import freeze
from explicate_papers.judge import Attempt
from explicate_papers.plan import Choice, Reads, choices, studies
from explicate_papers.register import JUDGED, PAPERS, Experiment, experiments, predicates
from explicate_papers.store import Job, Store
from explicate_papers.verdicts import Block, Word

EFFORT = "quick"
LAW = "I-P13"
"""The choice of paper I that has a separate table: the use of estimates in a virtual router."""
Words = dict[str, str]
"""By claim: the word of its class on one block."""
Perform = Callable[[Sequence[Job], Store], None]


@dataclass(frozen=True)
class Alternative:
    """One choice with another value."""

    choice: Choice
    value: str

    @property
    def name(self) -> str:
        """Its name in the record and after ``--choice``."""
        return f"{self.choice.id}={self.value}"


def alternatives(letter: str, only: Collection[str] = ()) -> list[Alternative]:
    """Return all alternatives of a paper's choices, or those of the choices `only`."""
    known = choices(PAPERS[letter]).values()
    return [Alternative(one, value) for one in known if not only or one.id in only for value in one.others]


def words(attempt: Attempt, store: Store) -> Words:
    """Return the result of the first block for each claim, from the runs in `store`."""
    return _words(attempt, attempt.judge_block(store, 0))


def _words(attempt: Attempt, blocks: Mapping[str, Block]) -> Words:
    study = attempt.study
    assert study is not None
    made = {}
    for claim, block in blocks.items():
        rule = study.rules.get(claim)
        instead = rule is not None and bool(rule.instead)
        made[claim] = _word(block, instead=instead, unfailing=claim in study.unfailing).value
    return made


def _word(block: Block, *, instead: bool, unfailing: bool) -> Word:
    if block.holds and unfailing:
        return Word.CANNOT_FAIL
    if block.holds is None or instead:
        return Word.NOT_JUDGED
    return Word.HOLDS if block.holds else Word.FAILS


class Paper:
    """The record of one paper, `entry`, and how to complete it.

    `engine` is the engine that made the record or was found to give the same `results`, a hash of what was measured
    with the choices as they are.
    """

    def __init__(self, letter: str, entry: Mapping[str, Any]) -> None:
        self.letter = letter
        self._frozen = freeze.of_paper(letter)
        self.entry: dict[str, Any] = dict(entry) if entry.get("frozen") == self._frozen else self._empty("")
        self._reads: dict[str, Reads] = {}

    def _empty(self, results: str) -> dict[str, Any]:
        return {"engine": "", "results": results, "frozen": self._frozen, "chosen": {}, "alternatives": {}}

    @property
    def _experiments(self) -> list[Experiment]:
        return [one for one in experiments().values() if one.paper.letter == self.letter and one.id in studies()]

    def missing(self, wanted: Sequence[Alternative]) -> list[Alternative]:
        """Return the alternatives that are not in the record."""
        return [one for one in wanted if one.name not in self.entry["alternatives"]]

    def run(
        self, wanted: Sequence[Alternative], perform: Perform, store: Store, folder: Path, note: Callable[[], None]
    ) -> None:
        """Judge the choices as they are and the alternatives that are missing; `note` is called after each."""
        if self.entry.get("engine") == engine_digest() and not self.missing(wanted):
            return
        tried = [Attempt(one, EFFORT) for one in self._experiments]
        perform([job for one in tried for job in one.block_jobs(0)], store)
        chosen: Words = {}
        measured: dict[str, Block] = {}
        for one in tried:
            blocks = one.judge_block(store, 0)
            measured.update(blocks)
            chosen.update(_words(one, blocks))
            self._reads[one.experiment.id] = one.effort.choices  # type: ignore[assignment]
        results = digest(measured)
        if self.entry.get("results") != results:
            # In place: the record of all papers holds this entry.
            self.entry.update(self._empty(results))
        self.entry.update(engine=engine_digest(), chosen=chosen)
        note()
        for alternative in self.missing(wanted):
            self.entry["alternatives"][alternative.name] = self._judged(alternative, perform, store, folder)
            note()

    def _judged(self, alternative: Alternative, perform: Perform, store: Store, folder: Path) -> dict[str, Any]:
        """Return the claims that differ with an alternative, and the experiments that could not be run with it."""
        # Experiments that do not read the choice cannot differ. The alternative's own runs are not kept.
        scratch = folder / f"alternative-{alternative.choice.id}-{alternative.choice.others.index(alternative.value)}"
        beside = Store(scratch, store)
        touched = [one for one in self._experiments if alternative.choice.id in self._reads[one.id].read]
        differs, errors = {}, {}
        for experiment in touched:
            try:
                attempt = Attempt(experiment, EFFORT, {alternative.choice.id: alternative.value})
                perform(attempt.block_jobs(0), beside)
                now = words(attempt, beside)
            except (ValueError, RuntimeError) as error:
                errors[experiment.id] = f"{type(error).__name__}: {error}"
                now = {one.id: Word.NOT_JUDGED.value for one in experiment.predicates}
            differs.update({key: word for key, word in now.items() if word != self.entry["chosen"][key]})
        shutil.rmtree(scratch, ignore_errors=True)
        return {"experiments": len(touched), "differs": differs, "errors": errors}


def digest(measured: Mapping[str, Block]) -> str:
    """Return a hash of what was measured, to nine digits: sums may differ in the last ones between processors."""
    text = re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", lambda found: f"{float(found[0]):.9g}", repr(sorted(measured.items())))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def held(verdicts: Mapping[str, str]) -> int:
    """Count the authors' claims that hold."""
    known = predicates()
    return sum(word == Word.HOLDS for key, word in verdicts.items() if known[key].basis in JUDGED)


@dataclass(frozen=True)
class Line:
    """An alternative on record: how many claims hold with it, which flip, and which experiments could not be run."""

    name: str
    held: int
    differs: Mapping[str, str]
    errors: Mapping[str, str]

    @property
    def whole(self) -> bool:
        """Whether all experiments could be run; otherwise the number of claims that hold has no meaning."""
        return not self.errors

    @property
    def flips(self) -> str:
        """The differences, in words."""
        said = [f"{claim} {word}" for claim, word in self.differs.items()]
        if self.errors:
            said = [f"{key} could not be run: {error}" for key, error in self.errors.items()]
        return "; ".join(said) or "nothing"


def lines(entry: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the alternatives of a paper's record."""
    for name, one in entry["alternatives"].items():
        yield Line(name, held({**entry["chosen"], **one["differs"]}), one["differs"], one["errors"])


@dataclass(frozen=True)
class Span:
    """How many claims hold at least, with the choices used, and at most; over how many alternatives."""

    least: int
    chosen: int
    most: int
    alternatives: int


def span(record: Mapping[str, Any]) -> Span | None:
    """Return the span over all single changes on record that could be run; None if there is none."""
    chosen = sum(held(entry["chosen"]) for entry in record.values())
    steps = [line.held - held(entry["chosen"]) for entry in record.values() for line in lines(entry) if line.whole]
    return Span(chosen + min(0, *steps), chosen, chosen + max(0, *steps), len(steps)) if steps else None


def by_claim(entry: Mapping[str, Any], choice: Choice) -> list[list[str]]:
    """Return the table claim by value of a choice: a header, then for each claim its words."""
    values = [choice.used, *choice.others]
    columns = [entry["chosen"]]
    for value in choice.others:
        one = entry["alternatives"].get(f"{choice.id}={value}")
        columns.append({**entry["chosen"], **one["differs"]} if one else {})
    head = ["claim", *(f"{value} (used)" if value == choice.used else value for value in values)]
    body = [[claim, *(column.get(claim, "not run") for column in columns)] for claim in entry["chosen"]]
    return [head, *body, ["claims of the authors that hold", *(str(held(column)) for column in columns)]]


def load(file: Path) -> dict[str, Any]:
    """Return a record; empty if there is none."""
    made: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return made


def save(file: Path, record: Mapping[str, Any]) -> None:
    """Write a record."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
