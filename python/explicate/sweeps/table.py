"""The results of a sweep: the tables of all its runs, its measures, and the failed runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from explicate import engine
from explicate.errors import BadInputError
from explicate.files import TABLES, remove_failures, write_json, write_table, write_text
from explicate.results import Results, used_elsewhere
from explicate.sweeps import measures
from explicate.sweeps.design import numbers
from explicate.sweeps.measures import Measure
from explicate.sweeps.work import Failure, Unit

NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")


def once(of_runs: Iterable[Sequence[str]]) -> dict[str, None]:
    """Return the warnings of all runs, without those that differ only in numbers from one of an earlier run."""
    kept: dict[str, None] = {}
    seen: set[str] = set()
    for warnings in of_runs:
        forms = {warning: NUMBER.sub("0", warning) for warning in warnings}
        kept |= dict.fromkeys(warning for warning in warnings if forms[warning] not in seen)
        seen |= set(forms.values())
    return kept


class AllFailedError(RuntimeError):
    """No run of a sweep has a result."""

    def __init__(self, message: str, failures: Sequence[Failure]) -> None:
        super().__init__(message)
        self.failures = tuple(failures)

    def __reduce__(self) -> tuple[type[AllFailedError], tuple[str, tuple[Failure, ...]]]:
        return AllFailedError, (str(self), self.failures)


@dataclass(frozen=True, eq=False, repr=False)
class SweepResults(Results):
    """The tables of a sweep. `wanted` are the default measures of `measures` and `intervals`.

    `failures` are the runs that are not in the tables; `fresh` is how many were computed now, the others were there.
    """

    wanted: tuple[str, ...] = measures.DEFAULT
    failures: tuple[Failure, ...] = ()
    fresh: int = 0

    def measures(self, wanted: Sequence[str] = ()) -> pl.DataFrame:
        """Return one row for each run: its point, its seed and each measure, such as ``flows.goodput_bps.mean``.

        An axis whose values all have one unit is a number here, with the unit in its name. Raise ValueError for a
        measure that does not exist.
        """
        return self._measured(wanted) if wanted else self._own

    @cached_property
    def _own(self) -> pl.DataFrame:
        return self._measured(self.wanted)

    def _measured(self, wanted: Sequence[str]) -> pl.DataFrame:
        taken = [Measure.of(text) for text in wanted]
        if wanted is not self.wanted and (unmet := measures.unmet(measures.names_in(self.tables()), taken)):
            raise BadInputError("\n".join(unmet))
        return with_numbers(measures.measured(self.tables(), self.axes, taken), self.axes)

    def intervals(self, wanted: Sequence[str] = ()) -> pl.DataFrame:
        """Return one row for each point: the mean of each measure over its runs, and half the 95 % interval."""
        return self._with_intervals(self._measured(wanted)) if wanted else self._own_intervals

    @cached_property
    def _own_intervals(self) -> pl.DataFrame:
        return self._with_intervals(self._own)

    def _with_intervals(self, table: pl.DataFrame) -> pl.DataFrame:
        axes = table.columns[: len(self.axes)]
        own = table.unique([*axes, "run"], keep="first", maintain_order=True)  # 1ms and 1.0ms are one number
        return measures.intervals(own, axes, table.columns[len(axes) + 2 :])

    def _write_files(self, folder: Path, *, csv: bool) -> None:
        """Write what `Results.write` does, ``measures``, ``intervals``, and ``failures.json`` with scenarios."""
        warnings = self.warnings
        if self.failures:
            count = len(self.failures)
            lacking = f"{count} of {self.run.height + count} runs failed, and are in no table; failures.json lists them"
            warnings = (*warnings, lacking)
        super(SweepResults, replace(self, warnings=warnings))._write_files(folder, csv=csv)
        for name, frame in (("measures", self.measures()), ("intervals", self.intervals())):
            write_table(frame, folder, name, csv=csv)
        write_failures(folder, self.failures)


def write_failures(folder: Path, failures: Sequence[Failure]) -> None:
    """Write each failed run's scenario into ``failures/``, and ``failures.json`` that lists them; nothing if none."""
    remove_failures(folder)
    if not failures:
        return
    (folder / "failures").mkdir(parents=True, exist_ok=True)
    listed = []
    for number, failure in enumerate(failures):
        name = f"failures/{number}.toml"
        write_text(folder / name, failure.scenario)
        listed.append({"point": failure.point, "seed": failure.seed, "error": failure.error, "scenario": name})
    write_json(folder / "failures.json", json.loads(json.dumps(listed, default=str)))


def assemble(
    units: Sequence[Unit], rows: pl.DataFrame, wanted: Sequence[str], failures: Sequence[Failure], fresh: int
) -> SweepResults:
    """Put the runs' tables below each other, in the order of `units`, the points' values as leading columns.

    Raise AllFailedError if there is not one.
    """
    there = set(rows["key"]) if rows.height else set()
    done = [unit for unit in units if unit.key in there]
    if not done:
        first = f": {failures[0]}" if failures else ""
        raise AllFailedError(f"not one run of {len(units)} has a result{first}", failures)
    taken = {column["name"] for table in TABLES for column in engine.columns().get(table, [])} | {measures.RUNS}
    labels = {key: f"set.{key}" if key in taken else key for key in done[0].point}
    columns: dict[str, Any] = {labels[key]: [unit.point[key] for unit in done] for key in labels}
    index = pl.DataFrame({"_key": [unit.key for unit in done], **columns, "_run": [unit.replica for unit in done]})
    tables: dict[str, Any] = {name: _unfold(index, rows, name, list(labels.values())) for name in TABLES}
    warned = dict(rows.select("key", "warnings").iter_rows()) if "warnings" in rows.columns else {}
    # Each run's own warnings repeat those of its scenario.
    useful = used_elsewhere(unit.unused for unit in done)
    of_runs = ([*unit.warnings, *(warned.get(unit.key) or ())] for unit in done)
    warnings = once([warning for warning in of_run if warning not in useful] for of_run in of_runs)
    lacking = measures.unmet(measures.names_in(tables), [Measure.of(text) for text in wanted])
    warnings |= dict.fromkeys(f"{one}; no run that succeeded has it" for one in lacking)
    return SweepResults(
        **tables,
        axes=tuple(labels.values()),
        warnings=tuple(warnings),
        wanted=tuple(wanted),
        failures=tuple(failures),
        fresh=fresh,
    )


def _unfold(index: pl.DataFrame, rows: pl.DataFrame, name: str, axes: Sequence[str]) -> pl.DataFrame:
    """Return the rows of one table of all runs."""
    flat = rows.select(pl.col("key").alias("_key"), name).filter(pl.col(name).list.len() > 0).explode(name).unnest(name)
    own = flat.columns[1:]
    joined = index.join(flat, on="_key", how="inner", maintain_order="left_right")
    return joined.select(*axes, pl.col("_run").cast(flat.schema["run"]).alias("run"), *own[1:])


def with_numbers(table: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """Return `table` with numbers for the texts of `axes`, where an axis has one unit: it moves into the name."""
    for axis in axes:
        values = table[axis]
        if values.dtype == pl.String and (found := numbers(values.to_list())) is not None:
            name = f"{axis} ({found[1]})" if found[1] else axis
            table = table.with_columns(pl.Series(axis, found[0])).rename({axis: name})
    return table
