"""``explicate schema``."""

from __future__ import annotations

import argparse

from explicate import console, engine

EXAMPLES = ("explicate schema > scenario.schema.json",)


def arguments(_: argparse.ArgumentParser) -> None:
    """Declare no options."""


def execute(_: argparse.Namespace) -> None:
    """Print the JSON Schema."""
    console.print_json(engine.schema())
