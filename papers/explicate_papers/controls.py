"""Controls: changes to an experiment under which its claims must fail.

A claim that also holds with another protocol, or with the mechanism switched off, shows nothing about them. Each study
declares its controls before it is run (`Study.control`); a mutation takes the cases of the study and returns changed
cases. `KINDS` lists all kinds of mutation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from explicate_papers.inputs import Case, Effort, Label

KINDS = {
    "protocol": "another protocol runs in its place",
    "exchange": "two variants stand in each other's place",
    "off": "the mechanism is switched off",
    "told": "the capacity told to the routers is another",
    "flat": "the swept parameter keeps one value",
    "choice": "a choice of the paper's table has another value",
}
"""Every kind of mutation, and its effect."""

Cases = Mapping[Any, "Case"]
Make = Callable[["Effort"], Cases]
Where = Callable[[Any], bool]


def everywhere(_: Label) -> bool:
    """Choose every case."""
    return True


class Mutation(Protocol):
    """A change to the cases of a study; `kind` is one of `KINDS`."""

    @property
    def kind(self) -> str:
        """The kind, one of `KINDS`."""
        ...

    def apply(self, make: Make, effort: Effort) -> dict[Any, Case]:
        """Return the cases that `make` gives with `effort`, changed; the labels stay the same."""
        ...


@dataclass(frozen=True)
class Settings:
    """Settings on top of the cases that `where` chooses, for the kinds ``protocol``, ``off`` and ``told``."""

    kind: str
    settings: Mapping[str, Any]
    where: Where = everywhere

    def apply(self, make: Make, effort: Effort) -> dict[Any, Case]:
        """Return the cases with the settings on top."""
        return {
            label: replace(case, settings={**case.settings, **self.settings}) if self.where(label) else case
            for label, case in make(effort).items()
        }


@dataclass(frozen=True)
class Rewrite:
    """The cases that `where` chooses, changed by a function, for changes that settings cannot express."""

    kind: str
    change: Callable[[Any, Case], Case]
    where: Where = everywhere

    def apply(self, make: Make, effort: Effort) -> dict[Any, Case]:
        """Return the cases, changed."""
        return {label: self.change(label, case) if self.where(label) else case for label, case in make(effort).items()}


def edit(kind: str, change: Callable[[dict[str, Any]], None], where: Where = everywhere) -> Rewrite:
    """Return the mutation that changes the scenario of the cases that `where` chooses.

    `change` receives the parsed content of each as a dict, and changes it in place.
    """
    return Rewrite(kind, lambda _, case: case.changed(change), where)


@dataclass(frozen=True)
class Place:
    """Replaces the case of a label by that of another, for the kinds ``exchange``, ``protocol``, ``off`` and ``flat``.

    `source` returns the label whose case replaces that of its argument; it returns its argument for no change.
    """

    kind: str
    source: Callable[[Any], Any]

    def apply(self, make: Make, effort: Effort) -> dict[Any, Case]:
        """Return the cases in their new places; raise KeyError if `source` names a label that there is not."""
        cases = make(effort)
        return {label: cases[self.source(label)] for label in cases}


def exchange(one: Any, other: Any) -> Place:
    """Return the mutation that exchanges two variants: labels, or parts of labels that are tuples."""
    swap = {one: other, other: one}

    def source(label: Any) -> Any:
        return tuple(swap.get(part, part) for part in label) if isinstance(label, tuple) else swap.get(label, label)

    return Place("exchange", source)


@dataclass(frozen=True)
class Chosen:
    """Another value of a choice of the paper's table (``I-P13``)."""

    parameter: str
    value: str
    kind: str = field(default="choice", init=False)

    def apply(self, make: Make, effort: Effort) -> dict[Any, Case]:
        """Return the cases made with the other value; raise KeyError if the paper has no such choice."""
        if self.parameter not in effort.choices:
            raise KeyError(f"no choice {self.parameter}")
        return dict(make(replace(effort, choices={**effort.choices, self.parameter: self.value})))


@dataclass(frozen=True)
class Control:
    """A mutation with the ids of the claims that must fail under it, and the reason."""

    name: str
    mutation: Mutation
    flips: tuple[str, ...]
    why: str
