"""Judges runs: every predicate of an experiment on two blocks of seeds, with the measured values."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from explicate.errors import BadInputError
from explicate.results import Results
from explicate_papers import stacks
from explicate_papers.controls import Mutation
from explicate_papers.evidence import Quantity, decides, quantities
from explicate_papers.plan import BLOCKS, effort, seeds, studies
from explicate_papers.register import Experiment, Paper, Predicate
from explicate_papers.statistics import Check
from explicate_papers.store import Job, Store
from explicate_papers.study import (
    Case,
    Data,
    Effort,
    EmptyClassError,
    Label,
    NotAttemptedError,
    Panel,
    Rule,
    Study,
)
from explicate_papers.verdicts import Block, Word, classify

NO_FILE = "not attempted: the experiment has no file yet"
ENLARGED = 4
"""Factor by which an enlarged experiment has more seeds than the plan."""


@dataclass(frozen=True)
class Verdict:
    """The result of a predicate: its class, and the results of each block of seeds; `note` has the reason.

    `instead` describes a judgement that replaces the criterion. `opened` are the claims that caused four times the
    seeds of the plan, if any. `stack` is that of the hosts, if it is not the papers'.
    """

    experiment: str
    effort: str
    predicate: Predicate
    word: Word
    blocks: tuple[Block, ...] = ()
    note: str = ""
    instead: str = ""
    deterministic: bool = False
    opened: tuple[str, ...] = ()
    stack: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the claim holds; None if it neither holds nor fails."""
        return {Word.HOLDS: True, Word.FAILS: False}.get(self.word)

    @property
    def measured(self) -> str:
        """Measurements of the first block, all checks in one line."""
        return self.blocks[0].measured if self.blocks else ""

    @property
    def runs(self) -> int:
        """The number of runs of all blocks."""
        return sum(block.runs for block in self.blocks)

    @cached_property
    def quantities(self) -> Sequence[Quantity]:
        """What was compared, over all blocks; what is not met comes first."""
        return quantities(self.blocks)

    def row(self) -> dict[str, Any]:
        """Return the verdict as ``explicate reproduce --json`` prints it."""
        return {
            "experiment": self.experiment,
            "effort": self.effort,
            "predicate": self.predicate.id,
            "basis": self.predicate.basis,
            "statement": self.predicate.statement,
            "criterion": self.predicate.criterion,
            "verdict": self.word.value,
            "blocks": [
                {"first_seed": one.first_seed, "holds": one.holds, "measured": one.measured} for one in self.blocks
            ],
            "checks": [{"text": one.text, "met": one.met} for one in self.quantities],
            "decides": decides(self.word, self.quantities),
            "instead": self.instead,
            "deterministic": self.deterministic,
            "enlarged": bool(self.opened),
            "opened": list(self.opened),
            "measured": self.measured,
            "runs": self.runs,
            "pass": self.holds,
            "note": self.note,
            **({"stack": self.stack} if self.stack else {}),
        }


@dataclass(frozen=True)
class Outcome:
    """An experiment that was run: its verdicts, its figure from the first block of seeds, and its cases.

    If the planned seeds left claims undecided, and the experiment was run with more, `opened` names these claims.
    `stack` is the TCP of the hosts, empty for the papers' own. `replaced` lists the settings that it replaced. `seed`
    is the first seed of the first block.
    """

    experiment: Experiment
    effort: Effort
    verdicts: tuple[Verdict, ...]
    panels: tuple[Panel, ...] = ()
    cases: Mapping[Label, Case] | None = None
    opened: tuple[str, ...] = ()
    blocks: int = BLOCKS
    stack: str = ""
    replaced: tuple[stacks.Replaced, ...] = ()
    seed: int = 1

    def count(self, case: Case) -> int:
        """Return the number of seeds that a case has in each block."""
        return _count(case, self.effort, enlarged=bool(self.opened))


class Attempt:
    """One experiment with an effort, ready to run.

    `choices` and `settings` change every case; `mutation` is the change that makes a control. If `opened` names claims,
    each case has four times the planned seeds. `stack` replaces the TCP of the hosts, before `settings` apply. `seed`
    is the first seed of the first block.
    """

    def __init__(
        self,
        experiment: Experiment,
        name: str,
        choices: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        mutation: Mutation | None = None,
        opened: Sequence[str] = (),
        stack: str = "",
        seed: int = 1,
    ) -> None:
        self.experiment = experiment
        self.effort = effort(experiment, name, choices)
        self.changed = bool(choices or settings or mutation or stack)
        self._given = (experiment, name, choices, settings, mutation)
        self.opened = tuple(opened)
        self.stack = stack
        self.seed = seed
        self.replaced: tuple[stacks.Replaced, ...] = ()
        self.study: Study | None = studies().get(experiment.id)
        made = self._make(mutation) if self.study else {}
        if stack:
            planned, made = made, {key: stacks.with_stack(case, stack) for key, case in made.items()}
            self.replaced = tuple(stacks.replaced(planned.values(), made.values()))
        if settings:
            made = {key: replace(case, settings={**case.settings, **settings}) for key, case in made.items()}
        self.cases: dict[Label, Case] = made
        self._jobs: dict[int, dict[Label, list[Job]]] = {}

    def _make(self, mutation: Mutation | None) -> dict[Label, Case]:
        assert self.study is not None
        make = self.study.make_cases
        try:
            return mutation.apply(make, self.effort) if mutation else dict(make(self.effort))
        except (KeyError, ValueError) as error:
            if not self.changed or isinstance(error, BadInputError):
                raise
            raise BadInputError(
                f"{self.experiment.id} cannot be made with what was changed: {_short(error)}"
            ) from error

    def larger(self, opened: Sequence[str]) -> Attempt:
        """Return the same with four times the seeds, because the claims `opened` could go either way."""
        return Attempt(*self._given, opened=opened, stack=self.stack, seed=self.seed)

    @property
    def blocks(self) -> int:
        """The number of blocks of seeds: one if every claim is deterministic."""
        rules = self.study.rules.values() if self.study else ()
        return 1 if rules and all(rule.deterministic for rule in rules) else BLOCKS

    @property
    def jobs(self) -> list[Job]:
        """All runs that are needed."""
        return [job for block in range(self.blocks) for job in self.block_jobs(block)]

    def block_jobs(self, block: int) -> list[Job]:
        """Return the runs of a block of seeds; raise ScenarioError if a scenario cannot be used."""
        return [job for jobs in self._of_block(block).values() for job in jobs]

    def _of_block(self, block: int) -> dict[Label, list[Job]]:
        if block not in self._jobs:
            self._jobs[block] = {
                label: Job.of(case, seeds(block, _count(case, self.effort, enlarged=bool(self.opened)), self.seed))
                for label, case in self.cases.items()
            }
        return self._jobs[block]

    def judge(self, store: Store, unfailing: Collection[str] = ()) -> Outcome:
        """Judge every predicate from the runs in `store`, which must be there.

        `unfailing` are predicates that no control makes fail.
        """
        first = self.data(store)
        parts = [self.judge_block(store, block, None if block else first) for block in range(self.blocks)]
        verdicts = tuple(self._verdict(one, [part[one.id] for part in parts], unfailing) for one in self._predicates)
        panels = tuple(self._drawn(first))
        return Outcome(
            self.experiment,
            self.effort,
            verdicts,
            panels,
            self.cases,
            self.opened,
            self.blocks,
            self.stack,
            self.replaced,
            self.seed,
        )

    @property
    def _predicates(self) -> Sequence[Predicate]:
        return self.experiment.predicates

    def judge_block(self, store: Store, block: int, data: Data | None = None) -> dict[str, Block]:
        """Judge every predicate on one block of seeds, whose runs must be in `store`, or are loaded as `data`."""
        data = data or self.data(store, block)
        return {one.id: self._judged(one, data, block) for one in self._predicates}

    def data(self, store: Store, block: int = 0) -> Data:
        """Return the data of one block."""
        loaded: dict[Label, list[Results]] = {}

        def load(label: Label) -> list[Results]:
            if label not in loaded:
                loaded[label] = [store.load(job) for job in self._of_block(block)[label]]
            return loaded[label]

        return Data(self.effort, self.cases, load)

    def _judged(self, predicate: Predicate, data: Data, block: int) -> Block:
        first, runs = seeds(block, 1, self.seed)[0], len(self.block_jobs(block))
        rule = self.study.rules.get(predicate.id) if self.study else None
        if self.study is None or rule is None:
            left_out = "not attempted: no judge is written yet"
            reason = self.study.skipped.get(predicate.id, left_out) if self.study else NO_FILE
            return Block(first, None, note=reason)
        try:
            checks = _checks(rule, data)
        except NotAttemptedError as error:
            return Block(first, None, note=str(error))
        except EmptyClassError as error:
            return Block(first, False, runs=runs, note=str(error))
        except Exception as error:
            if not self.changed:
                raise
            return Block(first, None, note=f"the judge could not run: {_short(error)}")
        return Block(first, all(check.holds for check in checks), checks, runs)

    def _verdict(self, predicate: Predicate, blocks: Sequence[Block], unfailing: Collection[str]) -> Verdict:
        rule = self.study.rules.get(predicate.id) if self.study else None
        known = self.study.unfailing.get(predicate.id, "") if self.study else ""
        deterministic = rule is not None and rule.deterministic
        instead = rule.instead if rule else ""
        kept = tuple(blocks[:1] if deterministic else blocks)
        word = classify(kept, instead=bool(instead), unfailing=bool(known) or predicate.id in unfailing)
        note = ""
        if reason := stacks.meaningless(self.stack).get(predicate.id):
            word, note = Word.NOT_JUDGED, f"not meaningful with stack {self.stack}: {reason}"
        elif word is Word.CANNOT_FAIL:
            note = known or "no control makes it fail"
        elif word is Word.NOT_JUDGED:
            note = _not_judged(kept, predicate, instead)
        elif word is not Word.HOLDS and not self.stack:  # explanations are about the reproduction
            note = explanations(self.experiment.paper).get(predicate.id, {}).get("text", "")
        return Verdict(
            self.experiment.id, self.effort.name, predicate, word, kept, note, instead, deterministic, self.opened,
            self.stack,
        )  # fmt: skip

    def _drawn(self, data: Data) -> Sequence[Panel]:
        if self.study is None or self.study.make_panels is None:
            return ()
        try:
            return tuple(self.study.make_panels(data))
        except Exception:
            if not self.changed:
                raise
            return ()  # the change left nothing to draw


def _not_judged(blocks: Sequence[Block], predicate: Predicate, instead: str) -> str:
    """Return why there is no verdict; if another statement was judged, both texts and its result."""
    missing = [block for block in blocks if block.holds is None]
    if missing or not instead:
        return missing[0].note if missing else ""
    words = {True: "holds", False: "fails"}
    given = ", ".join(f"{words[bool(one.holds)]} on seeds from {one.first_seed}" for one in blocks)
    return f"criterion: {predicate.criterion}; judged instead: {instead}; this {given}"


def _count(case: Case, effort: Effort, *, enlarged: bool) -> int:
    return (case.seeds or effort.seeds) * (ENLARGED if enlarged else 1)


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _checks(rule: Rule, data: Data) -> tuple[Check, ...]:
    made = rule.judge(data, **rule.bounds)
    checks = (made,) if isinstance(made, Check) else tuple(made)
    if not checks:
        raise ValueError("a predicate without a check says nothing")
    return checks


@cache
def explanations(paper: Paper) -> dict[str, dict[str, Any]]:
    """Return why predicates of a paper do not hold, by id: ``cause`` (paper, parameter, ours), ``tried``, ``text``."""
    return tomllib.loads(paper.read("explanations.toml"))


def attempts(
    experiments: Sequence[Experiment],
    name: str,
    choices: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    stack: str = "",
    seed: int = 1,
) -> list[Attempt]:
    """Prepare `experiments`, with the hosts of `stack` if one is given, and blocks of seeds from `seed` on."""
    return [Attempt(experiment, name, choices, settings, stack=stack, seed=seed) for experiment in experiments]


def to_enlarge(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """Return the experiments that may be enlarged, and for each its claims that are undecided."""
    found = {
        outcome.experiment.id: [one.predicate.id for one in outcome.verdicts if one.word is Word.UNDECIDED]
        for outcome in outcomes
        if not outcome.opened
    }
    return {key: claims for key, claims in found.items() if claims}
