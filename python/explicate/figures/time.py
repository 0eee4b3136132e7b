"""Figures over time: rates of the flows apart, windows, delay, queues, utilisation, fairness; and the phase plot."""

from __future__ import annotations

import polars as pl

from explicate.charts import MOST_SERIES, Axes, Series, round_up
from explicate.figures.study import (
    MOST_BANDS,
    POINT,
    Figure,
    Layout,
    Panel,
    Study,
    binned,
    largest,
    over_time,
    panel_title,
    span_text,
)
from explicate.summary import busy_links, jain
from explicate.text import prefix

PHASE_STEPS = 2000
"""The most points of the phase plot's paths, all panels together: a long path would be the largest part of a page."""


FEEDBACK = {
    "load_factor": ("load factor", 1.0),
    "code": ("code of the load", 1.0),
    "rate_bps": ("rate for each flow (Mbit/s)", 1e6),
    "accelerated_share": ("share of accelerates", 1.0),
    "mark_probability": ("probability of a mark", 1.0),
    "classic_probability": ("probability in the queue beside L4S's", 1.0),
    "low_delay_ms": ("wait in the queue for L4S (ms)", 1.0),
    "classic_delay_ms": ("wait in the queue beside L4S's (ms)", 1.0),
}
"""What ports say or mark by: variables of ``[sampling]``'s word ``router``, each with a label and a scale."""
MARKED = "alpha"
"""The share of marked packets that senders see, of its word ``flow``."""


def _band(layout: Layout, of: str, runs: int = 2) -> str:
    return f" The band holds the middle 80 % of {of}." if len(layout.names) <= MOST_BANDS and runs > 1 else ""


def _rates(study: Study) -> tuple[str, pl.DataFrame]:
    for variable, name in (("throughput_bps", "Throughput"), ("goodput_bps", "Goodput")):
        frame = study.of_flows(variable)
        if not frame.is_empty():
            return name, frame
    return "Throughput", pl.DataFrame()


def _apart(study: Study, frame: pl.DataFrame, y_label: str, scale: float) -> tuple[tuple[Panel, ...], Layout, str]:
    """Draw each flow of the first run, or the groups if there are too many flows."""
    seen = set(frame["object"].to_list())
    flows = [name for name in study.results.flows["flow"].cast(pl.String).unique(maintain_order=True) if name in seen]
    if len(flows) > MOST_SERIES:
        layout = Layout.apart(study, "group", study.groups, "groups")
        return over_time(study, frame, layout, y_label, scale=scale), layout, (
            f"There are {len(flows)} flows: a line is the mean of a group." + _band(layout, "its flows in all runs")
        )  # fmt: skip
    number, seed = study.first_run
    layout = Layout.apart(study, "object", flows, "flows")
    panels = over_time(study, frame.filter(pl.col("run") == number), layout, y_label, scale=scale)
    return panels, layout, f"A line is a flow of the run with seed {seed}."


def throughput(study: Study) -> Figure | None:
    """Draw the throughput of the flows over time, apart, each point the mean of round trips."""
    name, frame = _rates(study)
    if frame.is_empty():
        return None
    spans = study.spans(frame)
    frame = binned(frame, spans)
    scale, letter = prefix(largest(frame["value"]))
    panels, layout, about = _apart(study, frame, f"{name.lower()} ({letter}bit/s)", scale)
    about += (
        f" Each point is the mean of {span_text(spans)}: whole round trips, as nearly as samples permit."
        + study.shading
    )
    title = f"{name} over time"
    return Figure("throughput", title, about, panels, tuple(layout.names), layout.note, layout.columns)


def cwnd(study: Study) -> Figure | None:
    """Draw the congestion windows over time."""
    frame = study.of_flows("cwnd")
    if frame.is_empty():
        return None
    panels, layout, about = _apart(study, frame, "window (segments)", 1.0)
    names, note = tuple(layout.names), layout.note
    return Figure("cwnd", "Congestion window over time", about + study.shading, panels, names, note, layout.columns)


def delay(study: Study) -> Figure | None:
    """Draw the round-trip time over time."""
    frame = study.of_flows("rtt_ms")
    if frame.is_empty():
        return None
    spans = study.spans(frame)
    layout = Layout.of(study, "group", study.groups, "groups")
    panels = over_time(study, binned(frame, spans), layout, "round-trip time (ms)")
    about = f"Mean of the flows' round-trip times in spans of {span_text(spans)}."
    about += _band(layout, "the flows in all runs") + study.shading
    names, note = tuple(layout.names), layout.note
    return Figure("delay", "Round-trip time over time", about, panels, names, note, layout.columns)


def _links(study: Study, frame: pl.DataFrame) -> list[str]:
    sampled = set(frame["object"].to_list())
    return [name for name in busy_links(study.results.links) if name in sampled] or sorted(sampled)


def queue(study: Study) -> Figure | None:
    """Draw the queue over time on the links that matter."""
    frame = study.samples("queue_packets")
    if frame.is_empty():
        return None
    layout = Layout.of(study, "object", _links(study, frame), "links")
    panels = over_time(study, frame, layout, "queue (packets)")
    about = "Packets waiting, without the one in service: the mean of all runs." + _band(layout, "the runs", study.runs)
    names, note = tuple(layout.names), layout.note
    return Figure("queue", "Queue over time", about + study.shading, panels, names, note, layout.columns)


def feedback(study: Study) -> Figure | None:
    """Draw what ports say to senders over time, and the share of marks that senders see: what was sampled of it."""
    links = study.results.links["link"].cast(pl.String).unique().to_list()
    parts = [
        (label, scale, frame)
        for variable, (label, scale) in FEEDBACK.items()
        if not (frame := study.samples(variable).filter(pl.col("object").is_in(links))).is_empty()
    ]
    busy = [name for name in busy_links(study.results.links) if any(name in one["object"] for *_, one in parts)]
    if busy:
        parts = [(label, scale, frame.filter(pl.col("object").is_in(busy))) for label, scale, frame in parts]
    seen = study.of_flows(MARKED).drop("object").rename({"group": "object"})
    if not seen.is_empty():
        parts.append(("share of marks that senders see", 1.0, seen))
    parts = [part for part in parts if not part[-1].is_empty()]
    if not parts:
        return None
    objects = dict.fromkeys(name for *_, frame in parts for name in frame["object"].to_list())
    layout = Layout.of(study, "object", list(objects), "links and groups")
    panels = tuple(
        Panel(panel_title(label, panel.caption), panel.axes, panel.series)
        for label, scale, frame in parts
        for panel in over_time(study, frame, layout, label, scale=scale)
        if panel.series
    )
    about = "What ports write into packets or mark by, and the share of marks that senders see: the mean of all runs."
    names, note = tuple(layout.names), layout.note
    return Figure("feedback", "Feedback over time", about + study.shading, panels, names, note, layout.columns)


def utilisation(study: Study) -> Figure | None:
    """Draw the utilisation over time of the links that matter."""
    frame = study.samples("utilisation")
    if frame.is_empty():
        return None
    frame = frame.with_columns(pl.col("value") * 100)
    spans = study.spans(frame)
    layout = Layout.of(study, "object", _links(study, frame), "links")
    frame = binned(frame.filter(pl.col("object").is_in(_links(study, frame))), spans)
    panels = over_time(study, frame, layout, "utilisation (%)", top=max(100.0, round_up(largest(frame["value"]) / 1.2)))
    about = f"Share of the link's capacity that was used in spans of {span_text(spans)}: the mean of all runs."
    about += _band(layout, "the runs", study.runs) + study.shading
    names, note = tuple(layout.names), layout.note
    return Figure("utilisation", "Utilisation over time", about, panels, names, note, layout.columns)


def fairness(study: Study) -> Figure | None:
    """Draw Jain's index of the flows' rates over time."""
    name, frame = _rates(study)
    if frame.is_empty() or frame["object"].n_unique() < 2:
        return None
    flows = study.results.flows
    endless = flows.filter(pl.col("size_bytes").is_null())["flow"].cast(pl.String).unique().to_list()
    which = "without end " if len(endless) > 1 else ""
    if which:
        frame = frame.filter(pl.col("object").is_in(endless))
    spans = study.spans(frame)
    keys = [*study.results.axes, POINT, "run", "time_s"]
    index = binned(frame, spans).group_by(keys, maintain_order=True).agg(jain("value").alias("value"), pl.len())
    index = index.filter(pl.col("value").is_not_null(), pl.col("len") > 1).with_columns(pl.lit("Jain").alias("all"))
    if index.is_empty():
        return None
    layout = Layout.of(study, "all", ["Jain"], "")
    panels = tuple(
        Panel("", panel.axes, panel.series) for panel in over_time(study, index, layout, "Jain's index", top=1.0)
    )
    about = (
        f"Jain's index of the {name.lower()} of the flows {which}that had started, in spans of "
        f"{span_text(spans)}: 1 if all are equal, 1/n if one of n has everything. The mean of all runs."
        + _band(layout, "the runs", study.runs)
        + study.shading
    )
    return Figure("fairness", "Fairness over time", about, panels, tuple(layout.names), layout.note, layout.columns)


def phase(study: Study) -> Figure | None:
    """Draw the rate of the second flow against that of the first: they approach the diagonal as they become fair."""
    name, frame = _rates(study)
    if frame.is_empty():
        return None
    number, seed = study.first_run
    flows = frame.filter(pl.col("run") == number)["object"].unique(maintain_order=True).to_list()[:2]
    if len(flows) < 2:
        return None
    least_s = study.end_s / max(PHASE_STEPS // frame[POINT].n_unique(), 100)
    spans = {name: max(span, least_s) for name, span in study.spans(frame).items()}
    own = binned(frame.filter(pl.col("run") == number, pl.col("object").is_in(flows)), spans)
    scale, letter = prefix(largest(own["value"]))
    wide = own.select(POINT, "time_s", "object", pl.col("value") / scale).pivot(
        "object", index=[POINT, "time_s"], values="value"
    )
    if not set(flows) <= set(wide.columns):
        return None
    wide = wide.drop_nulls().sort("time_s", maintain_order=True)
    top = round_up(largest(own["value"]) / scale)
    layout = Layout.apart(study, "all", ["trajectory", "equal rates"], "")
    panels = []
    for facet in layout.facets:
        rows = wide.filter(pl.col(POINT) == facet)
        axes = Axes(
            panel_title(f"{name.lower()} of two flows", facet),
            f"{flows[0]} ({letter}bit/s)",
            f"{flows[1]} ({letter}bit/s)",
            (0, top),
            (0, top),
        )
        path = Series("trajectory", 0, rows[flows[0]].to_list(), rows[flows[1]].to_list(), loose=True)
        panels.append(Panel(facet, axes, (path, Series("equal rates", 1, [0, top], [0, top], loose=True))))
    about = (
        f"{name} of {flows[1]} against that of {flows[0]}, run with seed {seed}, in spans of {span_text(spans)}: "
        "the path comes to the diagonal as the two become fair."
    )
    return Figure("phase", "Two flows against each other", about, tuple(panels), tuple(layout.names), layout.note)
