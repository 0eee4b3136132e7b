"""Write docs/reproduction-seeds.md: which verdicts other blocks of seeds change.

`make_fresh.py DIR` reads DIR/seed-N/verdicts.json, which `explicate reproduce all --quick --seed N -o DIR` writes, into
tests/papers-fresh.json first; without DIR the page is made from that record. Each set of seeds is compared with the
verdicts in tests/papers.json of the day on which it was read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import make_criteria

from explicate_papers.register import JUDGED, predicates
from explicate_papers.verdicts import Word

FRESH = make_criteria.ROOT / "tests" / "papers-fresh.json"
DOCUMENT = make_criteria.ROOT / "docs" / "reproduction-seeds.md"
SETTLED = (Word.HOLDS, Word.FAILS, Word.CANNOT_FAIL)
HEAD = """\
# Other seeds

<!-- Made by `scripts/make_fresh.py` from `tests/papers-fresh.json`. -->

Verdicts of [the reproduction](reproduction.md) come from two blocks of seeds, those from 1 and those from 1001. Would
other seeds give the same verdicts? These blocks were run once, after judges and choices had been fixed, with
`explicate reproduce all --quick --seed N`, and compared with the verdicts of that day; no other verdict rests on
them. Controls were not run again: a claim that none of them makes fail on seeds from 1 cannot fail here either.
"""


def words(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the verdicts of the authors' claims, by claim."""
    return {row["predicate"]: row["verdict"] for row in rows if row["basis"] in JUDGED}


def on_record() -> dict[str, str]:
    """Return the verdicts in use of the authors' claims."""
    every = make_criteria.words()
    return {key: every[key] for key, one in predicates().items() if one.basis in JUDGED}


def read(folder: Path) -> dict[str, Any]:
    """Return the record of the sets of seeds in `folder`; raise SystemExit if there is none, or one is not whole."""
    used, made = on_record(), {}
    for file in sorted(folder.glob("seed-*/verdicts.json")):
        rows = json.loads(file.read_text(encoding="utf-8"))
        found = words(rows)
        if missing := used.keys() - found.keys():
            raise SystemExit(f"{file} lacks {len(missing)} claims, such as {min(missing)}: reproduce all")
        why = {row["predicate"]: [check["text"] for check in row["checks"] if not check["met"]] for row in rows}
        changed = {
            key: {"used": used[key], "fresh": found[key], "not met": why[key]}
            for key in used
            if used[key] != found[key]
        }
        made[file.parent.name.removeprefix("seed-")] = {"claims": len(used), "changed": changed}
    if not made:
        raise SystemExit(f"{folder} has no seed-N/verdicts.json: explicate reproduce all --quick --seed N -o {folder}")
    return made


def page(record: Mapping[str, Any]) -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for seed, one in record.items() for line in _set(int(seed), one))]).rstrip() + "\n"


def _set(seed: int, one: Mapping[str, Any]) -> Iterator[str]:
    changed = one["changed"]
    turned = [key for key, row in changed.items() if {row["used"], row["fresh"]} == {Word.HOLDS, Word.FAILS}]
    yield f"## Seeds from {seed} and {seed + 1000}\n"
    settled = sum(row["used"] in SETTLED for row in changed.values())
    yield (
        f"**{len(changed)} of {one['claims']} verdicts differ** ({len(changed) / one['claims']:.1%}); "
        f"{len(turned) or 'none'} of these {'is' if len(turned) < 2 else 'are'} from *holds* to *fails* or back"
        f"{': ' + ', '.join(turned) if turned else ''}. {settled} were settled on seeds from 1 "
        "(*holds*, *fails* or *cannot fail*); the others were open there, too, or depended on seeds.\n"
    )
    if changed:
        yield from make_criteria.table(
            ["claim", "seeds from 1 and 1001", f"from {seed} and {seed + 1000}", "checks that these do not meet"],
            [[key, row["used"], row["fresh"], "; ".join(row["not met"][:2]) or "–"] for key, row in changed.items()],
        )


def main(arguments: Sequence[str]) -> int:
    """Renew the record from the folder that `arguments` name, if any, and the page."""
    if arguments:
        text = json.dumps(read(Path(arguments[0])), indent=1, ensure_ascii=False) + "\n"
        FRESH.write_text(text, encoding="utf-8")
    DOCUMENT.write_text(page(json.loads(FRESH.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
