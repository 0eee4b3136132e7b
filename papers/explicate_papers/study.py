"""The decorators of an experiment's file: its runs, its predicates as small functions over them, its plot.

A file creates a `Study` with its id and adds functions by decorators: `cases` (an effort in, a `Case` for each label
out), `predicate` (the data in, and the criterion's bounds by name; one `Check` or several out) and `plot` (the data in,
some `Panel` out). ``lopez_pacheco/fig2.py`` is an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from explicate.results import Results
from explicate_papers.controls import KINDS, Control, Mutation
from explicate_papers.inputs import Case, Effort, Label
from explicate_papers.register import Experiment, experiments
from explicate_papers.statistics import Check, Sample

__all__ = [
    "Case",
    "Data",
    "Effort",
    "Empty",
    "EmptyClassError",
    "Judge",
    "Label",
    "Line",
    "NotAttemptedError",
    "Panel",
    "Plot",
    "Rule",
    "Study",
]


class NotAttemptedError(Exception):
    """A predicate cannot be judged; the message has the reason."""


class EmptyClassError(Exception):
    """A class of runs that a predicate compares is empty, so it cannot be judged; the message names the class."""


@dataclass(frozen=True)
class Empty(Check):
    """A check that cannot be made because a class of runs is empty: it fails, and others of its predicate are made."""

    @classmethod
    def of(cls, what: str, missing: str) -> Empty:
        """Return the check of `what`; `missing` names the runs that do not exist."""
        return cls(what, missing, "all", holds=False)


class Data:
    """The results of a study's cases, one `Results` per seed, and the effort that went into them.

    The seeds are those of one block: 1, 2 and so on, or 1001, 1002 and so on.
    """

    def __init__(self, effort: Effort, cases: Mapping[Label, Case], load: Callable[[Label], list[Results]]) -> None:
        self.effort = effort
        self.cases = cases
        self._load = load
        self._measured: dict[Any, Sample] = {}

    @property
    def labels(self) -> list[Any]:
        """The labels of the cases, in order."""
        return list(self.cases)

    def runs(self, label: Label) -> list[Results]:
        """Return the results of a case, one per seed."""
        return self._load(label)

    def measure(self, label: Label, metric: Callable[[Results], float | None]) -> Sample:
        """Return `metric` of each seed's results; it is computed once for each case."""
        key = (label, metric)
        if key not in self._measured:
            self._measured[key] = Sample.of(metric(results) for results in self.runs(label))
        return self._measured[key]


Judge = Callable[..., Check | Iterable[Check]]


@dataclass(frozen=True)
class Rule:
    """A predicate's function with the bounds that it takes from the criterion.

    If the criterion cannot be judged as written, `instead` has the judged statement and the reason; such a claim is
    shown with its criterion and does not count as holding. `deterministic` marks claims that do not depend on seeds.
    """

    judge: Judge
    bounds: Mapping[str, float]
    instead: str = ""
    deterministic: bool = False


@dataclass(frozen=True)
class Line:
    """A curve of a panel: `low` and `high` are the ends of the confidence intervals, if any.

    With `points` it has no line, as for the numbers that a paper prints.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    points: bool = False

    @classmethod
    def of(cls, name: str, x: Sequence[float], samples: Sequence[Sample]) -> Line:
        """Return the curve of the samples' means with their confidence intervals."""
        margins = [0.0 if sample.margin != sample.margin else sample.margin for sample in samples]
        means = [sample.mean for sample in samples]
        low = [mean - margin for mean, margin in zip(means, margins, strict=True)]
        high = [mean + margin for mean, margin in zip(means, margins, strict=True)]
        return cls(name, list(x), means, low, high)

    @classmethod
    def series(cls, name: str, frame: pl.DataFrame, scale: float = 1.0) -> Line:
        """Return the curve of `frame`, columns ``time_s`` and ``value``, divided by `scale`."""
        return cls(name, frame["time_s"].to_list(), (frame["value"] / scale).to_list())


@dataclass(frozen=True)
class Panel:
    """One part of a figure; an axis is logarithmic if its name is in `log` (``x``, ``y``).

    The vertical axis begins at `y_from`, or below it where a value is less. Panels of a figure that are `compared` have
    one vertical axis. With `names` the places 1, 2 and so on of the horizontal axis have these labels, and points are
    not joined. With `zero` a logarithmic horizontal axis has a place for 0 there, which is labelled so.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log: str = ""
    y_from: float = 0.0
    names: Sequence[str] = ()
    compared: bool = False
    zero: float | None = None


Plot = Callable[[Data], Sequence[Panel]]


class Study:
    """An experiment of the register with its functions, which decorators add; `module` is its module."""

    def __init__(self, identifier: str) -> None:
        self.experiment: Experiment = experiments()[identifier]
        self.module = ""
        self.rules: dict[str, Rule] = {}
        self.skipped: dict[str, str] = {}
        self.controls: dict[str, Control] = {}
        self.unfailing: dict[str, str] = {}
        self.make_cases: Callable[[Effort], Mapping[Any, Case]] = lambda _: {}
        self.make_panels: Plot | None = None

    @property
    def id(self) -> str:
        """The experiment's id."""
        return self.experiment.id

    def cases(self, make: Callable[[Effort], Mapping[Any, Case]]) -> Callable[[Effort], Mapping[Any, Case]]:
        """Take the function that returns the cases."""
        self.make_cases = make
        return make

    def predicate(
        self, identifier: str, *, instead: str = "", deterministic: bool = False, **bounds: float
    ) -> Callable[[Judge], Judge]:
        """Take the function that judges a predicate; `bounds` are its keyword arguments. See `Rule` for the rest."""
        self._own(identifier)

        def take(judge: Judge) -> Judge:
            self.rules[identifier] = Rule(judge, bounds, instead, deterministic)
            return judge

        return take

    def control(self, name: str, mutation: Mutation, flips: Sequence[str], why: str) -> None:
        """Name a mutation under which the claims `flips` must fail, and why they must."""
        strange = set(flips) - {predicate.id for predicate in self.experiment.predicates}
        if strange or not flips:
            raise ValueError(f"{self.id} has no predicate {', '.join(sorted(strange)) or 'to flip'}")
        if name in self.controls or mutation.kind not in KINDS:
            raise ValueError(f"{self.id}: control {name} is named twice or of an unknown kind {mutation.kind}")
        self.controls[name] = Control(name, mutation, tuple(flips), why)

    def cannot_fail(self, identifier: str, reason: str) -> None:
        """Record why no sensible mutation makes a claim fail; the claim is labelled and not counted."""
        if identifier not in {predicate.id for predicate in self.experiment.predicates}:
            raise ValueError(f"{self.id} has no predicate {identifier}")
        self.unfailing[identifier] = reason

    def skip(self, identifier: str, reason: str) -> None:
        """Record why a predicate has no verdict."""
        self._own(identifier)
        self.skipped[identifier] = reason

    def plot(self, make: Plot) -> Plot:
        """Take the function that draws the figure."""
        self.make_panels = make
        return make

    def _own(self, identifier: str) -> None:
        if identifier not in {predicate.id for predicate in self.experiment.predicates}:
            raise ValueError(f"{self.id} has no predicate {identifier}")
        if identifier in self.rules or identifier in self.skipped:
            raise ValueError(f"{identifier} is judged twice")
