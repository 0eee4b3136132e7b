"""Statistics of a column whose rows stand for one flow each, or, in a fluid model, for as many as `count` says."""

from __future__ import annotations

import polars as pl


def _known(column: str, count: pl.Expr) -> pl.Expr:
    """Return how many flows have a value in each row."""
    return pl.when(pl.col(column).is_not_null()).then(count).otherwise(0)


def sum_(column: str, count: pl.Expr | None) -> pl.Expr:
    """Return the sum over all flows."""
    return pl.col(column).sum() if count is None else (pl.col(column) * count).sum()


def mean(column: str, count: pl.Expr | None) -> pl.Expr:
    """Return the mean over all flows that have a value; null if none has."""
    if count is None:
        return pl.col(column).mean()
    number = _known(column, count).sum()
    return pl.when(number > 0).then(sum_(column, count) / number)


def sd(column: str, count: pl.Expr | None) -> pl.Expr:
    """Return the deviation among flows; null of fewer than two."""
    if count is None:
        return pl.col(column).std()
    number = _known(column, count).sum()
    squares = ((pl.col(column) - mean(column, count)) ** 2 * count).sum()
    return pl.when(number > 1).then((squares / (number.cast(pl.Float64) - 1)).sqrt())


def quantile(column: str, count: pl.Expr | None, share: float) -> pl.Expr:
    """Return the value that `share` of all flows do not exceed, between two values in proportion."""
    if count is None:
        # The median and the quantile at a half are alike; so are their digits.
        return pl.col(column).median() if share == 0.5 else pl.col(column).quantile(share, "linear")
    # As if each flow had a row of its own: the values at the ranks beside the requested one.
    up_to = _known(column, count).sort_by(column, nulls_last=True).cum_sum()
    values, rank = pl.col(column).sort(nulls_last=True), share * (_known(column, count).sum().cast(pl.Float64) - 1)
    below, above = (values.filter(up_to > at).first() for at in (rank.floor(), rank.ceil()))
    return below + (above - below) * (rank - rank.floor())
