"""Make docs/reproduction.md from the results of `explicate reproduce all --controls --enlarge -o DIR`.

It reads DIR/verdicts.json, DIR/controls.json and, for the multiverse, tests/multiverse.json. Verdicts and controls
are also recorded in tests/papers.json; a test checks that those of `--quick` and of `all` agree. Verdicts of enlarged
experiments are recorded apart, because `papers_record.py` repeats experiments without enlargement. Without DIR only
what needs no results is renewed: the multiverse, what would turn a claim, the claims that hold on record, and those
that were judged again with ns-2's timer. docs/reproduction-figures.md needs none either.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from explicate_papers import multiverse
from explicate_papers.evidence import CAUSES, listed, turns
from explicate_papers.freeze import ledger
from explicate_papers.judge import ENLARGED, explanations
from explicate_papers.looks import SHOWN, looks
from explicate_papers.plan import choices
from explicate_papers.register import JUDGED, PAPERS, experiments, predicates
from explicate_papers.trials import FLIPPED, broken_by, flipped, outcomes
from explicate_papers.verdicts import MEANING, Word

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reproduction.md"
FIGURES = ROOT / "docs" / "reproduction-figures.md"
RECORD = ROOT / "tests" / "papers.json"
UNIVERSES = ROOT / "tests" / "multiverse.json"
MOVED = ROOT / "papers" / "explicate_papers" / "stack.toml"
HEAD = """\
# The papers, figure by figure

<!-- Made by `scripts/make_reproduction.py`. -->

`explicate reproduce all{option} -o papers` repeats every experiment of the five papers and judges
each claim; `papers/index.html` shows plots, measured values and scenarios. This page counts the verdicts and explains
those that are not "holds".

A criterion was written down for each claim before its experiment was run. It is judged on the mean over seeds, an
ordering also on 80 % of them, and on two disjoint blocks of seeds. Judges, plans, controls and choices were frozen
before these runs; changes since then are listed below. If both blocks agree, but the 95 % interval of a decisive mean
contains its bound, {open}.
"""
READERS = """\
# What a reader looks for in each figure

<!-- Made by `scripts/make_reproduction.py` from `papers/explicate_papers/looks.toml`. -->

A reader who lays our figures beside the papers' looks for something in each. This table says what, and whether our
figure shows it. Of the papers' figures only what their texts say is known here: "yes" means that what the text says of
a figure can be seen in ours, or be seen not to be so.

Of {number} experiments {said}. `explicate reproduce NAME --quick -o out`
draws the figure of an experiment; [The papers, figure by figure](reproduction.md) has the verdicts.
"""

CLAIM = re.compile(r"^\*\*(?P<claim>[A-Z]-[\w-]+)\*\* (?P<word>[a-z ]+):", re.M)
"""The head of a claim on the page, with its verdict."""
FIRST = re.compile(r"seeds from \d+: (holds|fails)")
"""The answer of the first block of seeds, which every claim that was judged has after its head."""
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


def marked(name: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines between marks, by which `renewed` finds them."""
    yield f"<!-- {name}:begin -->"
    yield from lines
    yield f"<!-- {name}:end -->"


def renewed(document: str, universes: Universes, record: Mapping[str, Any]) -> str:
    """Return the page with what needs no results as it is now, from the multiverse and from the record of verdicts.

    That is the multiverse, verdicts that moved, what would turn a claim, and the claims that hold.
    """
    number = sum(len(choice.others) for paper in PAPERS.values() for choice in choices(paper).values())
    controls: Controls = record["controls"]["quick"]
    words = {claim: word for verdicts in record["quick"].values() for claim, word in verdicts.items()}
    made = {"span": said_of_span(universes, number), "moved": said_of_moved(whole=False)}
    for letter in PAPERS:
        made[f"choices-{letter}"] = alternatives(letter, universes.get(letter, {}))
        made[f"holding-{letter}"] = holding(letter, words, controls, universes)
    for found in CLAIM.finditer(document):
        key, word, first = found["claim"], found["word"], FIRST.search(document, found.end())
        answer = first[1] if first else word
        made[f"turns-{key}"] = turned(key, word, answer, controls, universes, words.get(key, word))
    for name, lines in made.items():
        text = "\n".join(marked(name, lines))
        document, times = re.subn(
            rf"<!-- {name}:begin -->.*?<!-- {name}:end -->", lambda _, text=text: text, document, flags=re.S
        )
        if times != 1:
            raise SystemExit(f"the page has {times} parts {name}; make it from a folder of results")
    return document


def home(claim: str) -> str:
    """Return the experiment of a claim."""
    return next(one.id for one in experiments().values() if claim in {predicate.id for predicate in one.predicates})


def turned(claim: str, word: str, first: str, controls: Controls, universes: Universes, today: str) -> Iterator[str]:
    """Yield what would turn a claim whose verdict on the page is `word`, and its verdict `today` if that is another.

    `first` is the answer of the first block of seeds.
    """
    broken = broken_by(claim, controls.get(home(claim), {}))
    found = list(turns(claim, word, first, universes.get(claim.partition("-")[0], {}), broken))
    yield f"What would turn it: {'; '.join(found) or 'nothing on record'}."
    if today != word:
        yield f'Judged anew since, with the quick set: "{today}".'


def holding(letter: str, words: Mapping[str, str], controls: Controls, universes: Universes) -> Iterator[str]:
    """Yield the table of a paper's claims that hold: the sentence, what is measured, what would turn it."""
    body = [
        [key, plain(one.statement), plain(one.criterion), "; ".join(_turned(key, controls, universes))]
        for key, one in predicates().items()
        if words.get(key) == Word.HOLDS and key.startswith(f"{letter}-")
    ]
    if body:
        yield "### Claims that hold\n"
        yield "Their measured values, and which is nearest to its bound, are on the pages that the command makes.\n"
        yield from table(["claim", "the sentence", "what we measure", "what would turn it"], body)
        yield ""


def _turned(claim: str, controls: Controls, universes: Universes) -> Iterator[str]:
    universe = universes.get(claim.partition("-")[0], {})
    return turns(claim, Word.HOLDS, Word.HOLDS, universe, broken_by(claim, controls.get(home(claim), {})))


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
            f"quick set{rest}). The runs with other choices were made before the papers' hosts had ns-2's timer."
        )


def said_of_moved(whole: bool) -> Iterator[str]:
    """Yield the verdicts that moved with ns-2's timer, and what is older, unless the page is made as a whole."""
    older = json.loads(RECORD.read_text(encoding="utf-8"))["older"]
    moved = tomllib.loads(MOVED.read_text(encoding="utf-8"))["moved"]
    number = len(experiments())
    yield "## Verdicts that moved with ns-2's timer\n"
    yield (
        'The papers\' hosts now have the timer of `stack = "ns2"`, which takes one sample a round trip, in ticks. '
        f"{number - len(older)} of {number} experiments have been judged again with it, both blocks of the quick set."
    )
    if not whole:
        verdicts = f", and the verdicts of {joined(older)}" if older else ""
        yield (
            "Everything else on this page was made before, and before judges were changed to the papers' sentences: "
            f"counts, measured values, controls, enlarged experiments{verdicts}. "
            "[Criteria and sentences](reproduction-criteria.md) has the counts of today."
        )
    yield ""
    body = [[one["claim"], one["before"], one["after"], one["why"]] for one in moved]
    yield from table(["claim", "verdict before", "after", "reason"], body)


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
    yield from marked("span", said_of_span(universes, number))
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


def top(rows: Sequence[Row], controls: Controls, universes: Universes) -> Iterator[str]:
    """Yield the page's beginning: the result, the classes, the counts, and what was changed since the freeze."""
    yield from headline(rows, controls, universes)
    yield ""
    yield from table(["verdict", "meaning"], [[word.value, MEANING[word]] for word in Word])
    yield ""
    yield from counts(rows)
    enlarged = {row["experiment"]: row["opened"] for row in rows if row["opened"]}
    if enlarged:
        said = "; ".join(f"{name} ({', '.join(claims)})" for name, claims in enlarged.items())
        yield f"\nEnlarged to {ENLARGED} times the seeds, with the claims that were open: {said}."
    changes = ledger()
    yield ""
    yield from marked("moved", said_of_moved(whole=True))
    yield "\n## Changes since the freeze\n"
    if changes:
        body = [[one.id, one.reason, one.before or "–", one.after or "not run yet"] for one in changes]
        yield from table(["change of", "reason", "verdict before", "after"], body)
    else:
        yield "None."
    yield ""


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
    yield from marked(f"choices-{letter}", alternatives(letter, universes.get(letter, {})))
    yield from controlled(rows, controls)
    words = {row["predicate"]: row["verdict"] for row in rows}
    yield from marked(f"holding-{letter}", holding(letter, words, controls, universes))
    yield ""
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
    words = [
        f"seeds from {block['first_seed']}: {'holds' if block['holds'] else 'fails'}"
        for block in row["blocks"]
        if block["holds"] is not None
    ]
    if words:
        larger = ", four times the plan" if row["enlarged"] else ""
        yield f"What decides it: {plain(row['decides'])} ({'; '.join(words)}; runs: {row['runs']}{larger}).\n"
        yield from (f"- {plain(text)}" for text in listed((one["text"], one["met"]) for one in row["checks"]))
        yield ""
    first = "holds" if row["blocks"] and row["blocks"][0]["holds"] else "fails"
    yield from marked(f"turns-{key}", turned(key, row["verdict"], first, controls, universes, row["verdict"]))
    yield ""
    for tried in said.get("tried", []):
        yield f"- tried: {tried}"
    if said.get("tried"):
        yield ""
    if said and row["verdict"] != Word.CANNOT_FAIL:
        yield f"Likely cause: {CAUSES[said['cause']]}. {said['text']}\n"
    elif row["note"] and not row["instead"]:
        yield f"{row['note'][0].upper()}{row['note'][1:]}.\n"


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


def page(rows: Sequence[Row], controls: Controls, universes: Universes) -> str:
    """Return the page."""
    effort = rows[0]["effort"]
    enlarged = any(row["enlarged"] for row in rows)
    option = ("" if effort == "all" else f" --{effort}") + " --controls" + (" --enlarge" if enlarged else "")
    if enlarged:
        open_ = f"the experiment has been enlarged once to {ENLARGED} times the seeds of the plan"
    else:
        open_ = "the claim is undecided; no experiment has been enlarged yet"
    parts = [HEAD.format(option=option, open=open_), *top(rows, controls, universes)]
    for letter in PAPERS:
        mine = [row for row in rows if letter_of(row) == letter]
        if mine:
            parts += paper(letter, mine, controls, universes)
    return "\n".join(parts).rstrip() + "\n"


def main() -> None:
    """Write the page and the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="DIR, with verdicts.json and controls.json")
    args = parser.parse_args()
    FIGURES.write_text(figures_page(), encoding="utf-8")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if args.folder is None:
        document = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(renewed(document, multiverse.load(UNIVERSES), record), encoding="utf-8")
        return
    rows: list[Row] = json.loads((args.folder / "verdicts.json").read_text(encoding="utf-8"))
    if stack := rows[0].get("stack"):
        raise SystemExit(f"{args.folder} has the verdicts of stack {stack}; `scripts/papers_today.py` records them")
    effort = rows[0]["effort"]
    kept = args.folder / "controls.json"
    controls: Controls = json.loads(kept.read_text(encoding="utf-8")).get(effort, {}) if kept.is_file() else {}
    usual, enlarged = record[effort], {}
    for row in rows:
        kept = enlarged if row["enlarged"] else usual
        kept.setdefault(row["experiment"], {})[row["predicate"]] = row["verdict"]
    record[f"{effort}, enlarged"] = enlarged
    record["controls"][effort] = controls
    if effort == "quick":
        judged = {row["experiment"] for row in rows}
        record["older"] = [key for key in record["older"] if key not in judged]
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    DOCUMENT.write_text(page(rows, controls, multiverse.load(UNIVERSES)), encoding="utf-8")


if __name__ == "__main__":
    main()
