"""Figures of distributions and totals: round trips, completion times, goodput, losses, throughput against delay."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from explicate.charts import MOST_SERIES, Axes, Bar, Series, round_up
from explicate.figures.study import (
    POINT,
    Figure,
    Layout,
    Panel,
    Study,
    label_points,
    largest,
    left_out,
    panel_title,
)
from explicate.summary import busy_links, with_slowdown, without_nan
from explicate.text import prefix

MOST_BARS = 120
MOST_DOTS = 400
CDF_POINTS = 200
FEWEST_FOR_ELLIPSE = 3
ELLIPSE_POINTS = 48
FEWEST_FOR_SLOWDOWN = 10
BINS_A_DECADE = 4


def rtt(study: Study) -> Figure | None:
    """Draw the distribution of the sampled round-trip times after warm-up."""
    frame = study.of_flows("rtt_ms").filter(pl.col("time_s") >= study.warmup_s)
    if frame.is_empty():
        return None
    layout = Layout.of(study, "group", study.groups, "groups")
    shown = frame.filter(pl.col(layout.series).is_in(layout.names))["value"]
    low, high = shown.min(), shown.max()
    span = (float(low), float(high)) if isinstance(low, float) and isinstance(high, float) else (0.0, 1.0)
    pad = (span[1] - span[0]) * 0.03 or 1.0
    panels = []
    for facet in layout.facets:
        series = []
        for i, name, rows in layout.pieces(frame, facet):
            x, y = _cdf(rows["value"], rows.height)
            series.append(Series(name, i, x, y))
        axes = Axes(
            panel_title("round-trip time", facet),
            "round-trip time (ms)",
            "samples below (%)",
            (max(span[0] - pad, 0.0), span[1] + pad),
            (0, 100),
        )
        panels.append(Panel(facet, axes, tuple(series)))
    about = "Share of the sampled round-trip times, after warm-up, that were no longer than the value below."
    return Figure("rtt", "Round-trip time: distribution", about, tuple(panels), tuple(layout.names), layout.note)


def _cdf(values: pl.Series, of: int) -> tuple[list[float], list[float]]:
    """Return the distribution of `values` among `of`, in per cent, at as many places as a chart can show."""
    ordered = values.drop_nulls().sort()
    if ordered.is_empty():
        return [], []
    last = ordered.len() - 1
    at = sorted({round(i / CDF_POINTS * last) for i in range(CDF_POINTS + 1)})
    return ordered.gather(at).to_list(), [100 * (i + 1) / of for i in at]


def completion(study: Study) -> Figure | None:
    """Draw the distribution of the completion times; it stays below 100 % where transfers did not complete."""
    flows = label_points(without_nan(study.results.flows), study.results.axes).filter(
        pl.col("size_bytes").is_not_null()
    )
    times = flows["completion_s"].drop_nulls().filter(flows["completion_s"].drop_nulls() > 0)
    if times.is_empty():
        return None
    groups = flows["group"].unique(maintain_order=True).to_list()
    layout = Layout.of(study, "group", groups, "groups")
    panels = []
    for facet in layout.facets:
        series = []
        for i, name, rows in layout.pieces(flows, facet):
            x, y = _cdf(rows["completion_s"], rows.height)
            series.append(Series(name, i, x, y))
        across = _decade_ends(times)
        title = panel_title("completion time", facet)
        axes = Axes(title, "completion time (s)", "transfers completed (%)", across, (0, 100), log="x")
        panels.append(Panel(facet, axes, tuple(series)))
    unfinished = flows.height - int(flows["completion_s"].count())
    about = "Share of the transfers that completed within the time below, from their start, of all that started."
    about += f" {unfinished} of {flows.height} did not complete before the end of the run." if unfinished else ""
    return Figure("completion", "Completion times", about, tuple(panels), tuple(layout.names), layout.note)


def slow(study: Study) -> Figure | None:
    """Draw the slowdown of transfers against their size."""
    flows = without_nan(study.results.flows)
    if flows["size_bytes"].null_count() == flows.height:
        return None
    flows = label_points(with_slowdown(flows), study.results.axes).filter(pl.col("slowdown").is_not_null())
    if flows.height < FEWEST_FOR_SLOWDOWN:
        return None
    flows = flows.with_columns((pl.col("size_bytes").log10() * BINS_A_DECADE).floor().alias("bin"))
    layout = Layout.of(study, "group", flows["group"].unique(maintain_order=True).to_list(), "groups")
    keys = ["bin", *(key for key in (layout.facet, layout.series) if key is not None)]
    value = pl.col("slowdown")
    lines = (
        flows.group_by(keys, maintain_order=True)
        .agg(
            pl.col("size_bytes").median().alias("size"),
            value.median().alias("median"),
            value.quantile(0.1, "linear").alias("low"),
            value.quantile(0.9, "linear").alias("high"),
        )
        .sort("size", maintain_order=True)
    )
    across = _decade_ends(flows["size_bytes"].cast(pl.Float64))
    top = round_up(largest(lines["high"]))
    panels = []
    for facet in layout.facets:
        series = tuple(
            Series(name, i, *(rows[column].to_list() for column in ("size", "median", "low", "high")))
            for i, name, rows in layout.pieces(lines, facet)
        )
        axes = Axes(panel_title("slowdown", facet), "size (bytes)", "slowdown", across, (0, top), log="x")
        panels.append(Panel(facet, axes, series))
    about = (
        "The median of transfers of like size, and the middle 80 % of them. The slowdown is the completion time over "
        "that of the fastest transfer of at least the same size in these results: it tends to 1 where few are as large."
    )
    return Figure("slowdown", "Slowdown against size", about, tuple(panels), tuple(layout.names), layout.note)


def _decade_ends(values: pl.Series) -> tuple[float, float]:
    low, high = float(values.min() or 1.0), float(values.max() or 1.0)  # type: ignore[arg-type]
    steps = (1, 2, 5, 10)
    below = 10.0 ** math.floor(math.log10(low))
    above = 10.0 ** math.floor(math.log10(high))
    first = max(below * step for step in steps if below * step <= low * 1.000001)
    last = min(above * step for step in steps if above * step >= high * 0.999999)
    return (first, last) if first < last else (first / 2, last * 2)


def goodput(study: Study) -> Figure | None:
    """Draw the goodput of every long flow, the mean over runs; of very many flows their quantiles."""
    results = study.results
    flows = label_points(without_nan(results.flows), results.axes)
    means = _long(flows).group_by([POINT, "group", "flow"], maintain_order=True).agg(pl.col("goodput_bps").mean())
    means = means.with_columns(pl.col("goodput_bps").fill_null(0.0), pl.col("flow").cast(pl.String))
    if means.is_empty() or (results.axes and means.group_by(POINT).len()["len"].max() == 1):
        return None
    groups = means["group"].unique(maintain_order=True).to_list()
    place = {name: min(i, MOST_SERIES - 1) for i, name in enumerate(groups)}
    most = largest(means["goodput_bps"])
    scale, letter = prefix(most)
    top, unit = round_up(most / scale), f"{letter}bit/s"
    panels, crowded = [], False
    for point in study.points[:MOST_SERIES]:
        rows = means.filter(pl.col(POINT) == point)
        if rows.height > MOST_BARS:
            crowded = True
            rows = rows.sort("goodput_bps", maintain_order=True)
            rows = rows[[round(i * (rows.height - 1) / (MOST_BARS - 1)) for i in range(MOST_BARS)]]
        bars = tuple(
            Bar(row["flow"], place[row["group"]], row["goodput_bps"] / scale) for row in rows.iter_rows(named=True)
        )
        axes = Axes(panel_title("goodput of each flow", point), "flow", f"goodput ({unit})", (0, len(bars)), (0, top))
        panels.append(Panel(point, axes, bars=bars, unit=unit))
    notes = [
        f"There are more than {MOST_BARS} flows: the bars are {MOST_BARS} of them, evenly chosen from slow to fast."
        if crowded
        else "",
        left_out("points", MOST_SERIES, len(study.points)),
        "Groups beyond the eighth share its colour." if len(groups) > MOST_SERIES else "",
    ]
    about = "In-order payload per second after warm-up, the mean over runs; colours are flow groups."
    note = " ".join(filter(None, notes))
    return Figure("goodput", "Goodput of each flow", about, tuple(panels), tuple(groups[:MOST_SERIES]), note)


def _long(flows: pl.DataFrame) -> pl.DataFrame:
    """Return the flows without end, if there are any: transfers that end are judged by their completion times."""
    return flows.filter(pl.col("size_bytes").is_null()) if flows["size_bytes"].null_count() > 0 else flows


LOSSES = {
    "drops_overflow": "queue full",
    "drops_early": "dropped early",
    "drops_channel": "lost by the channel",
    "marks": "marked (CE)",
}


def losses(study: Study) -> Figure | None:
    """Draw what each busy link dropped, lost and marked, by cause."""
    results = study.results
    links = label_points(results.link_summary(), results.axes)
    kinds = [column for column in LOSSES if (links[column].sum() or 0) > 0]
    if not kinds:
        return None
    busy = [
        name
        for name in busy_links(results.links)
        if (links.filter(pl.col("link") == name).select(pl.sum_horizontal(kinds)).sum().item() or 0) > 0
    ]
    layout = Layout.of(study, "link", busy, "links")
    facets = layout.facets if study.compares else ["all"]
    places = layout.names
    panels = []
    legend = tuple(LOSSES[kind] for kind in kinds)
    counted = "packets" if len(kinds) > 1 else f"packets ({legend[0]})"
    top = max(float(links[kind].max() or 0.0) for kind in kinds)  # type: ignore[arg-type]
    for facet in facets:
        part = links.filter(pl.col("link") == facet) if study.compares else links
        bars, names = [], []
        for name in places:
            row = part.filter(pl.col(layout.series) == name)
            for place, kind in enumerate(kinds):
                value = float(row[kind][0] or 0.0) if row.height else 0.0
                bars.append(Bar(f"{name}: {LOSSES[kind]}", place, value))
            names.append((len(bars) - len(kinds) / 2, name))
        what = panel_title("losses and marks", facet if study.compares else "")
        axes = Axes(what, "" if study.compares else "link", counted, (0, len(bars)), (0, round_up(top)))
        caption = facet if study.compares else ""
        panels.append(Panel(caption, axes, bars=tuple(bars), unit="packets", names=tuple(names)))
    about = "Packets of a run, after warm-up, by what happened to them at the link: the mean over runs."
    return Figure("losses", "Losses and marks", about, tuple(panels), legend, layout.note)


def tradeoff(study: Study) -> Figure | None:
    """Draw throughput against delay: a dot for each run, and an ellipse around the runs of a point."""
    results = study.results
    flows = label_points(without_nan(results.flows), results.axes)
    flows = _long(flows).filter(pl.col("rtt_mean_ms").is_not_null(), pl.col("throughput_bps") > 0)
    if flows.is_empty():
        return None
    single = not study.compares and study.runs == 1
    keys = [POINT, "group", "flow" if single else "run"]
    dots = flows.group_by(keys, maintain_order=True).agg(pl.col("rtt_mean_ms", "throughput_bps").mean())
    if dots.height < 2:
        return None
    scale, letter = prefix(largest(dots["throughput_bps"]))
    dots = dots.with_columns(pl.col("throughput_bps") / scale)
    layout = Layout.of(study, "group", dots["group"].unique(maintain_order=True).to_list(), "groups")
    pieces = {facet: layout.pieces(dots, facet) for facet in layout.facets}
    panels = tuple(
        _scatter(facet, drawn, f"throughput of a flow ({letter}bit/s)") for facet, drawn in pieces.items() if drawn
    )
    each = "flow" if single else "run: the mean of its flows"
    about = f"A dot is a {each}. Up and to the left is better."
    if not single and study.runs >= FEWEST_FOR_ELLIPSE:
        about += " An ellipse is one standard deviation over the seeds."
    return Figure("tradeoff", "Throughput against delay", about, panels, tuple(layout.names), layout.note)


def _scatter(facet: str, drawn: Sequence[tuple[int, str, pl.DataFrame]], y_label: str) -> Panel:
    """Draw a dot for each row of the lines of a panel, and the ellipse of each line."""
    series = []
    for place, name, rows in drawn:
        shown = rows.head(MOST_DOTS)
        x, y = shown["rtt_mean_ms"].to_list(), shown["throughput_bps"].to_list()
        series += [Series(name, place, *ring, loose=True) for ring in _ellipse(x, y)]
        series.append(Series(name, place, x, y, dots=True, loose=True))
    across, up = (_around([value for one in series for value in getattr(one, axis)]) for axis in ("x", "y"))
    title = panel_title("throughput against delay", facet)
    return Panel(facet, Axes(title, "mean round-trip time (ms)", y_label, across, up), tuple(series))


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Return a range with room beside all `values`, none of it below zero, in which small differences look small."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.12, high * 0.1) or 1.0
    return max(low - room, 0.0), high + room


def _ellipse(x: Sequence[float], y: Sequence[float]) -> list[tuple[list[float], list[float]]]:
    """Return the ellipse of one standard deviation around points; none for fewer than three, or for one place."""
    count = len(x)
    if count < FEWEST_FOR_ELLIPSE:
        return []
    mean_x, mean_y = math.fsum(x) / count, math.fsum(y) / count
    xx = math.fsum((a - mean_x) ** 2 for a in x) / (count - 1)
    yy = math.fsum((b - mean_y) ** 2 for b in y) / (count - 1)
    xy = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / (count - 1)
    if xx + yy == 0:
        return []
    # Cholesky's factor of the covariance maps the unit circle to the ellipse.
    a = math.sqrt(xx)
    b = xy / a if a > 0 else 0.0
    c = math.sqrt(max(yy - b * b, 0.0))
    turns = [2 * math.pi * i / ELLIPSE_POINTS for i in range(ELLIPSE_POINTS + 1)]
    return [
        (
            [mean_x + a * math.cos(turn) for turn in turns],
            [mean_y + b * math.cos(turn) + c * math.sin(turn) for turn in turns],
        )
    ]
