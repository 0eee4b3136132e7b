"""Write docs/reproduction-criteria.md: criteria beside the papers' sentences, from two readings of each claim.

What it says comes from papers/readings (readings, claims whose judge changed, claims that are counted apart), the
registers, the ledger of changes and the verdicts on record in tests/papers.json. Run it after any of them changed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from explicate_papers import freeze
from explicate_papers.register import JUDGED, PAPERS, experiments, predicates
from explicate_papers.verdicts import COUNTED, Word

ROOT = Path(__file__).resolve().parent.parent
READINGS = ROOT / "papers" / "readings"
RECORD = ROOT / "tests" / "papers.json"
DOCUMENT = ROOT / "docs" / "reproduction-criteria.md"

ABSENT = "not in the paper"
HEAD = """\
# Criteria and the papers' sentences

Each claim has a criterion, which was written before the experiment was run. Is it what the paper says? Two readers read
the papers alone, with no code, no criterion and no measurement at hand, and neither knew the other's answers. For
{claims} claims they say what the sentence says and which measurement would contradict it: the {failing} whose verdict
was not "holds" on that day, {drawn} of the others, drawn by the seed {seed}, and {later} that stopped holding later.
Their readings are in `papers/readings`. About whether the register's statement is the paper's they agree on {agree} of
{claims}.

Where both agree and the judge measured something else, the judge changed, stricter or looser. The reason was written
before the new verdict was recorded; for D-fig2a-a, D-fig4-a, D-fig4-b, K-fig6b-a, K-fig6b-b and K-fig7-e runs
had shown verdicts by then, and no reason or bound was changed after that. N-fig7-d, I-fig2-g, Y-fig6-e, K-fig4-d and
K-fig7-a were read because they no longer held: we knew which check was not met, the readers did not. K-fig4-d and
K-fig7-a meet the bounds before as well, with 160 and 288 seeds. D-txt-concl-c
compares each loss rate, where the rule below asks for the mean over the range (0.61 of at most 0.7, so it would hold);
this was seen after the verdict, so it stays.

Where the readers disagree nothing changed, and both readings stand below. A bound of our own
gives way to a comparison that the sentence makes. Where it makes none and has no number, its words mean the same number
everywhere. A claim that held under a criterion at least as strict as its sentence kept it.

| the sentence says | the criterion asks for |
| --- | --- |
| clearly, visibly, significantly; converge | a tenth: of capacity, of one for shares and indices, else of the value |
| starves | at most a half |
| a small part | at most a quarter |
| almost zero | at most a twentieth |
| again and again, the usual saw-tooth | twice |
| a run that is shown | half of the runs |
| curves compared, no point named | the mean over the range |
| averages compared | the means, without "four in five runs" besides |

The worst of many checks of one claim exceeds three standard errors by chance: of 84 in a fifth of all draws. Where a
bound is a number of standard errors, it now grows with the number of checks, so that all of them together fail by
chance in 1 % of draws (Y-fig1-a, Y-fig1-d).
"""
AFTER = """\
Hashes are those of judges with all code that they use. `scripts/freeze_papers.py --check` fails on a judge that changes
without an entry.
"""


@dataclass(frozen=True)
class Changed:
    """A claim whose judge changed: its sentence, the criterion before, hashes and verdicts before and after."""

    id: str
    sentence: str
    was: str
    old: str
    new: str
    before: str
    after: str


def read_json(name: str) -> Any:
    """Return what a file of the readings holds."""
    return json.loads((READINGS / name).read_text(encoding="utf-8"))


def readings() -> dict[str, Sequence[Mapping[str, str]]]:
    """Return both readings of each claim."""
    rows = [row for letter in PAPERS for row in read_json(f"{letter}.json")]
    return {row["id"]: row["readers"] for row in rows}


def agreed(readers: Sequence[Mapping[str, str]]) -> bool:
    """Whether both readers say the same about the register's statement."""
    return len({one["statement_is"] for one in readers}) == 1


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((READINGS / name).read_text(encoding="utf-8"))


def changed() -> list[Changed]:
    """Return the claims whose judge changed after the readings; raise SystemExit for one that is not in the ledger."""
    rows = {row["id"]: row for row in _toml("judged.toml")["claim"]}
    known, made = freeze.frozen(), {}
    for one in freeze.ledger():
        row = rows.get(one.id)
        if row is not None and one.reason == row["reason"]:
            old = known.get(one.id, "")
            made[one.id] = Changed(one.id, row["sentence"], row["was"], old, one.hash, one.before, one.after)
        elif one.id in made:
            made[one.id] = replace(made[one.id], new=one.hash, after=one.after)
        known[one.id] = one.hash
    if missing := rows.keys() - made.keys():
        raise SystemExit(f"not in the ledger with the reason of judged.toml: {', '.join(sorted(missing))}")
    return [made[key] for key in predicates() if key in made]


def standings() -> dict[str, str]:
    """Return for each claim as what it is counted."""
    listed = _toml("standing.toml")
    read = readings()
    made = {}
    for key in predicates():
        readers = read.get(key)
        if readers and all(one["statement_is"] == ABSENT for one in readers):
            made[key] = "not in the text, say both readers"
        elif key in listed["fitted"]:
            made[key] = "fitted"
        elif key in listed["by_construction"]:
            made[key] = "by construction"
        elif readers is None:
            made[key] = "not read a second time (it held and was not drawn)"
        else:
            made[key] = "the paper's sentence" if agreed(readers) else "readers disagree"
    return made


STANDINGS = (
    "the paper's sentence",
    "not read a second time (it held and was not drawn)",
    "readers disagree",
    "fitted",
    "by construction",
    "not in the text, say both readers",
)


def words() -> dict[str, str]:
    """Return the verdicts of the quick set on record, by claim."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))["quick"]
    return {claim: word for verdicts in record.values() for claim, word in verdicts.items()}


def table(head: Sequence[str], body: Sequence[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for line in (head, ["---"] * len(head), *body):
        yield "| " + " | ".join(map(plain, line)) + " |"
    yield ""


def plain(cell: object) -> str:
    """Return a cell without what Markdown would take for its own."""
    return re.sub(r"([|*<])", r"\\\1", str(cell))


def counts() -> Iterator[str]:
    """Yield how many of the authors' claims have each verdict, by what they are counted as."""
    known, said = standings(), words()
    authors = [key for key, predicate in predicates().items() if predicate.basis in JUDGED]
    body = []
    for standing in STANDINGS:
        mine = [said.get(key, "") for key in authors if known[key] == standing]
        body.append([standing, *(mine.count(word.value) for word in Word), len(mine)])
    yield "## What is counted\n"
    yield (
        f"The {len(authors)} claims of the authors, by what they are counted as, with the verdicts of the quick set on "
        "record. A fitted claim holds since a setting was chosen by its number; one by construction is a rule or a "
        "formula, which only an implementation could fail. Neither says anything about a protocol's performance.\n"
    )
    yield from table(["counted as", *(COUNTED[word] for word in Word), "in all"], body)
    listed = _toml("standing.toml")
    yield "Fitted: " + "; ".join(f"{key}, {why}" for key, why in listed["fitted"].items()) + ".\n"
    ruled = (f"{key}, {why}" for key, why in listed["by_construction"].items() if known[key] == "by construction")
    yield "By construction: " + "; ".join(ruled) + ".\n"
    absent = [key for key in predicates() if known[key] == STANDINGS[-1]]
    yield "Not in the text: " + ", ".join(absent) + ". What a figure alone may show the readers could not see.\n"


COLUMNS = (
    "claim", "sentence, in our words", "criterion before", "criterion now", "verdict before", "verdict now", "hashes",
)  # fmt: skip


def judges(rows: Sequence[Changed]) -> Iterator[str]:
    """Yield the tables of changed judges, a paper each."""
    older = set(json.loads(RECORD.read_text(encoding="utf-8"))["older"])
    home = {predicate.id: one.id for one in experiments().values() for predicate in one.predicates}
    moved = sum(bool(one.after) and one.after != one.before for one in rows)
    gained, lost = (
        sum(bool(one.after) and (one.after == Word.HOLDS, one.before == Word.HOLDS) == way for one in rows)
        for way in ((True, False), (False, True))
    )
    waiting = sum(not one.after for one in rows)
    yield "## Judges that changed\n"
    yield (
        f'{len(rows)} judges changed; {moved} verdicts moved with them, {gained} of these to "holds" and {lost} away '
        f"from it. {waiting} have not been judged anew. "
        "Verdicts before and after are those of the quick set, from the same runs.\n"
    )
    for letter, paper in PAPERS.items():
        body = []
        for one in rows:
            if one.id.startswith(f"{letter}-"):
                late = "not judged anew" if home[one.id] in older else "not run yet"
                criterion = predicates()[one.id].criterion
                hashes = f"`{one.old}` `{one.new}`"
                body.append([one.id, one.sentence, one.was, criterion, one.before, one.after or late, hashes])
        yield f"### {letter}: {paper.authors}\n"
        yield from table(
            ["claim", "sentence, in our words", "criterion before", "now", "verdict before", "now", "hashes"], body
        )
    yield AFTER


def disagreements() -> Iterator[str]:
    """Yield both readings of the claims about which the readers disagree."""
    yield "## Where the readers disagree\n"
    yield "Nothing changed for these claims.\n"
    body = []
    for key, readers in readings().items():
        if not agreed(readers):
            body.append(
                [key, *(f"{one['statement_is']}: {one['contradicts']}" for one in readers), words().get(key, "")]
            )
    yield from table(["claim", "first reader: the statement is …; contradicted by", "second reader", "verdict"], body)


UNCHANGED = """\
## What the readings do not change

- D-fig9-d counts every decrease of a window as a back-off. One reader counts reductions and resets alike, the other
  does not say: so it stays. Resets alone are 872 with TCP and 21 with the monitor at the shortest delay, in one seed.
- N-fig7-b, N-fig9-b, N-txt-zh-b, D-fig2b-b and D-fig7a-a measure what both readers would measure; what is ours is the
  size of a bound for which the sentence has neither a number nor a comparison.
- A rule or a formula is not judged anew because it is one: I-txt-vr-b compares whole runs where both readers see a
  formula, and fails by what I-fig6-b fails by.
"""


def page() -> str:
    """Return the page."""
    read = readings()
    draw = read_json("draw.json")
    head = HEAD.format(
        claims=len(read),
        failing=len(draw["not_holds"]),
        drawn=len(draw["drawn"]),
        later=len(draw["later"]),
        seed=draw["seed"],
        agree=sum(map(agreed, read.values())),
    )
    return "\n".join([head, *counts(), *judges(changed()), *disagreements(), UNCHANGED]).rstrip() + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
