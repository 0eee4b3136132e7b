"""The figures of a report: which data go into which chart.

Without axes a figure is one chart with a line per flow group or link. With axes (a comparison or sweep) it is one
chart per group or link, and in each the points of the axes stand side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from explicate.charts import MOST_SERIES, PLOT_WIDTH, Axes, Bar, Series, bar_chart, line_chart, round_up
from explicate.lab import VARIANT
from explicate.results import Results
from explicate.summary import busy_links, without_nan
from explicate.text import prefix

MOST_FACETS = 8
MOST_BARS = 120
CDF_POINTS = 200
POINTS_PER_FIGURE = 12_000
POINT = "_point"


@dataclass(frozen=True)
class Figure:
    """A heading, a sentence on what is shown, the charts with their legend as HTML, and what was left out."""

    key: str
    title: str
    about: str
    charts: tuple[str, ...]
    legend: str
    note: str = ""


@dataclass(frozen=True)
class Study:
    """Results prepared for drawing: their points' names, and the span of time that summaries leave out (s)."""

    results: Results
    points: tuple[str, ...]
    warmup_s: float

    @classmethod
    def of(cls, results: Results, warmup_s: float) -> Study:
        """Name the points of `results`."""
        names = label_points(results.run, results.axes)[POINT].unique(maintain_order=True).to_list()
        return cls(results, tuple(names), warmup_s)

    @property
    def shading(self) -> str:
        """A sentence on what the shade behind a chart over time means, if there is one."""
        return " The shade is warm-up, which no summary counts." if self.warmup_s > 0 else ""

    @property
    def compares(self) -> bool:
        """Whether there is more than one point to set side by side."""
        return bool(self.results.axes)


def label_points(frame: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """Add the column `POINT`: the protocol of a comparison, ``key = value`` of a sweep, nothing of a plain run.

    Only the last part of a key is shown, if that is unambiguous.
    """
    if not axes:
        return frame.with_columns(pl.lit("").alias(POINT))
    if tuple(axes) == (VARIANT,):
        return frame.with_columns(pl.col(VARIANT).alias(POINT))
    short = [axis.rpartition(".")[2] for axis in axes]
    names = short if len(set(short)) == len(axes) else list(axes)
    parts = [
        pl.format("{} = {}", pl.lit(name), pl.col(axis).cast(pl.String)) for name, axis in zip(names, axes, strict=True)
    ]
    return frame.with_columns(pl.concat_str(parts, separator=", ").alias(POINT))


def _samples(study: Study, variable: str) -> pl.DataFrame:
    frame = without_nan(study.results.samples).filter(pl.col("variable") == variable, pl.col("value").is_not_null())
    return label_points(frame.with_columns(pl.col("object").cast(pl.String)), study.results.axes)


def _by_group(study: Study, frame: pl.DataFrame) -> pl.DataFrame:
    keys = [*study.results.axes, "run"]
    flows = study.results.flows.select(*keys, pl.col("flow").cast(pl.String).alias("object"), "group")
    return frame.join(flows, on=[*keys, "object"], how="inner", maintain_order="left")


DOT = '<path class="whisker s{0}"/><path class="dots s{0}" d="M12 4h0"/>'


def legend(names: Sequence[str], mark: str = '<path class="line s{}" d="M0 4H24"/>', dots: Collection[int] = ()) -> str:
    """Return buttons that show or hide the series of these names; those whose places are in `dots` have a dot."""
    items = "".join(
        f'<li><button type="button" data-series="{i}" aria-pressed="true"><svg viewBox="0 0 24 8" aria-hidden="true">'
        f"{(DOT if i in dots else mark).format(i)}</svg>{escape(name)}</button></li>"
        for i, name in enumerate(names)
    )
    return f'<ul class="legend" aria-label="series: press to hide or show">{items}</ul>'


def _left_out(what: str, shown: int, there: int) -> str:
    return f"The first {shown} of {there} {what} are drawn." if there > shown else ""


@dataclass(frozen=True)
class _Layout:
    """Which column makes charts and which makes lines, and the names of both in order."""

    facet: str | None
    series: str
    facets: list[str]
    names: list[str]
    note: str

    @classmethod
    def of(cls, study: Study, column: str, order: Sequence[str], what: str) -> _Layout:
        order = list(order)
        if not study.compares:
            return cls(None, column, [""], order[:MOST_SERIES], _left_out(what, MOST_SERIES, len(order)))
        notes = [
            _left_out("points", MOST_SERIES, len(study.points)),
            _left_out(what, MOST_FACETS, len(order)),
        ]
        return cls(column, POINT, order[:MOST_FACETS], list(study.points[:MOST_SERIES]), " ".join(filter(None, notes)))

    def pieces(self, frame: pl.DataFrame, facet: str) -> list[tuple[int, str, pl.DataFrame]]:
        """Return the lines of one chart: place, name and rows."""
        part = frame if self.facet is None else frame.filter(pl.col(self.facet) == facet)
        named = [(i, name, part.filter(pl.col(self.series) == name)) for i, name in enumerate(self.names)]
        return [(i, name, rows) for i, name, rows in named if not rows.is_empty()]

    @property
    def columns(self) -> int:
        """How many columns to thin each line to, so that a page stays small."""
        return max(60, min(PLOT_WIDTH, POINTS_PER_FIGURE // (len(self.facets) * max(len(self.names), 1))))


def _over_time(study: Study, frame: pl.DataFrame, layout: _Layout, y_label: str, scale: float) -> tuple[str, ...]:
    """Draw mean, least and greatest `value` against time, all charts with the same ranges."""
    keys = [key for key in (layout.facet, layout.series) if key is not None]
    frame = frame.filter(pl.col(layout.series).is_in(layout.names))
    lines = (
        frame.group_by([*keys, "time_s"], maintain_order=True)
        .agg(
            (pl.col("value").mean() / scale).alias("mean"),
            (pl.col("value").min() / scale).alias("low"),
            (pl.col("value").max() / scale).alias("high"),
        )
        .sort("time_s", maintain_order=True)
    )
    end, top = _largest(lines["time_s"]), round_up(_largest(lines["high"]))
    charts = []
    for facet in layout.facets:
        series = [
            Series(name, i, *(rows[column].to_list() for column in ("time_s", "mean", "low", "high")))
            for i, name, rows in layout.pieces(lines, facet)
        ]
        axes = Axes(_chart_title(y_label, facet), "time (s)", y_label, (0, end), (0, top), (0, study.warmup_s))
        charts.append(_captioned(facet, line_chart(axes, series, layout.columns)))
    return tuple(charts)


def _largest(column: pl.Series) -> float:
    value = column.max()
    return float(value) if isinstance(value, int | float) else 1.0


def _chart_title(what: str, facet: str) -> str:
    return f"{what}, {facet}" if facet else what


def _captioned(caption: str, chart: str) -> str:
    return f"<h3>{escape(caption)}</h3>{chart}" if caption else chart


def throughput(study: Study) -> Figure | None:
    """Draw throughput per flow over time: each group's mean, in a band from its slowest to its fastest flow."""
    for variable, name in (("throughput_bps", "Throughput"), ("goodput_bps", "Goodput")):
        frame = _by_group(study, _samples(study, variable))
        if frame.is_empty():
            continue
        groups = study.results.flows["group"].unique(maintain_order=True).to_list()
        layout = _Layout.of(study, "group", groups, "groups")
        scale, letter = prefix(_largest(frame["value"]))
        about = "Mean per flow; the band reaches from the slowest to the fastest flow of all runs." + study.shading
        charts = _over_time(study, frame, layout, f"{name.lower()} per flow ({letter}bit/s)", scale)
        return Figure("throughput", f"{name} over time", about, charts, legend(layout.names), layout.note)
    return None


def queue(study: Study) -> Figure | None:
    """Draw the queue over time on the links that matter."""
    frame = _samples(study, "queue_packets")
    if frame.is_empty():
        return None
    sampled = set(frame["object"].to_list())
    names = [name for name in busy_links(study.results.links) if name in sampled] or sorted(sampled)
    layout = _Layout.of(study, "object", names, "links")
    about = "Packets waiting, without the one in service; the band reaches from the least to the most of all runs."
    about += study.shading
    charts = _over_time(study, frame, layout, "queue (packets)", 1.0)
    return Figure("queue", "Queue over time", about, charts, legend(layout.names), layout.note)


def rtt(study: Study) -> Figure | None:
    """Draw the distribution of the sampled round-trip times after warm-up."""
    frame = _by_group(study, _samples(study, "rtt_ms")).filter(pl.col("time_s") >= study.warmup_s)
    if frame.is_empty():
        return None
    layout = _Layout.of(study, "group", study.results.flows["group"].unique(maintain_order=True).to_list(), "groups")
    steps = [i / CDF_POINTS for i in range(CDF_POINTS + 1)]
    shown = frame.filter(pl.col(layout.series).is_in(layout.names))["value"]
    low, high = shown.min(), shown.max()
    span = (float(low), float(high)) if isinstance(low, float) and isinstance(high, float) else (0.0, 1.0)
    pad = (span[1] - span[0]) * 0.03 or 1.0
    charts = []
    for facet in layout.facets:
        series = []
        for i, name, rows in layout.pieces(frame, facet):
            ordered = rows["value"].sort()
            at = [round(step * (ordered.len() - 1)) for step in steps]
            series.append(Series(name, i, ordered.gather(at).to_list(), [100 * step for step in steps]))
        x_range = (max(span[0] - pad, 0.0), span[1] + pad)
        axes = Axes(
            _chart_title("round-trip time", facet), "round-trip time (ms)", "samples below (%)", x_range, (0, 100)
        )
        charts.append(_captioned(facet, line_chart(axes, series)))
    about = "Share of the sampled round-trip times, after warm-up, that were no longer than the value below."
    return Figure("rtt", "Round-trip time", about, tuple(charts), legend(layout.names), layout.note)


def goodput(study: Study) -> Figure | None:
    """Draw the goodput of every flow, the mean over runs; of very many flows their quantiles."""
    results = study.results
    flows = label_points(without_nan(results.flows), results.axes)
    means = flows.group_by([POINT, "group", "flow"], maintain_order=True).agg(pl.col("goodput_bps").mean())
    means = means.with_columns(pl.col("goodput_bps").fill_null(0.0), pl.col("flow").cast(pl.String))
    if means.is_empty():
        return None
    groups = means["group"].unique(maintain_order=True).to_list()
    place = {name: min(i, MOST_SERIES - 1) for i, name in enumerate(groups)}
    largest = _largest(means["goodput_bps"])
    scale, letter = prefix(largest)
    top, unit = round_up(largest / scale), f"{letter}bit/s"
    charts, crowded = [], False
    for point in study.points[:MOST_SERIES]:
        rows = means.filter(pl.col(POINT) == point)
        if rows.height > MOST_BARS:
            crowded = True
            rows = rows.sort("goodput_bps", maintain_order=True)
            rows = rows[[round(i * (rows.height - 1) / (MOST_BARS - 1)) for i in range(MOST_BARS)]]
        bars = [Bar(row["flow"], place[row["group"]], row["goodput_bps"] / scale) for row in rows.iter_rows(named=True)]
        axes = Axes(_chart_title("goodput of each flow", point), "flow", f"goodput ({unit})", (0, len(bars)), (0, top))
        charts.append(_captioned(point, bar_chart(axes, bars, unit)))
    notes = [
        f"There are more than {MOST_BARS} flows: the bars are {MOST_BARS} of them, evenly chosen from slow to fast."
        if crowded
        else "",
        _left_out("points", MOST_SERIES, len(study.points)),
        "Groups beyond the eighth share its colour." if len(groups) > MOST_SERIES else "",
    ]
    about = "In-order payload per second after warm-up, the mean over runs; colours are flow groups."
    names = legend(groups[:MOST_SERIES], '<rect class="bar s{}" x="7" width="10" height="8"/>')
    return Figure("goodput", "Goodput of each flow", about, tuple(charts), names, " ".join(filter(None, notes)))


ALL = {"throughput": throughput, "queue": queue, "rtt": rtt, "goodput": goodput}
"""All figures by name, in the order of the page."""

WANTED = {"throughput": throughput, "queue": queue, "rtt": rtt}
"""The figures that need samples, by their word in ``[sampling]``."""
