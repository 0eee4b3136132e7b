"""Write docs/reproduction-joint.md: the papers' numbers beside ours, as argued and with the best fit of joint settings.

It reads tests/joint.json, the record of `explicate reproduce --joint`, and each paper's published.toml. Run it after
any of them changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from explicate_papers import joint, multiverse
from explicate_papers.plan import choices
from explicate_papers.register import PAPERS

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "joint.json"
DOCUMENT = ROOT / "docs" / "reproduction-joint.md"
SHOWN = 10
"""How many of the nearest sets a table shows."""
HEAD = """\
# Joint settings

<!-- Made by `scripts/make_joint.py`. -->

The papers leave settings open. Our experiments have a value for each of them, with a reason
([the papers, figure by figure](reproduction.md)). If two of these values are wrong, a change of one alone may bring no
figure nearer to the paper's. So several are changed at once: of each paper the choices that move most figures, at most
{choices}. All pairs of their alternatives are tried, and the {pairs} best pairs with a third change.

How near a set of values comes to a paper is judged by the results that the paper states as numbers, in its text and
captions; nothing is read from curves. The distance is the mean of |ln(ours / paper)|: 0 if all numbers agree, and about
0.1 if ours are a tenth too large or too small. The runs are those of the quick plan on seeds from {first}, which no
verdict uses.

*As argued* are the values in use. *Best fit* is the set with the least distance. It was chosen by these numbers, so its
agreement with them is no evidence, and no verdict is judged with it. `explicate reproduce N --joint -o DIR` repeats a
paper. `tests/joint.json` has every set that was tried.
"""


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for line in (head, ["---"] * len(head), *body):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"


def page(record: Mapping[str, Any]) -> str:
    """Return the page."""
    first = joint.plan.seeds(joint.BLOCK, 1)[0]
    lines = [HEAD.format(choices=joint.MOST_CHOICES, pairs=joint.BEST_PAIRS, first=first)]
    for letter, paper in PAPERS.items():
        lines += [f"## {letter}: {paper.title}", "", *of_paper(letter, record.get(letter)), ""]
    return "\n".join(lines).rstrip() + "\n"


def of_paper(letter: str, entry: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what is said of a paper."""
    known = joint.published(PAPERS[letter])
    if not known.numbers:
        yield f"The paper states no result as a number. Not compared: {'; '.join(known.left_out)}."
        return
    if not entry or joint.AS_ARGUED not in entry["sets"]:
        yield "It has not been run yet. These are its numbers:"
        yield ""
        yield from rows(
            ["number", "unit", "paper", "where"],
            [[f"{one.experiment}: {one.what}", one.unit, one.text, one.place] for one in known.numbers],
        )
    else:
        if entry["state"] != joint.state(letter):
            yield "This record is older than the cases, choices or measures of today, so its values may have moved."
            yield ""
        yield " ".join(joint.said(letter, entry))
        yield ""
        head, *body = joint.beside(letter, entry)
        places = [one.place for one in known.numbers]
        yield from rows([*head, "where"], [[*row, place] for row, place in zip(body, [*places, ""], strict=True)])
        yield ""
        yield from nearest(letter, entry)
    if known.left_out:
        yield ""
        yield f"Not compared: {'; '.join(known.left_out)}."


def nearest(letter: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the choices that were changed, and the nearest sets."""
    used = choices(PAPERS[letter])
    named = [f"{key} ({used[key].name}: {used[key].used})" for key in entry["choices"] if key in used]
    yield f"Choices that are changed, with the values in use: {'; '.join(named) or 'none'}."
    yield ""
    found = [(one["distance"], name) for name, one in entry["sets"].items() if one["distance"] is not None]
    yield from rows(["the nearest sets", "distance"], [[name, f"{far:.3f}"] for far, name in sorted(found)[:SHOWN]])


if __name__ == "__main__":
    DOCUMENT.write_text(page(multiverse.load(RECORD)), encoding="utf-8")
