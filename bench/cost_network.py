"""Networks of links in a row whose cost is measured, and running the engine on one."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callgrind import ENGINE, count

Told = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """Links in a row, hosts at its ends and perhaps at each of its routers, and flows of one kind."""

    kind: str
    hops: int
    pairs: int
    flows: int
    access: str
    """Rate and delay of access links, as a scenario writes them; their queues are unlimited."""
    link: str
    """The same of the links in the row."""
    spread: str
    """Over how long the flows start."""
    cross: int = 0
    """Pairs whose flows cross one link each: all flows are theirs, if there are any."""

    def scenario(self, system: str) -> str:
        """Its text, with this protocol."""
        cross, path = (f"cross = {self.cross}", 'path = "cross"') if self.cross else ("", "")
        return f"""
name = "row"
stack = "ns2"
[topology]
kind = "{self.kind}"
hops = {self.hops}
pairs = {self.pairs}
{cross}
access = {{ {self.access}, queue = "unlimited" }}
link = {{ {self.link} }}
[[flows]]
name = "bulk"
count = {self.flows}
protocol = "{system}"
packet = "1000B"
{path}
start = {{ spread = "{self.spread}" }}
"""


def run_engine(scenario: str, arguments: list[str], *, counted: bool) -> tuple[Told, float]:
    """Run the engine on a scenario; return its output, and the instructions of its span (zero if not counted)."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "scenario.toml"
        file.write_text(scenario, encoding="utf-8")
        if counted:
            found = count(ENGINE, [str(file), *arguments])
            return found.told, found.total()
        told: Told = json.loads(
            subprocess.run([ENGINE, file, *arguments], check=True, capture_output=True, text=True).stdout
        )
        return told, 0.0
