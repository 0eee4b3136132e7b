"""Repeat the papers' experiments quickly and compare with what is on record in tests/papers.json.

By default the record's ``shard`` is repeated: the verdicts of some experiments on both blocks of seeds, the controls of
some, and some alternatives of the multiverse (tests/multiverse.json); with `--every` the verdicts of all experiments.
`--paper` repeats the part of one paper, `--experiment` verdicts of named experiments alone.
What differs is an error, whichever way: either something broke, or the record and docs/reproduction.md are out of date.
`--write` renews verdicts, controls and the measured values of claims that do not hold, and takes experiments off the
record's list ``older``: those that have not been judged since the papers' hosts have ns-2's timer. Run
`scripts/make_reproduction.py` after it. Taking more processor time than `--budget` is an error, too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from make_reproduction import note_measured

from explicate_papers import multiverse, trials
from explicate_papers.command import Progress
from explicate_papers.judge import Attempt, attempts
from explicate_papers.register import PAPERS, experiments
from explicate_papers.store import Job, Store

TESTS = Path(__file__).resolve().parent.parent / "tests"
RECORD, UNIVERSES = TESTS / "papers.json", TESTS / "multiverse.json"
EFFORT = "quick"


class Repeat:
    """What is repeated, with one store for all of it."""

    def __init__(self, store: Store, workers: int) -> None:
        self.store = store
        self.workers = workers
        self.rows: list[dict[str, Any]] = []
        """All verdicts with their measured values, as `Verdict.row` has them."""

    def perform(self, jobs: Sequence[Job]) -> None:
        """Run what is missing."""
        with Progress() as told:
            self.store.perform(jobs, self.workers, told)

    def verdicts(self, names: Sequence[str], unfailing: set[str]) -> dict[str, dict[str, str]]:
        """Return the classes of all claims of experiments, on both blocks of seeds."""
        tried = attempts([experiments()[key] for key in names], EFFORT)
        self.perform([job for one in tried for job in one.jobs])
        made: dict[str, dict[str, str]] = {}
        for one in tried:
            verdicts = one.judge(self.store, unfailing).verdicts
            made[one.experiment.id] = {verdict.predicate.id: verdict.word.value for verdict in verdicts}
            self.rows += [verdict.row() for verdict in verdicts]
        return made

    def controls(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the entries of the record of controls of experiments."""
        made: dict[str, Any] = {}
        chosen = [experiments()[key] for key in names]
        trials.run(chosen, EFFORT, lambda one: self.perform(one.block_jobs(0)), self.store, made.__setitem__)
        return made

    def alternative(self, name: str, names: Sequence[str]) -> dict[str, str]:
        """Return the words of experiments with another value of a choice (``I-P13=blind``)."""
        key, _, value = name.partition("=")
        made: dict[str, str] = {}
        for one in names:
            attempt = Attempt(experiments()[one], EFFORT, {key: value})
            self.perform(attempt.block_jobs(0))
            made |= multiverse.words(attempt, self.store)
        return made


def differences(what: str, known: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each claim that differs from the record."""
    for key, word in now.items():
        if known.get(key) != word:
            yield f"{what}{key}: on record {known.get(key, 'nothing')}, now {word}"


def _outcomes(entries: Mapping[str, Any]) -> dict[str, str]:
    return {f"{claim} under “{name}”": outcome for claim, outcome, name in trials.outcomes(entries)}


def _on_record(name: str) -> dict[str, str]:
    entry = multiverse.load(UNIVERSES).get(name[0], {"chosen": {}, "alternatives": {}})
    one = entry["alternatives"].get(name)
    return {**entry["chosen"], **one["differs"]} if one else {}


def main() -> int:
    """Return 1 if something differs from the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", action="store_true", help="the verdicts of all experiments, not only the shard")
    parser.add_argument("--write", action="store_true", help="record the verdicts and the controls")
    parser.add_argument("--paper", choices=PAPERS, help="only the experiments of this paper")
    parser.add_argument(
        "--experiment", action="append", choices=experiments(), metavar="ID", help="only this one's verdicts"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at a time")
    parser.add_argument("--store", type=Path, help="keep finished runs here")
    parser.add_argument("--budget", type=float, help="most seconds of processor time (720, of --every 7200)")
    args = parser.parse_args()
    budget = args.budget or (7200.0 if args.every else 720.0)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    shard, controls = record["shard"], record["controls"].get(EFFORT, {})
    every, verdicts, tried_controls = (
        [name for name in names if args.paper in (None, name[0])]
        for names in (experiments(), shard["verdicts"], shard["controls"])
    )
    alternatives = {name: of for name, of in shard["multiverse"].items() if args.paper in (None, name[0])}
    if args.experiment:
        verdicts, tried_controls, alternatives = args.experiment, [], {}
    began = time.process_time()  # of all threads: other work of the machine does not count
    flips: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        repeat = Repeat(Store(args.store or Path(scratch)), args.jobs)
        tried = repeat.controls(tried_controls)
        flips += differences("control: ", _outcomes(controls), _outcomes(tried))
        if args.write:
            controls = {**controls, **tried}
        chosen = every if args.every and not args.experiment else verdicts
        now = repeat.verdicts(chosen, trials.unfailing(controls))
        for name, words in now.items():
            flips += differences("", record[EFFORT].get(name, {}), words)
        for name, of in alternatives.items():
            flips += differences(f"{name}: ", _on_record(name), repeat.alternative(name, of))
    spent = time.process_time() - began
    if args.write:
        known = {**record[EFFORT], **now}
        record[EFFORT] = {key: known[key] for key in experiments() if key in known}
        record["older"] = [key for key in record["older"] if key not in now]
        record["controls"][EFFORT] = {key: controls[key] for key in experiments() if key in controls}
        note_measured(record, repeat.rows)
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    held = sum(word == "holds" for words in now.values() for word in words.values())
    print(
        f"{len(now)} experiments, {held} of {sum(map(len, now.values()))} claims hold; "
        f"{len(_outcomes(tried))} trials of controls, {len(alternatives)} alternatives; "
        f"{len(flips)} differ from the record; {spent:.0f} s of processor time"
    )
    print("\n".join(flips))
    if spent > budget:
        print(
            f"it took more than {budget:.0f} s of processor time: make experiments smaller or the shard",
            file=sys.stderr,
        )
        return 1
    return 1 if flips and not args.write else 0


if __name__ == "__main__":
    sys.exit(main())
