"""Hashes of the parsed scenarios of all experiments: an experiment may be rewritten if its hashes do not change.

A hash covers the cases of an experiment with every effort, with every control and with every alternative of a choice
that they read: label, scenario, settings, number of seeds, trace. ``cases.json`` holds them.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from explicate_papers.multiverse import alternatives
from explicate_papers.plan import EFFORTS, Reads, effort, studies
from explicate_papers.study import Case, Study

FILE = "cases.json"


def now() -> dict[str, str]:
    """Return the hash of the cases of each experiment, by id."""
    return {key: digest(study) for key, study in studies().items()}


def on_record() -> dict[str, str]:
    """Return the hashes in ``cases.json``."""
    made: dict[str, str] = json.loads(resources.files("explicate_papers").joinpath(FILE).read_text(encoding="utf-8"))
    return made


def digest(study: Study) -> str:
    """Return the hash of an experiment's cases."""
    made = hashlib.sha256()
    for what, cases in variants(study):
        for label, case in cases.items():
            made.update(f"{what}\n{label!r}\n{content(case)}\n".encode())
    return made.hexdigest()[:16]


def variants(study: Study) -> Iterator[tuple[str, Mapping[Any, Case]]]:
    """Yield the cases of an experiment with each effort, control and alternative, with its name.

    With an alternative that an experiment cannot be made with there are none.
    """
    read = set()
    for name in EFFORTS:
        chosen = effort(study.experiment, name)
        yield name, study.make_cases(chosen)
        assert isinstance(chosen.choices, Reads)
        read |= chosen.choices.read
    for one in study.controls.values():
        yield one.name, one.mutation.apply(study.make_cases, effort(study.experiment, "quick"))
    for other in alternatives(study.experiment.paper.letter):
        if other.choice.id in read:
            changed = effort(study.experiment, "quick", {other.choice.id: other.value})
            try:
                yield other.name, study.make_cases(changed)
            except (KeyError, ValueError):
                yield other.name, {}


def content(case: Case) -> str:
    """Return all that decides the runs of a case, as the engine reads it; how it is written does not."""
    settings = {key: _override(text) for key, text in case.overrides()}
    return json.dumps([_parsed(case.text), settings, case.seeds, case.trace], sort_keys=True, default=repr)


@lru_cache(1024)
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=_number)


def _number(text: str) -> float:
    """Return a number; integers are the same with and without a decimal point."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _override(text: str) -> Any:
    """Return the value of a setting: as TOML if it is valid TOML, otherwise the text."""
    try:
        return _parsed(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
