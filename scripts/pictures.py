"""Pictures of the documentation: SVG files by matplotlib, in the colours of the reader's light or dark page."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from explicate.charts import Axes, Series, thin
from explicate.figures import Panel
from explicate.plotting import PRINT, STYLE, draw_panel, line_style

PANEL_IN = (6.4, 2.2)
"""A panel has a row to itself: where a page is as narrow as a telephone, it is still legible."""
ROW_IN = 0.25
"""Height of a line of a legend below."""
DOT_PT = 3.5
SOFT, RULE = "#57606a", "#d5dae0"
LOOKS = {
    **STYLE,
    **{f"{name}.color": SOFT for name in ("text", "xtick", "ytick")},
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "legend.fontsize": 8,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": SOFT,
    "axes.facecolor": "none",
    "figure.facecolor": "#ffffff",
    "grid.color": RULE,
    "path.simplify": False,
}
VARIABLES = {SOFT: "soft", RULE: "rule", "#8b949e": "soft", "#ffffff": "page"}
VARIABLES |= {colour: f"s{place}" for place, colour in enumerate(PRINT)}
"""The variables of the style sheet that stand for the colours that matplotlib writes."""


def picture(
    title: str, panels: Sequence[tuple[Axes, Sequence[Series]]], columns: int, legend: Sequence[Series] = ()
) -> str:
    """Return an SVG file: panels one below the other, their lines thinned to `columns` columns.

    A panel has the names of its lines, unless those of the panel above or of a `legend` below all of them are the same.
    """
    wide, high = PANEL_IN
    with mpl.rc_context(LOOKS):
        below = ROW_IN * len(legend)
        figure = Figure(figsize=(wide, high * len(panels) + below), layout="constrained")
        rows = figure.subplots(len(panels), 1, squeeze=False).flatten()
        above: list[tuple[str, int]] = []
        for axes, (frame, lines) in zip(rows, panels, strict=True):
            draw_panel(axes, Panel("", frame, tuple(_thinned(one, columns) for one in lines if not one.dots)))
            for one in lines:
                if one.dots:
                    axes.add_patch(_dots(one))
                    if one.low:
                        axes.vlines(one.x, one.low, one.high, color=PRINT[one.place], linewidth=0.8)
            names = [(one.name, one.place) for one in lines]
            if len(lines) > 1 and not legend and names != above:
                marks = list(map(_mark, lines))
                axes.legend(
                    handles=marks, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(marks), borderaxespad=0.2
                )
            above = names
        if legend:
            figure.legend(handles=list(map(_mark, legend)), loc="outside lower left")
        return _themed(figure, title)


def _dots(one: Series) -> PathPatch:
    """Return dots as one path, which takes a fifth of the space of markers."""
    places = [(x, y) for x, y in zip(one.x, one.y, strict=True) for _ in range(2)]
    codes = [Path.MOVETO, Path.LINETO] * (len(places) // 2)
    return PathPatch(Path(places, codes), color=PRINT[one.place], lw=DOT_PT, capstyle="round", fill=False)


def _thinned(one: Series, columns: int) -> Series:
    if one.kind != "line" or len(one.x) <= 2 * columns:
        return one
    kept = {x for x, _ in thin(one.x, one.y, columns)}
    at = [i for i, x in enumerate(one.x) if x in kept]
    shorter = {name: [getattr(one, name)[i] for i in at] for name in ("x", "y", "low", "high") if getattr(one, name)}
    return replace(one, **shorter)


def _mark(one: Series) -> Any:
    look = {"color": PRINT[one.place], "marker": ".", "linestyle": ""} if one.dots else line_style(one.place)
    return Line2D([], [], label=one.name, **look)


def without_needless_digits(svg: str) -> str:
    """Return it with one digit behind the point in all that its tags have; the text between them stays."""
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), svg)


def _themed(figure: Figure, title: str) -> str:
    """Return the SVG of a figure without needless digits and spaces, its colours those of the style sheet."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = re.sub(r"\s+", " ", written.getvalue()[written.getvalue().index("<svg") :]).replace("> <", ">\n<")
    text = without_needless_digits(text)
    text = re.sub(r"M (\S+ \S+) L \1 ", r"M\1h0", text).replace(" L ", " ")  # points alone, and lines
    for colour, name in VARIABLES.items():
        text = text.replace(colour, f"var(--{name})")
    sheet = resources.files("explicate").joinpath("assets", "charts.css").read_text(encoding="utf-8")
    variables = re.sub(r"\s+", " ", sheet[: sheet.index(".line")])
    head = f"<title>{escape(title)}</title>\n<style>{variables}</style>"
    return re.sub(r"(<svg [^>]*>)", lambda found: f"{found[1]}\n{head}", text, count=1) + "\n"
