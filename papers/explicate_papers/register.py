"""The register of the papers' experiments: what they did, what they claim, and what they leave open.

Facts only; how we repeat an experiment stands in the file of its name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

JUDGED = ("number", "qualitative", "figure-only")
"""The bases of predicates that are claims of the authors, and so always get a verdict."""


@dataclass(frozen=True)
class Paper:
    """A source: its letter in the ids, its folder, and how to cite it."""

    letter: str
    folder: str
    title: str
    authors: str


PAPERS = {
    paper.letter: paper
    for paper in (
        Paper("N", "nychis", "Analysis of XCP in a wireless environment", "Nychis, Sardesai, Seshan"),
        Paper(
            "I",
            "lopez_pacheco",
            "XCP-i: eXplicit Control Protocol for heterogeneous inter-networking of high-speed networks",
            "Lopez-Pacheco, Pham, Lefèvre",
        ),
        Paper(
            "Y",
            "yousefizadeh",
            "An end-to-end cross-layer profiling study of congestion control in high BDP wireless networks",
            "Yousefi'zadeh, Li, Habibi",
        ),
        Paper("D", "de_vleeschouwer", "Loss-resilient window-based congestion control", "De Vleeschouwer, Frossard"),
        Paper(
            "K",
            "ikeda",
            "Extensions of VCP to enhance the performance in high BDP and wireless networks",
            "Ikeda, Nishiyama, Ansari, Nemoto, Kato",
        ),
    )
}


@dataclass(frozen=True)
class Predicate:
    """A checkable statement; `criterion` says when it holds, `basis` whose statement it is."""

    id: str
    basis: str
    statement: str
    criterion: str


@dataclass(frozen=True)
class Missing:
    """A parameter that the paper leaves out."""

    name: str
    suggestion: str
    reason: str
    sensitivity: str
    param_id: str


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper, as far as its text tells."""

    id: str
    paper: Paper
    figure: str
    title: str
    kind: str
    topology: str
    protocols: str
    workload: str
    sweep: str
    duration: str
    repetitions: str
    metrics: str
    parameters: dict[str, Any]
    stated_numbers: tuple[str, ...]
    not_given: tuple[Missing, ...]
    notes: str
    predicates: tuple[Predicate, ...]


@cache
def experiments() -> dict[str, Experiment]:
    """Return all experiments by id, in the order of the register."""
    text = resources.files("explicate_papers").joinpath("register.json").read_text(encoding="utf-8")
    return {row["id"]: _experiment(row) for row in json.loads(text)}


@cache
def predicates() -> dict[str, Predicate]:
    """Return all predicates by id."""
    return {predicate.id: predicate for one in experiments().values() for predicate in one.predicates}


def _experiment(row: dict[str, Any]) -> Experiment:
    made: dict[str, Any] = {
        **row,
        "paper": PAPERS[row["paper"]],
        "stated_numbers": tuple(row["stated_numbers"]),
        "not_given": tuple(Missing(**missing) for missing in row["not_given"]),
        "predicates": tuple(Predicate(**predicate) for predicate in row["predicates"]),
    }
    return Experiment(**made)
