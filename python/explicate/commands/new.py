"""``explicate new``."""

from __future__ import annotations

import argparse
from pathlib import Path

from explicate import console, engine, examples
from explicate.errors import BadInputError
from explicate.suggestions import nearest

EXAMPLES = (
    "explicate new --list",
    "explicate new dumbbell > mine.toml",
    "explicate new geo > satellite.toml",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kind", metavar="KIND", nargs="?", help="a template or an example, such as dumbbell")
    parser.add_argument("--list", action="store_true", help="list templates and examples")


def execute(args: argparse.Namespace) -> None:
    """Print a template or an example; create the files that it reads in the current folder."""
    if args.list:
        _list()
        return
    if args.kind is None:
        raise BadInputError("name a template or an example; `explicate new --list` lists them")
    known = [*engine.templates(), *examples.names()]
    if args.kind not in known:
        near = nearest(args.kind, known)
        hint = f"did you mean `{near}`?" if near else "`explicate new --list` lists them"
        raise BadInputError(f"no template or example is called `{args.kind}`; {hint}")
    if args.kind in examples.names():
        content, companions = examples.text(args.kind), examples.companions(args.kind)
    else:
        content, companions = engine.template(args.kind), engine.companions(args.kind)
    console.write_toml(content)
    for name, contents in companions.items():
        path = Path(name)
        if path.exists():
            console.note(f"note: the scenario reads {name}, which exists already")
        else:
            path.write_text(contents, encoding="utf-8")
            console.note(f"note: the scenario reads {name}, which was created")


def _list() -> None:
    from explicate import display

    console.show(display.names("template", engine.templates()))
    console.show("\n" + display.names("example", {name: examples.summary(name) for name in examples.names()}))
