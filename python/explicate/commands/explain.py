"""``explicate explain``."""

from __future__ import annotations

import argparse

from explicate import console, engine
from explicate.commands import delivery, options

EXAMPLES = ("explicate explain mine.toml --set stack=linux",)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.resolved(parser, as_json="the explanation")


def execute(args: argparse.Namespace) -> None:
    """Print for each group its stack, and a line for each setting of it."""
    source = delivery.source(args.scenario)
    groups = engine.stacks(source.text, source.origin, source.base, args.set)
    if args.json:
        console.print_json(groups)
        return
    for group in groups:
        stack = f"stack {group['stack']} ({group['place'] or 'default'})" if group["stack"] else "no stack"
        print(f"{group['group']}: {group['protocol']} over {group['recovery']}, {stack}")
        for one in group["settings"]:
            origin = one["from"]
            if one["instead_of"] is not None:
                origin = f"{origin}, instead of {one['instead_of']} of stack {group['stack']}"
            elif origin == "stack":
                origin = f"stack {group['stack']}"
            print(f"  {one['name']} = {one['value']}: {origin}")
