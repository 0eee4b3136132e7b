"""``explicate new``."""

from __future__ import annotations

import argparse
from pathlib import Path

from explicate import console, engine, examples
from explicate.commands import options
from explicate.errors import BadInputError
from explicate.suggestions import nearest

EXAMPLES = (
    "explicate new --list",
    "explicate new dumbbell > mine.toml",
    "explicate new geo -o satellite.toml",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kind", metavar="KIND", nargs="?", help="a template or an example, such as dumbbell")
    parser.add_argument("--list", action="store_true", help="list templates and examples")
    # The > of Windows PowerShell writes UTF-16, which no scenario is.
    options.output(parser, "write it into this file, which must not exist (default: print it)", metavar="FILE")


def execute(args: argparse.Namespace) -> None:
    """Print or write a template or an example; create the files that it reads beside it."""
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
    if args.out is None:
        console.write_toml(content)
    else:
        _write(Path(args.out), content)
    for name, contents in companions.items():
        path = Path(args.out or "").parent / name
        if path.exists():
            console.note(f"note: the scenario reads {name}, which exists already")
        else:
            path.write_text(contents, encoding="utf-8")
            console.note(f"note: the scenario reads {name}, which was created")


def _write(path: Path, content: str) -> None:
    from explicate.files import write_text

    if path.exists():
        raise BadInputError(f"{path}: exists already; write into another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, content)
    console.note(f"written: {path}")


def _list() -> None:
    from explicate import display

    console.show(display.names("template", engine.templates()))
    console.show("\n" + display.names("example", {name: examples.summary(name) for name in examples.names()}))
