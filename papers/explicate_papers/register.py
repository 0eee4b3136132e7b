"""The register of the papers' experiments: set-ups, claims, and parameters that they leave out.

It has facts only; the repetition of an experiment is in the file of its name.
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
    """A source: the letter of its ids, its slug, which is also its folder's name, and how to cite it."""

    letter: str
    slug: str
    title: str
    authors: str

    def read(self, name: str) -> str:
        """Return the text of a file of the paper's folder; raise OSError if it is not there."""
        return resources.files("explicate_papers").joinpath(self.slug, name).read_text(encoding="utf-8")


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


OLD_NAMES = {f"{place:03}": letter for place, letter in enumerate(PAPERS)}
"""Old numbers of papers; accepted on the command line for one more release."""


def paper_named(name: str) -> Paper | None:
    """Return the paper with this letter, slug or old number; None if there is none. Case and hyphens do not matter."""
    key = name.casefold().replace("-", "_")
    for paper in PAPERS.values():
        if key in (paper.letter.casefold(), paper.slug):
            return paper
    return PAPERS[OLD_NAMES[key]] if key in OLD_NAMES else None


@dataclass(frozen=True)
class Predicate:
    """A checkable statement; `criterion` is the condition under which it holds, `basis` its origin."""

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
    """An experiment of a paper, as its text describes it."""

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
    """Return all experiments by id, paper by paper, in the order of their registers."""
    return {
        row["id"]: _experiment(paper, row)
        for paper in PAPERS.values()
        for row in json.loads(paper.read("register.json"))
    }


@cache
def predicates() -> dict[str, Predicate]:
    """Return all predicates by id."""
    return {predicate.id: predicate for one in experiments().values() for predicate in one.predicates}


def _experiment(paper: Paper, row: dict[str, Any]) -> Experiment:
    made: dict[str, Any] = {
        **row,
        "paper": paper,
        "stated_numbers": tuple(row["stated_numbers"]),
        "not_given": tuple(Missing(**missing) for missing in row["not_given"]),
        "predicates": tuple(Predicate(**predicate) for predicate in row["predicates"]),
    }
    return Experiment(**made)
