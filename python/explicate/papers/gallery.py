"""A static site about outcomes: an index by paper, and one page for each experiment with its figure and verdicts.

Everything stands in the pages themselves; they open from a disk and need no network.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from explicate import engine
from explicate.charts import MOST_SERIES, Axes, Range, Series, line_chart, round_up, ticks
from explicate.figures import legend
from explicate.papers.judge import Outcome, Verdict
from explicate.papers.plan import Choice, choices
from explicate.papers.register import PAPERS, Paper, experiments
from explicate.papers.study import Case, Panel
from explicate.report import style
from explicate.results import write_text
from explicate.source import Source, overrides_of

WORDS = {True: ("holds", "holds"), False: ("fails", "fails"), None: ("not judged", "open")}
BESIDE = 0.12
"""How far apart the points of two lines stand that have the same place."""


def write(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Write the site and ``verdicts.json`` to `folder`; raise OSError if that is not possible."""
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        downloads = _scenarios(outcome, folder)
        write_text(folder / f"{outcome.experiment.id}.html", _experiment(outcome, downloads))
    write_text(folder / "index.html", _index(outcomes))
    rows = [verdict.row() for outcome in outcomes for verdict in outcome.verdicts]
    write_text(folder / "verdicts.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def _scenarios(outcome: Outcome, folder: Path) -> list[tuple[str, str]]:
    """Write each case's scenario, resolved; return names and labels."""
    made = []
    for label, case in (outcome.cases or {}).items():
        shown = " ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        name = "scenarios/" + re.sub(r"[^A-Za-z0-9.%_-]+", "-", f"{outcome.experiment.id}-{shown}") + ".toml"
        (folder / "scenarios").mkdir(exist_ok=True)
        write_text(folder / name, _resolved(case))
        made.append((name, shown))
    return made


def _resolved(case: Case) -> str:
    return Source.of(case.text).check(overrides_of(case.settings))["resolved"]


# ------------------------------------------------------------------------------------------------- pages


def _index(outcomes: Sequence[Outcome]) -> str:
    every = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    effort = ", ".join(sorted({outcome.effort.name for outcome in outcomes}))
    lead = (
        '<p class="lead">Experiments of five papers on explicit congestion control, repeated in simulation. Each '
        "claim is compared with what came out; a claim that does not hold stays here, with the evidence.</p>"
        f'<p class="tally">{_tally(every)} · effort: {escape(effort)} · explicate {escape(engine.version())}</p>'
    )
    sections = []
    for paper in PAPERS.values():
        mine = [outcome for outcome in outcomes if outcome.experiment.paper is paper]
        if mine:
            sections.append(_paper(paper, mine))
    return _page("Five papers, figure by figure", "", lead, "\n".join(sections))


def _paper(paper: Paper, outcomes: Sequence[Outcome]) -> str:
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    cards = "".join(_card(outcome) for outcome in outcomes)
    return (
        f'<section id="{paper.folder}"><h2>{escape(paper.title)}</h2>'
        f'<p class="about">{escape(paper.authors)} · <span class="tally">{_tally(verdicts)}</span></p>'
        f'<ul class="cards">{cards}</ul></section>'
    )


def _card(outcome: Outcome) -> str:
    one = outcome.experiment
    small = chart(outcome.panels[0])[0] if outcome.panels else ""
    return (
        f'<li><a href="{one.id}.html"><strong>{escape(one.title)}</strong>'
        f'<span class="id">{one.id}</span> <span class="tally">{_tally(outcome.verdicts)}</span>{small}</a></li>'
    )


def _experiment(outcome: Outcome, downloads: Sequence[tuple[str, str]]) -> str:
    one = outcome.experiment
    facts = {
        "Source": one.figure,
        "Kind": one.kind,
        "Seeds": str(outcome.effort.seeds) if outcome.cases else "",
        "Simulated": f"{outcome.effort.seconds:g} s" if outcome.cases else "",
        "Repeat": f"explicate reproduce {one.id}{_option(outcome.effort.name)} -o papers",
    }
    lead = (
        f'<p class="lead">{escape(one.paper.authors)}: {escape(one.paper.title)}</p><dl class="facts">'
        + "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items() if text)
        + "</dl>"
    )
    parts = [_figure(outcome.panels), _predicates(outcome.verdicts), _setup(outcome), choice_table(outcome)]
    parts.append(_downloads(downloads))
    nav = f'<nav><a href="index.html#{one.paper.folder}">All experiments</a></nav>'
    return _page(f"{one.id}: {one.title}", nav, lead, "\n".join(filter(None, parts)))


def _option(effort: str) -> str:
    return "" if effort == "all" else f" --{effort}"


def _page(title: str, nav: str, lead: str, body: str) -> str:
    return Template(_asset("gallery.html")).substitute(
        title=escape(title),
        nav=nav,
        lead=lead,
        body=body,
        style=style() + _asset("gallery.css"),
        script=_asset("report.js"),
    )


def _asset(name: str) -> str:
    return resources.files("explicate").joinpath("assets", name).read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------- parts


def _tally(verdicts: Sequence[Verdict]) -> str:
    counts = {kind: sum(verdict.holds is kind for verdict in verdicts) for kind in WORDS}
    texts = {True: "hold", False: "fail", None: "not judged"}
    return ", ".join(f"{counts[kind]} {texts[kind]}" for kind in WORDS if counts[kind])


def _predicates(verdicts: Iterable[Verdict]) -> str:
    items = []
    for verdict in verdicts:
        word, style = WORDS[verdict.holds]
        checks = "".join(f"<li>{'' if check.holds else '✗ '}{escape(str(check))}</li>" for check in verdict.checks)
        note = f"<p>{escape(verdict.note)}</p>" if verdict.note else ""
        items.append(
            f'<li id="{verdict.predicate.id}"><p><span class="verdict {style}">{word}</span> '
            f'{escape(verdict.predicate.statement)} <span class="id">{verdict.predicate.id}</span></p>'
            f'<p class="about">Criterion: {escape(verdict.predicate.criterion)} '
            f"(basis: {escape(verdict.predicate.basis)}; runs: {verdict.runs})</p>"
            f"{f'<ul>{checks}</ul>' if checks else ''}{note}</li>"
        )
    return f'<section><h2>Claims</h2><ul class="predicates">{"".join(items)}</ul></section>'


def _setup(outcome: Outcome) -> str:
    one = outcome.experiment
    rows = {
        "Topology": one.topology,
        "Protocols": one.protocols,
        "Workload": one.workload,
        "Sweep": one.sweep,
        "Duration": one.duration,
        "Stated in the text": "; ".join(one.stated_numbers),
        "Notes": one.notes,
    }
    lines = "".join(
        f'<tr><th scope="row">{name}</th><td>{escape(text)}</td></tr>' for name, text in rows.items() if text
    )
    return f'<section class="wrap"><h2>What the paper did</h2><table><tbody>{lines}</tbody></table></section>'


def choice_table(outcome: Outcome) -> str:
    """Return what the paper leaves out and what is used instead, as HTML.

    It is what the register names for the experiment, and the paper's choices that the register names nowhere.
    """
    known, used = choices(outcome.experiment.paper), outcome.effort.choices
    rows = []
    for missing in outcome.experiment.not_given:
        if missing.param_id not in known:
            rows.append(_choice_row(missing.name, missing.param_id, missing.suggestion, missing.reason))
        else:
            rows.append(_choice_row(missing.name, *_chosen(known[missing.param_id], used)))
    registered = {missing.param_id for one in experiments().values() for missing in one.not_given}
    rows += [_choice_row(choice.name, *_chosen(choice, used)) for key, choice in known.items() if key not in registered]
    if not rows:
        return ""
    head = "<thead><tr><th>Not given</th><th>Used instead</th><th>Why</th></tr></thead>"
    return (
        f'<section class="wrap"><h2>What the paper leaves out</h2><div class="scroll"><table>{head}'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _chosen(choice: Choice, used: Mapping[str, str]) -> tuple[str, str, str]:
    also = f" (or: {', '.join(choice.others)})" if choice.others else ""
    return choice.id, used[choice.id] + also, choice.why


def _choice_row(name: str, key: str, used: str, why: str) -> str:
    return (
        f'<tr><th scope="row">{escape(name)} <span class="id">{escape(key)}</span></th>'
        f"<td>{escape(used)}</td><td>{escape(why)}</td></tr>"
    )


def _downloads(downloads: Sequence[tuple[str, str]]) -> str:
    if not downloads:
        return ""
    items = "".join(f'<li><a href="{escape(name)}" download>{escape(shown)}</a></li>' for name, shown in downloads)
    return (
        f"<section><details><summary>Scenarios ({len(downloads)}), ready for <code>explicate run</code></summary>"
        f"<ul>{items}</ul></details></section>"
    )


# ------------------------------------------------------------------------------------------------ figures


def _figure(panels: Sequence[Panel]) -> str:
    if not panels:
        return ""
    drawn = [chart(panel) for panel in panels]
    shared = len({names for _, names in drawn}) == 1
    parts = []
    for panel, (svg, names) in zip(panels, drawn, strict=True):
        own = "" if shared or len(names) < 2 else legend(names)
        title = panel.title
        if len(panel.lines) > MOST_SERIES:
            title += f" (the first {MOST_SERIES} of {len(panel.lines)})"
        parts.append(f'<div class="panel figure"><h3>{escape(title)}</h3>{own}{svg}</div>')
    above = legend(drawn[0][1]) if shared and len(drawn[0][1]) > 1 else ""
    many = " many" if len(panels) > 1 else ""
    return f'<section class="figure{many}">{above}<div class="panels">{"".join(parts)}</div></section>'


def chart(panel: Panel) -> tuple[str, tuple[str, ...]]:
    """Return a panel as SVG, and the names of its lines."""
    lines = list(panel.lines)[:MOST_SERIES]
    if panel.names:
        # Side by side, so that none hides another.
        shift = [BESIDE * (place - (len(lines) - 1) / 2) for place in range(len(lines))]
        lines = [replace(one, x=[x + by for x in one.x]) for one, by in zip(lines, shift, strict=True)]
    series = [
        Series(one.name, place, one.x, one.y, one.low, one.high, dots=bool(panel.names) or one.points)
        for place, one in enumerate(lines)
    ]
    xs = [value for one in lines for value in one.x]
    x = (0.5, len(panel.names) + 0.5) if panel.names else _range(xs, "x" in panel.log, _beginning(xs))
    y = _range([value for one in lines for value in (*one.y, *one.high)], "y" in panel.log, panel.y_from)
    axes = Axes(panel.title, panel.x_label, panel.y_label, x, y, log=panel.log, x_names=panel.names)
    return line_chart(axes, series), tuple(one.name for one in lines)


def _beginning(values: Sequence[float]) -> float:
    """Where a horizontal axis begins: at 0 unless that leaves half of it empty."""
    finite = [value for value in values if math.isfinite(value)]
    return min(finite) if finite and min(finite) >= max(finite) / 2 else 0.0


def _range(values: Sequence[float], log: bool, begin: float = 0.0) -> Range:
    finite = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if not finite:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(finite), max(finite)
    if log:
        return (low, high) if high > low else (low / 2, low * 2)
    bottom = begin
    if low < begin:
        steps = ticks(low, max(high, begin))
        bottom = min(low, steps[0])
    return bottom, round_up(high) if high > 0 else 0.0
