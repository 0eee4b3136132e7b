"""From runs to verdicts: every predicate of an experiment judged, with what was measured and why."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from explicate.papers.plan import effort, studies
from explicate.papers.register import Experiment, Paper, Predicate
from explicate.papers.statistics import Check
from explicate.papers.store import Job, Store
from explicate.papers.study import Case, Data, Effort, Label, NotAttemptedError, Panel, Rule, Study
from explicate.results import Results

NO_FILE = "not attempted: the experiment has no file yet"


@dataclass(frozen=True)
class Verdict:
    """What became of a predicate: it holds, it does not, or (None) it was not judged, and `note` says why."""

    experiment: str
    effort: str
    predicate: Predicate
    holds: bool | None
    checks: tuple[Check, ...] = ()
    runs: int = 0
    note: str = ""

    @property
    def measured(self) -> str:
        """What was measured, all checks in one line."""
        return "; ".join(map(str, self.checks))

    def row(self) -> dict[str, Any]:
        """Return the verdict as ``explicate reproduce --json`` prints it."""
        return {
            "experiment": self.experiment,
            "effort": self.effort,
            "predicate": self.predicate.id,
            "basis": self.predicate.basis,
            "statement": self.predicate.statement,
            "criterion": self.predicate.criterion,
            "measured": self.measured,
            "runs": self.runs,
            "pass": self.holds,
            "note": self.note,
        }


@dataclass(frozen=True)
class Outcome:
    """An experiment that was run: its verdicts, its figure, and one scenario to show."""

    experiment: Experiment
    effort: Effort
    verdicts: tuple[Verdict, ...]
    panels: tuple[Panel, ...] = ()
    cases: Mapping[Label, Case] | None = None


class Attempt:
    """One experiment about to be run with an effort, `settings` on top of every case (to see verdicts change)."""

    def __init__(
        self,
        experiment: Experiment,
        name: str,
        choices: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.experiment = experiment
        self.effort = effort(experiment, name, choices)
        self.study: Study | None = studies().get(experiment.id)
        made = dict(self.study.make_cases(self.effort)) if self.study else {}
        if settings:
            made = {key: replace(case, settings={**case.settings, **settings}) for key, case in made.items()}
        self.cases: dict[Label, Case] = made
        self._jobs = {
            label: [Job.of(case, seed) for seed in range(1, (case.seeds or self.effort.seeds) + 1)]
            for label, case in made.items()
        }

    @property
    def jobs(self) -> list[Job]:
        """All runs that are needed."""
        return [job for jobs in self._jobs.values() for job in jobs]

    def judge(self, store: Store) -> Outcome:
        """Judge every predicate from the runs in `store`, which must be there."""
        loaded: dict[Label, list[Results]] = {}

        def load(label: Label) -> list[Results]:
            if label not in loaded:
                loaded[label] = [store.load(job) for job in self._jobs[label]]
            return loaded[label]

        data = Data(self.effort, self.cases, load)
        verdicts = tuple(self._verdict(predicate, data) for predicate in self.experiment.predicates)
        drawn = self.study.make_panels(data) if self.study and self.study.make_panels else ()
        return Outcome(self.experiment, self.effort, verdicts, tuple(drawn), self.cases)

    def _verdict(self, predicate: Predicate, data: Data) -> Verdict:
        if self.study is None:
            return Verdict(self.experiment.id, self.effort.name, predicate, None, note=NO_FILE)
        rule = self.study.rules.get(predicate.id)
        if rule is None:
            reason = self.study.skipped.get(predicate.id, "not attempted: nobody has written it yet")
            return Verdict(self.experiment.id, self.effort.name, predicate, None, note=reason)
        try:
            checks = _checks(rule, data)
        except NotAttemptedError as error:
            return Verdict(self.experiment.id, self.effort.name, predicate, None, note=str(error))
        holds = all(check.holds for check in checks)
        note = "" if holds else explanations(self.experiment.paper).get(predicate.id, {}).get("text", "")
        return Verdict(self.experiment.id, self.effort.name, predicate, holds, checks, len(self.jobs), note)


def _checks(rule: Rule, data: Data) -> tuple[Check, ...]:
    made = rule.judge(data, **rule.bounds)
    checks = (made,) if isinstance(made, Check) else tuple(made)
    if not checks:
        raise ValueError("a predicate without a check says nothing")
    return checks


@cache
def explanations(paper: Paper) -> dict[str, dict[str, Any]]:
    """Return why predicates of a paper do not hold, by id: ``cause`` (paper, parameter, ours), ``tried``, ``text``."""
    file = resources.files(f"explicate.papers.{paper.folder}").joinpath("explanations.toml")
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def attempts(
    experiments: Sequence[Experiment],
    name: str,
    choices: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Attempt]:
    """Prepare `experiments`; raise ScenarioError if a scenario cannot be used."""
    return [Attempt(experiment, name, choices, settings) for experiment in experiments]
