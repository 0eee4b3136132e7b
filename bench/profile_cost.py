"""An annotated profile of the XCP and the SACK dumbbell: the instructions of a hop by file and function.

    python bench/profile_cost.py                     print the table
    python bench/profile_cost.py --markdown FILE     and put it between the `profile` markers of a document

Every counted instruction is charged to the line of our own sources that it was compiled from, through any inlining and
any code of Rust's library, so the rows add up to the total. That line determines file and function. The first sentence
of their documentation describes them; a function that is renamed or moved appears under its new name.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path

from callgrind import ENGINE, Counted, build_engine, count
from cost_rows import dumbbell
from shared import ROOT, replace_between

SYSTEMS = ("xcp", "sack")
LEAST = 3.0
"""Minimum of instructions per hop, in one of the dumbbells, for a separate row of a function."""
SPAN = "3..6"

Place = tuple[str, int]
"""A file, below the repository, and a line; ("", 0) for other sources."""


def counted(system: str) -> Counted:
    """Count the dumbbell of this protocol."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "profile.toml"
        file.write_text(dumbbell(system), encoding="utf-8")
        return count(ENGINE, [file, SPAN])


def places(addresses: list[int]) -> dict[int, Place]:
    """The innermost line of our sources that each instruction was compiled from, by the program's line tables."""
    command = ["addr2line", "--addresses", "--inlines", f"--exe={ENGINE}"]
    asked = "\n".join(map(hex, addresses))
    told = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    found: dict[int, Place] = {}
    address = 0
    for line in told.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            address = int(line, 16)
            continue
        match = re.search(r"(crates/.*\.rs):(\d+)", line)
        if match and address not in found:
            found[address] = (match[1], int(match[2]))
    return found


def by_line(run: Counted) -> Counter[Place]:
    """Instructions per packet-hop of each line."""
    inside = {address for place, address in run.counts if Path(place).name == ENGINE.name}
    ours = places(sorted(inside))
    lines = Counter[Place]()
    for (place, address), cost in run.counts.items():
        known = Path(place).name == ENGINE.name and address in ours
        lines[ours[address] if known else ("", 0)] += cost / run.told["hops"]
    return lines


def sentence(comments: list[str]) -> str:
    """The first sentence of a comment, without links."""
    paragraph = takewhile(str.strip, comments)
    text = re.sub(r"\s+", " ", " ".join(paragraph)).strip()
    text = re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", text).replace("|", "\\|")
    return re.split(r"(?<=\.)\s(?=[A-Z`])", text, maxsplit=1)[0].rstrip(":")


@cache
def source(file: str) -> list[str]:
    """The lines of a file."""
    return (ROOT / file).read_text(encoding="utf-8").splitlines()


@cache
def functions(file: str) -> list[tuple[int, str, str]]:
    """Line, name and first sentence of the functions of a file, in order."""
    lines, found = source(file), []
    for number, line in enumerate(lines):
        match = re.match(r"\s*(?:pub(?:\([^)]*\))? )?(?:const )?fn (\w+)", line)
        if match:
            above = number
            while above and re.match(r"\s*(///|#\[)", lines[above - 1]):
                above -= 1
            comments = [part.strip()[3:] for part in lines[above:number] if "///" in part]
            found.append((number + 1, match[1], sentence(comments)))
    return found


@cache
def of_trait(name: str) -> str:
    """The description of the first documented function of this name; methods of trait implementations have none."""
    for file in ("crates/explicate-core/src/api.rs", "crates/explicate-core/src/port/mod.rs"):
        for _, known, about in functions(file):
            if known == name and about:
                return about
    return ""


def function_at(place: Place) -> tuple[str, str]:
    """Name and sentence of the function around a line."""
    file, line = place
    bounds = [*functions(file), (1 << 30, "", "")]
    for (first, name, about), (after, _, _) in pairwise(bounds):
        if first <= line < after:
            return name, about or of_trait(name)
    return "declarations", "What macros and derived code make."


def head(file: str) -> str:
    """The first sentence of a file's head."""
    comments = [line[3:] for line in source(file)[:12] if line.startswith("//!")]
    return sentence(comments)


def rows(costs: dict[str, Counter[Place]]) -> Iterator[str]:
    """The table's rows: files by cost, in them the functions that matter, at the end the sum."""
    files: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(SYSTEMS, 0.0))
    parts: dict[str, dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for system, lines in costs.items():
        for place, cost in lines.items():
            files[place[0]][system] += cost
            if place[0]:
                part = parts[place[0]].setdefault(function_at(place), dict.fromkeys(SYSTEMS, 0.0))
                part[system] += cost

    def cells(by: dict[str, float], mark: str = "") -> str:
        return " | ".join(f"{mark}{by[system]:.1f}{mark}" for system in SYSTEMS)

    def order(by: dict[str, float]) -> float:
        return -sum(by.values())

    small = dict.fromkeys(SYSTEMS, 0.0)
    for file, by in sorted(files.items(), key=lambda item: order(item[1])):
        if not file or max(by.values()) < LEAST / 3:
            small = {system: small[system] + by[system] for system in SYSTEMS}
            continue
        yield f"| **{file.removeprefix('crates/').replace('/src/', '/')}** | {cells(by, '**')} | {head(file)} |"
        for (name, about), part in sorted(parts[file].items(), key=lambda item: order(item[1])):
            if max(part.values()) >= LEAST:
                yield f"| `{name}` | {cells(part)} | {about} |"
    yield f"| **all else** | {cells(small, '**')} | Other files, and code that is not ours: the C library's. |"
    totals = {system: sum(costs[system].values()) for system in SYSTEMS}
    yield f"| **the whole** | {cells(totals, '**')} | |"


def main() -> None:
    """Count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="document whose profile is replaced")
    options = parser.parse_args()
    build_engine()
    costs = {system: by_line(counted(system)) for system in SYSTEMS}
    titles = " | ".join(SYSTEMS)
    lines = [f"| where | {titles} | what it does |", f"| --- | {'---: | ' * len(SYSTEMS)}--- |", *rows(costs)]
    text = "\n".join(lines)
    print(text)
    if options.markdown:
        replace_between(options.markdown, text, "profile")


if __name__ == "__main__":
    main()
