"""What a reader of a paper looks for in each experiment, and whether our figure shows it (``looks.toml``)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

SHOWN = ("yes", "partly", "no")
"""Whether a figure shows what a reader looks for."""


@dataclass(frozen=True)
class Look:
    """What a reader looks for in an experiment; `lacks` says what our figure lacks if it does not show all of it."""

    sought: str
    shown: str
    lacks: str = ""


@cache
def looks() -> dict[str, Look]:
    """Return what a reader looks for, by experiment."""
    text = resources.files("explicate_papers").joinpath("looks.toml").read_text(encoding="utf-8")
    return {key: Look(**row) for key, row in tomllib.loads(text).items()}
