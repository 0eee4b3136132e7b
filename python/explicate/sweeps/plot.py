"""A sweep as a picture: each measure against the first axis that has numbers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from explicate.charts import MOST_SERIES, Axes, Range, Series, picture, round_up
from explicate.results import write_text
from explicate.sweeps.measures import MARGIN
from explicate.sweeps.table import SweepResults
from explicate.text import prefix

FONT = "text{font-family:system-ui,sans-serif}"
LOG_FROM = 30.0
"""An axis whose values span this factor is drawn logarithmically."""


def plot(results: SweepResults, path: Path) -> bool:
    """Write an SVG to `path`: means with their 95 % intervals; dots where other numbers vary too.

    Without an axis of numbers there is nothing to draw: return whether something was.
    """
    frame = results.intervals()
    axes = frame.columns[: len(results.axes)]
    numeric = [axis for axis in axes if frame[axis].dtype.is_numeric() and frame[axis].n_unique() > 1]
    if not numeric:
        return False
    x = max(numeric, key=lambda axis: frame[axis].n_unique())
    lines = _lines(frame, [axis for axis in axes if axis != x])
    dots = any(frame[axis].n_unique() > 1 for axis in axes if axis not in (x, *lines))
    parts = [part.sort(x) for part in (frame.partition_by(lines, maintain_order=True) if lines else [frame])]
    names = [", ".join(f"{axis} = {_text(part[axis][0])}" for axis in lines) for part in parts]
    panels = [_panel(parts, names, x, measure, dots=dots) for measure in results.wanted]
    style = resources.files("explicate").joinpath("assets", "charts.css").read_text(encoding="utf-8") + FONT
    legend = panels[0][1] if lines else []
    write_text(path, picture(f"{results.name} over {x}", panels, style, 200, legend))
    return True


def _lines(frame: pl.DataFrame, axes: Sequence[str]) -> list[str]:
    """Return the axes whose values get a line each, words before numbers, as long as the lines can be distinguished."""
    chosen: list[str] = []
    for axis in sorted(axes, key=lambda axis: frame[axis].dtype.is_numeric()):
        if frame[axis].n_unique() > 1 and frame.select(*chosen, axis).n_unique() <= MOST_SERIES:
            chosen.append(axis)
    return [axis for axis in axes if axis in chosen]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _panel(
    parts: Sequence[pl.DataFrame], names: Sequence[str], x: str, measure: str, *, dots: bool
) -> tuple[Axes, list[Series]]:
    rows = [[row for row in part.select(x, measure, measure + MARGIN).rows() if row[1] is not None] for part in parts]
    most = max([0.0, *(row[1] for part in rows for row in part)])
    factor, letter = prefix(most) if most >= 1e4 else (1.0, "")
    series: list[Series] = []
    for place, (part, name) in enumerate(zip(rows, names, strict=True)):
        y = [mean / factor for _, mean, _ in part]
        plain = dots or any(half is None for _, _, half in part)
        low, high = ([] if plain else [(mean + sign * half) / factor for _, mean, half in part] for sign in (-1, 1))
        series.append(Series(name, place, [at for at, _, _ in part], y, low, high, dots=dots))
    across = _range([v for one in series for v in one.x])
    log = "x" if across[0] > 0 and across[1] / across[0] >= LOG_FROM else ""
    label = f"{measure} ({letter})" if letter else measure
    return Axes(measure, x, label, across, (0.0, round_up(most / factor)), log=log), series


def _range(values: Sequence[float]) -> Range:
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if low < high else (low, low + 1.0)
