"""Common code of the sections of docs/validation.md: tables, verdicts, the dumbbell, the document's parts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import explicate

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "validation.md"
DUMBBELL = Path(__file__).with_name("dumbbell.toml")
SCENARIOS = ROOT / "scenarios"
BOTTLENECK = "r1->r2"
HEADERS = {"tcp": 52, "xcp": 72}
"""Bytes in front of the payload of a data packet."""

ALPHA, BETA, GAMMA = 0.4, 0.226, 0.1

Settings = Mapping[str, Any]
Row = Sequence[object]


def table(heads: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines)


def verdict(holds: bool) -> str:
    """Return the cell of a table for a statement that holds or not."""
    return "yes" if holds else "**no**"


def in_parallel(work: Callable[..., Any], cases: Sequence[Any]) -> list[Any]:
    """Apply `work` to the tuples of `cases`, one per core at a time; the order is theirs."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return list(threads.map(lambda case: work(*case), cases))


def link(results: explicate.Results, name: str, column: str) -> float:
    """Return a cell of the table of links; a plain run has one row per link."""
    return float(results.links.filter(pl.col("link") == name)[column][0])


def flows(results: explicate.Results, group: str, column: str) -> list[float]:
    """Return a column of the table of flows, of one group."""
    return [float(value) for value in results.flows.filter(pl.col("group") == group)[column]]


def drops(results: explicate.Results) -> int:
    """Return the packets that were dropped anywhere in the whole run."""
    return int(results.links["drops_total"].sum())


def percent(got: float, expected: float) -> str:
    """Return the relative difference."""
    return f"{100 * (got / expected - 1):+.2f} %"


def close(got: float, expected: float, tolerance: float) -> str:
    """Return the cell of a table: whether `got` is `expected` within a relative tolerance."""
    return verdict(abs(got / expected - 1) < tolerance)


@dataclass(frozen=True)
class Network:
    """A bottleneck with its flows; round trips in ms, spread evenly."""

    mbps: float
    rtt: tuple[float, float]
    flows: int

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product of the mean round trip, bytes."""
        return self.mbps * 125 * sum(self.rtt) / 2

    @property
    def text(self) -> str:
        """The network as a cell of a table."""
        low, high = self.rtt
        rtt = f"{low:g}" if low == high else f"{low:g}..{high:g}"
        return f"{self.mbps:g} Mbit/s, {rtt} ms, {self.flows} flow{'s' * (self.flows > 1)}"

    def settings(self, protocol: str, more: Settings) -> Settings:
        """Return the settings that turn the dumbbell into this network."""
        low, high = self.rtt
        return {
            "topology.pairs": self.flows,
            "topology.access.rate": f"{10 * self.mbps:g}Mbit/s",
            "topology.access.delay.to": f"{1 + (high - low) / 4:g}ms",
            "topology.bottleneck.rate": f"{self.mbps:g}Mbit/s",
            "topology.bottleneck.delay": f"{low / 2 - 2:g}ms",
            "flows.0.count": self.flows,
            "flows.0.protocol": protocol,
            **more,
        }


LARGE = Network(100, (80, 80), 10)
SPREAD = Network(45, (40, 330), 30)
PATHS = [
    LARGE,
    Network(100, (80, 80), 50),
    Network(30, (100, 100), 1),
    Network(10, (40, 40), 2),
    SPREAD,
    Network(1000, (80, 80), 10),
]


def dumbbell(path: Network, protocol: str, more: Settings | None = None) -> explicate.Results:
    """Run the dumbbell."""
    return explicate.run(DUMBBELL, set=path.settings(protocol, more or {}))


def kept(name: str, text: str | None = None) -> str:
    """Return the part of the document between the markers `name`, with new `text` if there is any."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text is None:
        old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
        _, found, rest = old.partition(begin)
        inner, closed, _ = rest.partition(end)
        text = inner.strip("\n") if found and closed else "Not computed yet."
    return f"{begin}\n{text.strip(chr(10))}\n{end}\n"


def place(name: str, heading: str, text: str) -> None:
    """Write a section of the document between the markers `name`, at the end if it is not there yet."""
    old = DOCUMENT.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    block = f"{begin}\n{text.strip(chr(10))}\n{end}"
    before, found, rest = old.partition(begin)
    _, closed, after = rest.partition(end)
    appended = f"{old.rstrip(chr(10))}\n\n## {heading}\n\n{block}\n"
    new = f"{before}{block}{after}" if found and closed else appended
    DOCUMENT.write_text(with_contents(new), encoding="utf-8")


def with_contents(text: str) -> str:
    """Return a page with links to its sections between the markers ``contents``."""
    begin, end = "<!-- contents:begin -->", "<!-- contents:end -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    titles = re.findall(r"^## (.+)$", after, re.MULTILINE)
    links = "\n".join(f"- [{title}](#{anchor(title)})" for title in titles)
    return f"{before}{begin}\n{links}\n{end}{after}"


def anchor(title: str) -> str:
    """Return the name under which a page has a section: lower case, without punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
