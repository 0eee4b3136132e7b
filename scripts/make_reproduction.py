"""Make docs/reproduction.md and docs/reproduction-figures.md from what is on record.

Verdicts, controls and measured values are in tests/papers.json, other choices in tests/multiverse.json. With DIR, the
results of `explicate reproduce all --quick --controls -o DIR` are recorded first; verdicts of enlarged experiments
apart, because `papers_record.py` repeats experiments without enlargement.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from explicate_papers import multiverse
from explicate_papers.evidence import CAUSES, listed, turns
from explicate_papers.freeze import frozen, ledger
from explicate_papers.judge import ENLARGED, explanations
from explicate_papers.looks import SHOWN, looks
from explicate_papers.plan import choices, studies
from explicate_papers.register import JUDGED, PAPERS, Experiment, Predicate, experiments, predicates
from explicate_papers.trials import FLIPPED, broken_by, flipped, outcomes
from explicate_papers.verdicts import MEANING, Word

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reproduction.md"
FIGURES = ROOT / "docs" / "reproduction-figures.md"
RECORD = ROOT / "tests" / "papers.json"
UNIVERSES = ROOT / "tests" / "multiverse.json"
LINUX = ROOT / "tests" / "papers-linux.json"
EFFORT = "quick"
HEAD = """\
# The papers, figure by figure

<!-- Made by `scripts/make_reproduction.py`. -->

`explicate reproduce all --quick --controls -o papers` repeats every experiment of the five papers and judges
each claim; `papers/index.html` shows plots, measured values and scenarios. This page counts the verdicts and explains
those that are not "holds".

A criterion was written down for each claim before its experiment was run. It is judged on the mean over seeds, an
ordering also on 80 % of them, and on two disjoint blocks of seeds. Judges, plans, controls and choices were frozen
before the first runs; [every change since then](reproduction-changes.md) is listed with its reason.
[Criteria and sentences](reproduction-criteria.md) says what is the paper's and what is ours in a criterion, and
[why claims do not hold](reproduction-causes.md) has a cause for each, by two readers.

Each claim that does not hold has a paragraph with these parts:

- *What decides it*: measured values, with 95 % intervals and the bounds that the criterion asks for. ✗ marks those that
  are not met.
- *What would turn it*: single choices with which the verdict on the first block of seeds is another one, and controls
  under which the claim fails.
- *tried*: settings and what was measured with them. "Used" means the choices as they are, two figures joined by "and"
  are those of the two blocks of seeds, and "0.1" marks figures of that release, whose choices and engine differed.
- *Likely cause*: in our words.
"""
READERS = """\
# What a reader looks for in each figure

<!-- Made by `scripts/make_reproduction.py` from `papers/explicate_papers/looks.toml`. -->

The papers' figures are not known here, only what the texts say of them. For each experiment these tables say what a
reader who lays our figure beside the paper's would look for, and whether our figure shows it. *Yes*: what the text says
of the figure can be checked in ours by eye, whether it then turns out to be so or not. *Partly*: the last column has
what cannot be checked.

Of {number} experiments {said}. `explicate reproduce NAME --quick -o out`
draws the figure of an experiment; [The papers, figure by figure](reproduction.md) has the verdicts.
"""

Row = dict[str, Any]
Controls = Mapping[str, Mapping[str, Any]]
Universes = Mapping[str, Mapping[str, Any]]


def table(head: Sequence[str], body: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for line in (head, ["---"] * len(head), *body):
        yield "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |"


def letter_of(row: Row) -> str:
    """Return the letter of a claim's paper."""
    return experiments()[row["experiment"]].paper.letter


def of_classes(rows: Sequence[Row], word: Word) -> list[Row]:
    """Return the claims of a class."""
    return [row for row in rows if row["verdict"] == word]


def holding(letter: str, words: Mapping[str, str], controls: Controls, universes: Universes) -> Iterator[str]:
    """Yield the table of a paper's claims that hold: the sentence, what is measured, what would turn it."""
    body = [
        [key, plain(one.statement), plain(one.criterion), "; ".join(_turned(key, home, controls, universes))]
        for key, (home, one) in judged().items()
        if words.get(key) == Word.HOLDS and key.startswith(f"{letter}-")
    ]
    if body:
        yield "### Claims that hold\n"
        yield "Their measured values, and which is nearest to its bound, are on the pages that the command makes.\n"
        yield from table(["claim", "the sentence", "what we measure", "what would turn it"], body)
        yield ""


def _turned(claim: str, home: str, controls: Controls, universes: Universes) -> Iterator[str]:
    universe = universes.get(claim.partition("-")[0], {})
    return turns(claim, Word.HOLDS, Word.HOLDS, universe, broken_by(claim, controls.get(home, {})))


def plain(text: str) -> str:
    """Return a text without what Markdown would take for its own."""
    return re.sub(r"([*<])", r"\\\1", text)


def joined(words: list[str]) -> str:
    """``I``, ``I and Y``, ``I, Y and K``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def said_of_span(universes: Universes, number: int) -> Iterator[str]:
    """Yield how many claims hold over all single changes on record, of `number` in all."""
    span = multiverse.span(universes)
    if span:
        papers = f"paper{'s' * (len(universes) > 1)} {joined(list(universes))}"
        whose = "" if span.alternatives == number else f" of the claims of {papers}"
        rest = "" if span.alternatives == number else "; the other alternatives have not been run yet"
        yield (
            f"Between {span.least} and {span.most}{whose} hold over all single changes of choices, {span.chosen} with "
            f"the choices used ({span.alternatives} of {number} alternatives, each on the first block of seeds of the "
            f"quick set{rest}). All these runs, those with the choices used among them, were made before the papers' "
            "hosts had ns-2's timer and senders did what the authors' agents do; some values in use were alternatives "
            "then, and the other way round."
        )


def headline(rows: Sequence[Row], controls: Controls, universes: Universes) -> Iterator[str]:
    """Yield the result in one paragraph; its counts add up to the number of the authors' claims."""
    claims = [row for row in rows if row["basis"] in JUDGED]
    shown = flipped(controls)
    holding = of_classes(claims, Word.HOLDS)
    proven = [row for row in holding if row["predicate"] in shown]
    parts = [f"{len(proven)} of {len(claims)} claims hold on two blocks of seeds with a control that fails"]
    tried = {claim for claim, _, _ in outcomes(controls)}
    waiting = [row for row in holding if row["predicate"] not in tried]
    if waiting:
        parts.append(f"{len(waiting)} hold, and their controls have not been run yet")
    if bare := len(holding) - len(proven) - len(waiting):
        parts.append(f"{bare} {'holds' if bare == 1 else 'hold'} without such a control")
    parts += [
        f"{len(of_classes(claims, Word.DEPENDS))} depend on seeds",
        f"{len(of_classes(claims, Word.CANNOT_FAIL))} cannot fail",
        f"{len(of_classes(claims, Word.UNDECIDED))} are undecided",
        f"{len(of_classes(claims, Word.FAILS))} fail",
        f"{len(of_classes(claims, Word.NOT_JUDGED))} are not judged as they are written",
    ]
    yield f"**{'; '.join(parts)}.**"
    yield from said_of_exchanges({row["predicate"] for row in proven}, controls)
    known = [choice for paper in PAPERS.values() for choice in choices(paper).values()]
    number = sum(len(choice.others) for choice in known)
    yield from said_of_span(universes, number)
    yield (
        f"\nThe papers leave out settings that results depend on: {len(known)} choices were made, each once for all of "
        f"a paper's figures, with {number} alternatives. While this reproduction was built, alternatives were also "
        "compared by how many claims hold with them; the reason beside a choice says so where this determined it. "
        "Therefore the count above is not a blind test of the papers. The tables of alternatives show the effect of "
        "other choices."
    )


def said_of_exchanges(proven: Collection[str], controls: Controls) -> Iterator[str]:
    """Yield how many of the claims that a control makes fail are made to fail by exchanges alone."""
    kinds: dict[str, set[str]] = {}
    for entry in controls.values():
        for control in entry["controls"].values():
            for claim in (claim for claim, trial in control["claims"].items() if trial["outcome"] == FLIPPED):
                kinds.setdefault(claim, set()).add(control["kind"])
    if number := sum(kinds[claim] == {"exchange"} for claim in proven):
        yield (
            f"Of the {len(proven)}, {number} fail under exchanges of two variants alone. If a claim only orders these "
            "two, it fails then by construction: this shows what the judge compares, not what causes the order."
        )


def counts(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of classes by paper and basis."""
    head = ["paper", "basis", "claims", *(word.value for word in Word)]
    body: list[list[object]] = []
    for letter in PAPERS:
        mine = [row for row in rows if letter_of(row) == letter]
        for basis in dict.fromkeys(row["basis"] for row in mine):
            body.append(_line(letter, basis, [row for row in mine if row["basis"] == basis]))
    body.append(_line("**all**", ", ".join(JUDGED), [row for row in rows if row["basis"] in JUDGED]))
    body.append(_line("**all**", "all", rows))
    yield from table(head, body)


def _line(letter: str, basis: str, rows: Sequence[Row]) -> list[object]:
    count = Counter(row["verdict"] for row in rows)
    return [letter, basis, len(rows), *(count[word] for word in Word)]


def top(record: Mapping[str, Any], rows: Sequence[Row], universes: Universes) -> Iterator[str]:
    """Yield the page's beginning: the result, the classes, the counts, and what was changed since the freeze."""
    yield from headline(rows, record["controls"][EFFORT], universes)
    yield ""
    yield from table(["verdict", "meaning"], [[word.value, MEANING[word]] for word in Word])
    yield ""
    yield from counts(rows)
    yield ""
    if record["older"]:
        yield f"\nThe verdicts of {joined(list(record['older']))} are of hosts without ns-2's timer.\n"
    yield "\n## Changes since the freeze\n"
    changed = {one.id for one in ledger()}
    yield (
        f"{len(ledger())} changes were made after the freeze, {len(changed & set(predicates()))} claims among them: "
        "[reasons, hashes, and verdicts before and after](reproduction-changes.md).\n"
    )


def paper(letter: str, rows: Sequence[Row], controls: Controls, universes: Universes) -> Iterator[str]:
    """Yield the section of one paper."""
    about = PAPERS[letter]
    yield f"## {letter}: {about.authors}, “{about.title}”\n"
    known = choices(about)
    if known:
        yield from table(
            ["choice", "parameter that the paper leaves out", "used", "alternatives", "reason"],
            [[key, one.name, one.used, ", ".join(one.others), one.why] for key, one in known.items()],
        )
        yield ""
    yield from alternatives(letter, universes.get(letter, {}))
    yield from controlled(rows, controls)
    words = {row["predicate"]: row["verdict"] for row in rows}
    yield from holding(letter, words, controls, universes)
    for row in rows:
        if row["verdict"] != Word.HOLDS:
            yield from claim(row, explanations(about).get(row["predicate"], {}), controls, universes)


def alternatives(letter: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the multiverse of a paper: what holds with each alternative, and paper I's results by claim."""
    lines = list(multiverse.lines(entry)) if entry else []
    if not lines:
        return
    yield "### Other choices, one at a time\n"
    found = multiverse.span({letter: entry})
    if found:
        yield (
            f"Authors' claims that hold on the first block of the quick set: {found.chosen} with the choices used, at "
            f"least {found.least}, at most {found.most}.\n"
        )
    body = [[line.name, line.held if line.whole else "–", line.flips] for line in lines]
    yield from table(["choice", "claims that hold", "differences"], body)
    yield ""
    law = choices(PAPERS[letter]).get(multiverse.LAW)
    if law:
        head, *cells = multiverse.by_claim(entry, law)
        yield f"### {law.name[0].upper()}{law.name[1:]} ({law.id}), claim by claim\n"
        yield from table(head, cells)
        yield ""


def controlled(rows: Sequence[Row], controls: Controls) -> Iterator[str]:
    """Yield the controls of a paper's claims and their outcomes."""
    body = []
    for name in dict.fromkeys(row["experiment"] for row in rows):
        for control, entry in controls.get(name, {}).get("controls", {}).items():
            done: dict[str, list[str]] = {}
            for key, trial in entry["claims"].items():
                done.setdefault(trial["outcome"], []).append(key)
            said = "; ".join(f"{outcome}: {', '.join(claims)}" for outcome, claims in done.items())
            body.append([name, control, entry["kind"], entry["why"], said])
    if body:
        yield "### Controls: changes under which claims must fail\n"
        yield from table(["experiment", "control", "kind", "reason", "outcome"], body)
        yield ""


def claim(row: Row, said: Mapping[str, Any], controls: Controls, universes: Universes) -> Iterator[str]:
    """Yield why a claim does not hold: the sentence, what is measured and decides, what would turn it, the cause."""
    key = row["predicate"]
    yield f"**{key}** {row['verdict']}: {row['statement']}.\n"
    if row["instead"]:
        yield from table(["criterion", "judged instead, because"], [[row["criterion"], row["instead"]]])
        yield ""
    else:
        yield f"What we measure: {plain(row['criterion'])}.\n"
    yield from values(row)
    universe = universes.get(letter_of(row), {})
    first = row["measured"].get("first") or universe.get("chosen", {}).get(key, row["verdict"])
    found = list(turns(key, row["verdict"], first, universe, broken_by(key, controls.get(row["experiment"], {}))))
    yield f"What would turn it: {'; '.join(found) or 'nothing on record'}.\n"
    for tried in said.get("tried", []):
        yield f"- tried: {tried}"
    if said.get("tried"):
        yield ""
    if said and row["verdict"] != Word.CANNOT_FAIL:
        yield f"Likely cause: {CAUSES[said['cause']]}. {said['text']}\n"
    elif row["note"] and not row["instead"]:
        yield f"{row['note'][0].upper()}{row['note'][1:].rstrip('.')}.\n"


def values(row: Row) -> Iterator[str]:
    """Yield the measured values of a claim: those of its judge today, or what else is on record."""
    one = row["measured"]
    if one and one["frozen"] == state(row["predicate"]):
        yield f"What decides it: {plain(one['decides'])} ({'; '.join(one['blocks'])}).\n"
    elif row["hosts"]:
        yield "What decides it, in the first block of seeds:\n"
        one = {"checks": row["hosts"]}
    elif one and not one["frozen"]:
        yield "Measured with this criterion before the papers' hosts had ns-2's timer:\n"
    else:
        yield f"No values of this judge are on record; `explicate reproduce {row['experiment']} --quick` prints them.\n"
        return
    yield from (f"- {plain(text)}" for text in one["checks"])
    yield ""


@cache
def _hashes() -> dict[str, str]:
    return {**frozen(), **{one.id: one.hash for one in ledger()}}


def state(claim: str) -> str:
    """Return the hashes on which measured values of a claim depend: judge, experiment, the paper's choices and plan."""
    home, _ = judged()[claim]
    parts = (claim, home, f"{claim[0]} choices", f"{claim[0]} plan")
    return " ".join(_hashes().get(part, "") for part in parts)


@cache
def judged() -> dict[str, tuple[str, Predicate]]:
    """Return all claims by id, each with its experiment, in the order of the register."""
    return {claim.id: (one.id, claim) for one in experiments().values() for claim in one.predicates}


def note_measured(record: dict[str, Any], verdicts: Iterable[Row]) -> None:
    """Record the measured values of verdicts, as ``explicate reproduce --json`` prints them, unless they hold."""
    kept = record.setdefault("measured", {})
    for row in verdicts:
        kept.pop(row["predicate"], None)
        if row["verdict"] == Word.HOLDS:
            continue
        answers = [block for block in row["blocks"] if block["holds"] is not None]
        words = [f"seeds from {one['first_seed']}: {'holds' if one['holds'] else 'fails'}" for one in answers]
        larger = [f"{ENLARGED} times the seeds of the plan: {row['verdict']}"] if row["enlarged"] else []
        kept[row["predicate"]] = {
            "frozen": state(row["predicate"]),
            "first": ("holds" if answers[0]["holds"] else "fails") if answers else "",
            "decides": row["decides"] or row["verdict"],
            "blocks": [*words, f"runs: {row['runs']}", *larger],
            "checks": listed((one["text"], one["met"]) for one in row["checks"]),
        }
    record["measured"] = {key: kept[key] for key in predicates() if key in kept}


def rows_of(record: Mapping[str, Any]) -> list[Row]:
    """Return all claims with the verdicts of the quick set on record, and what is known of their values."""
    hosts = json.loads(LINUX.read_text(encoding="utf-8"))["experiments"]
    made = []
    for one in experiments().values():
        beside = hosts.get(one.id, {}).get("papers", {})
        for predicate in one.predicates:
            verdict = record[EFFORT].get(one.id, {}).get(predicate.id)
            if verdict is not None:
                known = beside.get(predicate.id, {})
                same = known.get("verdict") == verdict
                made.append(
                    {
                        "experiment": one.id,
                        "predicate": predicate.id,
                        "basis": predicate.basis,
                        "statement": predicate.statement,
                        "criterion": predicate.criterion,
                        "verdict": verdict,
                        **_said_by_the_judge(one, predicate, verdict),
                        "measured": record.get("measured", {}).get(predicate.id, {}),
                        "hosts": known["measured"] if same else [],
                    }
                )
    return made


def _said_by_the_judge(one: Experiment, predicate: Predicate, verdict: str) -> dict[str, str]:
    """Return what is judged instead of the criterion, if anything, and why a claim cannot fail or is not judged."""
    study = studies()[one.id]
    rule = study.rules.get(predicate.id)
    why = {
        Word.CANNOT_FAIL: study.unfailing.get(predicate.id, "no control makes it fail"),
        Word.NOT_JUDGED: study.skipped.get(predicate.id, ""),
    }
    return {"instead": rule.instead if rule else "", "note": why.get(Word(verdict), "")}


def figures_page() -> str:
    """Return the page that says what a reader looks for in each figure."""
    found = looks()
    count = Counter(one.shown for one in found.values())
    words = dict(zip(SHOWN, ("show it", "show a part", "do not show it"), strict=True))
    said = joined([f"{count[word]} {text}" for word, text in words.items() if count[word]])
    parts = [READERS.format(number=len(found), said=said)]
    for letter, about in PAPERS.items():
        body = [
            [key, one.figure, found[key].sought, found[key].shown, found[key].lacks]
            for key, one in experiments().items()
            if one.paper is about
        ]
        head = ["experiment", "source", "a reader looks for", "shown", "lacking"]
        parts += [f"## {letter}: {about.authors}\n", *table(head, body), ""]
    return "\n".join(parts).rstrip() + "\n"


def page(record: Mapping[str, Any], universes: Universes) -> str:
    """Return the page."""
    rows, controls = rows_of(record), record["controls"][EFFORT]
    parts = [HEAD, *top(record, rows, universes)]
    for letter in PAPERS:
        parts += paper(letter, [row for row in rows if letter_of(row) == letter], controls, universes)
    return "\n".join(parts).rstrip() + "\n"


def main() -> None:
    """Write the record, if there are new results, and the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="DIR, with verdicts.json and controls.json")
    args = parser.parse_args()
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if args.folder is not None:
        enter(record, args.folder)
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    FIGURES.write_text(figures_page(), encoding="utf-8")
    DOCUMENT.write_text(page(record, multiverse.load(UNIVERSES)), encoding="utf-8")


def enter(record: dict[str, Any], folder: Path) -> None:
    """Enter the results of a folder into the record; raise SystemExit for those of another stack."""
    rows: list[Row] = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    if stack := rows[0].get("stack"):
        raise SystemExit(f"{folder} has the verdicts of stack {stack}; `scripts/papers_today.py` records them")
    effort = rows[0]["effort"]
    usual, enlarged = record[effort], {}
    for row in rows:
        kept = enlarged if row["enlarged"] else usual
        kept.setdefault(row["experiment"], {})[row["predicate"]] = row["verdict"]
    record[f"{effort}, enlarged"] = enlarged
    tried = folder / "controls.json"
    record["controls"][effort] = (
        json.loads(tried.read_text(encoding="utf-8")).get(effort, {}) if tried.is_file() else {}
    )
    if effort == EFFORT:
        note_measured(record, rows)
        judged_now = {row["experiment"] for row in rows}
        record["older"] = [key for key in record["older"] if key not in judged_now]


if __name__ == "__main__":
    main()
