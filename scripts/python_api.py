"""The page on the Python package: what `explicate` exports, with signatures and docstrings, read by griffe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
"""Longer signatures have a line for each parameter."""


def parameter(value: griffe.Parameter) -> str:
    """A parameter as Python writes it."""
    stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}
    text = stars.get(value.kind, "") + value.name  # type: ignore[arg-type]
    if value.annotation is not None:
        text += f": {value.annotation}"
    if value.default is not None and value.kind not in stars:
        text += f" = {value.default}" if value.annotation is not None else f"={value.default}"
    return text


def parameters(function: griffe.Function) -> Iterator[str]:
    """The parameters of a function but for `self`, with the bare star before keyword-only ones."""
    starred = False
    for value in function.parameters:
        if value.name in ("self", "cls"):
            continue
        starred = starred or value.kind is griffe.ParameterKind.var_positional
        if value.kind is griffe.ParameterKind.keyword_only and not starred:
            starred = True
            yield "*"
        yield parameter(value)


def signature(function: griffe.Function, name: str) -> str:
    """A function's signature as a block of code."""
    listed = list(parameters(function))
    end = f" -> {function.returns}" if function.returns is not None and function.name != "__init__" else ""
    line = f"{name}({', '.join(listed)}){end}"
    if len(line) > WIDTH:
        line = f"{name}(\n" + "".join(f"    {each},\n" for each in listed) + f"){end}"
    return f"```python\n{line}\n```"


def said(thing: griffe.Object | griffe.Alias) -> str:
    """A docstring, its doctests as code."""
    text = thing.docstring.value if thing.docstring else ""
    text = text.replace("``", "`")
    if ">>>" in text:
        head, _, rest = text.partition(">>>")
        return f"{head.rstrip()}\n\n```pycon\n>>>{rest}\n```"
    return text


def members(class_: griffe.Class) -> Iterator[str]:
    """The public methods and properties of a class that have a docstring, in the order of the source."""
    for name, member in class_.members.items():
        if name.startswith("_") or member.docstring is None:
            continue
        if isinstance(member, griffe.Function):
            yield f"### `{class_.name}.{name}`"
            yield signature(member, name)
        else:
            kind = f": {member.annotation}" if isinstance(member, griffe.Attribute) and member.annotation else ""
            yield f"### `{class_.name}.{name}`"
            yield f"```python\n{name}{kind}\n```"
        yield said(member)


def parts() -> Iterator[str]:
    """The paragraphs of the page."""
    package = griffe.load("explicate", search_paths=[ROOT / "python"])
    exported = package.exports or []
    yield "All that `import explicate` offers. `pip install` of the wheel is enough; the package is typed (`py.typed`)."
    for name in exported:
        thing = package[str(name)]
        target = thing.final_target if isinstance(thing, griffe.Alias) else thing
        if isinstance(target, griffe.Class):
            yield f"## `{name}`"
            constructor = target.members.get("__init__")
            if isinstance(constructor, griffe.Function):
                yield signature(constructor, target.name)
            yield said(target)
            yield from members(target)
        elif isinstance(target, griffe.Function):
            yield f"## `{name}`"
            yield signature(target, str(name))
            yield said(target)
