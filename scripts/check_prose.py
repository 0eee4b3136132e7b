"""Checks what the written pages promise: scenarios are good, commands exist, links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from explicate import ScenarioError, engine
from explicate.cli import build_parser
from explicate.sweeps.plan import plan_of

ROOT = Path(__file__).resolve().parent.parent
FILES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/reference/*.md")
TRACES = ROOT / "crates" / "explicate-scenario" / "templates"
"""Where the traces lie that examples name."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LEAST = '\n[[flows]]\nname = "added"\nprotocol = "reno"\n'
"""What makes a fragment without flows whole."""

SWEPT = 'topology = { kind = "dumbbell" }\n[[flows]]\nname = "bulk"\nprotocol = "reno"\n'
"""What sweep files are about."""

BEGIN, END = "<!-- example:begin -->", "<!-- example:end -->"
EXAMPLE = ROOT / "docs" / "examples" / "aimd.rs"


def with_example(text: str) -> str:
    """The text with the example protocol between its markers."""
    if BEGIN not in text:
        return text
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n\n```rust\n{EXAMPLE.read_text(encoding='utf-8')}```\n\n{END}{rest.split(END)[1]}"


def documents() -> list[Path]:
    """All written pages."""
    return sorted(path for pattern in FILES for path in ROOT.glob(pattern))


def wrong_scenarios(text: str) -> Iterator[str]:
    """Scenarios among the blocks that cannot be used, and those that warn."""
    for language, block in BLOCK.findall(text):
        if language != "toml":
            continue
        if block.startswith("scenario ="):
            yield from wrong_sweep(block)
            continue
        whole = block if "[[flows]]" in block else block + LEAST
        if "protocol = " not in whole:
            continue
        try:
            checked = engine.check(whole, "example", str(TRACES), [])
        except ScenarioError as error:
            yield f"a scenario is wrong: {error}\n{block}"
        else:
            yield from (f"a scenario warns: {warning}\n{block}" for warning in checked["warnings"])


def wrong_sweep(block: str) -> Iterator[str]:
    """A sweep file that cannot be used beside an `x.toml` with a flow group `bulk`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x.toml").write_text(SWEPT, encoding="utf-8")
        path = Path(folder, "study.toml")
        path.write_text(block, encoding="utf-8")
        try:
            plan_of(path).units()
        except ValueError as error:
            yield f"a sweep is wrong: {error}\n{block}"


def wrong_commands(text: str) -> Iterator[str]:
    """Commands among the blocks that the parser of the command line does not take."""
    for language, block in BLOCK.findall(text):
        for line in block.splitlines() if language == "sh" else ():
            for command in re.split(r"&&|\|", re.sub(r"\$[A-Z_]+", "7", line.split(" #")[0])):
                words = shlex.split(command.split(">")[0] if " > " in command else command)
                if not words or Path(words[0]).name != "explicate":
                    continue
                said = io.StringIO()
                with contextlib.redirect_stderr(said):
                    try:
                        build_parser().parse_args(words[1:])
                    except SystemExit:
                        yield f"no such command: {command.strip()}\n{said.getvalue()}"


def dead_links(path: Path, text: str) -> Iterator[str]:
    """Links within the tree that lead nowhere."""
    for target in LINK.findall(BLOCK.sub("", text)):
        if "://" in target or target.startswith("#"):
            continue
        if not (path.parent / target.split("#")[0]).exists():
            yield f"a link leads nowhere: {target}"


def problems() -> Iterator[str]:
    """All that is wrong, each with its page."""
    for path in documents():
        text = path.read_text(encoding="utf-8")
        found = [*wrong_scenarios(text), *wrong_commands(text), *dead_links(path, text)]
        if with_example(text) != text:
            found.append("the example is not the one in docs/examples: `make docs` puts it there")
        yield from (f"{path.relative_to(ROOT)}: {problem}" for problem in found)
