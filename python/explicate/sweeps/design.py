"""Which points a sweep visits: every combination of a grid, a Latin hypercube, or each with each.

In a Latin hypercube of n points each axis is cut into n equal parts, and each part holds exactly one point, wherever
the other axes stand (McKay, Beckman and Conover, Technometrics 21, 1979). Each axis draws from a stream of its own,
seeded from the number of the draw and the axis' key: another axis changes no value of this one. Only
`random.Random.random` is used, whose sequence Python keeps through its versions: shards on other machines, and a
resumed sweep, must find the same points.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from explicate.errors import BadInputError
from explicate.source import value_text

Point = dict[str, Any]

MOST_POINTS = 1_000_000
"""More points would take days to check before the first run."""

QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S.*?)?\s*")
EXAMPLE = "1Mbit/s..100Mbit/s, or 1Mbit/s..100Mbit/s:log"


@dataclass(frozen=True)
class Range:
    """An axis of a Latin hypercube: from `low` to `high` in `unit`; whole numbers if both ends are and have none."""

    low: float
    high: float
    unit: str
    whole: bool
    log: bool

    @classmethod
    def of(cls, key: str, text: str) -> Range:
        """Read ``LOW..HIGH`` or ``LOW..HIGH:log``; raise BadInputError."""
        ends, _, law = text.partition(":")
        parts = [QUANTITY.fullmatch(part) for part in ends.split("..")]
        if law.strip() not in ("", "log"):
            raise BadInputError(f"{key}: `{law.strip()}` is not known after a range; did you mean `log`?")
        if len(parts) != 2 or parts[0] is None or parts[1] is None:
            raise BadInputError(f"{key}: {text!r} is not a range; write {EXAMPLE}")
        (low, unit), (high, other) = ((part[1], part[2] or "") for part in (parts[0], parts[1]))
        if unit != other:
            raise BadInputError(f"{key}: {text!r} has two units; write both ends in one, such as {EXAMPLE}")
        if not float(low) < float(high) < math.inf:
            raise BadInputError(f"{key}: {text!r} does not rise; write the lower end first")
        if law and float(low) <= 0:
            raise BadInputError(f"{key}: {text!r} cannot be logarithmic; its lower end must be above 0")
        whole = not unit and low.lstrip("+-").isdigit() and high.lstrip("+-").isdigit()
        return cls(float(low), float(high), unit, whole, bool(law))

    def at(self, share: float) -> int | float | str:
        """Return the value at `share`, 0 to 1, of the way, as a scenario writes it."""
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        value = low * (high / low) ** share if self.log else low + (high - low) * share
        if self.whole:
            return min(math.floor(value), int(self.high))
        short = f"{value:.6g}"
        return f"{Decimal(short):f}{self.unit}" if self.unit else float(short)


def latin(ranges: Mapping[str, Range], points: int, draw: int = 1) -> list[Point]:
    """Return `points` points of a Latin hypercube."""
    columns: dict[str, list[Any]] = {}
    for key, axis in ranges.items():
        stream = random.Random(f"{draw} {key}")
        weights = [stream.random() for _ in range(points)]
        order = sorted(range(points), key=weights.__getitem__)
        columns[key] = [axis.at((part + stream.random()) / points) for part in order]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


@dataclass(frozen=True)
class Design:
    """What to vary. `grid` has a list of values for each key, `ranges` a range for each key of a Latin hypercube."""

    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    ranges: Mapping[str, str] = field(default_factory=dict)
    points: int | None = None
    draw: int = 1

    def combinations(self) -> list[Point]:
        """Return every point, the grid's last axis and then the hypercube fastest; raise BadInputError.

        A point given twice counts once; otherwise its runs would count as other seeds.
        """
        if not self.grid and not self.ranges:
            raise BadInputError("nothing to vary; add --vary key=v1,v2, --latin key=low..high or a [sweep] table")
        if self.points is not None and self.points < 1:
            raise BadInputError(f"points must be 1 or more, not {self.points}")
        if self.ranges and not self.points:
            raise BadInputError("a Latin hypercube needs its number of points: --points N, or `points` in the file")
        if self.points and not self.ranges:
            raise BadInputError(
                "`points` is for a Latin hypercube: give a range too (--latin key=low..high, or [latin])"
            )
        for key in self.ranges:
            if key in self.grid:
                raise BadInputError(f"{key} is an axis of the grid and of the Latin hypercube; leave out one")
        for key, values in self.grid.items():
            if isinstance(values, str) or not values:
                raise BadInputError(f"the axis {key} needs a list of one value or more")
        count = math.prod(len(values) for values in self.grid.values()) * (self.points or 1)
        if count > MOST_POINTS:
            raise BadInputError(f"these axes make {count:,} points; the maximum is {MOST_POINTS:,}, use fewer values")
        columns = {key: one_type(values) for key, values in self.grid.items()}
        squares = [dict(zip(columns, chosen, strict=True)) for chosen in itertools.product(*columns.values())]
        ranges = {key: Range.of(key, text) for key, text in self.ranges.items()}
        spread = latin(ranges, self.points or 0, self.draw) if ranges else [{}]
        points = ({**one, **other} for one in squares for other in spread)
        return list({repr(point): point for point in points}.values())


def one_type(values: Sequence[Any]) -> list[Any]:
    """Return `values` in a form that one column can hold: integers, numbers, or otherwise their texts."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return list(values)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values]
    return [value_text(value) for value in values]


def numbers(values: Sequence[Any]) -> tuple[list[float], str] | None:
    """Return `values` as numbers and the unit that all of them have; None if they are not of that kind."""
    if all(isinstance(value, int | float) for value in values):
        return [float(value) for value in values], ""
    read = [QUANTITY.fullmatch(str(value)) for value in values]
    units = {match[2] or "" for match in read if match}
    if None in read or len(units) != 1:
        return None
    return [float(match[1]) for match in read if match], units.pop()
