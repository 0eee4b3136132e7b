"""Write docs/reproduction-changes.md: every change of judges, cases, controls, choices and plans since the freeze.

It is made from papers/explicate_papers/changes.toml, the ledger, and frozen.json. Run it after the ledger changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import make_criteria

from explicate_papers import freeze
from explicate_papers.register import experiments, predicates

DOCUMENT = make_criteria.ROOT / "docs" / "reproduction-changes.md"
HEAD = """\
# Changes since the freeze

<!-- Made by `scripts/make_changes.py` from `papers/explicate_papers/changes.toml`. -->

Judges, cases, controls, choices and numbers of seeds of [the reproduction](reproduction.md) were frozen by their hashes
before the first runs. {changes} entries say what was changed since then: {claims} claims, the cases or controls of
{experiments} experiments, and the choices of {papers} papers. In {moved} entries the verdict after the change differs
from that before. `scripts/freeze_papers.py --check` fails if anything that is frozen differs from its last hash here.

The first table has the reasons, in the order in which the changes were made; the second has the hashes and verdicts of
each entry. Verdicts are those of the quick set, just before and just after the change; of a paper's choices it is the
number of its claims that hold. A dash means that there was none. In {ruled} entries both hashes are equal: the rule by
which measured values become a verdict changed, and not the judge.
"""
REWRITES = """\
## Code that was only written anew

{rewritten} entries of the ledger are not changes: code was written in another way, and runs and verdicts stayed the
same. They keep their frozen hash.
"""


@dataclass(frozen=True)
class Entry:
    """An entry of the ledger with its place in it, counted from 1, and the hash that it replaces, empty for none."""

    place: int
    old: str
    change: freeze.Change


def entries() -> list[Entry]:
    """Return the entries of the ledger in order, each with the hash before it."""
    known, made = dict(freeze.frozen()), []
    for place, one in enumerate(freeze.ledger(), 1):
        made.append(Entry(place, known.get(one.id, ""), one))
        known[one.id] = one.hash
    return made


def span(places: Sequence[int]) -> str:
    """``4``, ``4 to 7`` or ``4, 6 to 8``: places in the ledger."""
    parts: list[list[int]] = []
    for place in places:
        if parts and place == parts[-1][-1] + 1:
            parts[-1].append(place)
        else:
            parts.append([place])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts)


def reasons(made: Sequence[Entry]) -> Iterator[str]:
    """Yield the table of reasons, each with its entries and what they changed."""
    found: dict[str, list[Entry]] = {}
    for one in made:
        found.setdefault(one.change.reason, []).append(one)
    body = [
        [span([one.place for one in group]), reason, ", ".join(dict.fromkeys(one.change.id for one in group))]
        for reason, group in found.items()
    ]
    yield "## Reasons\n"
    yield from make_criteria.table(["entries", "reason", "what changed"], body)


def hashes(made: Sequence[Entry]) -> Iterator[str]:
    """Yield the table of entries with their hashes and verdicts."""
    body = [
        [
            one.place,
            one.change.id,
            f"`{one.old}`" if one.old else "new",
            f"`{one.change.hash}`",
            one.change.before or "–",
            one.change.after or "–",
        ]
        for one in made
    ]
    yield "## Entries\n"
    yield from make_criteria.table(["entry", "changed", "hash before", "after", "verdict before", "after"], body)


def rewritten() -> Iterator[str]:
    """Yield the reasons of rewrites, with what they concern."""
    found: dict[str, list[str]] = {}
    for one in freeze.rewrites():
        found.setdefault(one.reason, []).append(one.id)
    yield REWRITES.format(rewritten=len(freeze.rewrites()))
    yield from make_criteria.table(["reason", "what"], [[reason, ", ".join(ids)] for reason, ids in found.items()])
    for move in freeze.moves():
        yield f"`{move.frozen}` is now `{move.now}`: {move.reason}.\n"


def page() -> str:
    """Return the page."""
    made = entries()
    ids = {one.change.id for one in made}
    kinds = Counter("claim" if key in predicates() else "experiment" if key in experiments() else "list" for key in ids)
    head = HEAD.format(
        changes=len(made),
        claims=kinds["claim"],
        experiments=kinds["experiment"],
        papers=kinds["list"],
        ruled=sum(one.old == one.change.hash for one in made),
        moved=sum(
            bool(one.change.before and one.change.after) and one.change.before != one.change.after for one in made
        ),
    )
    return "\n".join([head, *reasons(made), *hashes(made), *rewritten()]).rstrip() + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
