"""Figures of the report inside a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from explicate import figures
from explicate.figures import Study
from explicate.report import figure_html, script, style, undrawn
from explicate.results import Results

ROW_PX = 430


@dataclass(frozen=True)
class Shown:
    """Figures that a notebook displays, in a separate frame so that the styles do not interfere."""

    html: str
    height_px: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="figures" srcdoc="{escape(self.html)}" '
            f'style="width:100%;height:{self.height_px}px;border:0" '
            "onload=\"this.style.height=this.contentDocument.documentElement.scrollHeight+'px'\"></iframe>"
        )


def show(results: Results, *names: str) -> Shown:
    """Return the figures `names` (all that there are data for if none are named); `explicate.figures.ALL` has them.

    Raise ValueError for another name, or if the samples that a figure needs are missing.
    """
    study = Study.of(results)
    drawn = []
    for name in names or tuple(figures.ALL):
        if name not in figures.ALL:
            raise ValueError(f"no figure {name!r}; the figures are: {', '.join(figures.ALL)}")
        figure = figures.ALL[name](study)
        if figure is None and names:
            raise ValueError(figures.nothing(name, study))
        if figure is not None:
            drawn.append(figure)
    sections = "".join(figure_html(figure) for figure in drawn)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<style>{style()}</style></head><body>{undrawn()}<div class="figures">{sections}</div>'
        f"<script>{script()}</script></body></html>"
    )
    wide = sum(len(figure.panels) > 1 for figure in drawn)
    rows = sum((len(figure.panels) + 1) // 2 for figure in drawn if len(figure.panels) > 1)
    return Shown(page, ROW_PX * (rows + (len(drawn) - wide + 1) // 2) + 120)
