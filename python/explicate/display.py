"""Text output of the command: results, the registry, the columns, the cost of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from explicate.console import table
from explicate.engine import BenchCase, Column, Entry
from explicate.text import amount, number, percent, rate

if TYPE_CHECKING:  # lists need no frames, and no Polars
    import polars as pl

    from explicate.results import Results
    from explicate.sweeps.table import SweepResults

MOST_LINKS = 12
MOST_POINTS = 40
MOST_FAILURES = 5


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def heading(results: Results) -> str:
    """Return one line: the name, the number of runs, the first seed."""
    count = results.run.height
    points = f", {_counted(len(results.points()), 'point')}" if results.axes else ""
    return f"{results.name}: {_counted(count, 'run')}{points}, seed {results.seed}, explicate {results.version}"


def group_cells(results: Results) -> tuple[list[list[str]], bool, bool]:
    """Return the table of the flow groups, a row per point and group, and whether it has margins and completions."""
    from explicate.summary import margin_95  # noqa: PLC0415

    summary = results.summary().to_dicts()
    margins = [margin_95(row["goodput_sd_bps"], row["runs"]) for row in summary]
    done = any(row["completion_s"] is not None for row in summary)
    body = [
        [
            *(str(row[axis]) for axis in results.axes),
            str(row["group"]),
            str(row["protocol"]),
            str(row["flows"]),
            rate(row["goodput_bps"]),
            *([rate(margin) if margin else "–"] if any(margins) else []),
            "–" if row["jain"] is None else f"{row['jain']:.3f}",
            number(row["retransmissions"]),
            number(row["timeouts"]),
            number(row["rtt_mean_ms"]),
            *([number(row["completion_s"])] if done else []),
        ]
        for row, margin in zip(summary, margins, strict=True)
    ]
    return body, any(margins), done


def groups(results: Results) -> str:
    """Return that table for a terminal."""
    body, margins, done = group_cells(results)
    head = [*results.axes, "group", "protocol", "flows", "goodput", *(["± 95 %"] if margins else []), "Jain"]
    head += ["retransmits", "timeouts", "RTT ms", *(["done s"] if done else [])]
    return "\n".join(filter(None, [table(head, body, left=len(results.axes) + 2), results.sameness()]))


def links(results: Results) -> str:
    """Return the table of the busy links: those with a queue, drops or marks."""
    from explicate.summary import busy_links  # noqa: PLC0415

    names = busy_links(results.links)
    rank = {name: place for place, name in enumerate(names[:MOST_LINKS])}
    shown = [row for row in results.link_summary().to_dicts() if row["link"] in rank]
    places = {tuple(point.values()): place for place, point in enumerate(results.points())}
    shown.sort(key=lambda row: (rank[row["link"]], places[tuple(row[axis] for axis in results.axes)]))
    head = ["link", *results.axes, "utilisation", "queue mean", "p95", "max packets", "mean ms"]
    head += ["overflow", "early", "channel", "marks"]
    body = [
        [
            row["link"],
            *(str(row[axis]) for axis in results.axes),
            percent(row["utilisation"]),
            *(amount(row[f"queue_{name}"]) for name in ("mean_packets", "p95_packets", "max_packets", "mean_ms")),
            *(number(row[name]) for name in ("drops_overflow", "drops_early", "drops_channel", "marks")),
        ]
        for row in shown
    ]
    more = f"\n… and {len(names) - MOST_LINKS} more in the table of links" if len(names) > MOST_LINKS else ""
    return table(head, body, left=len(results.axes) + 1) + more


def intervals(results: SweepResults) -> str:
    """Return the table of a sweep's measures: a line for each point, means with their 95 % intervals over the runs."""
    from explicate.sweeps.measures import MARGIN  # noqa: PLC0415

    frame = results.intervals()
    axes, names = frame.columns[: len(results.axes)], results.wanted
    spread = any(frame[name + MARGIN].fill_null(0).max() for name in names)
    body = [
        [
            *(value if isinstance(value, str) else number(value, 4) for value in (row[axis] for axis in axes)),
            str(row["runs"]),
            *(
                number(row[name], 4) + (f" ± {number(row[name + MARGIN], 2)}" if row[name + MARGIN] else "")
                for name in names
            ),
        ]
        for row in frame.head(MOST_POINTS).to_dicts()
    ]  # fmt: skip
    more = frame.height - len(body)
    note = f"\n… and {more} more points in intervals.parquet" if more > 0 else ""
    note += "\n± is half the 95 % interval of the mean, over seeds" if spread else ""
    note += f"\n{same}" if (same := results.sameness()) else ""
    return table([*axes, "runs", *names], body, left=len(axes)) + note


def failures(results: SweepResults, out: str | None) -> list[str]:
    """Return a line for each of the first failed runs, and the location of their scenarios."""
    count = len(results.failures)
    lines = [f"{count} of {results.run.height + count} runs failed"]
    lines += [f"  {failure}" for failure in results.failures[:MOST_FAILURES]]
    lines += [f"  … and {count - MOST_FAILURES} more"] if count > MOST_FAILURES else []
    if out:
        lines.append(f"their scenarios are listed in {out}/failures.json; the same command retries them")
    return lines


def fluid(results: Results) -> str:
    """Return one line: the size of the fluid model, and its cost."""
    runs = results.timing["runs"]
    first, seconds = runs[0], sum(run["set_up_s"] + run["wall_s"] for run in runs)
    flows, size = results.flows.filter(results.flows["run"] == 0)["count"].sum(), first["bytes"] / 1e6
    shape = f"{first['classes']:,} classes with {first['class_hops']:,} hops, {first['steps']:,} steps"
    return f"\nfluid: {flows:,} flows in {shape}; {seconds:.1f} s, {size:.1f} MB for the model"


def registry(entries: Sequence[Entry]) -> str:
    """Return all names by kind, each with a summary and its source."""
    parts = []
    for kind, members in groupby(sorted(entries, key=lambda entry: entry["kind"]), lambda entry: entry["kind"]):
        body = [[f"  {item['name']}", item["summary"], item["source"]] for item in members]
        parts.append(table([kind, "", ""], body, left=3))
    return "\n\n".join(parts)


def entry(item: Entry) -> str:
    """Return one entry with its parameters."""
    head = f"{item['name']} ({item['kind']}): {item['summary']}"
    source = f"\nsource: {item['source']}" if item["source"] else ""
    if "header_bytes" in item:
        source += f"\nheaders: {item['header_bytes']} bytes of each data packet, the rest is payload"
    if not item["parameters"]:
        return f"{head}{source}\nno parameters"
    body = [[p["name"], p["default"], p["unit"], p["source"], p.get("doc", "")] for p in item["parameters"]]
    return f"{head}{source}\n\n{table(['parameter', 'default', 'unit', 'source', 'meaning'], body, left=5)}"


def names(kind: str, summaries: Mapping[str, str]) -> str:
    """Return names with a sentence about each."""
    return table([kind, ""], [[f"  {name}", summary] for name, summary in summaries.items()], left=2)


def columns(tables: Mapping[str, Sequence[Column]]) -> str:
    """Return the columns of each table with unit and definition."""
    return "\n\n".join(
        table([name, "unit", ""], [[f"  {c['name']}", c["unit"], c["doc"]] for c in members], left=3)
        for name, members in tables.items()
    )


def curves(frame: pl.DataFrame) -> str:
    """Return the table of a channel's curves."""

    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return "–" if value is None else str(value)
        return f"{value:g}" if value == 0 or 1e-3 <= value < 1e6 else f"{value:.4e}"

    return table(frame.columns, [[cell(value) for value in row] for row in frame.rows()], left=1)


FLOOR_TITLES = ["case", "ns / hop", "times the least", "instructions / hop", "times the least"]


def floor_rows(cases: Sequence[BenchCase]) -> list[list[str]]:
    """Return the cost of a hop in each case, and its ratio to the lowest floor of the same size."""

    def nanoseconds(case: BenchCase) -> float:
        return 1e9 * case["cpu_seconds"] / max(case["hops"], 1)

    body = []
    for case in cases:
        alike = [c for c in cases if c["name"].partition("-")[2] == case["name"].partition("-")[2]]
        counts = [c["instructions_per_hop"] for c in alike if c["instructions_per_hop"] is not None]
        own, least = case["instructions_per_hop"], min(map(nanoseconds, alike))
        body.append(
            [
                case["name"],
                f"{nanoseconds(case):.1f}",
                f"{nanoseconds(case) / least:.1f}" if least > 0 else "–",
                "–" if own is None else f"{own:.0f}",
                "–" if own is None else f"{own / min(counts):.1f}",
            ]
        )
    return body


def floor(cases: Sequence[BenchCase]) -> str:
    """Return the table of floors and engine."""
    return table(FLOOR_TITLES, floor_rows(cases))


def bench(cases: Sequence[BenchCase]) -> str:
    """Return the cost of each case."""

    def optional(value: Any) -> str:
        return "–" if value is None else f"{value:.0f}"

    body = [
        [
            case["name"],
            number(case["hops"]),
            f"{case['cpu_seconds']:.2f}",
            f"{case['hops_per_cpu_second'] / 1e6:.1f}",
            optional(case["instructions_per_hop"]),
            optional(case["bytes_per_flow"]),
        ]
        for case in cases
    ]
    return table(["case", "hops", "CPU s", "million hops / CPU s", "instructions / hop", "bytes / flow"], body)
