"""The number and length of runs (``plan.toml``), and values of parameters that papers leave out (``choices.toml``).

A plan gives seeds for each case, and simulated seconds, for a paper; an experiment's own table overrides the paper's.
``quick`` keeps every predicate meaningful in minutes, the documentation reports ``all``, and ``full`` has the papers'
counts where they are given.

Every claim is judged on two disjoint blocks of that many seeds: 1, 2, ... and 1001, 1002, ... (``--seed`` moves
both); a case may have another number. If a 95 % interval that decides a claim contains its bound, over the seeds of
both blocks, and both blocks agree, the whole experiment may be enlarged once, to four times as many seeds in each
block (``--enlarge``). A claim that is still open is undecided. There is no other change of the number of seeds after
the runs.
"""

from __future__ import annotations

import importlib
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from explicate_papers import agents
from explicate_papers.register import PAPERS, Experiment, Paper, experiments
from explicate_papers.study import Effort, Study

EFFORTS = ("quick", "all", "full")
BLOCKS = 2
"""How many disjoint blocks of seeds every claim is judged on."""
APART = 1000
"""How far the first seeds of two blocks are apart."""


def seeds(block: int, count: int, first: int = 1) -> range:
    """Return the seeds of a block, `first` and on or 1000 later; raise ValueError if it would reach into the next."""
    if count > APART:
        raise ValueError(f"a block has at most {APART} seeds, not {count}")
    return range(block * APART + first, block * APART + first + count)


class Reads(Mapping[str, str]):
    """Choices that record which of them were read: unread ones cannot matter."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.read.add(key)
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Choice:
    """The value of a parameter that a paper leaves out; `others` are alternatives."""

    id: str
    name: str
    used: str
    others: tuple[str, ...]
    why: str


@cache
def choices(paper: Paper) -> dict[str, Choice]:
    """Return a paper's choices by parameter id; raise ValueError if the file is invalid."""
    return {
        key: Choice(key, row["name"], str(row["used"]), tuple(map(str, row.get("others", []))), row["why"])
        for key, row in tomllib.loads(paper.read("choices.toml")).items()
    }


def effort(experiment: Experiment, name: str, changed: Mapping[str, str] | None = None) -> Effort:
    """Return the effort of that name for `experiment`, with some choices `changed`."""
    table = rows(experiment.paper)
    row = {**table[experiment.paper.letter][name], **table.get(experiment.id, {}).get(name, {})}
    used = {key: choice.used for key, choice in choices(experiment.paper).items()}
    mine = {key: value for key, value in (changed or {}).items() if key in used}
    return Effort(name, int(row["seeds"]), float(row["seconds"]), Reads({**used, **mine}))


@cache
def rows(paper: Paper) -> dict[str, Any]:
    """Return the plan of a paper: its own row under its letter, and those of experiments under their ids."""
    return tomllib.loads(paper.read("plan.toml"))


@cache
def studies() -> dict[str, Study]:
    """Return all studies by id, in the order of the register: every module of the papers' folders that has one.

    Their cases follow the choices about agents (`agents`).
    """
    found: dict[str, Study] = {}
    for paper in PAPERS.values():
        folder = importlib.import_module(f"explicate_papers.{paper.slug}")
        for module in pkgutil.iter_modules(folder.__path__):
            name = f"{folder.__name__}.{module.name}"
            made = getattr(importlib.import_module(name), "study", None)
            if isinstance(made, Study):
                made.module = name
                made.make_cases = agents.chosen(paper.letter, made.make_cases)
                found[made.id] = made
    order = {identifier: place for place, identifier in enumerate(experiments())}
    return dict(sorted(found.items(), key=lambda item: order[item[0]]))
