"""What an exporter returns: the text, and what of its source the text cannot say."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from explicate.engine import Part, Setting

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
