"""Charts as data: axes, lines, dots, bars. Pages draw them with uPlot (charts.js), figures for papers with matplotlib.

The HTML of a chart is an element with its data in an attribute; a style sheet defines the colours of places 0 to 7.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from typing import Any

COLUMNS = 400
"""About the width of a chart in pixels: longer lines are thinned to their extremes in so many columns."""
MOST_SERIES = 8
"""The number of series that colour and dash distinguish; callers omit the rest with a note."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """A line through `x`, `y`, and a band from `low` to `high` where they are given; `place` picks the colour.

    With `dots` the points stand alone, each on a bar from `low` to `high`. A `loose` line may go back: it is a path in
    the order of its points, such as an ellipse, and is drawn whole.
    """

    name: str
    place: int
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dots: bool = field(default=False, kw_only=True)
    loose: bool = field(default=False, kw_only=True)

    @property
    def kind(self) -> str:
        """How it is drawn: ``dots``, ``path`` or ``line``."""
        return "dots" if self.dots else "path" if self.loose else "line"

    @property
    def banded(self) -> bool:
        """Whether there is a band that has a height anywhere, or an interval of a dot."""
        return bool(self.low) and (self.dots or self.low != self.high)


@dataclass(frozen=True)
class Bar:
    """One bar; `place` picks the colour."""

    name: str
    place: int
    value: float


@dataclass(frozen=True)
class Axes:
    """The common part of all charts: a title for screen readers, labels with units, ranges.

    An axis is logarithmic if `log` has its letter; its range then starts above 0. Places 1, 2 and so on of the
    horizontal axis may have `x_names` instead of numbers.
    """

    title: str
    x_label: str
    y_label: str
    x: Range
    y: Range
    shade: Range | None = field(default=None)
    log: str = ""
    x_names: Sequence[str] = ()

    def data(self, names: Sequence[tuple[float, str]] = ()) -> dict[str, Any]:
        """Return the axes in the form that a page draws; `names` are labels of places on the horizontal one."""
        named = [[at, name] for at, name in names or enumerate(self.x_names, 1)]
        at_names = {"names": named} if named else {}
        return {
            "x": {"label": self.x_label, "range": self.x, "log": "x" in self.log, **at_names},
            "y": {"label": self.y_label, "range": self.y, "log": "y" in self.log},
            **({"shade": self.shade} if self.shade is not None and self.shade[1] > self.shade[0] else {}),
        }


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round values from `low` to `high`, about `about` of them."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def round_up(value: float) -> float:
    """Return a round upper end for an axis from 0 to `value`."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    steps = ticks(0, value)
    return steps[-1] if steps[-1] >= value * 0.999 else steps[-1] + steps[1]


Point = tuple[float, float]


def thin(x: Sequence[float], y: Sequence[float], columns: int) -> list[Point]:
    """Return the points of a long line that shape it: the extremes of each of `columns` columns, in order.

    `x` must not decrease. Points that are not finite are left out.
    A line of at most 2 × `columns` points is kept as it is.
    """
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if len(points) <= 2 * columns:
        return points
    first, width = points[0][0], (points[-1][0] - points[0][0]) or 1.0
    kept: list[Point] = []
    for _, members in groupby(points, lambda point: min(int((point[0] - first) / width * columns), columns - 1)):
        column = list(members)
        ends = {min(column, key=lambda point: point[1]), max(column, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept


def line_chart(
    axes: Axes, series: Sequence[Series], columns: int = COLUMNS, names: Sequence[tuple[float, str]] = ()
) -> str:
    """Return the element of a chart with `series`, whose lines are thinned to `columns` columns.

    `names` are labels of places on the horizontal axis, instead of numbers.
    """
    lines = [_line(one, columns) for one in series]
    data = {**axes.data(names), "series": lines}
    return _element(f"{axes.title}. Lines: {', '.join(one.name for one in series)}.", data)


def bar_chart(axes: Axes, bars: Sequence[Bar], names: Sequence[tuple[float, str]] = ()) -> str:
    """Return the element of a chart with one bar for each of `bars`: numbered from 1, unless places have `names`."""
    every = max(1, math.ceil(len(bars) / 10))
    numbers = [(i + 0.5, str(i + 1)) for i in range(0, len(bars), every)]
    shown = [{"name": bar.name, "place": bar.place, "value": _short(bar.value)} for bar in bars]
    return _element(f"{axes.title}. {len(bars)} bars.", {**axes.data(names or numbers), "bars": shown})


def _element(label: str, data: Mapping[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    safe = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;")
    return f"""<div class="chart" role="img" aria-label="{escape(label)}" data-chart='{safe}'></div>"""


def _line(series: Series, columns: int) -> dict[str, Any]:
    kept: Sequence[int] = range(len(series.x))
    if series.kind == "line" and len(kept) > 2 * columns:
        at = {x for x, _ in thin(series.x, series.y, columns)}
        kept = [i for i in kept if series.x[i] in at]
    found = {"x": series.x, "y": series.y} | ({"low": series.low, "high": series.high} if series.banded else {})
    values = {name: [_short(column[i]) for i in kept] for name, column in found.items()}
    return {"name": series.name, "place": series.place, "kind": series.kind, **values}


def _short(value: float) -> float | None:
    """Return a value with as many digits as a chart can show, as short as JSON can have it; nothing if not finite."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded
