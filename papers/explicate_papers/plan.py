"""How much is run, and what is used for the parameters that the papers leave out: ``plan.toml``, ``choices.toml``."""

from __future__ import annotations

import importlib
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from explicate_papers.register import PAPERS, Experiment, Paper, experiments
from explicate_papers.study import Effort, Study

EFFORTS = ("quick", "all", "full")
BLOCKS = 2
"""How many disjoint blocks of seeds every claim is judged on."""
APART = 1000
"""How far the first seeds of two blocks are apart."""


def seeds(block: int, count: int) -> range:
    """Return the seeds of a block, 1 and on or 1001 and on; raise ValueError if it would reach into the next."""
    if count > APART:
        raise ValueError(f"a block has at most {APART} seeds, not {count}")
    return range(block * APART + 1, block * APART + count + 1)


class Reads(Mapping[str, str]):
    """Choices that remember which of them were read: what was not read cannot matter."""

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
    """What is used for a parameter that a paper leaves out; `others` are settings that could be used instead."""

    id: str
    name: str
    used: str
    others: tuple[str, ...]
    why: str


@cache
def choices(paper: Paper) -> dict[str, Choice]:
    """Return a paper's choices by parameter id; raise ValueError if the file is not as it should be."""
    file = resources.files(f"explicate_papers.{paper.folder}").joinpath("choices.toml")
    if not file.is_file():
        return {}
    return {
        key: Choice(key, row["name"], str(row["used"]), tuple(map(str, row.get("others", []))), row["why"])
        for key, row in tomllib.loads(file.read_text(encoding="utf-8")).items()
    }


def effort(experiment: Experiment, name: str, changed: Mapping[str, str] | None = None) -> Effort:
    """Return the effort of that name for `experiment`, with some choices `changed`."""
    table = _plan()
    row = {**table[experiment.paper.letter][name], **table.get(experiment.id, {}).get(name, {})}
    used = {key: choice.used for key, choice in choices(experiment.paper).items()}
    mine = {key: value for key, value in (changed or {}).items() if key in used}
    return Effort(name, int(row["seeds"]), float(row["seconds"]), Reads({**used, **mine}))


def rows(paper: Paper) -> dict[str, Any]:
    """Return the rows of the plan that a paper and its experiments have."""
    return {key: row for key, row in _plan().items() if key == paper.letter or key.startswith(f"{paper.letter}-")}


@cache
def _plan() -> dict[str, Any]:
    text = resources.files("explicate_papers").joinpath("plan.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def studies() -> dict[str, Study]:
    """Return all studies by id, in the order of the register: every module of the papers' folders that has one."""
    found: dict[str, Study] = {}
    for paper in PAPERS.values():
        folder = importlib.import_module(f"explicate_papers.{paper.folder}")
        for module in pkgutil.iter_modules(folder.__path__):
            name = f"{folder.__name__}.{module.name}"
            made = getattr(importlib.import_module(name), "study", None)
            if isinstance(made, Study):
                made.module = name
                found[made.id] = made
    order = {identifier: place for place, identifier in enumerate(experiments())}
    return dict(sorted(found.items(), key=lambda item: order[item[0]]))
