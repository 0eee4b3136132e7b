"""One self-contained HTML page from a set of results: it opens from a disk, prints, and needs no network or script."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import polars as pl

from explicate import figures
from explicate.charts import bar_chart, line_chart
from explicate.display import group_cells
from explicate.figures import POINT, Figure, Panel, Study, label_points, legend
from explicate.figures.study import BAR
from explicate.figures.sweep import axis_label
from explicate.files import write_text
from explicate.lab import VARIANT
from explicate.results import Results
from explicate.summary import busy_links
from explicate.text import amount, number, percent

MOST_LINK_ROWS = 24
MOST_LETTERS = 48
"""Of all names side by side below the bars of a chart."""


def write_report(results: Results | str | Path, path: str | Path) -> Path:
    """Write the page about `results`, or about a result directory, to `path`, and return that.

    Raise OSError or ValueError if the results cannot be read or the page cannot be written.
    """
    loaded = results if isinstance(results, Results) else Results.load(results)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, page(loaded))
    return target


def page(results: Results, before: str = "") -> str:
    """Return the whole page, its tables after the HTML `before` them; the same results give the same page."""
    study = Study.of(results)
    made = {name: figure(study) for name, figure in figures.ALL.items()}
    drawn = [figure for figure in made.values() if figure is not None]
    sections = "\n".join(map(figure_html, drawn))
    return Template(_asset("report.html")).substitute(
        title=escape(results.name),
        style=style(),
        script=script(),
        facts=_facts(results),
        warnings=_warnings(results.warnings) + undrawn(),
        before=before,
        groups=_groups(results),
        links=_links(results),
        contents=_contents(drawn),
        missing=_missing([name for name in figures.WANTED if made[name] is None]),
        figures=sections,
        scenario=_scenario(results),
    )


def style() -> str:
    """Return the style sheet of pages with charts."""
    return _library("uPlot.min.css") + _asset("charts.css") + _asset("report.css")


def script() -> str:
    """Return the script of pages with charts."""
    licence = _library("LICENSE").strip()
    if not licence:
        return _asset("charts.js") + _asset("report.js")
    # Paper has at least twice the resolution of most screens, so uPlot must not draw for fewer pixels.
    sharp = "const uPlot = ((devicePixelRatio) => {\n%s\nreturn uPlot;\n})(Math.max(2, devicePixelRatio));\n"
    return f"/*! {licence} */\n{sharp % _library('uPlot.iife.min.js')}{_asset('charts.js')}{_asset('report.js')}"


def undrawn() -> str:
    """Return the page's text for charts that cannot be drawn: without scripts, or in a package without uPlot."""
    if not _library("uPlot.iife.min.js"):
        return '<p class="notice">There are no charts: this package was built without uPlot (scripts/fetch_uplot).</p>'
    return '<p class="notice undrawn">Charts need scripts, which are off; the tables do not.</p>'


def _library(name: str) -> str:
    """Return a file of uPlot; nothing if the package was built without it."""
    found = resources.files("explicate").joinpath("assets", "uplot", name)
    return found.read_text(encoding="utf-8") if found.is_file() else ""


def _asset(name: str) -> str:
    return resources.files("explicate").joinpath("assets", name).read_text(encoding="utf-8")


def _facts(results: Results) -> str:
    seeds = results.run["seed"].unique(maintain_order=True).to_list()
    facts = {
        "Runs": str(results.run.height),
        "Seeds": ", ".join(map(str, seeds[:6])) + (" …" if len(seeds) > 6 else ""),
        "Flows": str(results.flows.select("flow").n_unique()),
        "Links": str(results.links.select("link").n_unique()),
        "explicate": results.version,
    }
    if results.axes:
        facts = {**_varied(results), **facts}
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())


def _varied(results: Results) -> dict[str, str]:
    """Return what differs between the points: the protocols of a comparison, or the axes of a sweep."""
    points = results.points()
    if results.axes == (VARIANT,):
        return {"Compared": ", ".join(str(point[VARIANT]) for point in points)}
    return {"Varied": ", ".join(results.axes), "Points": str(len(points))}


def _warnings(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    # Without the lines of the scenario below it.
    items = "".join(f"<li>{escape(warning.splitlines()[0])}</li>" for warning in warnings)
    return f'<section class="notice" aria-label="warnings"><h2>Warnings</h2><ul>{items}</ul></section>'


def _missing(names: Sequence[str]) -> str:
    if not names:
        return ""
    listed = ", ".join(f'"{name}"' for name in names)
    lines = escape(f'[sampling]\nevery = "100ms"\nof = [{listed}]', quote=False)
    what = "figure needs a variable that was" if len(names) == 1 else "figures need variables that were"
    return (
        f'<section class="notice" id="missing"><h2>Missing samples</h2><p>{len(names)} {what} not sampled. Put this '
        f"into the scenario (or add it to the list there) and run it again:</p><pre>{lines}</pre></section>"
    )


def table_html(
    key: str, caption: str, head: Sequence[tuple[str, str]], body: Sequence[Sequence[str]], left: int
) -> str:
    """Return a table below its caption; `head` has names and units, `left` columns are words, the others numbers."""
    cells = "".join(
        f'<th scope="col"{"" if i < left else " class=n"}>{escape(name)}'
        + (f" <small>{escape(unit)}</small>" if unit else "")
        + "</th>"
        for i, (name, unit) in enumerate(head)
    )
    lines = []
    for line in body:
        words = "".join(f'<th scope="row">{escape(cell)}</th>' for cell in line[:left])
        lines.append(f"<tr>{words}" + "".join(f'<td class="n">{escape(cell)}</td>' for cell in line[left:]) + "</tr>")
    return (
        f'<h2 id="{key}-title">{escape(caption)}</h2>'
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{key}-title">'
        f'<table id="{key}" aria-labelledby="{key}-title"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _groups(results: Results) -> str:
    body, margins, done = group_cells(results)
    head = [(axis_label(axis), "") for axis in results.axes]
    head += [("group", ""), ("protocol", ""), ("flows", ""), ("goodput", "mean")]
    head += [("± 95 %", "of the mean")] if margins else []
    head += [("Jain index", ""), ("retransmits", "packets"), ("timeouts", "")]
    head += [("RTT", "mean ms")] + ([("completion", "mean s")] if done else [])
    same = results.sameness()
    caption = "Flow groups: means per flow and sums per run, over all runs"
    return table_html("groups", caption, head, body, len(results.axes) + 2) + (f"<p>{escape(same)}</p>" if same else "")


def _links(results: Results) -> str:
    names = busy_links(results.links)
    rank = {name: i for i, name in enumerate(names)}
    places = {tuple(point.values()): i for i, point in enumerate(results.points())}
    rows = [row for row in results.link_summary().to_dicts() if row["link"] in rank]
    rows.sort(key=lambda row: (rank[row["link"]], places[tuple(row[axis] for axis in results.axes)]))
    head = [("link", ""), *((axis_label(axis), "") for axis in results.axes), ("utilisation", "")]
    head += [("queue mean", "packets"), ("queue p95", "packets"), ("queue max", "packets"), ("queue mean", "ms")]
    head += [("overflow", "drops"), ("early", "drops"), ("channel", "drops"), ("marks", "")]
    body = [
        [
            str(row["link"]),
            *(str(row[axis]) for axis in results.axes),
            percent(row["utilisation"]),
            *(amount(row[f"queue_{name}"]) for name in ("mean_packets", "p95_packets", "max_packets", "mean_ms")),
            *(number(row[name]) for name in ("drops_overflow", "drops_early", "drops_channel", "marks")),
        ]
        for row in rows[:MOST_LINK_ROWS]
    ]
    more = len(rows) - len(body)
    note = f"<p>{more} more lines are in the table of links (links.parquet).</p>" if more > 0 else ""
    caption = "Links with a queue, drops or marks: means over all runs"
    return table_html("links", caption, head, body, len(results.axes) + 1) + note


def figure_html(figure: Figure) -> str:
    """Return one figure with its heading, explanation, legend and charts."""
    note = f'<p class="about">{escape(figure.note)}</p>' if figure.note else ""
    charts = "".join(f'<div class="panel">{panel_html(panel, figure.columns)}</div>' for panel in figure.panels)
    many = " many" if len(figure.panels) > 1 else ""
    many += " four" if len(figure.panels) in {2, 4} else ""
    many += " lots" if len(figure.panels) > 4 else ""
    return (
        f'<section class="figure{many}" id="{figure.key}"><h2>{escape(figure.title)}</h2>'
        f'<p class="about">{escape(figure.about)}</p>{_legend(figure)}'
        f'<div class="panels">{charts}</div>{note}</section>'
    )


def panel_html(panel: Panel, columns: int) -> str:
    """Return one chart with its caption."""
    caption = f"<h3>{escape(panel.caption)}</h3>" if panel.caption else ""
    if panel.bars:
        names, listed = _names_below(panel.names)
        return caption + bar_chart(panel.axes, panel.bars, names) + listed
    return caption + line_chart(panel.axes, panel.series, columns)


def _names_below(names: Sequence[tuple[float, str]]) -> tuple[Sequence[tuple[float, str]], str]:
    """Return the names of places below a chart; numbers and a list where they do not fit."""
    if sum(len(name) for _, name in names) <= MOST_LETTERS:
        return names, ""
    items = "".join(f"<li>{escape(name)}</li>" for _, name in names)
    return [(at, str(i)) for i, (at, _) in enumerate(names, 1)], f'<ol class="names">{items}</ol>'


def _legend(figure: Figure) -> str:
    if not figure.names:
        return ""
    if any(panel.bars for panel in figure.panels):
        return legend(figure.names, BAR)
    dots = {one.place for panel in figure.panels for one in panel.series if one.dots}
    return legend(figure.names, dots=dots)


def _contents(drawn: Sequence[Figure]) -> str:
    links = [("groups", "Flow groups"), ("links", "Links"), *((one.key, one.title) for one in drawn)]
    items = "".join(
        f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in [*links, ("scenario", "Scenario")]
    )
    return f'<nav class="contents" aria-label="contents"><ol>{items}</ol></nav>'


def _scenario(results: Results) -> str:
    """Return the first run's scenario in full, and for every other point the differences from it."""
    firsts = label_points(results.run, results.axes).unique(POINT, keep="first", maintain_order=True)
    text, point = results.scenario, str(firsts[POINT][0])
    what = f"The scenario as it was run{f' with {escape(point)}' if point else ''}, all defaults filled in"
    parts = [
        f'<details><summary>{what}</summary><div class="code">'
        '<button type="button" class="copy" hidden>Copy</button>'
        f'<pre id="scenario-text" tabindex="0">{escape(text, quote=False)}</pre></div></details>'
    ]
    for other, other_text in firsts.select(POINT, pl.col("scenario")).rows()[1:]:
        delta = "\n".join(
            difflib.unified_diff(text.splitlines(), other_text.splitlines(), point, other, lineterm="", n=1)
        )
        parts.append(
            f"<details><summary>What differs with {escape(other)}</summary>"
            f'<pre tabindex="0">{escape(delta, quote=False) or "nothing"}</pre></details>'
        )
    return "".join(parts)
