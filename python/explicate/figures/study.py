"""Results prepared for drawing, and panels that any renderer can draw."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import polars as pl

from explicate.charts import COLUMNS, MOST_SERIES, Axes, Bar, Series, round_up
from explicate.lab import VARIANT
from explicate.results import Results
from explicate.summary import without_nan

MOST_FACETS = 8
POINTS_PER_FIGURE = 10_000
MOST_BANDS = 4
"""Panels with more lines have no bands: they would hide each other."""
NEAR = 0.02
"""How far from a whole number of round trips a span may be, as a share."""
MOST_TRIPS = 8
"""The most round trips of a span."""
FEWEST_SPANS = 50
"""A run has so many spans, unless its round trips are longer."""
POINT = "_point"
WORDS = (VARIANT, "results")
"""Axes whose values stand for themselves: the protocols of a comparison, the two sides of a difference."""
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Panel:
    """One chart: its axes, and lines and points (`series`) or `bars`, whose places may have `names`."""

    caption: str
    axes: Axes
    series: tuple[Series, ...] = ()
    bars: tuple[Bar, ...] = ()
    unit: str = ""
    names: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Figure:
    """A heading, a sentence on what is shown, panels that share a legend, and a note on what was left out."""

    key: str
    title: str
    about: str
    panels: tuple[Panel, ...]
    names: tuple[str, ...]
    note: str = ""
    columns: int = field(default=COLUMNS, compare=False)


@dataclass(frozen=True)
class Study:
    """Results prepared for drawing: their points' names, and the span of time that summaries leave out (s)."""

    results: Results
    points: tuple[str, ...]
    warmup_s: float

    @classmethod
    def of(cls, results: Results) -> Study:
        """Name the points of `results`, and find its warm-up."""
        names = label_points(results.run, results.axes)[POINT].unique(maintain_order=True).to_list()
        return cls(results, tuple(names), _warmup(results.scenario))

    @property
    def shading(self) -> str:
        """A sentence on what the shade behind a chart over time means, if there is one."""
        return " The shade is warm-up, which no summary counts." if self.warmup_s > 0 else ""

    @property
    def compares(self) -> bool:
        """Whether there is more than one point to set side by side."""
        return bool(self.results.axes)

    @property
    def runs(self) -> int:
        """The number of runs of the point with the most."""
        counts = label_points(self.results.run, self.results.axes)[POINT].value_counts()["count"].to_list()
        return max(counts, default=0)

    @property
    def first_run(self) -> tuple[int, int]:
        """The number and the seed of the first run."""
        return int(self.results.run["run"][0]), self.results.seed

    def samples(self, variable: str) -> pl.DataFrame:
        """Return the samples of a variable, with the names of their points."""
        frame = without_nan(self.results.samples)
        frame = frame.filter(pl.col("variable") == variable, pl.col("value").is_not_null())
        return label_points(frame.with_columns(pl.col("object").cast(pl.String)), self.results.axes)

    def of_flows(self, variable: str) -> pl.DataFrame:
        """Return the samples of a variable of the flows, with their groups."""
        keys = [*self.results.axes, "run"]
        flows = self.results.flows.select(*keys, pl.col("flow").cast(pl.String).alias("object"), "group")
        return self.samples(variable).join(flows, on=[*keys, "object"], how="inner", maintain_order="left")

    @property
    def groups(self) -> list[str]:
        """The flow groups, in the order of the scenario."""
        return self.results.flows["group"].unique(maintain_order=True).to_list()

    @property
    def end_s(self) -> float:
        """When the last sample was taken: where charts over time end."""
        return largest(self.results.samples["time_s"])

    def spans(self, frame: pl.DataFrame) -> dict[str, float]:
        """Return by point the span in seconds over which samples are averaged: whole round trips, at least one.

        A flow's packets come in bursts a round trip apart, so spans of one and a half would show one burst and two in
        turn. The round trip is the median of the point's flows.
        """
        times = frame["time_s"].unique().sort()
        period = times.diff().drop_nulls().min()
        if not isinstance(period, float) or period <= 0:
            return dict.fromkeys(self.points, 1.0)
        flows = label_points(without_nan(self.results.flows), self.results.axes)
        trips = dict(flows.group_by(POINT).agg(pl.col("rtt_mean_ms").median() / 1000 / period).rows())
        most = int(self.end_s / FEWEST_SPANS / period)
        return {name: round(period * _samples(trips.get(name) or 1.0, most), 9) for name in self.points}


def _samples(trip: float, most: int) -> int:
    """Return the fewest sampling periods that are whole round trips of `trip` periods, if `most` or fewer are."""
    least = max(1, math.ceil(trip * (1 - NEAR)))

    def off(count: int) -> float:
        trips = count / trip
        return abs(trips - max(1, round(trips))) / trips

    counts = range(least, max(least, min(most, math.ceil(MOST_TRIPS * trip))) + 1)
    return next((count for count in counts if off(count) <= NEAR), min(counts, key=off))


def binned(frame: pl.DataFrame, spans: Mapping[str, float]) -> pl.DataFrame:
    """Return `frame` with the mean `value` of each whole span of its point's length, at the end of the span.

    Of a last span that is not whole, the few samples would look like a jump.
    """
    keys = [name for name in frame.columns if name not in {"time_s", "value"}]
    span = pl.col(POINT).replace_strict(dict(spans), return_dtype=pl.Float64)
    end = largest(frame["time_s"])
    return (
        frame.with_columns(((pl.col("time_s") / span - 1e-6).ceil() * span).round(9).alias("time_s"))
        .filter(pl.col("time_s") <= pl.max_horizontal(pl.lit(end), span) * (1 + 1e-9))
        .group_by([*keys, "time_s"], maintain_order=True)
        .agg(pl.col("value").mean())
    )


def span_text(spans: Mapping[str, float]) -> str:
    """Return the spans of all points for a caption, the shortest and the longest if they differ."""
    ends = sorted({min(spans.values()), max(spans.values())})
    return " to ".join(f"{span * 1000:.4g} ms" if span < 1 else f"{span:.4g} s" for span in ends)


def _warmup(scenario: str) -> float:
    """Return the scenario's warm-up in seconds, 0 if it is not given in a form known here."""
    try:
        text = tomllib.loads(scenario).get("warmup", "0s")
    except tomllib.TOMLDecodeError:
        return 0.0
    match = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([a-zµ]+)\s*", str(text))
    factor = SECONDS.get(match[2], 0.0) if match else 0.0
    if not match or not factor:
        return 0.0
    # A quotient is the number nearest to 0.7 for 700 ms; a product is not.
    return float(match[1]) / round(1 / factor) if factor < 1 else float(match[1]) * factor


def label_points(frame: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """Add the column `POINT`: the protocol of a comparison, ``key = value`` of a sweep, nothing of a plain run.

    Only the last part of a key is shown, if that is unambiguous.
    """
    if not axes:
        return frame.with_columns(pl.lit("").alias(POINT))
    short = [axis.rpartition(".")[2] for axis in axes]
    names = short if len(set(short)) == len(axes) else list(axes)
    parts = [
        pl.col(axis).cast(pl.String)
        if axis in WORDS
        else pl.format("{} = {}", pl.lit(name), pl.col(axis).cast(pl.String))
        for name, axis in zip(names, axes, strict=True)
    ]
    return frame.with_columns(pl.concat_str(parts, separator=", ").alias(POINT))


DOT = '<path class="whisker s{0}"/><path class="dots s{0}" d="M12 4h0"/>'
LINE = '<path class="line s{}" d="M0 4H24"/>'
BAR = '<rect class="bar s{}" x="7" width="10" height="8"/>'


def legend(names: Sequence[str], mark: str = LINE, dots: Collection[int] = ()) -> str:
    """Return buttons that show or hide the series of these names; those whose places are in `dots` have a dot."""
    items = "".join(
        f'<li><button type="button" data-series="{i}" aria-pressed="true"><svg viewBox="0 0 24 8" aria-hidden="true">'
        f"{(DOT if i in dots else mark).format(i)}</svg>{escape(name)}</button></li>"
        for i, name in enumerate(names)
    )
    return f'<ul class="legend" aria-label="series: press to hide or show">{items}</ul>'


def left_out(what: str, shown: int, there: int) -> str:
    """Return a sentence if there are more than `shown`."""
    return f"The first {shown} of {there} {what} are drawn." if there > shown else ""


@dataclass(frozen=True)
class Layout:
    """Which column makes panels and which makes lines, and the names of both in order."""

    facet: str | None
    series: str
    facets: list[str]
    names: list[str]
    note: str

    @classmethod
    def of(cls, study: Study, column: str, order: Sequence[str], what: str) -> Layout:
        """Compare points: a panel for each value of `column`, a line for each point; without axes lines alone."""
        order = list(order)
        if not study.compares:
            return cls(None, column, [""], order[:MOST_SERIES], left_out(what, MOST_SERIES, len(order)))
        notes = [
            left_out("points", MOST_SERIES, len(study.points)),
            left_out(what, MOST_FACETS, len(order)),
        ]
        return cls(column, POINT, order[:MOST_FACETS], list(study.points[:MOST_SERIES]), " ".join(filter(None, notes)))

    @classmethod
    def apart(cls, study: Study, column: str, order: Sequence[str], what: str) -> Layout:
        """Set the values of `column` apart: a panel for each point, a line for each value."""
        order = list(order)
        facets = list(study.points[:MOST_FACETS])
        notes = [
            left_out("points", MOST_FACETS, len(study.points)),
            left_out(what, MOST_SERIES, len(order)),
        ]
        names = order[:MOST_SERIES]
        return cls(POINT if study.compares else None, column, facets, names, " ".join(filter(None, notes)))

    def pieces(self, frame: pl.DataFrame, facet: str) -> list[tuple[int, str, pl.DataFrame]]:
        """Return the lines of one panel: place, name and rows."""
        part = frame if self.facet is None else frame.filter(pl.col(self.facet) == facet)
        named = [(i, name, part.filter(pl.col(self.series) == name)) for i, name in enumerate(self.names)]
        return [(i, name, rows) for i, name, rows in named if not rows.is_empty()]

    @property
    def columns(self) -> int:
        """How many columns to thin each line to, so that a page stays small."""
        return max(60, min(COLUMNS, POINTS_PER_FIGURE // (len(self.facets) * max(len(self.names), 1))))


def largest(column: pl.Series) -> float:
    """Return the greatest value of a column, 1 if it has none."""
    value = column.max()
    return float(value) if isinstance(value, int | float) else 1.0


def panel_title(what: str, facet: str) -> str:
    """Return what a panel shows, for those who cannot see it."""
    return f"{what}, {facet}" if facet else what


def over_time(
    study: Study, frame: pl.DataFrame, layout: Layout, y_label: str, *, scale: float = 1.0, top: float | None = None
) -> tuple[Panel, ...]:
    """Make panels of the mean of `value` over time, between its tenth and ninetieth percentiles, on equal axes."""
    keys = [key for key in (layout.facet, layout.series) if key is not None]
    frame = frame.filter(pl.col(layout.series).is_in(layout.names))
    value = pl.col("value") / scale
    lines = (
        frame.group_by([*keys, "time_s"], maintain_order=True)
        .agg(
            value.mean().alias("mean"),
            value.quantile(0.1, "linear").alias("low"),
            value.quantile(0.9, "linear").alias("high"),
        )
        .sort("time_s", maintain_order=True)
    )
    bands = len(layout.names) <= MOST_BANDS
    ceiling = round_up(largest(lines["high" if bands else "mean"])) if top is None else top
    panels = []
    for facet in layout.facets:
        wanted = ("time_s", "mean", "low", "high") if bands else ("time_s", "mean")
        series = tuple(
            Series(name, i, *(rows[column].to_list() for column in wanted))
            for i, name, rows in layout.pieces(lines, facet)
        )
        title = panel_title(y_label, facet)
        axes = Axes(title, "time (s)", y_label, (0, study.end_s), (0, ceiling), (0, study.warmup_s))
        panels.append(Panel(facet, axes, series))
    return tuple(panels)
