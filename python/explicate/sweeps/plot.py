"""A sweep as a picture: each measure against the first axis that has numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import polars as pl

from explicate.charts import MOST_SERIES, Axes, Range, Series, picture, round_up
from explicate.sweeps.measures import MARGIN
from explicate.sweeps.table import SweepResults

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
    others = [axis for axis in axes if axis != x and frame[axis].n_unique() <= MOST_SERIES]
    dots = len(others) < len(axes) - 1
    parts = frame.partition_by(others, maintain_order=True) if others else [frame]
    names = [", ".join(str(part[axis][0]) for axis in others) for part in parts[:MOST_SERIES]]
    panels = [_panel(parts[:MOST_SERIES], names, x, measure, dots=dots) for measure in results.wanted]
    left_out = len(parts) - len(names)
    title = f"{results.name} over {x}" + (f"; {left_out} more lines are in the table" if left_out else "")
    style = resources.files("explicate").joinpath("assets", "charts.css").read_text(encoding="utf-8") + FONT
    path.write_text(picture(title, panels, style, 200), encoding="utf-8")
    return True


def _panel(
    parts: Sequence[pl.DataFrame], names: Sequence[str], x: str, measure: str, *, dots: bool
) -> tuple[Axes, list[Series]]:
    series: list[Series] = []
    for place, (part, name) in enumerate(zip(parts, names, strict=True)):
        kept = part.filter(pl.col(measure).is_not_null()).sort(x)
        x_values, y, half = kept[x].to_list(), kept[measure].to_list(), kept[measure + MARGIN].to_list()
        spread = [] if dots or None in half else list(zip(y, half, strict=True))
        low, high = [value - margin for value, margin in spread], [value + margin for value, margin in spread]
        series.append(Series(name, place, x_values, y, low, high, dots=dots))
    across, up = _range([v for one in series for v in one.x]), [v for one in series for v in (*one.y, *one.high)]
    log = "x" if across[0] > 0 and across[1] / across[0] >= LOG_FROM else ""
    most = max([0.0, *filter(math.isfinite, up)])
    return Axes(measure, x, measure, across, (0.0, round_up(most)), log=log), series


def _range(values: Sequence[float]) -> Range:
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if low < high else (low, low + 1.0)
