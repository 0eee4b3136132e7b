"""What an exporter returns: the text, and what of its source the text cannot say."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from explicate.engine import Part, Setting

MOST_NAMES = 4
LOST = "lost: "
"""Begins every line about something that an export leaves out."""


@dataclass(frozen=True)
class Exported:
    """An export; each of `lost` says where, what, and why."""

    text: str
    lost: tuple[str, ...] = ()


def table(part: Part) -> str:
    """Return a queue, a router or a channel as a scenario writes it: its kind, and what is not at its default."""
    return "{ " + ", ".join([f'kind = "{part["kind"]}"', *assignments(part["params"])]) + " }"


def assignments(settings: Iterable[Setting], besides: Collection[str] = ()) -> list[str]:
    """Return the settings that are not at their defaults and not among `besides`, as a scenario writes them."""
    return [f"{one['name']} = {one['text']}" for one in settings if not one["default"] and one["name"] not in besides]


def value(part: Part, name: str) -> float | None:
    """Return the number of a parameter in its base unit; None if it is no finite number."""
    return next(one.get("value") for one in part["params"] if one["name"] == name)


def word(part: Part, name: str) -> str:
    """Return the word that a choice has; empty if the part has no such parameter."""
    return next((one["text"].strip('"') for one in part["params"] if one["name"] == name), "")


def some(names: list[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
