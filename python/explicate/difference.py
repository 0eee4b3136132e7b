"""Two sets of results side by side: what changed in each measure, and whether that is more than the seeds do.

>>> import explicate
>>> explicate.diff("before", "after").table()   # doctest: +SKIP
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from explicate.errors import BadInputError
from explicate.figures.sweep import measure_label
from explicate.results import Results, stack
from explicate.summary import busy_links, t_95
from explicate.sweeps.measures import Measure, measured, names_in, unmet
from explicate.text import number, table

SIDE = "results"
"""The axis of two combined results; its values are their names."""

OF_GROUPS = (
    "goodput_bps",
    "goodput_bps.jain",
    "rtt_mean_ms",
    "retransmissions.sum",
    "timeouts.sum",
    "completion_s",
    "completion_s.p95",
    "completion_s.p99",
)
OF_LINKS = ("utilisation", "queue_mean_packets", "queue_p95_packets", "drops_total.sum", "marks.sum")

SURE, UNSURE, EQUAL, UNKNOWN = "differs", "within the seeds", "equal", "one run"


@dataclass(frozen=True)
class Difference:
    """Two results, their names, and the differences between them."""

    names: tuple[str, str]
    both: tuple[Results, Results]
    measures: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether flows, links and samples are equal in all rows."""
        one, other = (results.tables() for results in self.both)
        return all(one[name].equals(other[name]) for name in ("flows", "links", "samples"))

    def scenario(self) -> str:
        """Return the lines of the first run's scenario that differ, as a unified diff."""
        one, other = (results.scenario.splitlines() for results in self.both)
        return "\n".join(difflib.unified_diff(one, other, *self.names, lineterm="", n=0))

    def table(self) -> pl.DataFrame:
        """Return a row for each point and measure: both means, their difference, half its 95 % interval, a verdict.

        Runs with the same seeds are compared in pairs, others by Welch's interval. ``verdict`` is "differs" if zero is
        outside the interval, "within the seeds" if it is inside, "equal" if all runs have one value in both, and "one
        run" if there is no interval.
        """
        axes = self.both[0].axes
        taken = [Measure.of(text) for text in self.measures]
        sides = [measured(results.tables(), axes, taken) for results in self.both]
        points = pl.concat([side.select(*axes) for side in sides]).unique(maintain_order=True) if axes else None
        found = []
        for point in points.to_dicts() if points is not None else [{}]:
            where = [pl.col(axis).eq_missing(value) for axis, value in point.items()]
            here, there = (side.filter(*where) if where else side for side in sides)
            compared = ((text, _compared(here, there, text)) for text in self.measures)
            found += [{**point, "measure": text, **row} for text, row in compared if row]
        return pl.DataFrame(found, infer_schema_length=None)

    def together(self) -> Results:
        """Return both as one comparison, along the axis ``results``."""
        one, other = self.both
        stacked = stack([{SIDE: name} for name in self.names], [one, other])
        return replace(stacked, axes=(SIDE, *one.axes))

    def text(self) -> str:
        """Return the text for a terminal."""
        if self.same:
            return f"{self.names[0]} and {self.names[1]}: flows, links and samples are equal"
        lines = self.scenario()
        parts = [f"scenario:\n{lines}" if lines else "the scenarios are equal", _shown(self.table(), self)]
        return "\n\n".join([*parts, INTERVAL])

    def page(self) -> str:
        """Return a report on both, with the table of differences first."""
        from explicate.report import page, table_html  # noqa: PLC0415 (figures are not needed for a table)

        head, body = _cells(self.table(), self)
        said = escape("All tables are equal." if self.same else INTERVAL)
        shown = table_html(
            "differences", "Differences", [(name, "") for name in head], body, len(self.both[0].axes) + 1
        )
        difference = f'<section aria-label="differences">{shown}<p class="about">{said}</p></section>'
        return page(self.together(), before=difference)


INTERVAL = (
    "± is half the 95 % interval of the difference, over seeds; equal seeds are compared in pairs. Of twenty measures "
    "that do not differ, one lies outside its interval by chance."
)


def diff(one: Results | str | Path, other: Results | str | Path, measures: Sequence[str] = ()) -> Difference:
    """Compare two results or result folders; `measures` as in a sweep (by default those of groups and busy links).

    Raise ValueError if they vary different things, or for a measure that does not exist.
    """
    names = _names(one, other)
    both = tuple(given if isinstance(given, Results) else Results.load(given) for given in (one, other))
    first, second = both
    if first.axes != second.axes:
        vary = [", ".join(results.axes) or "nothing" for results in both]
        raise BadInputError(
            f"{names[0]} varies {vary[0]}, {names[1]} varies {vary[1]}: results are compared if they vary the same"
        )
    lacking = unmet(names_in(first.tables(), second.tables()), [Measure.of(text) for text in measures])
    if lacking:
        raise BadInputError("\n".join(lacking))
    wanted = tuple(measures) or _usual(first, second)
    return Difference(names, (first, second), wanted)


def _names(one: Results | str | Path, other: Results | str | Path) -> tuple[str, str]:
    paths = [None if isinstance(given, Results) else Path(given) for given in (one, other)]
    short = [letter if path is None else path.resolve().name for letter, path in zip("AB", paths, strict=True)]
    if short[0] == short[1]:
        short = [letter if path is None else str(path) for letter, path in zip("AB", paths, strict=True)]
    return (short[0], short[1]) if short[0] != short[1] else (f"{short[0]} (A)", f"{short[1]} (B)")


def _usual(one: Results, other: Results) -> tuple[str, ...]:
    groups = dict.fromkeys(
        name for results in (one, other) for name in results.flows["group"].unique(maintain_order=True)
    )
    links = dict.fromkeys(name for results in (one, other) for name in busy_links(results.links)[:3])
    return (
        *(f"flows.{group}.{column}" for group in groups for column in OF_GROUPS),
        *(f"links.{link}.{column}" for link in links for column in OF_LINKS),
    )


def _compared(one: pl.DataFrame, other: pl.DataFrame, name: str) -> dict[str, Any]:
    """Return the comparison of one measure at one point; nothing if neither side has a value."""
    sides = [
        {seed: value for seed, value in side.select("seed", name).rows() if value is not None} for side in (one, other)
    ]
    first, second = sides
    if not first and not second:
        return {}
    means = [math.fsum(side.values()) / len(side) if side else None for side in sides]
    difference = None if means[0] is None or means[1] is None else means[1] - means[0]
    half = _paired(first, second) if first.keys() == second.keys() else _welch(*(list(side.values()) for side in sides))
    relative = difference / abs(means[0]) if difference is not None and means[0] else None
    return {
        "a": means[0], "b": means[1], "difference": difference, "margin_95": half, "relative": relative,
        "verdict": _verdict(set(first.values()), set(second.values()), difference, half),
    }  # fmt: skip


def _verdict(one: set[float], other: set[float], difference: float | None, half: float | None) -> str:
    """Return the verdict on the values of both sides, the difference of their means and half its interval."""
    if difference is None:
        return "only in A" if one else "only in B"
    if len(one) == 1 and one == other:
        return EQUAL
    if half is None:
        return UNKNOWN
    return SURE if abs(difference) > half else UNSURE


def _paired(one: dict[int, float], other: dict[int, float]) -> float | None:
    """Return half the 95 % interval of the mean difference of pairs."""
    gaps = [other[seed] - value for seed, value in one.items()]
    return _spread(gaps) * t_95(len(gaps) - 1) / math.sqrt(len(gaps)) if len(gaps) > 1 else None


def _welch(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return half the 95 % interval of the difference of two means, by Welch."""
    if len(one) < 2 or len(other) < 2:
        return None
    shares = [_spread(side) ** 2 / len(side) for side in (one, other)]
    error = sum(shares)
    if error == 0:
        return 0.0
    freedom = error**2 / sum(share**2 / (len(side) - 1) for share, side in zip(shares, (one, other), strict=True))
    return t_95(max(1, math.floor(freedom + 1e-9))) * math.sqrt(error)


def _spread(values: Sequence[float]) -> float:
    if max(values) == min(values):
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _cells(frame: pl.DataFrame, of: Difference) -> tuple[list[str], list[list[str]]]:
    axes = of.both[0].axes
    head = [*axes, "measure", of.names[0], of.names[1], "difference", "±", "", ""]
    body = []
    for row in frame.iter_rows(named=True):
        words, unit = measure_label(row["measure"])
        change = "–" if row["relative"] is None else f"{100 * row['relative']:+.1f} %"
        body.append(
            [
                *(str(row[axis]) for axis in axes),
                f"{words} ({unit})" if unit else words,
                *(number(row[key], 4) for key in ("a", "b", "difference", "margin_95")),
                change,
                row["verdict"],
            ]
        )
    return head, body


def _shown(frame: pl.DataFrame, of: Difference) -> str:
    head, body = _cells(frame, of)
    return table(head, body, left=len(of.both[0].axes) + 1)
