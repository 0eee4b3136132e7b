"""A static site of results: an index by paper, and one page for each experiment with its figure and verdicts.

The pages are self-contained: they open from a disk and need no network.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from explicate import engine
from explicate.charts import MOST_SERIES, Axes, Range, Series, line_chart, round_up, ticks
from explicate.figures import legend
from explicate.files import write_text
from explicate.report import script, style
from explicate.source import Source
from explicate_papers import multiverse, stacks
from explicate_papers.controls import KINDS
from explicate_papers.evidence import CAUSES, MET_SHOWN, decides, turns
from explicate_papers.freeze import ledger
from explicate_papers.judge import ENLARGED, Outcome, Verdict, explanations
from explicate_papers.looks import looks
from explicate_papers.plan import Choice, choices
from explicate_papers.register import PAPERS, Experiment, Paper, experiments
from explicate_papers.study import Case, Line, Panel
from explicate_papers.trials import broken_by
from explicate_papers.verdicts import COUNTED, MEANING, Word

STYLES = {Word.HOLDS: "holds", Word.FAILS: "fails"}
"""The style of a class on a page; all others have ``open``."""
BESIDE = 0.12
"""Distance between the points of two lines at the same place."""


Entry = Mapping[str, Any]
"""The records of an experiment's controls; see `trials`."""


def write(
    outcomes: Sequence[Outcome],
    folder: Path,
    controls: Mapping[str, Entry] | None = None,
    universes: Mapping[str, Entry] | None = None,
) -> None:
    """Write the site and ``verdicts.json`` to `folder`; raise OSError if that is not possible.

    `controls` has their records by experiment, `universes` the records of the multiverse by paper.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        downloads = _scenarios(outcome, folder)
        entry = (controls or {}).get(outcome.experiment.id, {})
        universe = (universes or {}).get(outcome.experiment.paper.letter, {})
        write_text(folder / f"{outcome.experiment.id}.html", _experiment(outcome, downloads, entry, universe))
    write_text(folder / "index.html", _index(outcomes, universes or {}))
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
    return Source.of(case.text).check(case.overrides())["resolved"]


# ------------------------------------------------------------------------------------------------- pages


def _index(outcomes: Sequence[Outcome], universes: Mapping[str, Entry]) -> str:
    every = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    effort = ", ".join(sorted({outcome.effort.name + _others(outcome) for outcome in outcomes}))
    lead = (
        '<p class="lead">Experiments of five papers on explicit congestion control, repeated in simulation. Each '
        "claim is compared with what came out, on two disjoint blocks of seeds; a claim that does not hold stays here, "
        f"with the evidence.</p>{_meaning()}"
        f'<p class="tally">{_tally(every)} · effort: {escape(effort)} · explicate {escape(engine.version())}</p>'
    )
    sections = []
    for paper in PAPERS.values():
        mine = [outcome for outcome in outcomes if outcome.experiment.paper is paper]
        if mine:
            sections.append(_paper(paper, mine, universes.get(paper.letter, {})))
    return _page("Five papers, figure by figure", "", lead, "\n".join(sections))


def _meaning() -> str:
    rows = "".join(f"<div><dt>{word.value}</dt><dd>{escape(MEANING[word])}</dd></div>" for word in Word)
    return f'<details><summary>What the verdicts mean</summary><dl class="meaning">{rows}</dl></details>'


def _paper(paper: Paper, outcomes: Sequence[Outcome], universe: Entry) -> str:
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    cards = "".join(_card(outcome) for outcome in outcomes)
    return (
        f'<section id="{paper.slug}"><h2>{escape(paper.title)}</h2>'
        f'<p class="about">{escape(paper.authors)} · <span class="tally">{_tally(verdicts)}</span></p>'
        f'<ul class="cards">{cards}</ul>{_universe(universe)}{_law(paper, universe)}</section>'
    )


def _universe(entry: Entry) -> str:
    """Show the claims that hold with each alternative of a paper's choices."""
    lines = list(multiverse.lines(entry)) if entry else []
    if not lines:
        return ""
    rows = [f'<tr><th scope="row">as chosen</th><td>{multiverse.held(entry["chosen"])}</td><td></td></tr>']
    for line in lines:
        number = line.held if line.whole else "–"
        rows.append(f'<tr><th scope="row">{escape(line.name)}</th><td>{number}</td><td>{escape(line.flips)}</td></tr>')
    head = "<thead><tr><th>Choice</th><th>Claims that hold</th><th>What differs</th></tr></thead>"
    return (
        "<details><summary>Other choices, one at a time (quick set, first block of seeds)</summary>"
        f'<div class="wrap scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div></details>'
    )


def _law(paper: Paper, entry: Entry) -> str:
    """Show the result of each claim for each value of the choice that has a separate table."""
    law = choices(paper).get(multiverse.LAW)
    if law is None or not entry:
        return ""
    head, *body = multiverse.by_claim(entry, law)
    titles = "".join(f"<th>{escape(text)}</th>" for text in head)
    rows = "".join(
        f'<tr><th scope="row">{escape(claim)}</th>{"".join(f"<td>{escape(word)}</td>" for word in words)}</tr>'
        for claim, *words in body
    )
    return (
        f"<details><summary>{escape(law.name[0].upper() + law.name[1:])} ({law.id}), claim by claim</summary>"
        f'<div class="wrap scroll"><table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _card(outcome: Outcome) -> str:
    one = outcome.experiment
    small = chart(outcome.panels[0])[0] if outcome.panels else ""
    return (
        f'<li><a href="{one.id}.html"><strong>{escape(one.title)}</strong>'
        f'<span class="id">{one.id}</span> <span class="tally">{_tally(outcome.verdicts)}</span>{small}</a></li>'
    )


def _experiment(outcome: Outcome, downloads: Sequence[tuple[str, str]], controls: Entry, universe: Entry) -> str:
    one = outcome.experiment
    facts = {
        "Source": one.figure,
        "Kind": one.kind,
        "Seeds": _seeds(outcome),
        "Simulated": _simulated(outcome),
        "Repeat": f"explicate reproduce {one.id}{_option(outcome.effort.name)}{_others(outcome)} -o papers",
    }
    lead = (
        f'<p class="lead">{escape(one.paper.authors)}: {escape(one.paper.title)}</p><dl class="facts">'
        + "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items() if text)
        + "</dl>"
    )
    parts = [_figure(outcome.panels, outcome.seed), _look(one), _predicates(outcome.verdicts, controls, universe)]
    parts += [_changes(one), _setup(outcome), stacks.as_html(outcome.stack, outcome.replaced)]
    parts += [choice_table(outcome), _downloads(downloads)]
    nav = f'<nav><a href="index.html#{one.paper.slug}">All experiments</a></nav>'
    return _page(f"{one.id}: {one.title}", nav, lead, "\n".join(filter(None, parts)))


def _seeds(outcome: Outcome) -> str:
    """Return the number of seeds of the cases, and of blocks."""
    if not outcome.cases:
        return ""
    counts = [outcome.count(case) for case in outcome.cases.values()]
    blocks = "" if outcome.blocks == 1 else f" in each of {outcome.blocks} blocks"
    text = f"{_between(counts)} a case{blocks}"
    if outcome.opened:
        text += f"; {ENLARGED} times the plan's, because of open claims: {', '.join(outcome.opened)}"
    return text


def _simulated(outcome: Outcome) -> str:
    """Return the simulated seconds of the cases."""
    checked = [Source.of(one.text).check(one.overrides()) for one in (outcome.cases or {}).values()]
    return f"{_between([one['duration_s'] for one in checked])} s" if checked else ""


def _between(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _option(effort: str) -> str:
    return "" if effort == "all" else f" --{effort}"


def _others(outcome: Outcome) -> str:
    """Return the options that change hosts and seeds."""
    hosts = f" --stack {outcome.stack}" if outcome.stack else ""
    return hosts + (f" --seed {outcome.seed}" if outcome.seed != 1 else "")


def _page(title: str, nav: str, lead: str, body: str) -> str:
    return Template(_asset("gallery.html")).substitute(
        title=escape(title),
        nav=nav,
        lead=lead,
        body=body,
        style=style() + _asset("gallery.css"),
        script=script(),
    )


def _asset(name: str) -> str:
    return resources.files("explicate_papers").joinpath("assets", name).read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------- parts


def _look(experiment: Experiment) -> str:
    """Show what a reader of the paper looks for in the figure, and whether it is there."""
    look = looks()[experiment.id]
    lacks = f"; lacking: {look.lacks}" if look.lacks else ""
    return (
        f'<p class="about">A reader of the paper looks for: {escape(look.sought)}. '
        f"Shown here: {look.shown}{escape(lacks)}.</p>"
    )


def _tally(verdicts: Sequence[Verdict]) -> str:
    counts = {word: sum(verdict.word is word for verdict in verdicts) for word in Word}
    return ", ".join(f"{number} {COUNTED[word]}" for word, number in counts.items() if number)


def _predicates(verdicts: Iterable[Verdict], controls: Entry, universe: Entry) -> str:
    items = []
    for verdict in verdicts:
        predicate = verdict.predicate
        facts = {
            "The sentence": predicate.statement,
            "What we measure": f"{predicate.criterion} (basis: {predicate.basis}; {_runs(verdict)})",
            "What decides it": decides(verdict.word, verdict.quantities),
            "What would turn it": "; ".join(_turns(verdict, controls, universe)) or "nothing on record",
        }
        note = f"<p>{escape(verdict.note)}</p>" if verdict.note and not verdict.instead else ""
        rows = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items() if text)
        items.append(
            f'<li id="{predicate.id}"><p><span class="verdict {STYLES.get(verdict.word, "open")}">'
            f'{verdict.word.value}</span> <span class="id">{predicate.id}</span></p><dl class="claim">{rows}</dl>'
            f"{_instead(verdict)}{_measured(verdict)}{note}{_trials(verdict, controls)}</li>"
        )
    return f'<section><h2>Claims</h2><ul class="predicates">{"".join(items)}</ul></section>'


def _turns(verdict: Verdict, controls: Entry, universe: Entry) -> Iterator[str]:
    claim = verdict.predicate.id
    first = "holds" if verdict.blocks and verdict.blocks[0].holds else "fails"
    yield from turns(claim, verdict.word, first, universe, broken_by(claim, controls))
    cause = explanations(PAPERS[claim.partition("-")[0]]).get(claim, {}).get("cause", "")
    if cause and verdict.word is not Word.HOLDS:
        yield f"likely cause: {CAUSES[cause]}"


def _runs(verdict: Verdict) -> str:
    return f"{'no seed changes it; ' if verdict.deterministic else ''}runs: {verdict.runs}"


def _instead(verdict: Verdict) -> str:
    """Show the criterion, and the statement that was judged instead."""
    if not verdict.instead:
        return ""
    rows = {"Criterion": verdict.predicate.criterion, "Judged instead, because": verdict.instead}
    for block in verdict.blocks:
        if block.holds is not None:
            rows[f"This gave, seeds from {block.first_seed}"] = "holds" if block.holds else "fails"
    cells = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in rows.items())
    return f'<dl class="beside">{cells}</dl>'


def _measured(verdict: Verdict) -> str:
    """Show what was compared, over the seeds of all blocks: what is not met first, the long rest folded."""
    words = [
        f"seeds from {block.first_seed}: {'holds' if block.holds else 'fails'}"
        for block in verdict.blocks
        if block.holds is not None
    ]
    if not words:
        return ""
    made = verdict.quantities
    first = [one for one in made if not one.met] + [one for one in made if one.met][:MET_SHOWN]
    rest = made[len(first) :]
    items = "".join(f"<li>{'' if one.met else '✗ '}{escape(one.text)}</li>" for one in first)
    more = "".join(f"<li>{escape(one.text)}</li>" for one in rest)
    folded = f"<details><summary>{len(rest)} more that are met</summary><ul>{more}</ul></details>" if rest else ""
    return f'<p class="about">{"; ".join(words).capitalize()}</p><ul>{items}</ul>{folded}'


def _trials(verdict: Verdict, controls: Entry) -> str:
    """Show the controls of a claim and their results."""
    rows = [
        f"<li><strong>{escape(trial['outcome'])}</strong> under control “{escape(name)}” ({KINDS[control['kind']]}): "
        f"{escape(control['why'].rstrip('.'))}. Measured: {escape(trial['why'])}</li>"
        for name, control in controls.get("controls", {}).items()
        for claim, trial in control["claims"].items()
        if claim == verdict.predicate.id
    ]
    return f'<ul class="controls">{"".join(rows)}</ul>' if rows else ""


def _changes(experiment: Experiment) -> str:
    """Show the changes after the judges were frozen."""
    mine = {experiment.id, *(predicate.id for predicate in experiment.predicates)}
    rows = "".join(
        f'<tr><th scope="row">{escape(one.id)}</th><td>{escape(one.reason)}</td><td>{escape(one.before)}</td>'
        f"<td>{escape(one.after)}</td></tr>"
        for one in ledger()
        if one.id in mine
    )
    if not rows:
        return ""
    head = "<thead><tr><th>What</th><th>Why</th><th>Verdict before</th><th>After</th></tr></thead>"
    return (
        '<section class="wrap"><h2>Changed after the judges were frozen</h2><div class="scroll"><table>'
        f"{head}<tbody>{rows}</tbody></table></div></section>"
    )


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
    return f'<section class="wrap"><h2>Experiment of the paper</h2><table><tbody>{lines}</tbody></table></section>'


def choice_table(outcome: Outcome) -> str:
    """Return the parameters that the paper leaves out and the values used, as HTML.

    These are the ones that the register names for the experiment, and the paper's choices that it does not name.
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


def _figure(panels: Sequence[Panel], seed: int) -> str:
    if not panels:
        return ""
    common = common_range(panels)
    drawn = [chart(panel, common if panel.compared else None) for panel in panels]
    shared = len({names for _, names in drawn}) == 1
    parts, alone = [], False
    for panel, (svg, names) in zip(panels, drawn, strict=True):
        alone = alone or _one_seed(panel)
        own = "" if shared or len(names) < 2 else legend(names, dots=_points(panel))
        title = panel.title
        if len(panel.lines) > MOST_SERIES:
            title += f" (the first {MOST_SERIES} of {len(panel.lines)})"
        parts.append(f'<div class="panel figure"><h3>{escape(title)}</h3>{own}{svg}</div>')
    above = legend(drawn[0][1], dots=_points(panels[0])) if shared and len(drawn[0][1]) > 1 else ""
    many = " many" if len(panels) > 1 else ""
    said = f'<p class="about">Time series show seed {seed} alone.</p>' if alone else ""
    return f'<section class="figure{many}">{above}<div class="panels">{"".join(parts)}</div>{said}</section>'


def _points(panel: Panel) -> set[int]:
    """Return the places of the lines that are points alone."""
    return {place for place, line in enumerate(panel.lines) if line.points or panel.names}


def _one_seed(panel: Panel) -> bool:
    """Whether a panel shows the first seed alone: over time or packets, no interval, no other seed."""
    over_time = panel.x_label.startswith(("time", "packet"))
    return over_time and "seed" not in panel.title and not any(line.low for line in panel.lines)


def chart(panel: Panel, y: Range | None = None) -> tuple[str, tuple[str, ...]]:
    """Return a panel as SVG, and the names of its lines; `y` is its vertical axis, if others have the same."""
    y = y or _vertical(panel)
    # Points of a paper's numbers have error bars without width, which determine their size.
    lines = [
        replace(one, low=one.low or one.y, high=one.high or one.y) if one.points else one
        for one in list(panel.lines)[:MOST_SERIES]
    ]
    if panel.names:
        # Side by side, so that no point hides another.
        shift = [BESIDE * (place - (len(lines) - 1) / 2) for place in range(len(lines))]
        lines = [replace(one, x=[x + by for x in one.x]) for one, by in zip(lines, shift, strict=True)]
    if panel.zero is not None:
        lines = [replace(one, x=[x or panel.zero for x in one.x]) for one in lines]
    if "y" in panel.log:
        lines = [_above_zero(one, y[0]) for one in lines]
    series = [
        Series(one.name, place, one.x, one.y, one.low, one.high, dots=bool(panel.names) or one.points)
        for place, one in enumerate(lines)
    ]
    xs = [value for one in lines for value in one.x]
    x = (0.5, len(panel.names) + 0.5) if panel.names else _range(xs, "x" in panel.log, _beginning(xs))
    axes = Axes(panel.title, panel.x_label, panel.y_label, x, y, log=panel.log, x_names=panel.names)
    named = [] if panel.zero is None else [(panel.zero, "0"), *_decades(panel.zero, x[1])]
    return line_chart(axes, series, names=named), tuple(one.name for one in lines)


def common_range(panels: Sequence[Panel]) -> Range | None:
    """Return the vertical axis of the panels that are compared; None if there are none."""
    ranges = [_vertical(panel) for panel in panels if panel.compared]
    return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None


def _vertical(panel: Panel) -> Range:
    values = [value for one in list(panel.lines)[:MOST_SERIES] for value in (*one.y, *one.high)]
    return _range(values, "y" in panel.log, panel.y_from)


def _above_zero(line: Line, least: float) -> Line:
    """Return a line for a logarithmic axis: values of 0 are left out with their bands, which end at the axis."""

    def above(values: Sequence[float]) -> list[float]:
        return [max(value, least) if mean > 0 else math.nan for value, mean in zip(values, line.y, strict=False)]

    return replace(line, y=above(line.y), low=above(line.low), high=above(line.high))


def _decades(zero: float, most: float) -> list[tuple[float, str]]:
    """Return the powers of ten between the place of 0, which it does not touch, and `most`, with their labels."""
    first, last = math.floor(math.log10(zero)) + 1, math.floor(math.log10(most) + 1e-9)
    return [(10.0**power, f"{10.0**power:g}") for power in range(first, last + 1)]


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
