"""What is measured of each run of a sweep, one number each, and its mean over the seeds with a 95 % interval.

A measure is written ``TABLE[.NAME].COLUMN[.STATISTIC]``: the flows or the links of a run, all of them or a flow group
or a link by name, a column of the table, and what is made of the rows (by default their mean).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from explicate import engine
from explicate.errors import BadInputError
from explicate.suggestions import instead
from explicate.summary import jain, spread, t_95, with_slowdown, without_nan
from explicate.sweeps import weighted

DEFAULT = (
    "flows.goodput_bps",
    "flows.goodput_bps.jain",
    "flows.rtt_mean_ms",
    "flows.retransmissions.sum",
    "links.utilisation.max",
    "links.queue_mean_packets.max",
    "links.drops_total.sum",
)

COUNT = "_count"
"""Number of flows that a row represents, if it is not one: the classes of a fluid model."""

Statistic = Callable[[str, pl.Expr | None], pl.Expr]

STATISTICS: Mapping[str, Statistic] = {
    "mean": weighted.mean,
    "sum": weighted.sum_,
    "min": lambda column, _: pl.col(column).min(),
    "max": lambda column, _: pl.col(column).max(),
    "median": lambda column, count: weighted.quantile(column, count, 0.5),
    "p5": lambda column, count: weighted.quantile(column, count, 0.05),
    "p95": lambda column, count: weighted.quantile(column, count, 0.95),
    "p99": lambda column, count: weighted.quantile(column, count, 0.99),
    "sd": weighted.sd,
    "jain": jain,
}

TEXTS = ("flow", "group", "protocol", "link")
"""Columns without a mean."""

NAMES = {"flows": "group", "links": "link"}
"""The column of each table by which a measure selects rows."""

DERIVED: Mapping[str, tuple[str, ...]] = {"flows": ("slowdown",), "links": ()}
"""Columns that a measure can name and that are computed from others of the whole table."""

MARGIN = ".margin_95"
RUNS = "runs"
"""The column that counts the runs of a point."""


@dataclass(frozen=True)
class Measure:
    """One number of a run; `text` is as it was written, and the name of its column."""

    text: str
    table: str
    name: str
    column: str
    statistic: str

    @classmethod
    def of(cls, text: str) -> Measure:
        """Read a measure; raise BadInputError, which suggests a similar name."""
        table, *parts = text.strip().split(".")
        if table not in NAMES:
            raise BadInputError(f"measure {text}: {_instead(table, NAMES)}; such as {DEFAULT[0]}")
        statistic = parts.pop() if parts and parts[-1] in STATISTICS else "mean"
        known = [*(column["name"] for column in engine.columns()[table]), *DERIVED[table]]
        if not parts:
            raise BadInputError(f"measure {text}: it names no column of {table}; `explicate columns` lists them")
        if parts[-1] not in known:
            names = [*known, *(STATISTICS if len(parts) > 1 and parts[-2] in known else ())]
            raise BadInputError(f"measure {text}: {_instead(parts[-1], names)}; `explicate columns` lists the columns")
        if parts[-1] in TEXTS:
            raise BadInputError(f"measure {text}: `{parts[-1]}` holds names, not numbers")
        return cls(text.strip(), table, ".".join(parts[:-1]), parts[-1], statistic)


def _instead(word: str, known: Sequence[str] | Mapping[str, str]) -> str:
    return f"`{word}` is not known; {instead(word, known)}"


def spellings(name: str) -> list[str]:
    """Return a name; for a link ``a:b`` the name in the tables, ``a->b``, because a shell interprets ``>``."""
    return list(dict.fromkeys([name, name.replace(":", "->", 1)]))


def unmet(names: Mapping[str, Collection[str]], measures: Sequence[Measure]) -> list[str]:
    """Return a sentence for each measure of a group or a link that is not among the `names` of its table."""
    found = []
    for measure in measures:
        there, spelt = list(names[measure.table]), spellings(measure.name)
        if measure.name and not set(spelt) & set(there):
            word = spelt[-1] if measure.table == "links" else measure.name
            found.append(f"measure {measure.text}: {_instead(word, there)}")
    return found


def names_in(*several: Mapping[str, pl.DataFrame]) -> dict[str, list[str]]:
    """Return the groups and the links of some results' tables, by table."""
    return {
        table: list(
            dict.fromkeys(name for tables in several for name in tables[table][column].unique(maintain_order=True))
        )
        for table, column in NAMES.items()
    }


def measured(tables: Mapping[str, pl.DataFrame], axes: Sequence[str], measures: Sequence[Measure]) -> pl.DataFrame:
    """Return the tidy table: one row for each run, its point of `axes`, its number and seed, and each measure."""
    keys = [*axes, "run"]
    table = tables["run"].select(*keys, "seed")
    alike: dict[tuple[str, str], dict[str, Measure]] = {}
    for measure in measures:
        alike.setdefault((measure.table, measure.name), {})[measure.text] = measure
    for (source, name), group in alike.items():
        frame = tables[source]
        if {m.column for m in group.values()} & set(DERIVED[source]):
            frame = with_slowdown(frame)
        frame = frame if not name else frame.filter(pl.col(NAMES[source]).is_in(spellings(name)))
        count = pl.col(COUNT) if "count" in frame.columns else None
        rows = without_nan(
            frame.select(
                *keys,
                *(pl.col(m.column).cast(pl.Float64).alias(m.text) for m in group.values()),
                *([pl.col("count").alias(COUNT)] if count is not None else []),
            )
        )
        found = rows.group_by(keys, maintain_order=True).agg(
            STATISTICS[m.statistic](m.text, count).alias(m.text) for m in group.values()
        )
        table = table.join(found, on=keys, how="left", maintain_order="left", nulls_equal=True)
    return table.select(*keys, "seed", *dict.fromkeys(measure.text for measure in measures))


def intervals(table: pl.DataFrame, axes: Sequence[str], measures: Sequence[str]) -> pl.DataFrame:
    """Return one row for each point: how many runs, and of each measure the mean and half its 95 % interval.

    The interval is Student's, over seeds; null for a single run, exactly zero if all runs have one value.
    """
    found = table.group_by(axes, maintain_order=True).agg(
        pl.len().alias(RUNS),
        *(
            expression
            for name in measures
            for expression in (
                pl.col(name).mean(),
                (spread(name) / pl.col(name).count().sqrt()).alias(f"{name}{MARGIN}"),
                pl.col(name).count().alias(f"{name}.count"),
            )
        ),
    )
    counted = [f"{name}.count" for name in measures]
    counts = sorted({count for column in counted for count in found[column].to_list() if count > 1})
    quantiles = [t_95(count - 1) for count in counts]

    def half(name: str) -> pl.Expr:
        quantile = pl.col(f"{name}.count").replace_strict(counts, quantiles, default=None, return_dtype=pl.Float64)
        return pl.col(f"{name}{MARGIN}") * quantile

    return found.with_columns(half(name) for name in measures).drop(counted)
