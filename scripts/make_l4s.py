"""Write the tables of docs/l4s.md, between their marks: verdicts, what the rule rests on, and numbers.

It reads tests/study-l4s.json, the record that `explicate study l4s --quick -o tests/study-l4s.json` writes. Run it
after the record or the study changed; with --check it writes nothing, and fails if a table is old.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from pages import between, replace_between

from explicate.studies import l4s
from explicate.studies.bits import Record
from explicate.studies.l4s import CLAIMS, LABELS, LAWS, LINE, NEIGHBOURS, OWN, PATHS, Judged

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "study-l4s.json"
PAGE = ROOT / "docs" / "l4s.md"


def verdicts(record: Record) -> Iterator[str]:
    """A row for each flow, a column for each pair."""
    heads = [f"{rate} Mbit/s, {rtt} ms: {name}" for rate, rtt in PATHS for name in NEIGHBOURS.values()]
    yield f"| flow | {' | '.join(heads)} |"
    yield "| --- |" + " --- |" * len(heads)
    for law in LAWS:
        found = [l4s.judge(one, record.values.get(one.name, {}), law.name) for one in l4s.pairs()]
        yield f"| {law.label} | {' | '.join(map(short, found))} |"


def short(found: Judged | None) -> str:
    """A verdict in a narrow cell."""
    if found is None:
        return ""
    said = ["harms"] if set(l4s.HARM) & set(found.worse) else []
    said += ["harmed"] if OWN in found.worse else []
    said += ["wastes"] if LINE in found.worse else []
    return ", ".join(said + (["?"] if found.undecided else [])) or "–"


def claims(record: Record) -> Iterator[str]:
    """What the operators' rule rests on, and whether the record says so."""
    pairs = len(l4s.pairs())
    yield f"| claim | of {pairs} pairs it must be so | it is so on | |"
    yield "| --- | --- | --- | --- |"
    for claim in CLAIMS:
        counts = [
            f"{LABELS[law]}: {worse}" + (f" ({unsure} undecided)" if unsure else "")
            for law, (worse, unsure) in claim.counts(record.values).items()
        ]
        says = "holds" if claim.holds(record.values) else "**fails**"
        yield f"| {claim.words} | {claim.where.value} | {'; '.join(counts)} | {says} |"


def numbers(record: Record) -> Iterator[str]:
    """A table for each pair."""
    for one in l4s.pairs():
        head, body = l4s.table(one, record.values[one.name])
        yield f"### {one.title}\n"
        yield f"| {' | '.join(head)} |"
        yield "| --- |" + " --: |" * (len(head) - 2) + " --- |"
        yield from (f"| {' | '.join(row)} |" for row in body)
        yield ""


def parts(record: Record) -> dict[str, str]:
    """The text of each mark of the page."""
    made = {"verdicts": verdicts, "claims": claims, "numbers": numbers}
    return {name: "\n".join(lines(record)) for name, lines in made.items()}


def main() -> int:
    """Write the tables, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a table is not what it should be")
    args = parser.parse_args()
    made = parts(Record.read(RECORD, l4s.NAME))
    old = [name for name, text in made.items() if between(PAGE, name) != f"\n{text}\n"]
    for name in old:
        if args.check:
            print(f"{PAGE.relative_to(ROOT)}, {name}: is old: python scripts/make_l4s.py", file=sys.stderr)
        else:
            replace_between(PAGE, made[name], name)
    return 1 if args.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
