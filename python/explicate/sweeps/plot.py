"""A sweep as a picture: each measure against the first axis that has numbers."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from explicate.charts import picture
from explicate.figures.sweep import curves
from explicate.results import write_text
from explicate.sweeps.table import SweepResults

FONT = "text{font-family:system-ui,sans-serif}"


def plot(results: SweepResults, path: Path) -> bool:
    """Write an SVG to `path`: means with their 95 % intervals; dots where other numbers vary too.

    Without an axis of numbers there is nothing to draw: return whether something was.
    """
    found = curves(results.intervals(), results.axes, results.wanted)
    if found is None:
        return False
    x, drawn, names, _ = found
    panels = [(panel.axes, panel.series) for panel in drawn]
    style = resources.files("explicate").joinpath("assets", "charts.css").read_text(encoding="utf-8") + FONT
    write_text(path, picture(f"{results.name} over {x}", panels, style, 200, panels[0][1] if names else []))
    return True
