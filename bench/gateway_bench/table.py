"""The table of all cases, and its place in a page."""

from __future__ import annotations

import statistics
from pathlib import Path

from .case import ALL, Case

# Names of the marks around the tables of all ways, and of the gateway by connections.
WAYS, CONNECTIONS = "gateway-bench", "gateway-connections"
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


def names(runs: list[dict[str, float] | str]) -> list[str]:
    """Of the figures of runs."""
    return list(dict.fromkeys(name for of in runs if isinstance(of, dict) for name in of))


def rows(case: Case, ways: dict[str, list[dict[str, float] | str]], most: int) -> list[str]:
    """A row for each figure of a case; `most` runs were made of a way."""
    lines = []
    for name in names([of for runs in ways.values() for of in runs]) or ["none"]:
        wanted, of = case.wanted.get(name), medians(ways, name)
        verdict = wanted.verdict(of) if wanted else ""
        cells = [cell(ways.get(way, []), name, most) for way in ALL]
        lines.append(f"| {case.name} | {name} | {verdict} | {' | '.join(cells)} |")
    return lines


def most_runs(cases: list[Case], results: Results) -> int:
    """How many runs there are of a case and a way."""
    return max((len(runs) for case in cases for runs in results.get(case.name, {}).values()), default=0)


def by_connections(counted: dict[str, list[Case]], results: Results) -> str:
    """Of the gateway, with each number of connections."""
    of = [f"{case.connections} connection{'s' * (case.connections > 1)}" for case in next(iter(counted.values()))]
    lines = [f"| case | figure | wanted | {' | '.join(of)} |", "| --- | --- | --- |" + " ---: |" * len(of)]
    most = most_runs([case for cases in counted.values() for case in cases], results)
    for kind, cases in counted.items():
        runs = [results.get(case.name, {}).get("gateway", []) for case in cases]
        for name in names([of for each in runs for of in each]) or ["none"]:
            wanted = cases[0].wanted.get(name)
            verdicts = [wanted.verdict(medians({"gateway": each}, name)) for each in runs] if wanted else [""]
            # The worst one.
            verdict = min(verdicts, key=lambda text: ("**no**" not in text, "not run" not in text))
            cells = [cell(each, name, most) for each in runs]
            lines.append(f"| {kind} | {name} | {verdict} | {' | '.join(cells)} |")
    return "\n".join(lines)


def table(cases: list[Case], results: Results) -> str:
    """Of all cases that have results."""
    lines = [f"| case | figure | wanted | {' | '.join(ALL)} |", "| --- | --- | --- |" + " ---: |" * len(ALL)]
    most = most_runs(cases, results)
    for case in cases:
        if case.name in results:
            lines += rows(case, results[case.name], most)
    return "\n".join(lines)


def put(page: Path, name: str, text: str) -> None:
    """Between the marks of a page."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
