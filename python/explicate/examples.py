"""Scenarios that come with the package: those of the folder `scenarios` of the sources."""

from __future__ import annotations

import re
from importlib.resources import files

FILE = re.compile(r'\bfile = "([^"/]+)"')


def names() -> list[str]:
    """Return the names of all examples."""
    folder = files("explicate") / "scenarios"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def text(name: str) -> str:
    """Return an example; raise KeyError if there is none of this name."""
    if name not in names():
        raise KeyError(name)
    return (files("explicate") / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")


def companions(name: str) -> dict[str, str]:
    """Return the files that an example reads: contents by name."""
    folder = files("explicate") / "scenarios"
    found = {file: folder / file for file in FILE.findall(text(name))}
    return {file: path.read_text(encoding="utf-8") for file, path in found.items() if path.is_file()}


def summary(name: str) -> str:
    """Return the first sentence of an example's comment."""
    lines = []
    for line in text(name).splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:].strip())
    return re.split(r"(?<=[.:?])\s", " ".join(lines), maxsplit=1)[0].rstrip(".:")
