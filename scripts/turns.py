"""The table of parts, and which of them a tree runs.

A part with `own` paths takes turns: `.ci/run` runs it if there is time. First come parts whose own paths differ from
what they were when everything last passed (`tests/parts.json`), then those whose common paths differ, then the rest.
Among equals the order follows from a hash of the tree's content, so that each has its turn in some trees, and a tree
always runs the same. They are added in this order, as long as the sum of processor seconds stays within `limit`.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts" / "parts.toml"
RECORD = ROOT / "tests" / "parts.json"
REASONS = ("its files changed", "what it uses changed", "its turn")


@dataclass
class Part:
    """A part, and once it has run what it took, in seconds."""

    name: str
    tier: str
    needs: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    seconds: float = 0.0
    state: str = "waits"
    wall: float = 0.0
    processor: float = 0.0
    compiling: float = 0.0
    load: float = 0.0
    missing: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state not in ("waits", "runs")


@dataclass
class Table:
    """All parts; `limit` bounds the seconds of a tree, and `common` are paths that every part depends on."""

    parts: dict[str, Part]
    limit: float = float("inf")
    common: list[str] = field(default_factory=list)


def read(path: Path = TABLE) -> Table:
    """Reads `scripts/parts.toml`."""
    keys = tomllib.loads(path.read_text(encoding="utf-8"))
    parts = {name: Part(name, **of) for name, of in keys.items() if isinstance(of, dict)}
    return Table(parts, **{name: value for name, value in keys.items() if not isinstance(value, dict)})


def with_needs(parts: Mapping[str, Part], chosen: Iterable[Part]) -> list[Part]:
    """These parts and what they need, which comes first; what prepares comes before all others."""
    wanted: dict[str, Part] = {}

    def add(part: Part) -> None:
        for need in part.needs:
            add(parts[need])
        wanted.setdefault(part.name, part)

    for part in chosen:
        add(part)
    return sorted(wanted.values(), key=lambda part: part.tier != "prepare")


def named(parts: Mapping[str, Part], names: Sequence[str]) -> list[Part]:
    """The parts of these tiers and names, and what they need."""
    chosen: list[Part] = []
    for name in names:
        of_tier = [part for part in parts.values() if part.tier == name]
        if not of_tier and name not in parts:
            tiers = sorted({part.tier for part in parts.values()})
            sys.exit(f"no part or tier `{name}`; tiers: {', '.join(tiers)}; parts: {', '.join(parts)}")
        chosen += of_tier or [parts[name]]
    return with_needs(parts, chosen)


def due(table: Table, among: Sequence[Part], tree: str, changed: Mapping[str, int]) -> list[Part]:
    """Those of the parts that a tree runs: `tree` is its hash, `changed` the place of a part's reason in `REASONS`."""
    always = [part for part in among if not part.own and part.tier != "prepare"]
    turns = [part for part in among if part.own]
    turns.sort(key=lambda part: (changed[part.name], hashlib.sha256(f"{tree} {part.name}".encode()).digest()))
    chosen = with_needs(table.parts, always)
    for part in turns:
        more = with_needs(table.parts, [*chosen, part])
        if sum(one.seconds for one in more) <= table.limit:
            chosen = more
    # In the order of the table, in which the longest come first.
    names = {part.name for part in chosen}
    return with_needs(table.parts, [part for part in table.parts.values() if part.name in names])


def contents() -> dict[str, bytes]:
    """A hash of every file of the working tree that git tracks, or would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {name: ROOT / name for name in sorted(set(listed.split("\0"))) if name}
    return {name: hashlib.sha256(file.read_bytes()).digest() for name, file in files.items() if file.is_file()}


def digest(files: Mapping[str, bytes], paths: Sequence[str]) -> str:
    """A hash of the files with these paths, or below those that end in a slash."""
    whole = hashlib.sha256()
    for name, content in files.items():
        if any(name == path or (path.endswith("/") and name.startswith(path)) for path in paths):
            whole.update(name.encode() + b"\0" + content)
    return whole.hexdigest()


def hashes(table: Table, files: Mapping[str, bytes]) -> dict[str, str]:
    """What `tests/parts.json` records: the hash of the common paths, by the empty name, and of every part's own."""
    owned = {part.name: digest(files, part.own) for part in table.parts.values() if part.own}
    return {"": digest(files, table.common), **owned}


def reasons(table: Table, files: Mapping[str, bytes]) -> dict[str, int]:
    """For every part that takes turns the place of its reason in `REASONS`."""
    before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    now = hashes(table, files)
    common = before.get("") != now[""]
    return {name: 0 if before.get(name) != now[name] else 1 if common else 2 for name in now if name}


def record(table: Table) -> None:
    """Notes that everything passed with today's files."""
    RECORD.write_text(json.dumps(hashes(table, contents()), indent=1) + "\n", encoding="utf-8")
