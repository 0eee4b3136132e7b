"""Runs the commands of the written pages, and keeps the outputs that the pages show.

    scripts/run_pages.py [--check] [PAGE...]

In the pages of `RUN`, a block of `sh` is run, for each page in a folder with nothing but the project's `scenarios` (the
tutorials build on each other and share one). A block of `text` right after it is its output, which this script writes,
or with `--check` compares. A block with `title="NAME"` becomes a file of that name. Commands that a page only shows
stand in a block of `bash`.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TUTORIALS = ("tutorials/first-scenario.md", "tutorials/compare.md", "tutorials/sweep.md")
"""In the order in which they are read."""
RUN = ("start.md", "howto/*.md", "labs/*.md", "explanation/*.md")
"""Other pages whose commands are run."""

BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


class CommandError(Exception):
    """A command of a page failed."""


def groups(chosen: Sequence[str]) -> Iterator[list[Path]]:
    """Pages that share a folder, in their order."""
    every = [[DOCS / name for name in TUTORIALS]]
    every += [[path] for pattern in RUN for path in sorted(DOCS.glob(pattern))]
    wanted = {(ROOT / name).resolve() for name in chosen}
    yield from (group for group in every if not wanted or wanted & set(group))


def output_of(commands: str, folder: Path) -> str:
    """What commands print, both streams."""
    place = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-eu", "-c", commands], cwd=folder, env=place, check=False,
        text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise CommandError(f"status {done.returncode} of\n{commands}\n{done.stdout}")
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def renewed(text: str, folder: Path) -> str:
    """The page with the outputs of its commands."""
    made, end, said = [], 0, None
    for block in BLOCK.finditer(text):
        word, title, content = block.groups()
        between = text[end : block.start()]
        made.append(between)
        end = block.end()
        if word == "text" and said is not None and not between.strip():
            made.append(f"```text\n{said}```\n")
            said = None
            continue
        made.append(block.group())
        said = None
        if title:
            (folder / title).write_text(content, encoding="utf-8")
        elif word == "sh":
            said = output_of(content, folder)
    return "".join([*made, text[end:]])


def differences(path: Path, old: str, new: str) -> list[str]:
    """Lines of a page that its commands no longer print."""
    name = str(path.relative_to(ROOT))
    return list(
        difflib.unified_diff(old.splitlines(), new.splitlines(), f"{name} (written)", f"{name} (run)", n=1, lineterm="")
    )


def run_group(group: list[Path]) -> list[tuple[Path, str]]:
    """The pages of a group with the outputs of their commands."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "scenarios").symlink_to(ROOT / "scenarios")
        made = []
        for path in group:
            try:
                made.append((path, renewed(path.read_text(encoding="utf-8"), Path(folder))))
            except CommandError as error:
                raise CommandError(f"{path.relative_to(ROOT)}: {error}") from None
        return made


def main() -> None:
    """Renew the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as docs/start.md; by default all")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if an output differs")
    options = parser.parse_args()
    changed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for path, new in chain.from_iterable(pool.map(run_group, groups(options.pages))):
                changed += differences(path, path.read_text(encoding="utf-8"), new)
                if not options.check:
                    path.write_text(new, encoding="utf-8")
        except CommandError as error:
            sys.exit(str(error))
    if options.check and changed:
        sys.exit("\n".join(changed) + "\noutputs of the pages are not up to date: `make docs` renews them")


if __name__ == "__main__":
    main()
