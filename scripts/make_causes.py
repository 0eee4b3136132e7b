"""Write docs/reproduction-causes.md: why each claim that is not "holds" does not hold, by two readers.

Their labels are in papers/readings/causes.json; verdicts are those of the quick set on record in tests/papers.json.
papers/readings/needed.toml says which runs labels still need. `--run` makes those that tests/papers-causes.json lacks,
the shortest first, and records what they give; finished runs are kept in `--store`, so the same command goes on where
it was stopped. Run it after any of these files changed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import make_criteria
from causes_measures import MEASURES, Measure
from make_reproduction import state

from explicate.files import write_text
from explicate_papers import trials
from explicate_papers.command import DEFAULT_STORE, RUNS, Progress
from explicate_papers.evidence import Quantity, listed, quantities
from explicate_papers.judge import ENLARGED, Attempt
from explicate_papers.plan import seeds
from explicate_papers.register import PAPERS, experiments
from explicate_papers.store import Store
from explicate_papers.verdicts import Block, Word, classify

DOCUMENT = make_criteria.ROOT / "docs" / "reproduction-causes.md"
MEASURED = make_criteria.ROOT / "tests" / "papers-causes.json"
EFFORT = "quick"
MINUTE_S = 60

LABELS = {
    "paper": "the sentence contradicts the paper's own numbers or its protocol's equations",
    "open parameter": "the paper leaves a setting open, and the claim holds with another value of it",
    "seeds": "chance decides: with the number of seeds that were run, the mean is too close to the bound",
    "not reproduced": "three or more settings were tried, and the claim holds with none of them",
    "ours": "our code, our judge or our reading of the paper is the cause, and it is not mended",
    "construction": "the claim is a rule, a formula or a definition, or no change of the experiment makes it fail",
}
"""What each label says."""

HEAD = """\
# Why claims do not hold

<!-- Made by `scripts/make_causes.py`. -->

[The reproduction](reproduction.md) gives each claim of the papers a verdict. Of {claims} claims {all} have another one
than "holds". This page says why. Two readers gave each of these {all} a cause. They had the papers, our judges, the
settings that were tried and [the readings of the papers' sentences](reproduction-criteria.md); neither knew the other's
causes. They give {agreed} claims the same one. For the others the tables have both, with the evidence for both.
"""
AFTER = """\
How to read the tables of the papers:

- *Verdict*: [the page of the reproduction](reproduction.md) says what the six verdicts mean.
- *Cause*: a question mark stands beside it if a reader is not sure ({unsure} claims).
- *Evidence* names settings by their number. N-P4 is the fourth setting that paper N leaves open; the page of the
  reproduction says what each of them is and which value is used. "Used" means with these values. Two figures joined
  by "and" are those of the two blocks of seeds. Claims whose verdict moved when senders began to do what the authors'
  agents do were read anew. The others keep their evidence of before: "used" there means the values of that time, and
  where figures differ, those of [the explanations](reproduction.md) are today's.
- *Lacks*: a measurement that could still change the cause. {lacking} claims have one. It is the first reader's or, if
  only the second names one, the second's. [What is still to be measured](#what-is-still-to-be-measured) has the runs.

Both readers' words for every claim are in `papers/readings/causes.json`.
"""
NEEDED = """\
## What is still to be measured

{claims} claims lack measurements that can be made today, in {runs} runs. One command makes the runs that are not on
record yet, records their verdicts and figures in `tests/papers-causes.json`, and writes them into the tables above:

    python scripts/make_causes.py --run --jobs 2

It begins with the shortest. If it is stopped, the same command goes on where it was. All runs take about {minutes}
minutes of processor time; this is an estimate from the simulated time and from what similar experiments took.
"""
BUILD = """\
For {claims} claims something has to be written before the measurement can be made:
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


@cache
def plan() -> dict[str, Any]:
    """Return what needed.toml holds."""
    return tomllib.loads((make_criteria.READINGS / "needed.toml").read_text(encoding="utf-8"))


def needed() -> dict[str, dict[str, Any]]:
    """Return for each claim whose label lacks a measurement: `runs`, what to `build` first, what is `known` since."""
    return {row["id"]: row for row in plan()["claim"]}


def expected_s(run: str) -> int:
    """Return about how much processor time a run takes, s."""
    experiment, *rest = run.split()
    return int(plan()["seconds"][experiment]) * (ENLARGED if "--enlarge" in rest else 1)


def measured() -> dict[str, Any]:
    """Return what the runs of `needed` have given, unless a judge, its cases or the choices have changed since."""
    known: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.is_file() else {}
    return {
        run: one
        for run, one in known.items()
        if all(said["frozen"] == state(claim) for claim, said in one["claims"].items())
    }


def lacks(cause: Mapping[str, Any]) -> str:
    """Return the measurement that a label still needs; nothing if both readers have all, or if it has been made."""
    first, second = cause["readers"]
    row, done = needed().get(cause["id"], {}), measured()
    open_ = "build" in row or any(run not in done for run in row.get("runs", []))
    return str(first["missing"] or second["missing"]) if open_ else ""


def since(claim: str) -> list[str]:
    """Return what has been measured since a claim was labelled, a text for each source."""
    row, done = needed().get(claim, {}), measured()
    found = [row["known"]] if "known" in row else []
    for run in row.get("runs", []):
        if run in done:
            one = done[run]["claims"][claim]
            found.append(f"{said(run)}: {one['verdict']}; {'; '.join(one['measured'])}")
    return found


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
            later = "".join(f" Measured since: {text.rstrip('.')}." for text in since(row["id"]))
            body.append([row["id"], verdicts[row["id"]], label, evidence, (lacks(row) + later).strip()])
        yield f"## {letter}: {paper.authors}\n"
        yield from make_criteria.table(["claim", "verdict", "cause", "evidence", "lacks"], body)


def runs() -> dict[str, list[str]]:
    """Return the runs of `needed` in the order of the register, each with the claims that need it."""
    found: dict[str, list[str]] = {}
    for claim, row in needed().items():
        for run in row.get("runs", []):
            found.setdefault(run, []).append(claim)
    return found


def still() -> Iterator[str]:
    """Yield what is still to be measured: runs with their processor time, and what has to be written first."""
    wanted, done, rows = runs(), measured(), needed()
    lacking = {run: claims for run, claims in wanted.items() if run not in done}
    claims = {claim for names in lacking.values() for claim in names}
    minutes = round(sum(map(expected_s, lacking)) / MINUTE_S)
    yield NEEDED.format(runs=len(lacking), claims=len(claims), minutes=minutes)
    body = [[said(run), ", ".join(names), expected_s(run)] for run, names in lacking.items()]
    yield from make_criteria.table(["run", "claims", "processor time, about, s"], body)
    built = {claim: row["build"] for claim, row in rows.items() if "build" in row}
    yield BUILD.format(claims=len(built))
    yield from make_criteria.table(["claim", "to be written"], list(built.items()))


def page() -> str:
    """Return the page."""
    rows = causes()
    head = HEAD.format(claims=len(make_criteria.words()), all=len(rows), agreed=sum(map(agreed, rows)))
    after = AFTER.format(lacking=sum(bool(lacks(row)) for row in rows), unsure=sum(map(unsure, rows)))
    return "\n".join([head, *counts(rows), after, *tables(rows), *still()]).rstrip() + "\n"


@cache
def prepared(run: str) -> tuple[Attempt, Measure | None]:
    """Return a run of `needed`, ready to be made, and the measure that takes the place of the claim's judge, if any."""
    parser = argparse.ArgumentParser()
    parser.add_argument("experiment", choices=experiments())
    parser.add_argument("--choice", action="append", default=[], type=lambda text: text.partition("=")[::2])
    parser.add_argument("--enlarge", action="store_true")
    parser.add_argument("--by", choices=MEASURES)
    args = parser.parse_args(shlex.split(run))
    made = Attempt(experiments()[args.experiment], EFFORT, dict(args.choice))
    if args.enlarge:
        made = made.larger(runs()[run])
    measure = MEASURES[args.by] if args.by else None
    if measure and measure.cases:
        made.cases = dict(measure.cases(made.effort))
    return made, measure


def said(run: str) -> str:
    """Return a run as the page shows it."""
    experiment, *rest = run.split()
    if "--by" in rest:
        return f"{experiment}, {MEASURES[rest[-1]].what}"
    return f"`explicate reproduce {run} --quick`"


def judged(run: str, claims: Sequence[str], store: Store, unfailing: set[str]) -> dict[str, Any]:
    """Return what a run, which is in the store, says of its claims: verdict and figures of each."""
    one, measure = prepared(run)
    if measure is None:
        found = {verdict.predicate.id: verdict for verdict in one.judge(store, unfailing).verdicts}
        return {claim: shown(found[claim].word, found[claim].quantities, found[claim].note) for claim in claims}
    blocks = []
    for block in range(one.blocks):
        checks = tuple(measure.checks(one.data(store, block)))
        held = all(check.holds for check in checks)
        blocks.append(Block(seeds(block, 1)[0], held, checks, len(one.block_jobs(block))))
    return {claim: shown(classify(blocks), quantities(blocks)) for claim in claims}


def shown(word: Word, made: Sequence[Quantity], note: str = "") -> dict[str, Any]:
    """Return a verdict and its figures, or why there are none; the first `MET_SHOWN` of those that are met."""
    return {"verdict": word.value, "measured": listed((one.text, one.met) for one in made) or [note]}


def make(store: Store, workers: int, until: float) -> None:
    """Make the runs that are not on record, the shortest first, and record each as soon as it is judged.

    Begin none after `until`, of the monotonic clock.
    """
    record = json.loads(make_criteria.RECORD.read_text(encoding="utf-8"))
    unfailing = trials.unfailing(record["controls"].get(EFFORT, {}))
    for run, claims in sorted(runs().items(), key=lambda item: expected_s(item[0])):
        done = measured()
        if run in done or time.monotonic() > until:
            continue
        began, (one, _) = time.process_time(), prepared(run)
        with Progress() as told:
            store.perform(one.jobs, workers, told)
        done[run] = {
            "claims": {
                claim: {"frozen": state(claim), **made} for claim, made in judged(run, claims, store, unfailing).items()
            },
            "seconds": round(time.process_time() - began),
        }
        kept = {key: done[key] for key in runs() if key in done}
        write_text(MEASURED, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        print(f"{run}: {done[run]['seconds']} s of processor time", flush=True)


def main() -> None:
    """Make the runs that labels lack, or not, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="make the runs that are not on record")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no run after this time")
    parser.add_argument("--store", type=Path, default=DEFAULT_STORE / RUNS, help="keep finished runs here")
    args = parser.parse_args()
    if args.run:
        make(Store(args.store), args.jobs, time.monotonic() + args.seconds)
    write_text(DOCUMENT, page())


if __name__ == "__main__":
    main()
