"""The pictures of the reference pages: what each registry entry does, drawn from a run of its own.

Which scenario shows what is said by `page_figures.toml`: a table `any` for each kind, and tables with the names of
entries for what differs. Pictures are functions of the engine's results alone, which are the same on every machine.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

import polars as pl
from pictures import picture

from explicate import lab
from explicate.charts import Axes, Point, Series, round_up
from explicate.results import Results

HERE = Path(__file__).resolve().parent
TABLE = tomllib.loads((HERE / "page_figures.toml").read_text(encoding="utf-8"))
TRACES = HERE.parent / "crates" / "explicate-scenario" / "templates"
POINTS = 1500
"""Of all lines of a picture together."""
ARRIVALS_EVERY = 0.06
"""s over which arrivals are counted."""

ALL = (0.0, float("inf"))

EVENT = re.compile(r"^ *([\d.]+)(?:  (\S+))? +(\S+) +\S+ (data|ack) (\d+) packet (\d+) (\d+) B")
"""A line of a trace: time, link, event, kind, segment or acknowledgement, packet, bytes."""


@dataclass(frozen=True)
class Plan:
    """What is run and drawn for one entry."""

    about: str
    scenario: str
    panels: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, kind: str, name: str) -> Plan:
        """Return the plan of an entry: its own table over that of its kind."""
        said = {**TABLE[kind]["any"], **TABLE[kind].get(name, {})}
        own = {"name": name, "traces": str(TRACES)}
        values = {**TABLE[kind]["any"].get("values", {}), **said.get("values", {})}
        values = {**own, **{key: Template(text).substitute(own) for key, text in values.items()}}
        panels = [said[key] for key in ("left", "right", "third") if key in said]
        about = re.sub(r"(\d)([kMG]bit/s)", r"\1 \2", Template(said["about"]).substitute(values))
        return cls(about, Template(said["scenario"]).substitute(values), panels)


@dataclass(frozen=True)
class Event:
    """One event of a traced packet."""

    time: float
    link: str
    what: str
    kind: str
    number: int
    packet: int
    bytes: int


def strays(names: Iterable[tuple[str, str]]) -> list[str]:
    """Tables about entries that do not exist."""
    known = set(names)
    tables = [(kind, name) for kind, named in TABLE.items() for name in named if name != "any"]
    return [f"{kind}.{name}" for kind, name in tables if (kind, name) not in known]


def drawn(entries: Sequence[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The sentence and the SVG of each entry (kind and name), by `KIND-NAME`."""
    plans = {entry: Plan.of(*entry) for entry in entries}
    with ThreadPoolExecutor() as threads:
        made = dict(zip(entries, threads.map(lambda entry: panels_of(entry, plans[entry]), entries), strict=True))
    return {f"{kind}-{name}": (plan.about, draw(name, plan, made[kind, name])) for (kind, name), plan in plans.items()}


Drawn = tuple[Axes, list[Series]]
"""A panel with its lines."""


def panels_of(entry: tuple[str, str], plan: Plan) -> list[Drawn]:
    """Run the plan and make its panels."""
    traced = any("shows" in panel for panel in plan.panels)
    results = lab.run(plan.scenario, trace="flow=f.0" if traced else None)
    events = [
        Event(float(m[1]), m[2] or "", m[3], m[4], int(m[5]), int(m[6]), int(m[7]))
        for line in results.trace.splitlines()
        if (m := EVENT.match(line))
    ]
    panels = []
    for panel in plan.panels:
        made = SHAPES[panel["shows"]](events) if "shows" in panel else sampled(results, panel["lines"])
        made = [within(one, panel.get("x", ALL), panel.get("y", ALL)) for one in made]
        panels.append((axes(entry, panel, made), made))
    return panels


def draw(name: str, plan: Plan, panels: Sequence[Drawn]) -> str:
    """The SVG of an entry; matplotlib draws one at a time."""
    lines = sum(len(series) for _, series in panels)
    return picture(f"{name}: {plan.about}", panels, POINTS // 2 // lines)


def axes(entry: tuple[str, str], panel: dict[str, Any], series: Sequence[Series]) -> Axes:
    """The axes of a panel: from 0 to what the series need, where the table says nothing else."""
    values = [value for one in series for value in one.y]
    if not values:
        raise ValueError(f"page_figures.toml: nothing to draw for {'.'.join(entry)}, {panel}")
    times = [value for one in series for value in one.x]
    x_low, x_high = panel.get("x", (0.0, round_up(max(times))))
    y_low, y_high = panel.get("y", (0.0, round_up(max(values))))
    label = panel["label"]
    return Axes(label, panel.get("x_label", "time (s)"), label, (x_low, x_high), (y_low, y_high))


# ------------------------------------------------------------------------------------------------- series


def sampled(results: Results, lines: Sequence[dict[str, Any]]) -> list[Series]:
    """Variables over time."""
    frame = results.samples.with_columns(pl.col("object").cast(pl.String), pl.col("variable").cast(pl.String))
    series = []
    for place, line in enumerate(lines):
        rows = frame.filter(pl.col("object") == line["of"], pl.col("variable") == line["variable"]).drop_nulls("value")
        scale = line.get("scale", 1.0)
        y = [value * scale for value in rows["value"].to_list()]
        series.append(Series(line.get("name", line["of"]), place, rows["time_s"].to_list(), y))
    return series


def sequence(events: Sequence[Event]) -> list[Series]:
    """Segments as they are sent, sent again and lost, and the acknowledgement that the sender has."""
    first: list[Point] = []
    again: list[Point] = []
    lost: list[Point] = []
    known: set[int] = set()
    sender = next(event.link.split("->")[0] for event in events if event.kind == "data")
    for event in events:
        if event.kind != "data":
            continue
        if event.what.startswith("drop"):
            lost.append((event.time, event.number))
        elif event.what == "enqueue" and event.link.startswith(f"{sender}->"):
            (again if event.number in known else first).append((event.time, event.number))
            known.add(event.number)
    acked = [(e.time, e.number) for e in events if e.kind == "ack" and not e.link and e.what == "delivered"]
    named = ((0, "sent", first), (1, "sent again", again), (3, "lost", lost))
    dots = [Series(name, place, *columns(points), dots=True) for place, name, points in named if points]
    return [Series("acknowledged", 7, *columns(stairs(acked))), *dots]


def stairs(points: Sequence[Point]) -> list[Point]:
    """The greatest value so far, as a staircase."""
    steps: list[Point] = []
    for time, value in points:
        if not steps or value > steps[-1][1]:
            steps += [(time, steps[-1][1])] if steps else []
            steps.append((time, value))
    return steps


def delays(events: Sequence[Event]) -> list[Series]:
    """What becomes of each packet: its delay in ms at the time of its sending, or the loss, below."""
    sent: dict[int, float] = {}
    came: list[Point] = []
    lost: list[Point] = []
    for event in events:
        if event.kind != "data":
            continue
        sent.setdefault(event.packet, event.time)
        if event.what == "delivered":
            came.append((sent[event.packet], 1e3 * (event.time - sent[event.packet])))
        elif event.what.startswith("drop"):
            lost.append((sent[event.packet], 0.0))
    named = (("arrived", came), ("lost", lost))
    return [Series(name, place, *columns(points), dots=True) for place, (name, points) in enumerate(named) if points]


def arrivals(events: Sequence[Event]) -> list[Series]:
    """Rates over short spans, Mbit/s: sent into the first link, and arrived."""
    chosen = {
        "sent": [e for e in events if e.kind == "data" and e.what == "enqueue" and e.link.startswith("s0->")],
        "arrived": [e for e in events if e.kind == "data" and e.what == "delivered"],
    }
    last = max(e.time for e in events)
    spans = int(last / ARRIVALS_EVERY)
    series = []
    for place, (name, of) in enumerate(chosen.items()):
        counted = [0] * (spans + 1)
        for event in of:
            counted[int(event.time / ARRIVALS_EVERY)] += event.bytes
        rates = [(i * ARRIVALS_EVERY, 8e-6 * count / ARRIVALS_EVERY) for i, count in enumerate(counted[:spans])]
        series.append(Series(name, place, *columns(rates)))
    return series


def within(series: Series, x: Sequence[float], y: Sequence[float]) -> Series:
    """The points of a series whose coordinates lie in these ranges."""
    points = zip(series.x, series.y, strict=True)
    inside = columns([(a, b) for a, b in points if x[0] <= a <= x[1] and y[0] <= b <= y[1]])
    return replace(series, x=inside[0], y=inside[1])


def columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Points as two lists."""
    return [x for x, _ in points], [y for _, y in points]


SHAPES = {"sequence": sequence, "delays": delays, "arrivals": arrivals}
"""What a panel shows that is drawn from the packets of the flow `f.0`."""
