"""Cost of a packet-hop against the number of flows, the bandwidth-delay product and the number of links.

    python bench/cost_scaling.py                     measure, and print the table
    python bench/cost_scaling.py --markdown FILE     put it between the `scaling` markers; draw cost.svg beside FILE
    python bench/cost_scaling.py --draw FILE         draw cost.svg again from the table in FILE

A point is one network. Nanoseconds are CPU times of the thread, the minimum of several rounds over all points, so that
other load of the machine affects all points equally. Callgrind counts instructions over the same span of simulated
time, if the run up to its end is short enough: it is a hundred times slower.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from callgrind import build_engine
from cost_network import Row, run_engine
from shared import picture, replace_between, table_of

from explicate.charts import Axes, Series, round_up

SYSTEMS = ("xcp", "sack")
ROUNDS = 3
COUNTED = 2e7
"""Most packet-hops of a run that callgrind is given."""


@dataclass(frozen=True)
class Point:
    """One network, at one size along one axis."""

    axis: str
    size: int
    mbps: int
    flows: int
    hops: int
    span: tuple[float, float]

    def scenario(self, system: str) -> str:
        """Its text: 80 ms and buffers of one product, however many links; with one, it is a dumbbell."""
        access = f'rate = "{4 * self.mbps}Mbit/s", delay = "5ms"'
        link = f'rate = "{self.mbps}Mbit/s", delay = "{30_000 // self.hops}us"'
        row = Row("chain", self.hops, self.flows, self.flows, access, link, f"{self.span[0] / 3:g}s")
        return row.scenario(system)


POINTS = [
    *(Point("flows", n, 10_000, n, 1, (0.6, 0.7)) for n in (10, 100, 1_000, 10_000, 100_000)),
    *(Point("packets of the product", mbps * 10, mbps, 10, 1, (6.0, 6.0 + span)) for mbps, span in ((10, 6), (100, 3))),
    Point("packets of the product", 10_000, 1_000, 10, 1, (3.0, 3.3)),
    Point("packets of the product", 100_000, 10_000, 10, 1, (3.0, 3.1)),
    *(Point("links in a row", n + 2, 100, 10, n, (4.0, 5.0)) for n in (1, 8, 62, 254)),
]
AXES = {
    "flows": "flows, at 10 Gbit/s and 80 ms",
    "packets of the product": "bandwidth-delay product, packets: 10 flows, 10 Mbit/s to 10 Gbit/s",
    "links in a row": "links in a row: 10 flows, 100 Mbit/s, 80 ms in all",
}


@dataclass
class Cost:
    """The cost of a hop; empty if the span is too short for the clock, or too long to be counted."""

    nanoseconds: float | None
    instructions: float | None = None


def run(point: Point, system: str, *, counted: bool) -> tuple[float, float]:
    """Run a point; return packet-hops of its span, and instructions or CPU seconds."""
    told, instructions = run_engine(point.scenario(system), ["{}..{}".format(*point.span)], counted=counted)
    return told["hops"], instructions if counted else told["cpu_s"]


def measure() -> dict[tuple[Point, str], Cost]:
    """Time all points in turn, some rounds; then count those that are short enough."""
    pairs = [(point, system) for point in POINTS for system in SYSTEMS]
    costs = {pair: Cost(None) for pair in pairs}
    hops: dict[tuple[Point, str], float] = {}
    for _ in range(ROUNDS):
        for pair in pairs:
            hops[pair], seconds = run(*pair, counted=False)
            if seconds > 0:
                costs[pair].nanoseconds = min(costs[pair].nanoseconds or float("inf"), 1e9 * seconds / hops[pair])

    def whole(pair: tuple[Point, str]) -> float:
        start, end = pair[0].span
        return hops[pair] * end / (end - start)

    short = [pair for pair in pairs if whole(pair) <= COUNTED]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for pair, (done, instructions) in zip(short, pool.map(lambda p: run(*p, counted=True), short), strict=True):
            costs[pair].instructions = instructions / done
    return costs


def table(costs: dict[tuple[Point, str], Cost]) -> str:
    """The figures as Markdown."""
    titles = " | ".join(f"{system}: ns | instructions" for system in SYSTEMS)
    lines = [f"| of what | how many | {titles} |", f"| --- | ---: |{' ---: |' * 2 * len(SYSTEMS)}"]
    for point in POINTS:
        cells = []
        for system in SYSTEMS:
            cost = costs[point, system]
            cells += ["" if value is None else f"{value:.0f}" for value in (cost.nanoseconds, cost.instructions)]
        lines.append(f"| {point.axis} | {point.size:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def read(page: Path) -> dict[tuple[Point, str], Cost]:
    """The figures that a page has."""
    costs = {}
    for point, (axis, size, *cells) in zip(POINTS, table_of(page, "scaling"), strict=True):
        if (axis, size) != (point.axis, str(point.size)):
            raise ValueError(f"{page}: a row for {axis} {size}, where {point.axis} {point.size} belongs")
        values = [float(cell) if cell else None for cell in cells]
        for place, system in enumerate(SYSTEMS):
            costs[point, system] = Cost(*values[2 * place : 2 * place + 2])
    return costs


def drawing(costs: dict[tuple[Point, str], Cost]) -> str:
    """The plot: for each axis the time, and the instructions below it."""
    panels = []
    for axis, label in AXES.items():
        points = [point for point in POINTS if point.axis == axis]
        for of, y_label in (("nanoseconds", "ns per packet-hop"), ("instructions", "instructions per packet-hop")):
            series = []
            for place, system in enumerate(SYSTEMS):
                values = [(point.size, getattr(costs[point, system], of)) for point in points]
                known = [(x, y) for x, y in values if y is not None]
                series.append(Series(system, place, [x for x, _ in known], [y for _, y in known]))
            top = round_up(max(y for cost in costs.values() if (y := getattr(cost, of)) is not None))
            ends = (min(p.size for p in points), 1.8 * max(p.size for p in points))
            panels.append((Axes(y_label, label, y_label, ends, (0.0, top), log="x"), series))
    return picture("What a packet-hop costs", panels, 400)


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="document whose table is replaced; the plot goes beside it")
    parser.add_argument("--draw", type=Path, help="document with a table; the plot goes beside it, nothing is measured")
    options = parser.parse_args()
    if options.draw:
        (options.draw.parent / "cost.svg").write_text(drawing(read(options.draw)), encoding="utf-8")
        return
    build_engine()
    costs = measure()
    print(table(costs))
    if options.markdown:
        replace_between(options.markdown, table(costs), "scaling")
        (options.markdown.parent / "cost.svg").write_text(drawing(costs), encoding="utf-8")


if __name__ == "__main__":
    main()
