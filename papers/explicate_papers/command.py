"""The command ``explicate reproduce``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from explicate.errors import BadInputError
from explicate.files import write_text
from explicate.source import overrides_of
from explicate.text import table
from explicate_papers import gallery, joint, multiverse, stacks, trials
from explicate_papers.judge import ENLARGED, Attempt, Outcome, Verdict, attempts, to_enlarge
from explicate_papers.plan import choices, studies
from explicate_papers.register import OLD_NAMES, PAPERS, Experiment, Paper, experiments, paper_named
from explicate_papers.store import Store
from explicate_papers.verdicts import COUNTED, Word

RUNS = "runs"
DEFAULT_STORE = Path("out") / "papers"
CONTROLS = "controls.json"
MULTIVERSE = "multiverse.json"
REPLACED = "replaced.json"


def reproduce(args: argparse.Namespace) -> int:
    """Run and judge the requested experiments; return 1 if a predicate fails."""
    if args.list:
        print(_listing(chosen(args.what or ["all"])))
        return 0
    folder = Path(args.out) if args.out else DEFAULT_STORE
    workers = args.jobs or os.cpu_count() or 1
    if args.joint:
        return joint.command(args, folder, workers, Progress)
    if args.hours is not None:
        raise BadInputError("--hours is the time of --joint")
    if args.multiverse or args.law_table:
        return _multiverse(args, folder, workers)
    if not args.what:
        raise BadInputError("name experiments, papers or `all`; `explicate reproduce --list` shows them")
    what = chosen(args.what)
    if args.controls and (args.choice or args.set or args.stack or args.seed != 1):
        raise BadInputError("--controls runs the experiments as planned: leave out --choice, --set, --stack and --seed")
    changed = _changed(args.choice, what)
    stack = _stack(args)
    effort = "quick" if args.quick else "full" if args.full else "all"
    store = Store(folder / RUNS)
    kept = folder / CONTROLS
    if args.controls:
        _controls(what, effort, store, workers, kept)
    entries = trials.load(kept, effort)
    unfailing = trials.unfailing(entries)
    tried = attempts(what, effort, changed, dict(overrides_of(args.set)), stack, args.seed)
    outcomes = _judged(tried, store, workers, unfailing)
    if args.enlarge:
        open_ = to_enlarge(outcomes)
        more = [one.larger(open_[one.experiment.id]) for one in tried if one.experiment.id in open_]
        larger = {one.experiment.id: one for one in _judged(more, store, workers, unfailing)}
        outcomes = [larger.get(one.experiment.id, one) for one in outcomes]
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    pages = folder / stack / (f"seed-{args.seed}" if args.seed != 1 else "")
    if args.out:
        _write(outcomes, pages, stack, (entries, multiverse.load(folder / MULTIVERSE)))
    if args.json:
        print(json.dumps([verdict.row() for verdict in verdicts], indent=2, ensure_ascii=False))
    else:
        print(_report(outcomes, {} if stack else entries))
        if args.out:
            print(f"\nwritten: {pages}/index.html (open it in a browser)")
    return 1 if any(verdict.word is Word.FAILS for verdict in verdicts) else 0


def _judged(tried: Sequence[Attempt], store: Store, workers: int, unfailing: Collection[str]) -> list[Outcome]:
    with Progress() as told:
        store.perform([job for one in tried for job in one.jobs], workers, told)
    return [one.judge(store, unfailing) for one in tried]


def _write(outcomes: Sequence[Outcome], pages: Path, stack: str, records: tuple[Any, Any]) -> None:
    """Write the pages; the records of controls and of other choices are those of the papers' hosts."""
    if not stack:
        gallery.write(outcomes, pages, *records)
        return
    gallery.write(outcomes, pages)
    found = {outcome.experiment.id: stacks.rows(outcome.replaced) for outcome in outcomes}
    text = json.dumps({"stack": stack, "experiments": found}, indent=1, ensure_ascii=False)
    write_text(pages / REPLACED, text + "\n")


def _controls(what: Sequence[Experiment], effort: str, store: Store, workers: int, kept: Path) -> None:
    """Run the controls of `what`, and record each experiment as soon as it is finished."""

    def note(experiment: str, entry: dict[str, Any]) -> None:
        trials.save(kept, effort, {experiment: entry})

    with Progress() as told:
        trials.run(what, effort, lambda one: store.perform(one.block_jobs(0), workers, told), store, note)


def _multiverse(args: argparse.Namespace, folder: Path, workers: int) -> int:
    """Complete and show the record of the multiverse of the named papers; return 0."""
    letters = _letters(args)
    file = folder / MULTIVERSE
    store = Store(folder / RUNS)
    record = multiverse.load(file)
    with Progress() as told:
        for letter in letters:
            paper = multiverse.Paper(letter, record.get(letter, {}))
            record[letter] = paper.entry
            paper.run(
                multiverse.alternatives(letter, {multiverse.LAW} if args.law_table else ()),
                lambda jobs, into: into.perform(jobs, workers, told),
                store,
                folder,
                lambda: multiverse.save(file, record),
            )
    shown = {letter: record[letter] for letter in letters}
    if args.json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    elif args.law_table:
        head, *body = multiverse.by_claim(record["I"], choices(PAPERS["I"])[multiverse.LAW])
        print(table(head, body, left=len(head)))
    else:
        print("\n".join(_universes(shown)))
    return 0


def _letters(args: argparse.Namespace) -> list[str]:
    if args.choice or args.set or args.controls or args.enlarge or args.stack or args.seed != 1:
        raise BadInputError("the multiverse changes one choice after another: leave out all other changes")
    papers = {name: _paper(name) for name in args.what}
    letters = [paper.letter for paper in papers.values() if paper]
    if args.law_table:
        if args.what and letters != ["I"]:
            raise BadInputError("--law-table is about paper I alone")
        return ["I"]
    if args.what in ([], ["all"]):
        return list(PAPERS)
    if strange := [name for name, paper in papers.items() if paper is None]:
        raise BadInputError(f"--multiverse takes papers ({', '.join(PAPERS)}) or all, not {', '.join(strange)}")
    return letters


def _paper(name: str) -> Paper | None:
    """Return the paper of this name, or None; warn if the name is an old one."""
    paper = paper_named(name)
    if paper is not None and name in OLD_NAMES:
        print(f"warning: paper {name} is now called {paper.letter} or {paper.slug}", file=sys.stderr)
    return paper


def _universes(record: Mapping[str, Any]) -> Iterator[str]:
    for letter, entry in record.items():
        lines = [[line.name, str(line.held) if line.whole else "–", line.flips] for line in multiverse.lines(entry)]
        found = multiverse.span({letter: entry})
        if found:
            yield table([f"paper {letter}: another choice", "hold", "what differs"], lines, left=3)
            yield f"paper {letter}: {found.least} hold at least, {found.chosen} as chosen, {found.most} at most\n"


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments that ids, papers (``D``, ``de_vleeschouwer``) or ``all`` name; raise BadInputError."""
    known = experiments()
    found: dict[str, Experiment] = {}
    for name in names:
        if name == "all":
            found.update(known)
        elif paper := _paper(name):
            found.update({key: one for key, one in known.items() if one.paper is paper})
        elif name in known:
            found[name] = known[name]
        else:
            near = ", ".join(key for key in known if key.casefold().startswith(name.casefold()[:5]))
            hint = f"; near it: {near}" if near else ""
            raise BadInputError(
                f"{name}: no such experiment{hint}; `explicate reproduce --list` shows all of {', '.join(PAPERS)}"
            )
    return [one for key, one in known.items() if key in found]


def _changed(pairs: Sequence[tuple[str, str]], what: Sequence[Experiment]) -> dict[str, str]:
    known = {key: choice for paper in PAPERS.values() for key, choice in choices(paper).items()}
    for key, _ in pairs:
        if key not in known:
            raise BadInputError(f"--choice {key}: no such parameter; there are {', '.join(known)}")
        letter = key.partition("-")[0]
        if not any(one.id.startswith(f"{letter}-") for one in what):
            raise BadInputError(f"--choice {key}: name an experiment of paper {letter}, too")
    return dict(pairs)


def _stack(args: argparse.Namespace) -> str:
    """Return the stack of the hosts, or nothing for the papers'."""
    if args.stack and any(key.rpartition(".")[2] == "stack" for key, _ in args.set):
        raise BadInputError("--stack and --set stack name two stacks: leave out one of them")
    return stacks.known(args.stack) if args.stack else ""


def _listing(what: Sequence[Experiment]) -> str:
    made = studies()
    body = []
    for one in what:
        study = made.get(one.id)
        judged = f"{len(study.rules)}/{len(one.predicates)}" if study else f"0/{len(one.predicates)}"
        body.append([one.id, one.figure, one.kind, judged, one.title])
    return table(["experiment", "source", "kind", "judged", "title"], body, left=5)


def _report(outcomes: Sequence[Outcome], controls: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    done: dict[str, list[str]] = {}
    for claim, result, name in trials.outcomes(controls):
        done.setdefault(claim, []).append(f"{result} under control “{name}”")
    for outcome in outcomes:
        one = outcome.experiment
        lines.append(f"{one.id}  {one.title} ({one.paper.authors}, {one.figure})")
        if outcome.opened:
            lines.append(f"  enlarged to {ENLARGED} times the seeds: {', '.join(outcome.opened)} could go either way")
        if outcome.stack:
            lines += [f"  stack {outcome.stack} replaces in {text}" for text in stacks.lines(outcome.replaced)]
        for verdict in outcome.verdicts:
            lines += _told(verdict)
            lines += [f"           {text}" for text in done.get(verdict.predicate.id, [])]
        lines.append("")
    counts = count([verdict for outcome in outcomes for verdict in outcome.verdicts])
    lines.append(", ".join(f"{number} {COUNTED[word]}" for word, number in counts.items()))
    return "\n".join(lines)


def _told(verdict: Verdict) -> Iterator[str]:
    word = "FAILS" if verdict.word is Word.FAILS else verdict.word.value
    judged = " (no seed changes it)" if verdict.deterministic else ""
    yield f"  {word:<16} {verdict.predicate.id}  {verdict.predicate.statement}{judged}"
    for place, block in enumerate(verdict.blocks):
        if len(verdict.blocks) > 1 and block.holds is not None:
            same = "; measured as before" if place and block.measured == verdict.blocks[0].measured else ""
            yield f"           seeds from {block.first_seed}: {'holds' if block.holds else 'fails'}{same}"
            if same:
                continue
        yield from (f"           {'' if check.holds else '✗ '}{check}" for check in block.checks)
        if block.holds is not None and not block.checks:
            yield f"           ✗ {block.note}"
    if verdict.note:
        yield f"           {verdict.note}"


def count(verdicts: Sequence[Verdict]) -> Mapping[Word, int]:
    """Count the verdicts of each class; the sum is the number of verdicts."""
    return {word: sum(verdict.word is word for verdict in verdicts) for word in Word}


class Progress:
    """One line on a terminal: the share of the simulated time that is done, and the remaining time."""

    def __init__(self) -> None:
        self._active = sys.stderr.isatty()
        self._began = time.monotonic()

    def __call__(self, done: float, all_of: float, /) -> None:
        """Show the progress."""
        if not self._active or all_of == 0:
            return
        spent = time.monotonic() - self._began
        left = f", {_span(spent * (all_of - done) / done)} left" if done else ""
        sys.stderr.write(f"\r\033[Kreproducing: {done / all_of:.0%}, {_span(spent)} so far{left}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the line."""
        if self._active:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
