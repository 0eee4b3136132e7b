"""Freeze the judges, cases, controls, choices and plans of the papers before they are run, and watch over them.

`--write` freezes what there is. `--check` fails on a change that is not in the ledger, and names the claim.
`--change REASON` enters the changes in the ledger with the verdicts on record; `--reasons FILE` has reasons of single
claims (papers/readings/judged.toml). `--after` adds the verdicts that came out afterwards, not for experiments on the
record's list ``older``. `--rewritten REASON` enters experiments whose code changed and which run the same: the parsed
scenarios of all cases, with all controls and alternatives, must be those in cases.json, which `--cases` renews. For
judges that changed, too, `--verdicts` takes what the old and the new code wrote from one folder of runs; the two must
be equal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from explicate_papers import cases, freeze
from explicate_papers.freeze import Change, Rewrite
from explicate_papers.plan import studies

ROOT = Path(__file__).resolve().parent.parent
PAPERS = ROOT / "papers" / "explicate_papers"
FROZEN, LEDGER = PAPERS / "frozen.json", PAPERS / "changes.toml"
CASES = PAPERS / cases.FILE
RECORD = ROOT / "tests" / "papers.json"
HEAD = "# What was changed after the judges were frozen; `scripts/freeze_papers.py --change REASON` adds to it.\n"


def words() -> dict[str, str]:
    """Return the verdicts on record by claim, and those of an experiment or a paper together.

    They are those of the whole runs, or of the quick ones where no whole runs are on record, enlarged ones first.
    """
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    effort = "all" if record["all"] else "quick"
    verdicts = record[effort] | record.get(f"{effort}, enlarged", {})
    claims = {claim: word for words in verdicts.values() for claim, word in words.items()}
    letters = {claim[0] for claim in claims}
    return (
        claims
        | {
            key: "; ".join(f"{claim.removeprefix(f'{key}-')} {word}" for claim, word in words.items())
            for key, words in verdicts.items()
        }
        | {
            f"{letter} choices": f"{sum(word == 'holds' and claim[0] == letter for claim, word in claims.items())} hold"
            for letter in letters
        }
    )


def not_judged_anew() -> set[str]:
    """Return the experiments on the record's list ``older``, and their claims: their verdicts are of other judges."""
    older = json.loads(RECORD.read_text(encoding="utf-8"))["older"]
    return {key for one in older for key in (one, *(claim.id for claim in studies()[one].experiment.predicates))}


def write(changes: Sequence[Change], rewrites: Sequence[Rewrite]) -> None:
    """Write the ledger."""
    tables = (("moved", freeze.moves()), ("rewritten", rewrites), ("change", changes))
    entries = [_entry(name, vars(one)) for name, rows in tables for one in rows]
    LEDGER.write_text("\n\n".join([HEAD.rstrip(), *entries]) + "\n", encoding="utf-8")


def reasons(file: Path | None) -> dict[str, str]:
    """Return the reason of each claim in a file with tables ``claim``; none without a file."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["claim"] if file else []
    return {row["id"]: row["reason"] for row in rows}


def same_verdicts(files: Sequence[Path]) -> set[str]:
    """Return the claims in two files of verdicts; raise SystemExit if the files differ."""
    if len({path.read_bytes() for path in files}) > 1:
        raise SystemExit(f"the verdicts in {files[0]} and {files[1]} differ")
    return {row["predicate"] for path in files for row in json.loads(path.read_text(encoding="utf-8"))}


def rewritten(reason: str, judged: Collection[str], before: Mapping[str, str], now: Mapping[str, str]) -> int:
    """Enter experiments that run the same with other code, and claims of theirs that were `judged` the same.

    Return 1, entering none, if one differs.
    """
    known, entries, wrong = cases.on_record(), [], []
    by_claim = {claim.id: study for study in studies().values() for claim in study.experiment.predicates}
    for key in (key for key in now if before.get(key) != now[key]):
        study = studies().get(key) or (by_claim.get(key) if key in judged else None)
        if study is None or cases.digest(study) != known.get(study.id):
            wrong.append(key)
        else:
            entries.append(Rewrite(key, before[key], now[key], reason))
    if wrong:
        print(f"not the same as before: {', '.join(wrong)}", file=sys.stderr)
        return 1
    write(freeze.ledger(), [*freeze.rewrites(), *entries])
    print(f"{len(entries)} rewrites entered")
    return 0


def _entry(name: str, row: Mapping[str, str]) -> str:
    return "\n".join(
        [f"[[{name}]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in row.items())]
    )


def main() -> int:
    """Return 1 if something changed that is not in the ledger."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    todo = parser.add_mutually_exclusive_group(required=True)
    todo.add_argument("--write", action="store_true", help="freeze what there is")
    todo.add_argument("--check", action="store_true", help="fail on a change that is not in the ledger")
    todo.add_argument(
        "--change", metavar="REASON", help="enter all changes that are not in the ledger, with this reason"
    )
    todo.add_argument("--after", action="store_true", help="add the verdicts on record to changes that have none after")
    todo.add_argument("--rewritten", metavar="REASON", help="enter experiments that run the same with other code")
    todo.add_argument("--cases", action="store_true", help="record what all experiments run")
    parser.add_argument("--reasons", metavar="FILE", type=Path, help="claims with a reason of their own for --change")
    parser.add_argument("--verdicts", metavar="FILE", type=Path, nargs=2, default=[], help="old and new verdicts.json")
    args = parser.parse_args()
    now, changes = freeze.now(), freeze.ledger()
    if args.write:
        if FROZEN.exists():
            print(f"{FROZEN.relative_to(ROOT)} is there: enter changes with --change, or remove it", file=sys.stderr)
            return 1
        FROZEN.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        print(f"{len(now)} hashes frozen")
        return 0
    known = {**freeze.frozen(), **{one.id: one.hash for one in changes}}
    if args.change is not None:
        moved = [key for key in sorted({*known, *now}) if known.get(key) != now.get(key, "")]
        moved = [key for key in moved if key in now or known[key]]
        more = [
            Change(key, now.get(key, ""), reasons(args.reasons).get(key, args.change), words().get(key, ""), "")
            for key in moved
        ]
        write([*changes, *more], freeze.rewrites())
        print(f"{len(more)} changes entered")
    elif args.after:
        said, waiting = words(), not_judged_anew()
        later = [one if one.after or one.id in waiting else replace(one, after=said.get(one.id, "")) for one in changes]
        write(later, freeze.rewrites())
    elif args.cases:
        CASES.write_text(json.dumps(cases.now(), indent=1) + "\n", encoding="utf-8")
    elif args.rewritten is not None:
        return rewritten(args.rewritten, same_verdicts(args.verdicts), known, now)
    else:
        found = freeze.unrecorded(freeze.frozen(), changes, now)
        if not freeze.frozen():
            found = ["nothing is frozen; scripts/freeze_papers.py --write does so before the runs"]
        print("\n".join(found) or f"{len(now)} hashes as they were frozen, or changed with a reason")
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
