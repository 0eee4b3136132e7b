"""Write docs/reproduction-causes.md: why each claim that is not "holds" does not hold, by two readers.

Their labels are in papers/readings/causes.json; verdicts are those of the quick set on record in tests/papers.json.
Run it after either of them changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import make_criteria

from explicate_papers.register import PAPERS

DOCUMENT = make_criteria.ROOT / "docs" / "reproduction-causes.md"

LABELS = {
    "paper": "the sentence contradicts the paper's own numbers or its protocol's equations",
    "open parameter": "the paper leaves a setting open, and one value of it turns the claim",
    "seeds": "chance decides with the seeds of the plan",
    "not reproduced": "three or more settings were tried, and none turns it",
    "ours": "our code, our judge or our register is the cause, and it is not mended",
    "construction": "a rule, a formula or a definition: no measurement could contradict it, or no control breaks it",
}
"""What each label says."""

HEAD = """\
# Why claims do not hold

<!-- Made by `scripts/make_causes.py`. -->

{all} claims are not "holds" in the quick set on record. Two readers gave each of them a cause. They had the papers,
our judges, what was tried ([figure by figure](reproduction.md)) and the readings of the sentences
([criteria](reproduction-criteria.md)); neither knew the other's labels. They agree on {agreed} of {all}.
Where they do not, both labels stand below.
"""
AFTER = """\
Most figures with other settings were measured before the papers' hosts had ns-2's timer. "Lacks" says which measurement
a label still needs; {lacking} claims have such an entry, from the first reader or, if only the second has one, from
the second. Of {unsure} labels at least one reader is not sure (marked with a question mark).
Both readers' words for every claim are in `papers/readings/causes.json`.
"""


def causes() -> list[dict[str, Any]]:
    """Return for each claim its verdict when it was labelled, and what both readers say."""
    return list(make_criteria.read_json("causes.json"))


def agreed(cause: Mapping[str, Any]) -> bool:
    """Whether both readers give the same label."""
    first, second = cause["readers"]
    return bool(first["label"] == second["label"])


def unsure(cause: Mapping[str, Any]) -> bool:
    """Whether a reader is not sure of its label."""
    return any(reader["sure"] != "yes" for reader in cause["readers"])


def lacks(cause: Mapping[str, Any]) -> str:
    """Return the measurement that a label still needs; nothing if both readers have all."""
    first, second = cause["readers"]
    return str(first["missing"] or second["missing"])


def counts(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table of labels by paper."""
    body = []
    for label, meaning in LABELS.items():
        both = [row for row in rows if agreed(row) and row["readers"][0]["label"] == label]
        by_paper = Counter(row["id"][0] for row in both)
        body.append([label, meaning, *(by_paper[letter] for letter in PAPERS), len(both)])
    differ = Counter(row["id"][0] for row in rows if not agreed(row))
    body.append(["", "the readers disagree", *(differ[letter] for letter in PAPERS), differ.total()])
    yield from make_criteria.table(["cause", "which is", *PAPERS, "in all"], body)


def tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of causes for each paper."""
    verdicts = make_criteria.words()
    for letter, paper in PAPERS.items():
        body = []
        for row in rows:
            if not row["id"].startswith(f"{letter}-"):
                continue
            shown = row["readers"][: 1 if agreed(row) else 2]
            label = " / ".join(reader["label"] for reader in shown) + ("?" if unsure(row) else "")
            evidence = " — or: ".join(reader["evidence"] for reader in shown)
            body.append([row["id"], verdicts[row["id"]], label, evidence, lacks(row)])
        yield f"## {letter}: {paper.authors}\n"
        yield from make_criteria.table(["claim", "verdict", "cause", "evidence", "lacks"], body)


def page() -> str:
    """Return the page."""
    rows = causes()
    head = HEAD.format(all=len(rows), agreed=sum(map(agreed, rows)))
    after = AFTER.format(lacking=sum(bool(lacks(row)) for row in rows), unsure=sum(map(unsure, rows)))
    return "\n".join([head, *counts(rows), after, *tables(rows)]).rstrip() + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
