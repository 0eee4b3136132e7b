"""Joint settings: pairs and triples of a paper's choices, and how far each set is from the paper's own numbers.

One change at a time cannot see that two choices agree with a paper only together. The choices that move most figures in
the record of the multiverse are changed two at a time, then the best pairs with a third. The distance of a set is the
mean of |ln(ours / the paper's)| over the numbers in ``published.toml``, measured on seeds that no judge uses. The set
with the least distance is a fit to those numbers: it says what agrees with the paper, and no verdict is judged with it.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from explicate import console
from explicate.errors import BadInputError
from explicate.identity import engine_digest
from explicate.results import Results
from explicate.text import table
from explicate_papers import freeze, multiverse, plan
from explicate_papers.judge import Attempt
from explicate_papers.plan import Choice, Reads, choices, studies
from explicate_papers.published import Number, distance, measure_of, published
from explicate_papers.register import PAPERS, experiments, paper_named
from explicate_papers.statistics import number
from explicate_papers.store import Job, Store, Told
from explicate_papers.study import Data, EmptyClassError, Label, NotAttemptedError

EFFORT = "quick"
BLOCK = 9
"""The block of seeds, 9001 and on: verdicts are judged on blocks 0 and 1, and were looked at on 2 and 3."""
MOST_CHOICES, BEST_PAIRS = 8, 10
FILE, UNIVERSES, RUNS = "joint.json", "multiverse.json", "runs"
"""The record, that of the multiverse, which ranks choices, and the finished runs; all in the folder of results."""
HOURS = 3.0
"""The time for a paper, unless another is given."""
AS_ARGUED = "as argued"
"""The name of the set without a change."""
Setting = Mapping[str, str]
"""Values of choices that differ from those that are used, by choice."""
Perform = Callable[[Sequence[Job], Store], None]
Progress = AbstractContextManager[Told]


def state(letter: str) -> str:
    """Return a hash of all that decides what is measured: cases, choices, plan, measures. Judges do not."""
    paper = PAPERS[letter]
    known = published(paper)
    inside = f"explicate_papers.{paper.slug}.published"
    syntax = freeze.module(inside)
    assert syntax is not None, inside
    code = [one for one in syntax.statements if not isinstance(one, ast.Expr)]
    parts = [freeze.digest(code, inside, syntax, [one.id for one in known.numbers], known.seeds)]
    parts += [freeze.experiment_digest(studies()[key]) for key in known.experiments]
    parts += freeze.paper_digests(paper).values()
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


# ------------------------------------------------------------------------------------------------ sets


@dataclass(frozen=True)
class Moved:
    """A choice, and how many figures (experiments) and claims its alternatives move in the multiverse."""

    choice: Choice
    figures: int
    claims: int


def ranking(letter: str, universes: Mapping[str, Any]) -> list[Moved]:
    """Return a paper's choices with alternatives, those that move most first; raise BadInputError without a record."""
    tried = universes.get(letter, {}).get("alternatives")
    if not tried:
        raise BadInputError(
            f"which choices of paper {letter} move most is on record in DIR/multiverse.json, which is not there: "
            f"`explicate reproduce {letter} --multiverse -o DIR` makes it, and a clone has one in tests/multiverse.json"
        )
    homes = {predicate.id: one.id for one in experiments().values() for predicate in one.predicates}
    claims: dict[str, set[str]] = {}
    for name, one in tried.items():
        found = {claim for claim in one["differs"] if claim in homes and homes[claim] not in one["errors"]}
        claims.setdefault(name.partition("=")[0], set()).update(found)
    made = [
        Moved(choice, len({homes[claim] for claim in claims.get(key, ())}), len(claims.get(key, ())))
        for key, choice in choices(PAPERS[letter]).items()
        if choice.others
    ]
    return sorted(made, key=lambda one: (-one.figures, -one.claims))


def name_of(setting: Setting) -> str:
    """Return the name of a set, which its order does not change."""
    return ", ".join(f"{key}={value}" for key, value in sorted(setting.items())) or AS_ARGUED


def at_most_two(changed: Sequence[Choice]) -> list[Setting]:
    """Return the set without a change, all alternatives alone, and all pairs of alternatives of two choices."""
    alone = [{choice.id: value} for choice in changed for value in choice.others]
    pairs = [{**one, **other} for one, other in combinations(alone, 2) if one.keys() != other.keys()]
    return [{}, *alone, *pairs]


def triples(tried: Mapping[str, Any], changed: Sequence[Choice]) -> list[Setting]:
    """Return the best pairs of those tried, each with every alternative of every other choice."""
    pairs = [one for one in tried.values() if len(one["set"]) == 2 and one["distance"] is not None]
    made: dict[str, Setting] = {}
    for pair in sorted(pairs, key=lambda one: (one["distance"], name_of(one["set"])))[:BEST_PAIRS]:
        for choice in changed:
            if choice.id not in pair["set"]:
                for value in choice.others:
                    larger = {**pair["set"], choice.id: value}
                    made.setdefault(name_of(larger), larger)
    return list(made.values())


class OutOfTimeError(Exception):
    """The time is over: what is finished is on record, and the same command goes on."""


@dataclass(frozen=True)
class Cost:
    """An estimate: sets that are left, their runs at most, and the processor time of those, s."""

    sets: int
    runs: int
    seconds: float


@dataclass
class _Trial:
    """One set: what runs it, its numbers by id, and what could not be measured, by experiment or number."""

    perform: Perform
    store: Store
    seeds: int
    ours: dict[str, float | None] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    runs: int = 0
    made: int = 0

    def loader(self, attempt: Attempt) -> Callable[[Label], list[Results]]:
        """Return what loads a case for `Data`: its runs are made when a measure first asks for them."""
        loaded: dict[Label, list[Results]] = {}

        def load(label: Label) -> list[Results]:
            if label not in loaded:
                case = attempt.cases[label]
                count = min(case.seeds or attempt.effort.seeds, self.seeds)
                jobs = Job.of(case, plan.seeds(BLOCK, count))
                keys = {job.key for job in jobs} - self.seen
                missing = sum(not self.store.has(job) for job in jobs)
                self.perform(jobs, self.store)
                self.seen |= keys
                self.runs += len(keys)
                self.made += missing
                loaded[label] = [self.store.load(job) for job in jobs]
            return loaded[label]

        return load


class Search:
    """The record of one paper, `entry`, and how to complete it.

    `sets` in it has for each set of choices its distance and our numbers, in the order of `numbers`, and which could
    not be measured; `reads` has the choices that each experiment reads, `costs` its runs and their processor time.
    """

    def __init__(self, letter: str, entry: Mapping[str, Any], moved: Sequence[Moved]) -> None:
        self.letter = letter
        self.paper = PAPERS[letter]
        self.published = published(self.paper)
        self.moved = moved
        known = state(letter)
        self.entry: dict[str, Any] = dict(entry) if entry.get("state") == known else self._empty(known)

    def _empty(self, known: str) -> dict[str, Any]:
        return {
            "engine": "", "state": known, "seeds": [plan.seeds(BLOCK, 1)[0], self.published.seeds],
            "numbers": [one.id for one in self.published.numbers], "choices": [], "reads": {}, "costs": {}, "sets": {},
        }  # fmt: skip

    @property
    def sets(self) -> dict[str, Any]:
        """The sets that have been tried, by name."""
        made: dict[str, Any] = self.entry["sets"]
        return made

    @property
    def changed(self) -> list[Choice]:
        """The choices that are changed: those that move most figures, of those that the experiments read."""
        known = choices(self.paper)
        return [known[key] for key in self.entry["choices"]]

    def run(
        self,
        perform: Perform,
        store: Store,
        folder: Path,
        note: Callable[[str], None],
        hours: float = HOURS,
        clock: Callable[[], float] = time.monotonic,
    ) -> bool:
        """Try the sets that are missing, until all are tried or `hours` are over; return whether all are.

        `note` is called after each set, with its name; runs of pairs and triples are not kept.
        """
        if not (math.isfinite(hours) and hours > 0):
            raise BadInputError(f"--hours {hours:g}: no set can be tried in that time; give more than 0")
        end = clock() + 3600 * hours

        def make(jobs: Sequence[Job], into: Store) -> None:
            if clock() >= end:
                raise OutOfTimeError
            perform(jobs, into)

        try:
            self._again(make, store, folder, note)
            for stage in (at_most_two(self.changed), None):
                for setting in triples(self.sets, self.changed) if stage is None else stage:
                    if name_of(setting) not in self.sets:
                        self.sets[name_of(setting)] = self._tried(setting, self.sets, make, store, folder)
                        note(name_of(setting))
        except OutOfTimeError:
            return False
        return True

    def _again(self, perform: Perform, store: Store, folder: Path, note: Callable[[str], None]) -> None:
        """Measure with the choices as they are, unless this engine did; other numbers than before void the record."""
        if self.entry["engine"] == engine_digest() and AS_ARGUED in self.sets:
            return
        made = self._tried({}, {}, perform, store, folder)
        before = self.sets.get(AS_ARGUED)
        kept = self.sets if before is not None and before["numbers"] == made["numbers"] else {}
        self.entry.update(engine=engine_digest(), sets={**kept, AS_ARGUED: made})
        read = {key for keys in self.entry["reads"].values() for key in keys}
        self.entry["choices"] = [one.choice.id for one in self.moved if one.choice.id in read][:MOST_CHOICES]
        note(AS_ARGUED)

    def _tried(
        self, setting: Setting, earlier: Mapping[str, Any], perform: Perform, store: Store, folder: Path
    ) -> dict[str, Any]:
        """Return a set's entry. Experiments that read none of its changes have the numbers of an `earlier` set."""
        # Runs of one change serve pairs, where a case reads one of the two; there are too many of all others.
        scratch = folder / f"joint-{hashlib.sha256(name_of(setting).encode()).hexdigest()[:12]}"
        trial = _Trial(perform, store if len(setting) < 2 else Store(scratch, store), self.published.seeds)
        for key in self.published.experiments:
            mine = [one for one in self.published.numbers if one.experiment == key]
            known = self._known(key, setting, earlier)
            if known is None:
                self._evaluate(key, mine, setting, trial)
                continue
            for one in mine:
                trial.ours[one.id] = known["numbers"][self.entry["numbers"].index(one.id)]
            trial.errors |= {one.id: known["errors"][one.id] for one in mine if one.id in known["errors"]}
        shutil.rmtree(scratch, ignore_errors=True)
        ours = [trial.ours.get(one.id) for one in self.published.numbers]
        far = distance(self.published.numbers, ours)
        return {"set": dict(setting), "distance": far, "numbers": ours, "errors": trial.errors}

    def _known(self, experiment: str, setting: Setting, earlier: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return an earlier set that gives an experiment the same values of all choices that it reads."""
        read = self.entry["reads"].get(experiment, [])
        for one in earlier.values():
            if experiment not in one["errors"] and all(one["set"].get(key) == setting.get(key) for key in read):
                found: Mapping[str, Any] = one
                return found
        return None

    def _evaluate(self, experiment: str, numbers: Sequence[Number], setting: Setting, trial: _Trial) -> None:
        """Run what the measures of an experiment ask for, and enter its numbers or why there are none."""
        try:
            attempt = Attempt(experiments()[experiment], EFFORT, setting)
        except ValueError as error:
            if not setting:
                raise
            trial.errors[experiment] = str(error)
            return
        trial.runs = trial.made = 0
        began = time.process_time()
        data = Data(attempt.effort, attempt.cases, trial.loader(attempt))
        try:
            for one in numbers:
                self._measure(one, data, setting, trial)
        finally:
            cost = self.entry["costs"].setdefault(experiment, {"runs": 0, "made": 0, "cpu_s": 0.0})
            cost["runs"] = max(cost["runs"], trial.runs)
            cost["made"] += trial.made
            cost["cpu_s"] = round(cost["cpu_s"] + time.process_time() - began, 2)
        assert isinstance(attempt.effort.choices, Reads)
        read = {*self.entry["reads"].get(experiment, ()), *attempt.effort.choices.read}
        self.entry["reads"][experiment] = [key for key in choices(self.paper) if key in read]

    def _measure(self, one: Number, data: Data, setting: Setting, trial: _Trial) -> None:
        measure = measure_of(self.paper, one)
        try:
            # Nine digits: sums may differ in the last ones between processors.
            value = float(f"{measure(data, *one.of):.9g}")
            one.distance(value)
        except OutOfTimeError:
            raise
        except Exception as error:
            # With another choice a measure may find nothing to measure, in any way.
            if not setting and not isinstance(error, ValueError | EmptyClassError | NotAttemptedError):
                raise
            trial.errors[one.id] = str(error)
        else:
            trial.ours[one.id] = value

    def cost(self) -> tuple[Cost, Cost]:
        """Return what sets of at most two changes still cost, and what triples do at most.

        A cost is 0 before the choices as they are have been measured.
        """
        alternatives = sum(len(choice.others) for choice in self.changed)
        left = [one for one in at_most_two(self.changed) if name_of(one) not in self.sets]
        three = triples(self.sets, self.changed)
        more = [one for one in three if name_of(one) not in self.sets]
        most = BEST_PAIRS * max(0, alternatives - 2) if left else len(more)
        costs = self.entry["costs"]
        runs = seconds = whole = whole_s = 0.0
        for key, one in costs.items():
            read = self.entry["reads"].get(key, [])
            each = one["cpu_s"] / one["made"] if one["made"] else 0.0
            done = {tuple(other["set"].get(choice) for choice in read) for other in self.sets.values()}
            fresh = {tuple(other.get(choice) for choice in read) for other in left} - done
            runs += len(fresh) * one["runs"]
            seconds += len(fresh) * one["runs"] * each
            whole += one["runs"]
            whole_s += one["runs"] * each
        return Cost(len(left), round(runs), seconds), Cost(most, round(most * whole), most * whole_s)


# ------------------------------------------------------------------------------------------------ report


def best(entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the set with the least distance; None if no set has one."""
    found = [one for one in entry["sets"].values() if one["distance"] is not None]
    return min(found, key=lambda one: (one["distance"], len(one["set"]), name_of(one["set"])), default=None)


def planned(letter: str, entry: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many sets of at most two changes there are, and how many triples around the best pairs of today."""
    known = choices(PAPERS[letter])
    changed = [known[key] for key in entry["choices"] if key in known]
    return len(at_most_two(changed)), len(triples(entry["sets"], changed))


def beside(letter: str, entry: Mapping[str, Any]) -> list[list[str]]:
    """Return the paper's numbers and ours: a header, a row for each number, and the distances."""
    fit, argued = best(entry), entry["sets"].get(AS_ARGUED)
    places = {key: place for place, key in enumerate(entry["numbers"])}

    def ours(one: Number, of: Mapping[str, Any] | None) -> str:
        value = of["numbers"][places[one.id]] if of and one.id in places else None
        return "none" if value is None else number(value)

    def far(of: Mapping[str, Any] | None) -> str:
        return "none" if of is None or of["distance"] is None else f"{of['distance']:.3f}"

    head = ["number", "unit", "paper", AS_ARGUED, f"best fit (fitted, {len(entry['sets'])} sets tried)"]
    body = [
        [f"{one.experiment}: {one.what}", one.unit, one.text, ours(one, argued), ours(one, fit)]
        for one in published(PAPERS[letter]).numbers
    ]
    return [head, *body, ["distance: mean of |ln(ours / paper)|", "", "", far(argued), far(fit)]]


def said(letter: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield in sentences what has been tried of a paper, and the best fit."""
    two, three = planned(letter, entry)
    done = [sum(len(one["set"]) in sizes for one in entry["sets"].values()) for sizes in ((0, 1, 2), (3,))]
    alone = sum(one["distance"] is None for one in entry["sets"].values())
    yield (
        f"{done[0]} of {two} sets of at most two changes have been tried, and {done[1]} "
        + (f"of {three} sets of three, around the best pairs." if done[0] == two else "of three.")
        + (f" {alone} of them have no distance, since a number could not be measured." if alone else "")
    )
    fit = best(entry)
    if fit is not None:
        yield f"Best fit: {name_of(fit['set'])}."


def estimate(search: Search) -> str:
    """Return what is left, in a sentence."""
    two, three = search.cost()
    alternatives = sum(len(choice.others) for choice in search.changed)
    return (
        f"paper {search.letter}: {len(search.published.numbers)} numbers, {len(search.changed)} choices with "
        f"{alternatives} alternatives; {two.sets} sets of at most two changes left, at most {two.runs} runs, "
        f"{two.seconds / 3600:.2f} h of processor time; triples: at most {three.sets}, {three.runs} runs, "
        f"{three.seconds / 3600:.2f} h"
    )


def command(args: argparse.Namespace, folder: Path, workers: int, progress: Callable[[], Progress]) -> int:
    """Complete and show the record of the joint settings of the named papers, each within ``--hours``; return 0."""
    changes = (args.choice, args.set, args.controls, args.enlarge, args.seed != 1)
    if any((*changes, args.multiverse, args.law_table, args.quick, args.full)):
        raise BadInputError("--joint changes the choices itself, with the quick plan: leave out all other options")
    names = letters(args.what)
    file, universes = folder / FILE, multiverse.load(folder / UNIVERSES)
    record = multiverse.load(file)
    searches = [Search(letter, record.get(letter, {}), ranking(letter, universes)) for letter in names]
    hours = HOURS if args.hours is None else args.hours

    def perform(jobs: Sequence[Job], into: Store) -> None:
        with progress() as told:
            into.perform(jobs, workers, told)

    for search in searches:
        record[search.letter] = search.entry

        def note(name: str, search: Search = search) -> None:
            multiverse.save(file, record)
            far = search.sets[name]["distance"]
            console.note(f"{search.letter}, {name}: {'no distance' if far is None else f'distance {far:.3f}'}")
            if name == AS_ARGUED:
                console.note(estimate(search))

        if not search.run(perform, Store(folder / RUNS), folder, note, hours):
            console.note(f"{hours:g} h are over, and the same command goes on. {estimate(search)}")
        multiverse.save(file, record)
    shown = {letter: record[letter] for letter in names}
    if args.json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(_report(search) for search in searches))
    return 0


def _report(search: Search) -> str:
    moved = [
        [one.choice.id, one.choice.name, str(one.figures), str(one.claims),
         "changed" if one.choice.id in search.entry["choices"] else ""]
        for one in search.moved
    ]  # fmt: skip
    head, *body = beside(search.letter, search.entry)
    return "\n\n".join(
        (
            f"paper {search.letter}: " + " ".join(said(search.letter, search.entry)),
            table(["choice", "what", "figures moved", "claims moved", ""], moved, left=2),
            table(head, body, left=2),
        )
    )


def letters(names: Sequence[str]) -> list[str]:
    """Return the letters of the papers that `names` are, all for ``all``; raise BadInputError for others."""
    if list(names) == ["all"]:
        return [letter for letter, paper in PAPERS.items() if published(paper).numbers]
    found = {name: paper_named(name) for name in names}
    strange = [name for name, paper in found.items() if paper is None]
    if strange or not found:
        what = f", not {', '.join(strange)}" if strange else ""
        raise BadInputError(f"--joint takes papers ({', '.join(PAPERS)}) or all{what}")
    made = [paper for paper in found.values() if paper]
    for paper in made:
        if not (known := published(paper)).numbers:
            raise BadInputError(
                f"nothing of paper {paper.letter} can be fitted: it states no result as a number; not compared: "
                + "; ".join(known.left_out)
            )
    return [paper.letter for paper in made]
