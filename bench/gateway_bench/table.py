"""The table of all cases, and its place in a page."""

from __future__ import annotations

import statistics
from pathlib import Path

from .case import ALL, Case

BEGIN, END = "<!-- gateway-bench:begin -->", "<!-- gateway-bench:end -->"
# Of a case and a way: figures of each run that came about, and why the others did not.
Results = dict[str, dict[str, list[dict[str, float] | str]]]


def number(value: float, name: str) -> str:
    """A figure, to three digits; shares in percent."""
    if name.startswith(("share", "use")) or name.endswith("lost"):
        return f"{value:.1%}"
    if name.endswith("index"):
        return f"{value:.3f}"
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def cell(runs: list[dict[str, float] | str], name: str, most: int) -> str:
    """Median and range of a figure; how many runs, if they are fewer than `most`."""
    values = sorted(figures[name] for figures in runs if isinstance(figures, dict) and name in figures)
    failed = [figures for figures in runs if isinstance(figures, str)]
    text = ""
    if values:
        text = number(statistics.median(values), name)
        least, greatest = number(values[0], name), number(values[-1], name)
        notes = [f"{least} to {greatest}"] if least != greatest else []
        if len(values) < most:
            notes.append("1 run" if len(values) == 1 else f"{len(values)} runs")
        if notes:
            text += f" ({', '.join(notes)})"
    if failed:
        text += f" {len(failed)} failed: {failed[0]}"
    return text.strip()


def medians(ways: dict[str, list[dict[str, float] | str]], name: str) -> dict[str, float]:
    """The median of each way that has this figure."""
    found = {}
    for way, runs in ways.items():
        values = [figures[name] for figures in runs if isinstance(figures, dict) and name in figures]
        if values:
            found[way] = statistics.median(values)
    return found


def rows(case: Case, ways: dict[str, list[dict[str, float] | str]], most: int) -> list[str]:
    """A row for each figure of a case; `most` runs were made of a way."""
    names = list(dict.fromkeys(name for runs in ways.values() for of in runs if isinstance(of, dict) for name in of))
    lines = []
    for name in names or ["none"]:
        wanted, of = case.wanted.get(name), medians(ways, name)
        verdict = wanted.verdict(of) if wanted else ""
        cells = [cell(ways.get(way, []), name, most) for way in ALL]
        lines.append(f"| {case.name} | {name} | {verdict} | {' | '.join(cells)} |")
    return lines


def table(cases: list[Case], results: Results) -> str:
    """Of all cases that have results."""
    lines = [f"| case | figure | wanted | {' | '.join(ALL)} |", "| --- | --- | --- |" + " ---: |" * len(ALL)]
    most = max((len(runs) for ways in results.values() for runs in ways.values()), default=0)
    for case in cases:
        if case.name in results:
            lines += rows(case, results[case.name], most)
    return "\n".join(lines)


def put(page: Path, text: str) -> None:
    """Between the marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
