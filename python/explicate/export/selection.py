"""Formats that hold one run: which run of the results that is, and its samples."""

from __future__ import annotations

import polars as pl

from explicate.errors import BadInputError
from explicate.results import Results
from explicate.summary import without_nan


def one_run(results: Results, run: int | None) -> int:
    """Return the number `run`, by default that of the first; raise BadInputError if there is no such single run."""
    if results.axes:
        varied = ", ".join(results.axes)
        raise BadInputError(f"the results vary {varied}: export those of `explicate run -o`, or one point by select()")
    numbers = results.run["run"].to_list()
    if run is None:
        return int(numbers[0])
    if run not in numbers:
        raise BadInputError(f"no run {run}; they are numbered from {min(numbers)} to {max(numbers)}")
    return run


def samples_of(results: Results, run: int) -> pl.DataFrame:
    """Return the samples of one run, without those that have no value."""
    samples = without_nan(results.samples).with_columns(pl.col("object", "variable").cast(pl.String))
    return samples.filter(pl.col("run") == run, pl.col("value").is_not_null())
