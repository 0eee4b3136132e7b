"""The command ``explicate reproduce``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from explicate.errors import BadInputError
from explicate.papers import gallery
from explicate.papers.judge import Outcome, Verdict, attempts
from explicate.papers.plan import choices, studies
from explicate.papers.register import PAPERS, Experiment, experiments
from explicate.papers.store import Store
from explicate.source import overrides_of
from explicate.text import table

RUNS = "runs"
DEFAULT_STORE = Path("out") / "papers"
MARKS = {True: "holds", False: "FAILS", None: "–"}


def reproduce(args: argparse.Namespace) -> int:
    """Run and judge what was asked for; return 1 if a predicate does not hold."""
    if args.list:
        print(_listing(chosen(args.what or ["all"])))
        return 0
    if not args.what:
        raise BadInputError("name experiments, papers or `all`; `explicate reproduce --list` shows them")
    what = chosen(args.what)
    changed = _changed(args.choice, what)
    effort = "quick" if args.quick else "full" if args.full else "all"
    folder = Path(args.out) if args.out else DEFAULT_STORE
    tried = attempts(what, effort, changed, dict(overrides_of(args.set)))
    store = Store(folder / RUNS)
    with Progress() as told:
        store.perform([job for one in tried for job in one.jobs], args.jobs or os.cpu_count() or 1, told)
    outcomes = [one.judge(store) for one in tried]
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    if args.out:
        gallery.write(outcomes, folder)
    if args.json:
        print(json.dumps([verdict.row() for verdict in verdicts], indent=2, ensure_ascii=False))
    else:
        print(_report(outcomes))
        if args.out:
            print(f"\nwritten: {folder}/index.html (open it in a browser)")
    return 1 if any(verdict.holds is False for verdict in verdicts) else 0


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments that ids, papers (``D``, ``003``) or ``all`` name; raise BadInputError."""
    known = experiments()
    numbers = {f"{place:03}": letter for place, letter in enumerate(PAPERS)}
    found: dict[str, Experiment] = {}
    for name in names:
        letter = numbers.get(name, name)
        if name == "all":
            found.update(known)
        elif letter in PAPERS:
            found.update({key: one for key, one in known.items() if one.paper.letter == letter})
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
            raise BadInputError(f"--choice {key}: a parameter of paper {letter}, of which no experiment was named")
    return dict(pairs)


def _listing(what: Sequence[Experiment]) -> str:
    made = studies()
    body = []
    for one in what:
        study = made.get(one.id)
        judged = f"{len(study.rules)}/{len(one.predicates)}" if study else f"0/{len(one.predicates)}"
        body.append([one.id, one.figure, one.kind, judged, one.title])
    return table(["experiment", "source", "kind", "judged", "title"], body, left=5)


def _report(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for outcome in outcomes:
        one = outcome.experiment
        lines.append(f"{one.id}  {one.title} ({one.paper.authors}, {one.figure})")
        for verdict in outcome.verdicts:
            lines.append(f"  {MARKS[verdict.holds]:<6} {verdict.predicate.id}  {verdict.predicate.statement}")
            lines += [f"           {'' if check.holds else '✗ '}{check}" for check in verdict.checks]
            lines += [f"           {verdict.note}"] if verdict.note else []
        lines.append("")
    counts = count([verdict for outcome in outcomes for verdict in outcome.verdicts])
    lines.append(f"{counts[True]} hold, {counts[False]} fail, {counts[None]} not attempted")
    return "\n".join(lines)


def count(verdicts: Sequence[Verdict]) -> Mapping[bool | None, int]:
    """Count the verdicts of each kind."""
    return {kind: sum(verdict.holds is kind for verdict in verdicts) for kind in (True, False, None)}


class Progress:
    """One line on a terminal: the share of the simulated time that is done, and how long the rest will take."""

    def __init__(self) -> None:
        self._active = sys.stderr.isatty()
        self._began = time.monotonic()

    def __call__(self, done: float, all_of: float, /) -> None:
        """Show how far it is."""
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
