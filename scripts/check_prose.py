"""Checks the written pages: scenarios are valid, commands exist, links have targets, the prose avoids some phrases."""

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
PAGES = ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT")
FILES = (*(f"{name}.md" for name in PAGES), "docs/**/*.md")
TRACES = ROOT / "crates" / "explicate-scenario" / "templates"
"""Folder of the traces that examples name."""

SOURCES = (
    *(
        f"crates/explicate-{name}/src/**/*.rs"
        for name in ("core", "scenario", "build", "fluid", "sim", "net", "py", "wasm")
    ),
    "crates/*/tests/**/*.rs",
    "python/explicate/**/*.py",
    "bench/*.py",
    "validation/*.py",
    "scenarios/*.toml",
    "papers/explicate_papers/*.py",
    "papers/explicate_papers/*/*.toml",
)
"""Sources whose comments and messages are checked for phrases too."""
UNCHECKED = (
    "docs/reproduction.md",  # quotes texts that are frozen with the judges
    "crates/explicate-core/src/guard",
    "crates/explicate-net/src/gateway",
)
"""Files and folders that still contain such phrases; remove an entry when its text is rewritten."""
PHRASES = re.compile(
    r"\b(whoever|whomever|nobody|somebody|anybody|of its own accord|of one's own|perhaps nothing|kept in mind|minds"
    r"|obeys?|obeyed|deaf|march in step|narrow places?|of which nothing|for ever"
    r"|(?:is|are|be|was|were|been|not) told|(?:hears?|heard|tells?|told) of"
    r"|the (?:law|flow|router|sender|receiver|recovery|port) (?:hears|tells|minds|thinks|wants|asks))\b",
    re.IGNORECASE,
)
"""Personifications and riddles that plain technical English never needs."""
GENERATED = re.compile(r"<!-- ([\w-]+):begin -->.*?<!-- \1:end -->", re.DOTALL)
"""A part of a page that a script writes."""

BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
LEAST = '\n[[flows]]\nname = "added"\nprotocol = "reno"\n'
"""Completes a fragment without flows."""

SWEPT = 'topology = { kind = "dumbbell" }\n[[flows]]\nname = "bulk"\nprotocol = "reno"\n'
"""The scenario of sweep files."""

EXAMPLES = {
    "example": "examples/own-protocol/src/aimd.rs",
    "explicit-example": "docs/examples/rcp_lite.rs",
    "python-example": "docs/examples/aimd.py",
}
"""Files that pages quote, by the names of their markers."""
LANGUAGES = {".rs": "rust", ".py": "python"}


def with_example(text: str) -> str:
    """The text with the example protocols between their markers."""
    for name, file in EXAMPLES.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin in text:
            path = ROOT / file
            head, rest = text.split(begin)
            code = f"```{LANGUAGES[path.suffix]}\n{path.read_text(encoding='utf-8')}```"
            text = f"{head}{begin}\n\n{code}\n\n{end}{rest.split(end)[1]}"
    return text


def documents() -> list[Path]:
    """All written pages."""
    return sorted(path for pattern in FILES for path in ROOT.glob(pattern))


def wrong_scenarios(text: str) -> Iterator[str]:
    """Scenarios among the blocks that are invalid, or give a warning."""
    for language, title, block in BLOCK.findall(text):
        if language != "toml" or title:  # what has a title is a file that scripts/run_pages.py uses
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
    """Commands among the blocks that the parser of the command line rejects."""
    for language, _, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines() if language in ("sh", "bash") else ():
            if "->" in QUOTED.sub("", line.split(" #")[0]):
                yield f"the shell takes the > of -> for a redirection: quote it: {line}"
            for command in re.split(r"&&|\|", re.sub(r"\$[A-Z_]+", "7", line.split(" #")[0])):
                words = shlex.split(command.split(" > ")[0])
                if not words or Path(words[0]).name != "explicate":
                    continue
                said = io.StringIO()
                with contextlib.redirect_stderr(said):
                    try:
                        build_parser().parse_args(words[1:])
                    except SystemExit:
                        yield f"no such command: {command.strip()}\n{said.getvalue()}"


def dead_links(path: Path, text: str) -> Iterator[str]:
    """Links within the tree without a target."""
    for target in LINK.findall(BLOCK.sub("", text)):
        if "://" in target or target.startswith("#"):
            continue
        if not (path.parent / target.split("#")[0]).exists():
            yield f"a link has no target: {target}"


def phrases(text: str) -> Iterator[str]:
    """Phrases to avoid, with their lines."""
    for number, line in enumerate(text.splitlines(), 1):
        yield from (f"line {number}: avoid `{found.group()}`" for found in PHRASES.finditer(line))


def bad_prose() -> Iterator[str]:
    """Phrases to avoid in pages and sources."""
    sources = sorted(path for pattern in SOURCES for path in ROOT.glob(pattern))
    for path in (*documents(), *sources):
        if str(path.relative_to(ROOT)).startswith(UNCHECKED):
            continue
        text = GENERATED.sub(lambda part: "\n" * part.group().count("\n"), path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(ROOT)}: {phrase}" for phrase in phrases(text))


def problems() -> Iterator[str]:
    """All problems, each with its page."""
    yield from bad_prose()
    for path in documents():
        text = path.read_text(encoding="utf-8")
        found = [*wrong_scenarios(text), *wrong_commands(text), *dead_links(path, text)]
        if with_example(text) != text:
            found.append("the example is not the one in docs/examples: `make docs` puts it there")
        yield from (f"{path.relative_to(ROOT)}: {problem}" for problem in found)
