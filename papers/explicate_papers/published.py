"""The results that a paper states as numbers (``published.toml``), and how far ours are from them.

Verdicts do not use these numbers. Functions in the module ``published`` of a paper's folder measure ours.
"""

from __future__ import annotations

import importlib
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from explicate.errors import BadInputError
from explicate_papers.plan import APART
from explicate_papers.register import Paper, experiments


@dataclass(frozen=True)
class Number:
    """A result that a paper states as a number, or as a range from `low` to `high`, and how ours is measured.

    `measure` is a function of the paper's module ``published`` that takes the data and `of`.
    """

    experiment: str
    place: str
    what: str
    unit: str
    low: float
    high: float
    measure: str
    of: tuple[Any, ...] = ()

    @property
    def id(self) -> str:
        """Its name in the record, which the wording of `what` does not change."""
        return f"{self.experiment} {self.measure}({', '.join(map(str, self.of))})"

    @property
    def text(self) -> str:
        """The number as the paper has it."""
        return f"{self.low:.9g}" if self.low == self.high else f"{self.low:.9g} to {self.high:.9g}"

    def distance(self, ours: float) -> float:
        """Return |ln(ours / the paper's)|, 0 inside a range; raise ValueError if there is no such logarithm."""
        if not (ours > 0 and math.isfinite(ours)):
            raise ValueError(f"ours is {ours:g}, and a ratio to {self.text} has a logarithm only above 0")
        return max(0.0, math.log(self.low / ours), math.log(ours / self.high))


@dataclass(frozen=True)
class Published:
    """The numbers of a paper, how many seeds a case has at most, and which numbers are not compared, and why."""

    numbers: tuple[Number, ...]
    seeds: int
    left_out: tuple[str, ...] = ()

    @property
    def experiments(self) -> list[str]:
        """The experiments that have a number."""
        return list(dict.fromkeys(one.experiment for one in self.numbers))


@cache
def published(paper: Paper) -> Published:
    """Return the numbers of a paper; raise BadInputError if its file is invalid."""
    return parsed(paper.read("published.toml"), f"{paper.slug}/published.toml")


def parsed(text: str, where: str) -> Published:
    """Return the numbers that `text` states; raise BadInputError that begins with `where`."""
    rows = tomllib.loads(text)
    made = tuple(_number(row, where) for row in rows.get("number", []))
    if twice := {one.id for one in made if [other.id for other in made].count(one.id) > 1}:
        raise BadInputError(f"{where}: {', '.join(sorted(twice))} is there twice")
    seeds = rows.get("seeds", 1)
    if not (isinstance(seeds, int) and 1 <= seeds <= APART):
        raise BadInputError(f"{where}: seeds is {seeds}; write a whole number from 1 to {APART}")
    return Published(made, seeds, tuple(rows.get("left_out", [])))


def _number(row: Mapping[str, Any], where: str) -> Number:
    name = f"{where}: number {row.get('what', '(without `what`)')!r}"
    if missing := {"experiment", "place", "what", "unit", "value", "measure"} - row.keys():
        raise BadInputError(f"{name} has no {', '.join(sorted(missing))}")
    if row["experiment"] not in experiments():
        raise BadInputError(f"{name}: there is no experiment {row['experiment']}")
    value = row["value"]
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2 or not all(isinstance(end, int | float) and math.isfinite(end) for end in ends):
        raise BadInputError(f"{name}: value is {value}; write a number, or the two ends of a range")
    low, high = map(float, ends)
    if not 0 < low <= high:
        raise BadInputError(
            f"{name}: value is {value}; only numbers above 0 have a ratio with a logarithm, the lower end first"
        )
    of = tuple(row.get("of", []))
    return Number(row["experiment"], row["place"], row["what"], row["unit"], low, high, row["measure"], of)


def measure_of(paper: Paper, one: Number) -> Callable[..., float]:
    """Return the function that measures a number; raise BadInputError if there is none."""
    module = importlib.import_module(f"explicate_papers.{paper.slug}.published")
    found: Callable[..., float] | None = getattr(module, one.measure, None)
    if found is None:
        raise BadInputError(f"{paper.slug}/published.toml: published.py has no function {one.measure}")
    return found


def distance(numbers: Sequence[Number], ours: Sequence[float | None]) -> float | None:
    """Return the mean of |ln(ours / the paper's)|; None if one of ours is missing or has no logarithm."""
    try:
        far = [one.distance(math.nan if mine is None else mine) for one, mine in zip(numbers, ours, strict=True)]
    except ValueError:
        return None
    return math.fsum(far) / len(far)
