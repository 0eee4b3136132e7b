"""How much is run, and what is used for the parameters that the papers leave out: ``plan.toml``, ``choices.toml``."""

from __future__ import annotations

import importlib
import pkgutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from explicate.papers.register import PAPERS, Experiment, Paper, experiments
from explicate.papers.study import Effort, Study

EFFORTS = ("quick", "all", "full")


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
    file = resources.files(f"explicate.papers.{paper.folder}").joinpath("choices.toml")
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
    return Effort(name, int(row["seeds"]), float(row["seconds"]), {**used, **mine})


@cache
def _plan() -> dict[str, Any]:
    text = resources.files("explicate.papers").joinpath("plan.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def studies() -> dict[str, Study]:
    """Return all studies by id, in the order of the register: every module of the papers' folders that has one."""
    found: dict[str, Study] = {}
    for paper in PAPERS.values():
        folder = importlib.import_module(f"explicate.papers.{paper.folder}")
        for module in pkgutil.iter_modules(folder.__path__):
            made = getattr(importlib.import_module(f"{folder.__name__}.{module.name}"), "study", None)
            if isinstance(made, Study):
                found[made.id] = made
    order = {identifier: place for place, identifier in enumerate(experiments())}
    return dict(sorted(found.items(), key=lambda item: order[item[0]]))
