"""Runs of controls: each study's mutations run on the first block of seeds, and their claims must fail.

A claim has flipped if it holds in the first block and fails under the mutation. It must fail by a check that sampling
error does not leave open, not by an error or an empty class, and every changed case must still deliver at least a tenth
of its data. Like an experiment, a control that sampling error leaves open is repeated once with four times the seeds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from explicate.files import write_text
from explicate_papers import freeze
from explicate_papers.controls import Control
from explicate_papers.judge import Attempt
from explicate_papers.metrics import delivered
from explicate_papers.plan import studies
from explicate_papers.register import Experiment
from explicate_papers.store import Store
from explicate_papers.study import Empty
from explicate_papers.verdicts import Block, is_open

LEAST = 0.1
"""The share of the original's bytes that a mutated case must deliver."""
FLIPPED, KEPT, INVALID, IDLE = "flipped", "did not flip", "not valid", "not applicable"


@dataclass(frozen=True)
class Trial:
    """The effect of a control on a claim: one of the four words, and the reason.

    `is_open` is true if more seeds could change the outcome.
    """

    outcome: str
    why: str
    is_open: bool = False


def judged(original: Block, mutated: Block, starved: str = "") -> Trial:
    """Return the outcome for a claim; `starved` names a case that delivers too little, if any."""
    if not original.holds:
        return Trial(IDLE, "the claim does not hold in the first block")
    if starved:
        return Trial(INVALID, starved)
    if mutated.holds is None:
        return Trial(INVALID, mutated.note)
    if mutated.holds:
        return Trial(KEPT, mutated.measured)
    made = tuple(check for check in mutated.checks if not isinstance(check, Empty))
    if all(check.holds for check in made):
        return Trial(INVALID, f"a class of runs is empty: {mutated.measured}")
    if is_open([replace(mutated, checks=made)]):
        return Trial(INVALID, f"undecided: {mutated.measured}", is_open=True)
    return Trial(FLIPPED, mutated.measured)


def starved(original: Attempt, mutated: Attempt, store: Store) -> str:
    """Name the first changed case that delivers less than a tenth of the bytes of the case that it replaces."""
    one, other = original.data(store), mutated.data(store)
    for label, case in mutated.cases.items():
        if label not in original.cases:
            return f"case {label} is not in the original"
        if case == original.cases[label]:
            continue
        before, after = (sum(map(delivered, data.runs(label))) / len(data.runs(label)) for data in (one, other))
        if not math.isfinite(after) or after < LEAST * before:
            return f"case {label} delivers {after:.3g} bytes/s, the original {before:.3g}"
    return ""


def run(
    experiments: Iterable[Experiment],
    effort: str,
    perform: Callable[[Attempt], None],
    store: Store,
    note: Callable[[str, dict[str, Any]], None],
) -> None:
    """Run the controls of experiments: `perform` runs what is missing, `note` takes each experiment's entry."""
    known = studies()
    for one in experiments:
        controls = list(known[one.id].controls.values()) if one.id in known else []
        if not controls:
            continue
        original = Attempt(one, effort)
        perform(original)
        holds = original.judge_block(store, 0)
        made = {
            control.name: {
                "kind": control.mutation.kind,
                "why": control.why,
                "claims": _claims(control, original, holds, perform, store),
            }
            for control in controls
        }
        note(one.id, {"key": freeze.of_experiment(one.id), "controls": made})


def _claims(
    control: Control,
    original: Attempt,
    holds: Mapping[str, Block],
    perform: Callable[[Attempt], None],
    store: Store,
) -> dict[str, dict[str, str]]:
    if not any(holds[claim].holds for claim in control.flips):
        idle = judged(Block(1, False), Block(1, None))
        return {claim: {"outcome": idle.outcome, "why": idle.why} for claim in control.flips}
    try:
        mutated = Attempt(original.experiment, original.effort.name, mutation=control.mutation)
        made = _outcomes(control.flips, original, mutated, holds, perform, store)
        if undecided := [claim for claim, trial in made.items() if trial.is_open]:
            made |= _outcomes(undecided, original, mutated.larger(undecided), holds, perform, store)
    except (ValueError, RuntimeError) as problem:
        error = f"it could not be run: {problem}"
        made = {claim: judged(holds[claim], Block(1, None, note=error)) for claim in control.flips}
    return {claim: {"outcome": trial.outcome, "why": trial.why} for claim, trial in made.items()}


def _outcomes(
    claims: Sequence[str],
    original: Attempt,
    mutated: Attempt,
    holds: Mapping[str, Block],
    perform: Callable[[Attempt], None],
    store: Store,
) -> dict[str, Trial]:
    perform(mutated)
    starving = starved(original, mutated, store)
    blocks = mutated.judge_block(store, 0)
    return {claim: judged(holds[claim], blocks[claim], starving) for claim in claims}


def load(file: Path, effort: str) -> dict[str, dict[str, Any]]:
    """Return the entries of an effort that are on record in `file` and still valid, by experiment."""
    if not file.is_file():
        return {}
    entries = json.loads(file.read_text(encoding="utf-8")).get(effort, {})
    known = studies()
    return {key: entry for key, entry in entries.items() if key in known and entry["key"] == freeze.of_experiment(key)}


def save(file: Path, effort: str, entries: Mapping[str, dict[str, Any]]) -> None:
    """Add the entries of an effort to the record in `file`."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    known[effort] = {**known.get(effort, {}), **entries}
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(known, indent=1, ensure_ascii=False) + "\n")


def unfailing(entries: Mapping[str, dict[str, Any]]) -> set[str]:
    """Return the claims that no control makes fail: valid ones did not flip them, and none did."""
    seen: dict[str, set[str]] = {}
    for claim, outcome, _ in outcomes(entries):
        seen.setdefault(claim, set()).add(outcome)
    return {claim for claim, words in seen.items() if KEPT in words and FLIPPED not in words}


def flipped(entries: Mapping[str, dict[str, Any]]) -> set[str]:
    """Return the claims that some control makes fail."""
    return {claim for claim, outcome, _ in outcomes(entries) if outcome == FLIPPED}


def broken_by(claim: str, entry: Mapping[str, Any]) -> list[str]:
    """Return the names of an experiment's controls that make a claim fail; `entry` is their record."""
    made = outcomes({"": {"controls": {}, **entry}})
    return [name for found, outcome, name in made if (found, outcome) == (claim, FLIPPED)]


def outcomes(entries: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, str, str]]:
    """Yield the claim, the outcome and the control's name of every trial on record."""
    for entry in entries.values():
        for name, control in entry["controls"].items():
            for claim, trial in control["claims"].items():
                yield claim, trial["outcome"], name
