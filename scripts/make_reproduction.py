"""Make docs/reproduction.md from the verdicts that `explicate reproduce all -o DIR` leaves in DIR/verdicts.json.

They also go on record in tests/papers.json: a test asks whether those of `--quick` and of `all` agree.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from explicate.papers.judge import explanations
from explicate.papers.plan import choices
from explicate.papers.register import JUDGED, PAPERS, experiments

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reproduction.md"
RECORD = ROOT / "tests" / "papers.json"
HEAD = """\
# The papers, figure by figure

<!-- Made by `scripts/make_reproduction.py` from the verdicts of `explicate reproduce all{option}`. -->

`explicate reproduce all{option} -o papers` repeats every experiment of the five papers and judges each claim;
`papers/index.html` shows plots, measured values and scenarios. This page counts the verdicts and explains those that
are not "holds". A claim is judged by a criterion that was written down before the experiment was run, on the mean over
seeds; an ordering also on 80 % of them. Parameters that a paper leaves out are chosen once for all of its figures.
"""
CAUSES = {
    "paper": "the paper",
    "parameter": "a parameter that the paper leaves out",
    "ours": "ours",
    "register": "our reading of the paper",
    "open": "not found",
}

Row = dict[str, Any]


def table(head: Sequence[str], body: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for line in (head, ["---"] * len(head), *body):
        yield "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) + " |"


def tally(rows: Sequence[Row]) -> list[object]:
    """Return how many hold, fail and are not judged."""
    count = Counter(row["pass"] for row in rows)
    return [count[True], count[False], count[None]]


def counts(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of verdicts by paper and basis."""
    head = ["paper", "basis", "hold", "fail", "not attempted", "held of those judged"]
    body: list[list[object]] = []
    for letter in PAPERS:
        mine = [row for row in rows if experiments()[row["experiment"]].paper.letter == letter]
        for basis in dict.fromkeys(row["basis"] for row in mine):
            body.append(_line(letter, basis, [row for row in mine if row["basis"] == basis]))
    claims = [row for row in rows if row["basis"] in JUDGED]
    body.append(_line("**all**", ", ".join(JUDGED), claims))
    body.append(_line("**all**", "all", rows))
    yield from table(head, body)


def _line(letter: str, basis: str, rows: Sequence[Row]) -> list[object]:
    hold, fail, none = tally(rows)
    judged = sum(row["pass"] is not None for row in rows)
    return [
        letter,
        basis,
        hold,
        fail,
        none,
        f"{100 * sum(row['pass'] is True for row in rows) / judged:.0f} %" if judged else "–",
    ]


def paper(letter: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what there is to say of one paper."""
    about = PAPERS[letter]
    yield f"## {letter}: {about.authors}, “{about.title}”\n"
    known = choices(about)
    if known:
        yield from table(
            ["not given", "parameter", "used", "or", "why"],
            [[key, one.name, one.used, ", ".join(one.others), one.why] for key, one in known.items()],
        )
        yield ""
    texts = explanations(about)
    for row in rows:
        if row["pass"] is True:
            continue
        word = "fails" if row["pass"] is False else "not attempted"
        yield f"**{row['predicate']}** {word}: {row['statement']}. Criterion: {row['criterion']}.\n"
        if row["measured"]:
            checks = row["measured"].split("; ")
            yield f"Measured: {'; '.join(checks[:8])}{' …' if len(checks) > 8 else ''} ({row['runs']} runs).\n"
        said = texts.get(row["predicate"], {})
        for tried in said.get("tried", []):
            yield f"- tried: {tried}"
        if said.get("tried"):
            yield ""
        if said:
            yield f"Likely cause: {CAUSES[said['cause']]}. {said['text']}\n"
        elif row["note"]:
            yield f"{row['note'][0].upper()}{row['note'][1:]}.\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verdicts", type=Path, help="DIR/verdicts.json")
    args = parser.parse_args()
    rows: list[Row] = json.loads(args.verdicts.read_text(encoding="utf-8"))
    effort = rows[0]["effort"]
    option = "" if effort == "all" else f" --{effort}"
    parts = [HEAD.format(option=option), *counts(rows), ""]
    for letter in PAPERS:
        mine = [row for row in rows if experiments()[row["experiment"]].paper.letter == letter]
        if mine:
            parts += paper(letter, mine)
    DOCUMENT.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    record[effort] = {}
    for row in rows:
        record[effort].setdefault(row["experiment"], {})[row["predicate"]] = row["pass"]
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
