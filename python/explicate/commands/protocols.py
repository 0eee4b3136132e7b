"""``explicate protocols``."""

from __future__ import annotations

import argparse

from explicate import console, engine
from explicate.commands import options
from explicate.errors import BadInputError
from explicate.suggestions import nearest

EXAMPLES = ("explicate protocols", "explicate protocols xcp", "explicate protocols --json")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="show this one with its parameters")
    parser.add_argument("--json", action="store_true", help="print the whole registry as JSON")
    options.load(parser)


def execute(args: argparse.Namespace) -> None:
    """Print the registry, or one entry of it."""
    from explicate import display

    entries = engine.registry()
    if args.name is not None:
        near = nearest(args.name, [entry["name"] for entry in entries])
        entries = [entry for entry in entries if entry["name"] == args.name]
        if not entries:
            hint = f"did you mean `{near}`?" if near else "`explicate protocols` lists all names"
            raise BadInputError(f"unknown name {args.name!r}; {hint}")
    if args.json:
        console.print_json(entries)
    else:
        console.show(display.registry(entries) if args.name is None else "\n\n".join(map(display.entry, entries)))
