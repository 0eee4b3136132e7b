"""Cost of a packet-hop with up to a million flows over a parking lot of 100 links.

    python bench/cost_million.py                     measure, and print the table
    python bench/cost_million.py --markdown FILE     put it between the `million` markers; draw the plot beside FILE
    python bench/cost_million.py --draw FILE         draw the plot again from the table in FILE
    python bench/cost_million.py --judge             only count instructions (10,000 and 100,000 flows) and memory

Points with fewer flows have links of the same rate, so that each flow has more of it, or slower links, so that each
flow has as much as one of a million. Times are CPU times of the thread, the minimum of several rounds over all points;
ratios are medians of the ratios within a round. The network is not sampled before the end of the span.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from callgrind import build_engine
from cost_network import Row, Told, run_engine
from shared import picture, replace_between, table_of

from explicate.charts import Axes, Series, round_up

SYSTEMS = ("xcp", "sack")
HOPS = 100
SIZES = (10_000, 100_000, 1_000_000)
ROUNDS = 2
FROM = 0.8
"""All flows have started after 0.3 s; the last of them are through their third round trip."""
LONGEST = 1.15
"""Most that instructions may grow by."""
COUNTED = 100_000
"""The largest size that is counted; with ten times as many flows callgrind would take a quarter of an hour."""
COUNTED_SPAN = 0.1
"""Seconds, after which counts change little."""
MOST_BYTES = 1174
"""Most memory of each of a million flows that have started, links and packets included: the measured value plus a
fiftieth. What a sender knows of departures and answers, 44 bytes, is in it; so are rules of start, timer and queue."""


@dataclass(frozen=True)
class Point:
    """One network."""

    flows: int
    mbps: int

    @property
    def span(self) -> float:
        """Simulated seconds: about as many packet-hops in all, but for the smallest."""
        return min(0.1 * 1000 / self.mbps, 1.0)

    def scenario(self, system: str) -> str:
        """Its text: 80 ms; a hundred flows between each pair of hosts, which cross one of the links."""
        access, link = (f'rate = "{self.mbps}Mbit/s", delay = "{delay}"' for delay in ("2ms", "36ms"))
        row = Row("parking_lot", HOPS, 1, self.flows, access, link, "0.3s", cross=self.flows // HOPS // 100)
        return row.scenario(system)


ALIKE_LINKS = [Point(flows, 1000) for flows in SIZES]
ALIKE_FLOWS = [Point(flows, flows // 1000) for flows in SIZES]
ALIKE = (("links alike", ALIKE_LINKS), ("flows alike", ALIKE_FLOWS))
POINTS = list(dict.fromkeys([*ALIKE_LINKS, *ALIKE_FLOWS]))


def run(point: Point, system: str, span: float | None = None, *, counted: bool = False) -> Told:
    """Run a point over its span, or another; return its output, with `instructions` if they are counted."""
    end = FROM + (span or point.span)
    # The run ends a round trip after the span, so that the span has no work of the final inspection.
    arguments = [f"{FROM}..{end:g}", f"duration={end + 0.1:g}s"]
    told, instructions = run_engine(point.scenario(system), arguments, counted=counted)
    return {**told, "instructions": instructions / told["hops"], "ns": 1e9 * told["cpu_s"] / told["hops"]}


Rounds = dict[tuple[Point, str], list[Told]]


def measure(rounds: int) -> Rounds:
    """Time all points in turn, some rounds."""
    times: Rounds = {(point, system): [] for point in POINTS for system in SYSTEMS}
    for _ in range(rounds):
        for (point, system), told in times.items():
            told.append(run(point, system))
            print(f"{system} {point}: {told[-1]}", file=sys.stderr)
    return times


def instructions() -> dict[tuple[Point, str], float]:
    """Per packet-hop, where each flow has as much of the links as one of a million."""
    counted = [(point, system) for point in ALIKE_FLOWS if point.flows <= COUNTED for system in SYSTEMS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(
            zip(counted, pool.map(lambda p: run(*p, COUNTED_SPAN, counted=True)["instructions"], counted), strict=True)
        )


def least(told: Sequence[Told], of: str) -> float:
    """The least of some rounds."""
    return min(float(round_[of]) for round_ in told)


def ratio(times: Rounds, of: Point, to: Point, system: str) -> float:
    """Ratios of the time of a packet-hop, by round."""
    pairs = zip(times[of, system], times[to, system], strict=True)
    return statistics.median(a["ns"] / b["ns"] for a, b in pairs)


def tables(times: Rounds, counts: dict[tuple[Point, str], float]) -> str:
    """The figures as Markdown."""
    lines = [
        "| flows, links of | protocol | set-up, s | bytes a flow, built | started "
        "| ns a packet-hop | times that of 10,000 | instructions |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for points in (ALIKE_LINKS, ALIKE_FLOWS):
        for point in points[: None if points is ALIKE_LINKS else -1]:
            for system in SYSTEMS:
                told = times[point, system]
                cells = [
                    f"{point.flows:,}, {point.mbps} Mbit/s",
                    system,
                    f"{least(told, 'setup_s'):.2f}",
                    *(f"{least(told, of) / point.flows:.0f}" for of in ("bytes_built", "bytes_started")),
                    f"{least(told, 'ns'):.0f}",
                    f"{ratio(times, point, points[0], system):.2f}",
                    f"{counts[point, system]:.0f}" if (point, system) in counts else "",
                ]
                lines.append(f"| {' | '.join(cells)} |")
    words = []
    for system in SYSTEMS:
        one, other = (ratio(times, ALIKE_LINKS[-1], points[0], system) for points in (ALIKE_LINKS, ALIKE_FLOWS))
        words.append(f"{system} {one:.2f} and {other:.2f}")
    rounds = len(next(iter(times.values())))
    lines += ["", f"A million over ten thousand, links alike and flows alike: {'; '.join(words)} (rounds: {rounds})."]
    return "\n".join(lines)


Costs = dict[tuple[Point, str], float]
"""Nanoseconds a packet-hop."""


def read(page: Path) -> Costs:
    """The times that a page has."""
    rows = (row for row in table_of(page, "million") if len(row) > 1)
    found = {(of.removesuffix(" Mbit/s"), system): float(ns) for of, system, _, _, _, ns, *_ in rows}
    return {(point, system): found[f"{point.flows} {point.mbps}", system] for point in POINTS for system in SYSTEMS}


def drawing(costs: Costs) -> str:
    """The plot: time against flows, for both ways to have fewer."""
    panels = [(name, [line(costs, system, points) for system in SYSTEMS]) for name, points in ALIKE]
    top = round_up(max(y for _, lines in panels for one in lines for y in one.y))
    drawn = [
        (Axes(name, f"flows ({name})", "ns per packet-hop", (SIZES[0], SIZES[-1]), (0.0, top), log="x"), lines)
        for name, lines in panels
    ]
    return picture("What a packet-hop costs with up to a million flows", drawn, 400)


def line(costs: Costs, system: str, points: Sequence[Point]) -> Series:
    """Its curve."""
    flows, cost = [point.flows for point in points], [costs[point, system] for point in points]
    return Series(system, SYSTEMS.index(system), flows, cost)


def draw(costs: Costs, page: Path) -> None:
    """Write the plot into the folder of a page."""
    (page.parent / "million.svg").write_text(drawing(costs), encoding="utf-8")


def judge(counts: dict[tuple[Point, str], float]) -> list[str]:
    """Points whose cost grows too much."""
    over = []
    for system in SYSTEMS:
        few, many = (counts[point, system] for point in ALIKE_FLOWS if point.flows <= COUNTED)
        print(f"{system}: {few:.0f} instructions a packet-hop with 10,000 flows, {many:.0f} with 100,000")
        if many > LONGEST * few:
            over.append(f"{system}: {many / few:.3f} times the instructions with ten times the flows, limit {LONGEST}")
    return over


def judge_memory() -> list[str]:
    """Points that use too much memory once a million flows have started."""
    over = []
    for system in SYSTEMS:
        started = run(ALIKE_LINKS[-1], system, COUNTED_SPAN / 10)["bytes_started"] / SIZES[-1]
        print(f"{system}: {started:.0f} bytes a flow with a million flows that have started")
        if not 0 < started <= MOST_BYTES:
            over.append(f"{system}: {started:.0f} bytes a flow with a million, limit {MOST_BYTES}")
    return over


def main() -> None:
    """Measure, print, draw; or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="document whose tables are replaced; the plot goes beside it")
    parser.add_argument(
        "--judge", action="store_true", help="count instructions and memory, and fail if either grows too much"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--draw", type=Path, help="document with a table; the plot goes beside it, nothing is measured")
    options = parser.parse_args()
    if options.draw:
        draw(read(options.draw), options.draw)
        return
    build_engine()
    if options.judge:
        if over := judge(instructions()) + judge_memory():
            sys.exit("\n".join(over))
        return
    times = measure(options.rounds)
    text = tables(times, instructions())
    print(text)
    if options.markdown:
        replace_between(options.markdown, text, "million")
        draw({pair: least(told, "ns") for pair, told in times.items()}, options.markdown)


if __name__ == "__main__":
    main()
