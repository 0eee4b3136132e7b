"""Judge the papers' experiments with the TCP that hosts run, and write which conclusions survive.

`--run` judges the experiments that tests/papers-linux.json lacks, with `--stack linux`, the quick set, both blocks of
seeds, those with the least simulated time first. Then it repeats, as the papers have them, those with a claim whose
verdict differs, for the numbers that decide it; `--compare` does that alone. Each experiment is recorded as soon as it
is judged, and finished runs are kept in `--store`: the same command goes on where it was stopped. `--experiment` names
experiments, which are judged in this order also if they are on record.

The pages docs/papers-today.md and docs/papers-today-claims.md are made from the record, after each run or without one.
Verdicts with ns-2's TCP are those of tests/papers.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from make_reproduction import table

from explicate.files import write_text
from explicate_papers import freeze, stacks, trials
from explicate_papers.command import DEFAULT_STORE, RUNS, Progress
from explicate_papers.judge import Attempt, Outcome, Verdict
from explicate_papers.plan import seeds
from explicate_papers.register import JUDGED, PAPERS, experiments, predicates
from explicate_papers.store import Store
from explicate_papers.verdicts import COUNTED, Word, open_checks

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "papers-linux.json"
PLANNED = ROOT / "tests" / "papers.json"
CONCLUSIONS = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "docs" / "papers-today.md"
CLAIMS = ROOT / "docs" / "papers-today-claims.md"
STACK, EFFORT = "linux", "quick"
NOT_MEANINGFUL, NOT_RUN = "not meaningful", "not yet run"
SHOWN = 2
"""The most checks that are shown of a claim."""
HEAD = """\
# The papers, with the TCP that hosts run

<!-- Made by `scripts/papers_today.py`. -->

The five papers compare their protocols with the TCP of a simulator, which has more timeouts than the TCP that hosts run
today ([which TCP is this?](explanation/which-tcp.md)). Do their conclusions survive if all hosts have Linux's TCP
instead? `explicate reproduce all --stack linux` repeats the experiments in this way, and lists each setting that it
replaces. Receive windows, buffers and packet sizes stay. So does Reno's rule for TCP's window, which Linux has too;
Linux's default, CUBIC, is not used. An explicit protocol gets three parts of Linux's TCP: the retransmission timer, the
repair of losses and the host's queue. One that is named after a repair of its own, such as LR-XCP, keeps that.

The table has the papers' conclusions in our words. Each rests on several claims; the two columns of counts say how many
of them hold, of those that have been judged. *Yes*: each claim that holds with ns-2's TCP, that of the papers'
simulators, also holds with Linux's. *Open*: one of these claims is undecided or depends on seeds, and none fails.
*In part* and *no*: some of them fail, or all. *Did not hold*: none holds with ns-2's TCP. Claims after "now" hold with
Linux's TCP alone.
"""
CLAIMS_HEAD = f"""\
# The papers' claims with two TCPs

<!-- Made by `scripts/papers_today.py`. -->

Every claim of the authors, with the verdict of the [reproduction](reproduction.md), whose hosts have ns-2's TCP, and
with `--stack linux` ([which conclusions survive](papers-today.md)). Judges, criteria and seeds are the same, those of
the quick set. Where verdicts differ, the numbers that decide them stand beside them: means of the first block of seeds
in which a check differs, with 95 % intervals, at most {SHOWN} checks, ✗ where a check fails.
"""

Record = dict[str, Any]


def load() -> Record:
    """Return the record; empty at first."""
    empty: Record = {"stack": STACK, "effort": EFFORT, "experiments": {}}
    made: Record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else empty
    return made


def save(record: Record) -> None:
    """Write the record, experiments in the order of the register."""
    known = record["experiments"]
    record["experiments"] = {key: known[key] for key in experiments() if key in known}
    write_text(RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def planned() -> Record:
    """Return the record of the experiments as the papers have them."""
    made: Record = json.loads(PLANNED.read_text(encoding="utf-8"))
    return made


# ------------------------------------------------------------------------------------------------ running


class Run:
    """Judges experiments with the stack, and records them."""

    def __init__(self, store: Store, workers: int, until: float) -> None:
        self.store, self.workers, self.until = store, workers, until
        self.record = load()
        self.unfailing = trials.unfailing(planned()["controls"].get(EFFORT, {}))
        self.failed: list[str] = []

    def outcome(self, name: str, stack: str) -> Outcome:
        """Run what is missing of an experiment with a stack, and judge it."""
        attempt = Attempt(experiments()[name], EFFORT, stack=stack)
        with Progress() as told:
            self.store.perform(attempt.jobs, self.workers, told)
        return attempt.judge(self.store, self.unfailing)

    def each(self, names: Sequence[str], compare: bool) -> None:
        """Judge these experiments, with the stack or, to `compare`, as the papers have them."""
        for name in names:
            if time.monotonic() > self.until:
                return
            began = time.process_time()
            try:
                said = self.compared(name) if compare else self.judged(name)
            except (ValueError, RuntimeError) as error:
                self.failed.append(name)
                said = f"{type(error).__name__}: {error}"
            else:
                save(self.record)
            print(f"{name}: {said}; {time.process_time() - began:.0f} s of processor time", flush=True)

    def judged(self, name: str) -> str:
        """Judge and record an experiment with the stack."""
        began = time.process_time()
        outcome = self.outcome(name, STACK)
        made = outcome.verdicts
        counts = sorted({outcome.count(case) for case in (outcome.cases or {}).values()})
        self.record["experiments"][name] = {
            "frozen": freeze.of_experiment(name),
            "seconds": round(time.process_time() - began),
            "seeds": {"first": [seeds(block, 1)[0] for block in range(outcome.blocks)], "a case": counts},
            "replaced": stacks.rows(outcome.replaced),
            "claims": {
                one.predicate.id: {"verdict": word(one), "measured": numbers(one, telling(one))} for one in made
            },
        }
        changed = differing(name, self.record)
        return f"{sum(one.word is Word.HOLDS for one in made)} of {len(made)} claims hold, {len(changed)} differ"

    def compared(self, name: str) -> str:
        """Record the numbers that decide the claims of an experiment which differ, with both stacks."""
        entry = self.record["experiments"][name]
        tried = [self.outcome(name, stack) for stack in ("", STACK)]
        usual, hosts = ({one.predicate.id: one for one in outcome.verdicts} for outcome in tried)
        entry["papers"] = {}
        for claim in differing(name, self.record):
            block, places = deciding(usual[claim], hosts[claim])
            entry["claims"][claim]["measured"] = numbers(hosts[claim], places, block)
            entry["papers"][claim] = {"verdict": word(usual[claim]), "measured": numbers(usual[claim], places, block)}
        known = planned()[EFFORT][name]
        moved = [claim for claim, one in entry["papers"].items() if one["verdict"] != known[claim]]
        return f"{len(entry['papers'])} compared" + (f"; not as on record: {', '.join(moved)}" if moved else "")


def word(verdict: Verdict) -> str:
    """Return the class of a claim as the record has it."""
    return NOT_MEANINGFUL if verdict.predicate.id in stacks.meaningless(verdict.stack) else verdict.word.value


def telling(verdict: Verdict) -> list[int]:
    """Return which checks of the first block of seeds are recorded: those that fail, or all of them if none fails."""
    checks = verdict.blocks[0].checks if verdict.blocks else ()
    return [place for place, check in enumerate(checks) if not check.holds] or list(range(len(checks)))


def deciding(usual: Verdict, hosts: Verdict) -> tuple[int, list[int]]:
    """Return the checks that make two verdicts differ: the number of their block of seeds, and their places in it.

    They are the checks that hold with one stack and fail with the other, in the first block of seeds with such checks.
    Without any, they are the checks that are undecided with one of the stacks only. Without these too, they are the
    checks that fail with the hosts' stack.
    """
    results = [[[check.holds for check in block.checks] for block in one.blocks] for one in (usual, hosts)]
    doubts = [open_checks([block.checks for block in one.blocks]) for one in (usual, hosts)]
    for one, other in (results, doubts):
        for block, (row, beside) in enumerate(zip(one, other, strict=False)):
            pairs = enumerate(zip(row, beside, strict=False))
            if places := [place for place, (before, after) in pairs if before != after]:
                return block, places
    return 0, telling(hosts)


def numbers(verdict: Verdict, places: Sequence[int], block: int = 0) -> list[str]:
    """Return the measurements of a block at these places, at most `SHOWN`, and how many more there are."""
    blocks = verdict.blocks[block : block + 1]
    there = [one.checks[place] for one in blocks for place in places if place < len(one.checks)]
    if not there:
        return [one.note for one in blocks if one.note]
    rest = [f"{len(there) - SHOWN} more"] if len(there) > SHOWN else []
    return [f"{'' if check.holds else '✗ '}{check}" for check in there[:SHOWN]] + rest


def differing(name: str, record: Record) -> list[str]:
    """Return the claims of an experiment whose verdict differs between the stacks, without those of no meaning."""
    known = planned()[EFFORT][name]
    claims = record["experiments"][name]["claims"]
    return [key for key, one in claims.items() if one["verdict"] not in (known.get(key), NOT_MEANINGFUL)]


def older(record: Record) -> list[str]:
    """Return the experiments on record whose judges, cases or choices have changed since."""
    return [key for key, one in record["experiments"].items() if one["frozen"] != freeze.of_experiment(key)]


def simulated_s(name: str) -> float:
    """Return the simulated time of an experiment's runs, s."""
    return sum(job.cost for job in Attempt(experiments()[name], EFFORT, stack=STACK).jobs)


def run(args: argparse.Namespace) -> int:
    """Judge what is missing; return 1 if an experiment could not be run."""
    until = time.monotonic() + args.seconds if args.seconds else float("inf")
    work = Run(Store(args.store), args.jobs, until)
    done = work.record["experiments"].keys() - set(older(work.record))
    if not args.compare:
        missing = (key for key in experiments() if key not in done)
        work.each(args.experiment or sorted(missing, key=simulated_s), compare=False)
    known = work.record["experiments"]
    chosen = [key for key in args.experiment or known if key in known and differing(key, work.record)]
    work.each([key for key in chosen if args.experiment or "papers" not in known[key]], compare=True)
    missing = [key for key in experiments() if key not in known]
    print(
        f"{len(known)} of {len(experiments())} experiments are on record; not yet run: {', '.join(missing) or 'none'}"
    )
    return 1 if work.failed else 0


# ------------------------------------------------------------------------------------------------- pages


def words(record: Record) -> tuple[dict[str, str], dict[str, str]]:
    """Return the verdicts of all claims with ns-2's TCP, and of those that were run with the hosts'."""
    usual = {key: said for one in planned()[EFFORT].values() for key, said in one.items()}
    hosts = {key: one["verdict"] for row in record["experiments"].values() for key, one in row["claims"].items()}
    return usual, hosts


def conclusions() -> list[dict[str, Any]]:
    """Return the papers' conclusions with their claims."""
    made: list[dict[str, Any]] = tomllib.loads(CONCLUSIONS.read_text(encoding="utf-8"))["conclusion"]
    return made


def fate(claims: Sequence[str], usual: Mapping[str, str], hosts: Mapping[str, str]) -> tuple[str, str, str]:
    """Return how many claims hold with either TCP, and whether the conclusion survives.

    It survives as far as it held: only claims that hold with ns-2's TCP are counted against it. It is open if some of
    these are undecided or depend on seeds, and none fails.
    """
    meant = [key for key in claims if hosts.get(key) != NOT_MEANINGFUL]
    held = [key for key in meant if usual[key] == Word.HOLDS]
    there = [key for key in meant if key in hosts]
    before = f"{len(held)} of {len(meant)}"
    now = f"{sum(hosts[key] == Word.HOLDS for key in there)} of {len(there)}" if there else "–"
    open_ = [key for key in held if key not in hosts]
    lost = [f"{key} {hosts[key]}" for key in held if key in hosts and hosts[key] != Word.HOLDS]
    fallen = [key for key in held if hosts.get(key) == Word.FAILS]
    gained = [key for key in there if hosts[key] == Word.HOLDS and key not in held]
    more = f"; now {listed(gained)} {'holds' if len(gained) == 1 else 'hold'}" if gained else ""
    if not there or (held and len(open_) == len(held)):
        return before, now, NOT_RUN
    if not held:
        return before, now, f"did not hold{more}"
    if lost:
        said = "open" if not fallen else "no" if len(fallen) == len(held) else "in part"
        return before, now, f"**{said}**: {listed(lost)}{more}"
    return before, now, f"{'yes' if not open_ else f'so far; not yet run: {listed(open_)}'}{more}"


def listed(names: Collection[str]) -> str:
    """Return names with commas."""
    return ", ".join(names)


def tally(usual: Mapping[str, str], hosts: Mapping[str, str]) -> Iterator[str]:
    """Yield what became of the authors' claims that were run, in sentences."""
    mine = [key for key in hosts if predicates()[key].basis in JUDGED]
    meant = [key for key in mine if hosts[key] != NOT_MEANINGFUL]
    held = [key for key in meant if usual[key] == Word.HOLDS]
    now = Counter(hosts[key] for key in held)
    gained = sum(hosts[key] == Word.HOLDS for key in meant if key not in held)
    lost = ", ".join(f"{number} {COUNTED[Word(said)]}" for said, number in now.most_common() if said != Word.HOLDS)
    yield (
        f"{len(meant)} claims of the authors have been judged with both TCPs. {len(held)} hold with ns-2's, and "
        f"{now[Word.HOLDS]} of these also with Linux's{f' (the others: {lost})' if lost else ''}. "
        f"{gained} hold with Linux's alone."
    )
    if len(mine) > len(meant):
        yield f"{len(mine) - len(meant)} more are about parts of TCP that are replaced, so they are not judged."


def page(record: Record) -> str:
    """Return the page of one screen."""
    usual, hosts = words(record)
    done = record["experiments"]
    changed = (
        f" Of {len(older(record))} of these a judge or a list of choices has changed since." if older(record) else ""
    )
    lines = [
        HEAD,
        " ".join(tally(usual, hosts)) if hosts else "No experiment has been run yet.",
        f"{len(done)} of {len(experiments())} experiments have been run, the quick set, both blocks of seeds.{changed} "
        "[Claim by claim](papers-today-claims.md)\n",
    ]
    body = [[one["paper"], one["says"], *fate(one["claims"], usual, hosts)] for one in conclusions()]
    lines += table(["paper", "conclusion", "hold with ns-2's TCP", "hold with Linux's", "does it survive?"], body)
    return "\n".join(lines) + "\n"


def claims_page(record: Record) -> str:
    """Return the page with every claim of the authors, its two verdicts, and the numbers where they differ."""
    usual, hosts = words(record)
    changed = older(record)
    lines = [CLAIMS_HEAD]
    if changed:
        lines += [f"A judge or a list of choices has changed since these were run: {listed(changed)}.\n"]
    for letter, paper in PAPERS.items():
        lines += [f"## {letter}: {paper.authors}\n"]
        body = [
            [key, predicate.statement, usual[key], hosts.get(key, NOT_RUN), _decided(one.id, key, record)]
            for one in experiments().values()
            if one.paper is paper
            for key, predicate in ((predicate.id, predicate) for predicate in one.predicates)
            if predicate.basis in JUDGED
        ]
        lines += [*table(["claim", "statement", "ns-2's TCP", "Linux's TCP", "what decides"], body), ""]
    lines += ["## What was replaced\n", *_replaced(record)]
    return "\n".join(lines).rstrip() + "\n"


def _decided(name: str, claim: str, record: Record) -> str:
    entry = record["experiments"].get(name)
    if entry is None:
        return ""
    if entry["claims"][claim]["verdict"] == NOT_MEANINGFUL:
        return stacks.meaningless(STACK)[claim]
    if claim not in differing(name, record):
        return ""
    hosts = "; ".join(entry["claims"][claim]["measured"])
    usual = entry.get("papers", {}).get(claim)
    return f"Linux's: {hosts}" if usual is None else f"ns-2's: {'; '.join(usual['measured'])}. Linux's: {hosts}"


def _replaced(record: Record) -> Iterator[str]:
    """Yield a table of what was replaced in the experiments on record: experiments with the same line share it."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, entry in record["experiments"].items():
        rows = [stacks.Replaced(**row) for row in entry["replaced"]]
        for line in stacks.lines(rows):
            protocol, _, said = line.partition(": ")
            found.setdefault((protocol, said), []).append(name)
    body = [[protocol, said, listed(names)] for (protocol, said), names in found.items()]
    yield from table(["protocol", "replaced", "experiments"], body)


def main() -> int:
    """Run and record, or not, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="judge what is missing, and compare")
    parser.add_argument("--compare", action="store_true", help="only compare what differs with the papers' hosts")
    parser.add_argument("--experiment", action="append", choices=experiments(), metavar="ID", help="only this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at a time")
    parser.add_argument("--seconds", type=float, help="begin no experiment after this time")
    parser.add_argument("--store", type=Path, default=DEFAULT_STORE / RUNS, help="keep finished runs here")
    args = parser.parse_args()
    status = run(args) if args.run or args.compare else 0
    record = load()
    write_text(PAGE, page(record))
    write_text(CLAIMS, claims_page(record))
    return status


if __name__ == "__main__":
    sys.exit(main())
