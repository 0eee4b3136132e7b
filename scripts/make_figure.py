"""Makes docs/long-fat-pipe.svg, the picture of the first pages, from runs of scenarios/long-fat-pipe.toml."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pictures import picture

import explicate
from explicate.charts import Axes, Series, round_up
from explicate.figures import Study
from explicate.figures.study import binned

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios" / "long-fat-pipe.toml"
PICTURE = ROOT / "docs" / "long-fat-pipe.svg"

LINK = "r1->r2"
CURVES = {"xcp": "XCP", "newreno": "NewReno", "cubic": "CUBIC"}
PANELS = (("utilisation", "utilisation (%)", 100.0), ("queue_packets", "queue (packets)", 1.0))
"""Variable, label, factor."""


def panel(study: Study, variable: str, label: str, factor: float) -> tuple[Axes, list[Series]]:
    """One variable of the bottleneck over time, a line for each protocol; rates are means of whole round trips."""
    samples = study.samples(variable)
    if variable == "utilisation":
        samples = binned(samples, study.spans(samples))
    lines = []
    for place, (variant, name) in enumerate(CURVES.items()):
        rows = samples.filter(pl.col("variant") == variant, pl.col("object") == LINK)
        lines.append(Series(name, place, rows["time_s"].to_list(), (rows["value"] * factor).to_list()))
    values = [value for one in lines for value in one.y]
    return Axes(label, "time (s)", label, (0.0, study.end_s), (0.0, round_up(max(values)))), lines


def main() -> None:
    """Run and draw."""
    study = Study.of(explicate.compare(SCENARIO, list(CURVES)))
    panels = [panel(study, *one) for one in PANELS]
    PICTURE.write_text(picture("XCP, NewReno and CUBIC on a long fat pipe", panels, 300), encoding="utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
