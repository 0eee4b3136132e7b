"""Response curves of a sweep: each measure against the axis of numbers with the most values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from explicate import engine
from explicate.charts import MOST_SERIES, Axes, Range, Series, round_up
from explicate.figures.study import Figure, Panel, Study
from explicate.results import Results
from explicate.sweeps import measures
from explicate.sweeps.measures import MARGIN, Measure
from explicate.sweeps.table import with_numbers
from explicate.text import prefix

LOG_FROM = 30.0
"""An axis whose values span this factor is drawn logarithmically."""

STATISTIC_WORDS = {
    "mean": "mean",
    "sum": "total",
    "min": "least",
    "max": "greatest",
    "median": "median",
    "p5": "5th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "sd": "standard deviation",
    "jain": "Jain's index of",
}


def response(study: Study) -> Figure | None:
    """Draw the response curves; none without an axis of numbers."""
    results = study.results
    wanted = results.wanted or measures.DEFAULT
    found = curves(intervals(results, wanted), results.axes, wanted)
    if found is None:
        return None
    x, panels, names, note = found
    about = f"The mean over seeds of each measure against {axis_label(x)}; bands and bars are its 95 % interval."
    return Figure("response", "Response curves", about, panels, names, note)


def intervals(results: Results, wanted: Sequence[str]) -> pl.DataFrame:
    """Return the mean of each measure at each point, and half its 95 % interval."""
    table = with_numbers(
        measures.measured(results.tables(), results.axes, [Measure.of(text) for text in wanted]), results.axes
    )
    axes = table.columns[: len(results.axes)]
    return measures.intervals(table.unique([*axes, "run"], keep="first", maintain_order=True), axes, wanted)


def curves(
    frame: pl.DataFrame, keys: Sequence[str], wanted: Sequence[str]
) -> tuple[str, tuple[Panel, ...], tuple[str, ...], str] | None:
    """Return the axis, a panel for each measure, the lines' names and a note; nothing without an axis of numbers."""
    axes = frame.columns[: len(keys)]
    numeric = [axis for axis in axes if frame[axis].dtype.is_numeric() and frame[axis].n_unique() > 1]
    if not numeric:
        return None
    x = max(numeric, key=lambda axis: frame[axis].n_unique())
    lines = _lines(frame, [axis for axis in axes if axis != x])
    dots = any(frame[axis].n_unique() > 1 for axis in axes if axis not in (x, *lines))
    parts = [part.sort(x) for part in (frame.partition_by(lines, maintain_order=True) if lines else [frame])]
    names = [", ".join(_named(axis, part[axis][0], alone=len(lines) == 1) for axis in lines) for part in parts]
    panels = tuple(_panel(parts, names, x, measure, dots=dots) for measure in wanted)
    note = "Other axes vary too: each dot is a point of the sweep." if dots else ""
    return x, panels, tuple(names) if lines else (), note


def _lines(frame: pl.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return the axes whose values get a line each, words before numbers, as long as the lines can be distinguished."""
    chosen: list[str] = []
    for axis in sorted(axes, key=lambda axis: frame[axis].dtype.is_numeric()):
        if frame[axis].n_unique() > 1 and frame.select(*chosen, axis).n_unique() <= MOST_SERIES:
            chosen.append(axis)
    return [axis for axis in axes if axis in chosen]


def _named(axis: str, value: Any, *, alone: bool) -> str:
    text = value if isinstance(value, str) else f"{value:g}"
    return text if alone and isinstance(value, str) else f"{axis_label(axis)} = {text}"


def axis_label(key: str) -> str:
    """Return the last two parts of a dotted key with its unit: ``bottleneck rate (Mbit/s)``."""
    name, bracket, unit = key.partition(" (")
    parts = [part for part in name.split(".") if not part.isdigit()]
    return " ".join(parts[-2:]).replace("_", " ") + (f" ({unit}" if bracket else "")


def measure_label(text: str) -> tuple[str, str]:
    """Return a measure in words, and its unit: ("mean goodput, flows", "bit/s")."""
    measure = Measure.of(text)
    unit = next((str(c["unit"]) for c in engine.columns()[measure.table] if c["name"] == measure.column), "")
    words = measure.column
    for suffix in ("_bps", "_ms", "_s", "_bytes", "_packets"):
        words = words.removesuffix(suffix) if unit else words
    words = words.replace("_", " ").replace("rtt", "round-trip time").replace("drops total", "drops")
    twice = measure.statistic == "mean" and "mean" in words.split()
    statistic = "" if twice else STATISTIC_WORDS[measure.statistic] + " "
    where = f", {measure.name}" if measure.name else ", all " + measure.table
    return f"{statistic}{words}{where}", "" if measure.statistic == "jain" else unit


def _panel(parts: Sequence[pl.DataFrame], names: Sequence[str], x: str, measure: str, *, dots: bool) -> Panel:
    rows = [[row for row in part.select(x, measure, measure + MARGIN).rows() if row[1] is not None] for part in parts]
    most = max([0.0, *(row[1] + (row[2] or 0.0) for part in rows for row in part)])
    words, unit = measure_label(measure)
    factor, letter = prefix(most) if most >= 1e4 else (1.0, "")
    series: list[Series] = []
    for place, (part, name) in enumerate(zip(rows, names, strict=True)):
        y = [mean / factor for _, mean, _ in part]
        plain = dots or any(half is None for _, _, half in part)
        low, high = ([] if plain else [(mean + sign * half) / factor for _, mean, half in part] for sign in (-1, 1))
        series.append(Series(name or words, place, [at for at, _, _ in part], y, low, high, dots=dots))
    across = _range([v for one in series for v in one.x])
    log = "x" if across[0] > 0 and across[1] / across[0] >= LOG_FROM else ""
    scaled = f"{letter}{unit}" if unit in {"bit/s", "bytes", ""} else f"{letter or ''} {unit}".strip()
    caption = words[0].upper() + words[1:]
    top = round_up(most / factor) if unit or max([1.1, *(y for one in series for y in one.y)]) > 1.1 else 1.0
    axes = Axes(words, axis_label(x), scaled or words.partition(",")[0], across, (0.0, top), log=log)
    return Panel(caption, axes, tuple(series))


def _range(values: Sequence[float]) -> Range:
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if low < high else (low, low + 1.0)
