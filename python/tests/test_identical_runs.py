"""Runs that do not depend on their seed: tables state that, and show no spread of zero."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import polars as pl
import pytest

import explicate
from explicate import display
from explicate.report import page
from explicate.results import Results
from explicate.summary import identical_runs, spread
from explicate.sweeps.table import SweepResults
from explicate.text import rate

AnyResults = TypeVar("AnyResults", bound=Results)
ALL = "All 3 runs gave the same result: nothing random has an effect in this scenario."


def _alike(results: AnyResults, where: pl.Expr | None = None) -> AnyResults:
    """The results with every run's tables (at the points `where`) replaced by the first run's."""

    def copied(frame: pl.DataFrame) -> pl.DataFrame:
        chosen = pl.lit(value=True) if where is None else where
        first, rest = frame.filter(chosen & (pl.col("run") == 0)), frame.filter(~chosen)
        runs = frame["run"].unique().sort()
        copies = [first.with_columns(pl.lit(run, frame.schema["run"]).alias("run")) for run in runs]
        return pl.concat([*copies, rest])

    return replace(results, flows=copied(results.flows), links=copied(results.links))


def test_a_run_and_its_report(scenario: Path) -> None:
    results = explicate.run(scenario, runs=3)
    assert "± 95 %" in display.groups(results)
    assert "same result" not in display.groups(results) + page(results)
    same = _alike(results)
    shown = display.groups(same)
    assert shown.endswith(f"\n{ALL}")
    assert "±" not in shown
    html = page(same)
    assert f"<p>{ALL}</p>" in html
    assert "± 95 %" not in html
    assert "same result" not in display.groups(explicate.run(scenario, runs=1)), "one run is no sameness"


def test_one_equal_column_is_not_sameness(scenario: Path) -> None:
    results = explicate.run(scenario, runs=3)
    goodput = _alike(results).flows.sort("run", "flow")["goodput_bps"]
    equal = replace(results, flows=results.flows.sort("run", "flow").with_columns(goodput.alias("goodput_bps")))
    equal = replace(equal, flows=equal.flows.with_columns((pl.col("timeouts") + pl.col("run")).alias("timeouts")))
    assert "±" not in display.groups(equal)
    assert "same result" not in display.groups(equal)


def test_points_of_a_comparison(scenario: Path) -> None:
    results = explicate.compare(scenario, ["xcp", "newreno"], runs=3)
    (axis,) = results.axes
    some = _alike(results, pl.col(axis) == "xcp")
    assert list(identical_runs(some.flows, some.links, some.axes).items()) == [(("xcp",), 3)]
    lines = display.groups(some).splitlines()
    assert lines[-1] == "At 1 of 2 points all runs gave the same result: nothing random has an effect there."
    assert all(("–" in line.split("bit/s")[1]) == line.startswith("xcp") for line in lines if "near" in line)
    every = display.groups(_alike(results))
    assert every.endswith("At every point all runs gave the same result: nothing random has an effect there.")
    assert "±" not in every


def test_a_sweep(scenario: Path) -> None:
    swept = explicate.sweep(scenario, {"flows.0.count": [1, 4]}, runs=3)
    shown = display.intervals(swept)
    assert "± 0" not in shown, "drops are 0 in every run: that is no spread"
    assert "±" in shown
    assert "same result" not in shown
    same: SweepResults = _alike(swept)
    lines = display.intervals(same).splitlines()
    assert lines[-1] == "At every point all runs gave the same result: nothing random has an effect there."
    assert not any("±" in line for line in lines)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e17 / 7])
def test_equal_values_spread_by_exactly_nothing(value: float) -> None:
    frame = pl.DataFrame({"x": [value] * 7, "y": [value] * 6 + [2 * value]})
    row = frame.select(spread("x"), spread("y")).row(0)
    assert row[0] == 0
    assert row[1] > 0
    assert pl.DataFrame({"x": [value, None]}).select(spread("x")).item() is None


def test_the_margin_of_a_comparison_is_that_of_a_sweep(scenario: Path) -> None:
    compared = explicate.compare(scenario, ["xcp", "newreno"], runs=3)
    measure = "flows.near.goodput_bps"
    swept = explicate.sweep(scenario, {"flows.0.protocol": ["xcp", "newreno"]}, runs=3, measures=[measure])
    intervals = swept.intervals().sort("flows.0.protocol", descending=True)
    rows = [line.split() for line in display.groups(compared).splitlines()]
    assert rows[0][4:8] == ["goodput", "±", "95", "%"]
    near = [row[4:8] for row in rows if row[1:2] == ["near"]]
    wanted = [
        [*rate(mean).split(), *rate(margin).split()]
        for mean, margin in intervals.select(measure, f"{measure}.margin_95").rows()
    ]
    assert near == wanted
