"""Charts as SVG, inline or as files: lines, bands, dots and bars; legible without scripts, in print, at phone width.

Positions are in units of the view box; a page's style sheet gives colours (classes ``s0`` to ``s7``) and letters.
Each chart carries its axes and its points as data attributes, from which a script draws one to explore.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby, pairwise

WIDTH, HEIGHT = 460, 270
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 26, 40
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
ROW = 18
"""The height of a line of a legend below."""
LETTER = 7.4
"""About the width of a letter, where one line of text has to stand beside another."""
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


@dataclass(frozen=True)
class Bar:
    """One bar; `place` picks the colour."""

    name: str
    place: int
    value: float


@dataclass(frozen=True)
class Axes:
    """What both kinds of chart need: a title for those who cannot see it, labels with units, ranges.

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

    def px(self, value: float) -> float:
        """Return the horizontal position of `value`."""
        return LEFT + PLOT_WIDTH * _share(value, self.x, "x" in self.log)

    def py(self, value: float) -> float:
        """Return the vertical position of `value`, never outside the plot."""
        share = _share(value, self.y, "y" in self.log)
        return TOP + PLOT_HEIGHT * (1 - min(max(share, 0.0), 1.0))

    def x_ticks(self) -> list[tuple[float, str]]:
        """Return the marks of the horizontal axis with their labels."""
        if self.x_names:
            return [(float(place), name) for place, name in enumerate(self.x_names, 1)]
        return _labelled(self.x, "x" in self.log)

    def y_ticks(self) -> list[tuple[float, str]]:
        """Return the marks of the vertical axis with their labels."""
        return _labelled(self.y, "y" in self.log)


def _share(value: float, ends: Range, log: bool) -> float:
    low, high = ends
    if log:
        low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
    return (value - low) / ((high - low) or 1.0)


def _labelled(ends: Range, log: bool) -> list[tuple[float, str]]:
    if log:
        return [(value, f"{value:g}") for value in decades(*ends)]
    values = ticks(*ends)
    return list(zip(values, tick_texts(values), strict=True))


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten from `low` to `high`; with the twos and fives between if they are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [value for value in values if low * 0.999 <= value <= high * 1.001]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round values from `low` to `high`, about `about` of them."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def tick_texts(values: Sequence[float]) -> list[str]:
    """Return the ticks' labels, all with as many decimals as the finest step needs."""
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    decimals = 0
    while decimals < 6 and any(abs(round(value, decimals) - value) > step * 1e-3 for value in values):
        decimals += 1
    return [f"{value:.{decimals}f}" for value in values]


def round_up(value: float) -> float:
    """Return a round upper end for an axis from 0 to `value`."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    steps = ticks(0, value)
    return steps[-1] if steps[-1] >= value * 0.999 else steps[-1] + steps[1]


Point = tuple[float, float]


def thin(x: Sequence[float], y: Sequence[float], columns: int, keep: str = "both") -> list[Point]:
    """Return the points of a long line that shape it: the extremes of each of `columns` columns, in order.

    `keep` is ``both``, ``least`` or ``greatest``. `x` must not decrease. Points that are not finite are left out.
    A line of at most 2 × `columns` points is kept as it is.
    """
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if len(points) <= 2 * columns:
        return points
    first, width = points[0][0], (points[-1][0] - points[0][0]) or 1.0
    kept: list[Point] = []
    for _, members in groupby(points, lambda point: min(int((point[0] - first) / width * columns), columns - 1)):
        column = list(members)
        ends = set()
        if keep != "greatest":
            ends.add(min(column, key=lambda point: point[1]))
        if keep != "least":
            ends.add(max(column, key=lambda point: point[1]))
        kept += sorted(ends)
    return kept


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _path(axes: Axes, points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_at(axes.px(x))} {_at(axes.py(y))}" for x, y in points)


def _band(axes: Axes, series: Series, columns: int) -> str:
    if series.dots or not series.low or all(a == b for a, b in zip(series.low, series.high, strict=True)):
        return ""
    below = thin(series.x, series.low, columns, "least")
    above = thin(series.x, series.high, columns, "greatest")
    return f'<path class="band s{series.place}" d="{_path(axes, above + below[::-1])}Z"/>'


def _frame(axes: Axes, x_ticks: Sequence[tuple[float, str]]) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    if axes.shade is not None and axes.shade[1] > axes.shade[0]:
        start, end = (axes.px(min(max(value, axes.x[0]), axes.x[1])) for value in axes.shade)
        parts.append(
            f'<rect class="shade" x="{_at(start)}" y="{TOP}" width="{_at(end - start)}" height="{PLOT_HEIGHT}">'
            "<title>warm-up: not part of the summaries</title></rect>"
        )
    for value, text in axes.y_ticks():
        y = _at(axes.py(value))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{y}" dy=".35em">{text}</text>')
    for value, text in x_ticks:
        x = _at(axes.px(value))
        parts.append(f'<line class="mark" x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 4}"/>')
        over = axes.px(value) + len(text) * LETTER / 2 > WIDTH
        side, x = ("end", str(WIDTH - 1)) if over else ("middle", x)
        parts.append(f'<text class="tick {side}" x="{x}" y="{bottom + 16}">{escape(text)}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    middle = LEFT + PLOT_WIDTH / 2
    for place, label in (
        (f' middle" x="{_at(middle)}" y="{HEIGHT - 6}', axes.x_label),
        ('" x="4" y="13', axes.y_label),
    ):
        parts += [f'<text class="label{place}">{escape(label)}</text>'] if label else []
    return "".join(parts)


def _svg(axes: Axes, kind: str, frame: str, marks: str, note: str, data: str = "") -> str:
    title = escape(axes.title)
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" '
        f'aria-label="{title}. {note}" '
        f'data-box="{LEFT} {TOP} {PLOT_WIDTH} {PLOT_HEIGHT}" data-x="{axes.x[0]:.9g} {axes.x[1]:.9g}" '
        f'data-y="{axes.y[0]:.9g} {axes.y[1]:.9g}" data-log="{axes.log}" data-x-label="{escape(axes.x_label)}" '
        f'data-y-label="{escape(axes.y_label)}"{data}>{frame}{marks}</svg>'
    )


def _data(axes: Axes, series: Sequence[Series], columns: int) -> str:
    """Return the points as attributes; a chart that only a picture can show (paths, named places) is marked so."""
    still = axes.x_names or any(one.loose for one in series)
    lines = [{"n": one.name, "p": one.place, "dots": one.dots, **_numbers(one, columns)} for one in series]
    shade = axes.shade if axes.shade is not None and axes.shade[1] > axes.shade[0] else None
    text = json.dumps({"s": lines, "b": shade}, separators=(",", ":"), ensure_ascii=False)
    return _attribute(text) + (' data-still="1"' if still else "")


def _attribute(text: str) -> str:
    safe = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;")
    return f" data-chart='{safe}'"


def _numbers(series: Series, columns: int) -> dict[str, list[float | None]]:
    kept = list(range(len(series.x)))
    if not series.loose and not series.dots and len(kept) > 2 * columns:
        at = {x for x, _ in thin(series.x, series.y, columns)}
        kept = [i for i in kept if series.x[i] in at]
    flat = not series.low or all(a == b for a, b in zip(series.low, series.high, strict=True))
    found = {"x": series.x, "y": series.y} | ({} if flat else {"l": series.low, "h": series.high})
    return {name: [_short(values[i]) for i in kept] for name, values in found.items()}


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def line_chart(axes: Axes, series: Sequence[Series], columns: int = PLOT_WIDTH) -> str:
    """Return an SVG with the lines and bands of `series`, thinned to `columns` columns."""
    note = "Lines: " + escape(", ".join(one.name for one in series)) + "."
    marks = _marks(axes, series, columns)
    return _svg(axes, "lines", _frame(axes, axes.x_ticks()), marks, note, _data(axes, series, columns))


def _marks(axes: Axes, series: Sequence[Series], columns: int) -> str:
    return "".join(_band(axes, one, columns) for one in series) + "".join(
        _points(axes, one)
        if one.dots
        else f'<path class="line s{one.place}" data-name="{escape(one.name)}" d="{_path(axes, points)}"/>'
        for one in series
        if (points := _finite(one) if one.loose else thin(one.x, one.y, columns))
    )


def _finite(series: Series) -> list[Point]:
    return [(a, b) for a, b in zip(series.x, series.y, strict=True) if math.isfinite(a) and math.isfinite(b)]


def _points(axes: Axes, series: Series) -> str:
    dots = f'<path class="dots s{series.place}" data-name="{escape(series.name)}" d="{_dots(axes, series)}"/>'
    if not series.low:
        return dots
    ends = zip(series.x, series.low, series.high, strict=True)
    bars = "".join(f"M{round(axes.px(x))} {_at(axes.py(low))}V{_at(axes.py(high))}" for x, low, high in ends)
    return f'<path class="whisker s{series.place}" d="{bars}"/>{dots}'


def _dots(axes: Axes, series: Series) -> str:
    """One dot for each point, if they are far enough apart."""
    places = {(round(axes.px(x)), round(axes.py(y))): None for x, y in zip(series.x, series.y, strict=True)}
    return "".join(f"M{x} {y}h0" for x, y in places)


def picture(
    title: str,
    panels: Sequence[tuple[Axes, Sequence[Series]]],
    style: str,
    columns: int,
    legend: Sequence[Series] = (),
) -> str:
    """Return an SVG file of its own: line charts, two in a row.

    Each has the names of its lines, unless a `legend` below all of them has them.
    """
    width, top = WIDTH * min(len(panels), 2), HEIGHT * ((len(panels) + 1) // 2)
    height = top + ROW * len(legend)
    drawn = "".join(
        f'<g class="chart" transform="translate({WIDTH * (i % 2)} {HEIGHT * (i // 2)})">{_frame(axes, axes.x_ticks())}'
        f"{_marks(axes, series, columns)}{'' if legend else _names(series)}</g>"
        for i, (axes, series) in enumerate(panels)
    )
    for i, one in enumerate(legend):
        shape = ('d="M22 9h0"', "dots") if one.dots else ('d="M12 9h20"', "line")
        drawn += (
            f'<g class="chart" transform="translate({LEFT} {top + ROW * i})"><path class="{shape[1]} s{one.place}" '
            f'{shape[0]}/><text x="40" y="13">{escape(one.name)}</text></g>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<title>{escape(title)}</title><style>{style}</style>"
        f'<rect width="{width}" height="{height}" fill="var(--page)"/>{drawn}</svg>\n'
    )


def _names(series: Sequence[Series]) -> str:
    """Name the lines, if there are several, in a row that ends at the right."""
    parts, x = [], WIDTH - RIGHT
    for one in reversed(series if len(series) > 1 else ()):
        parts.append(f'<text class="end" x="{x}" y="13">{escape(one.name)}</text>')
        x -= round(len(one.name) * LETTER) + 4
        shape = (f'd="M{x - 9} 9h0"', "dots") if one.dots else (f'd="M{x - 20} 9H{x}"', "line")
        parts.append(f'<path class="{shape[1]} s{one.place}" {shape[0]}/>')
        x -= (18 if one.dots else 20) + 10
    return "".join(parts)


def bar_chart(axes: Axes, bars: Sequence[Bar], unit: str, names: Sequence[tuple[float, str]] = ()) -> str:
    """Return an SVG with one bar for each of `bars`, numbered from 1, or with `names` at places of the axis below."""
    slot = PLOT_WIDTH / max(len(bars), 1)
    width = slot * (0.72 if slot > 6 else 0.9)
    base = HEIGHT - BOTTOM
    marks = []
    for i, bar in enumerate(bars):
        top = axes.py(bar.value) if math.isfinite(bar.value) else base
        name = escape(f"{bar.name}: {bar.value:.4g} {unit}")
        marks.append(
            f'<rect class="bar s{bar.place}" data-name="{escape(bar.name)}" data-value="{bar.value:.4g}" '
            f'x="{_at(LEFT + slot * i + (slot - width) / 2)}" y="{_at(top)}" width="{width:.2f}" '
            f'height="{_at(max(base - top, 0.5))}"><title>{name}</title></rect>'
        )
    every = max(1, math.ceil(len(bars) / 10))
    numbers = [(i + 0.5, str(i + 1)) for i in range(0, len(bars), every)]
    values = [{"n": bar.name, "p": bar.place, "x": [i + 1], "y": [_short(bar.value)]} for i, bar in enumerate(bars)]
    data = _attribute(json.dumps({"s": values}, separators=(",", ":"), ensure_ascii=False))
    return _svg(axes, "bars", _frame(axes, names or numbers), "".join(marks), f"{len(bars)} bars.", data)
