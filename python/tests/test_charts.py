"""The data of charts: ranges, thinning, and the contents of a chart's element."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explicate.charts import Axes, Bar, Series, bar_chart, line_chart, round_up, thin, ticks
from explicate.text import amount, number, percent, rate, table
from explicate_papers.gallery import chart, common_range
from explicate_papers.statistics import Sample
from explicate_papers.study import Line, Panel

VALUES = st.lists(st.floats(min_value=-1e9, max_value=1e9), min_size=1, max_size=400)


@given(st.floats(min_value=-1e6, max_value=1e6), st.floats(min_value=1e-3, max_value=1e6))
def test_ticks_are_few_even_and_inside(low: float, span: float) -> None:
    found = ticks(low, low + span)
    steps = {round((b - a) / span, 6) for a, b in pairwise(found)}
    assert 1 <= len(found) <= 7
    assert len(steps) <= 1
    assert low - span * 1e-6 <= found[0]
    assert found[-1] <= low + span * (1 + 1e-6)


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_round_up_covers_without_waste(value: float) -> None:
    assert value * 0.999 <= round_up(value) <= value * 1.6


@given(VALUES, st.integers(min_value=1, max_value=50))
def test_thinning_keeps_the_extremes_and_is_short(values: list[float], columns: int) -> None:
    x = [float(i) for i in range(len(values))]
    kept = thin(x, values, columns)
    assert len(kept) <= 2 * columns
    assert [a for a, _ in kept] == sorted(a for a, _ in kept)
    assert max(b for _, b in kept) == max(values)
    assert min(b for _, b in kept) == min(values)
    assert all(values[int(a)] == b for a, b in kept)


def test_thinning_leaves_out_what_is_not_finite() -> None:
    assert thin([0, 1, 2], [1.0, math.nan, math.inf], 10) == [(0, 1.0)]


def _element(html: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The attributes of the one element of `html`, and the data in it."""
    found: list[dict[str, str]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append({name: value or "" for name, value in attrs})

    Reader().feed(html)
    (attributes,) = found
    return attributes, json.loads(attributes["data-chart"])


def test_a_chart_holds_its_axes_and_its_lines() -> None:
    axes = Axes("a <title>", "time (s)", "it's rate & more", (0, 10), (0, 4), (0, 2))
    attributes, data = _element(line_chart(axes, [Series("x", 3, [0, 5, 10], [0, 2, 4], [0, 1, 3], [0, 3, math.nan])]))
    assert attributes["aria-label"] == "a <title>. Lines: x."
    assert data["x"] == {"label": "time (s)", "range": [0, 10], "log": False}
    assert data["y"]["label"] == "it's rate & more"
    assert data["shade"] == [0, 2]
    (line,) = data["series"]
    assert line == {
        "name": "x", "place": 3, "kind": "line",
        "x": [0, 5, 10], "y": [0, 2, 4], "low": [0, 1, 3], "high": [0, 3, None],
    }  # fmt: skip


def test_a_band_without_height_and_a_shade_without_width_are_left_out() -> None:
    _, data = _element(line_chart(Axes("", "", "", (0, 1), (0, 1), (0, 0)), [Series("x", 0, [0], [1], [1], [1])]))
    assert "low" not in data["series"][0]
    assert "shade" not in data


def test_long_lines_are_thinned_and_paths_are_not() -> None:
    x = [float(i) for i in range(1000)]
    axes = Axes("", "", "", (0, 1000), (0, 1000))
    _, data = _element(line_chart(axes, [Series("a", 0, x, x), Series("b", 1, x, x, loose=True)], columns=50))
    assert [len(one["x"]) for one in data["series"]] == [100, 1000]
    assert [one["kind"] for one in data["series"]] == ["line", "path"]


def test_bars_have_names_or_numbers_below() -> None:
    axes = Axes("bars", "flow", "Mbit/s", (0, 3), (0, 2))
    bars = [Bar("a", 0, 1), Bar("b", 1, 2), Bar("c", 1, math.nan)]
    _, data = _element(bar_chart(axes, bars))
    assert data["bars"] == [
        {"name": "a", "place": 0, "value": 1},
        {"name": "b", "place": 1, "value": 2},
        {"name": "c", "place": 1, "value": None},
    ]  # fmt: skip
    assert data["x"]["names"] == [[0.5, "1"], [1.5, "2"], [2.5, "3"]]
    assert _element(bar_chart(axes, bars, [(1.5, "all")]))[1]["x"]["names"] == [[1.5, "all"]]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (math.nan, "–"), (math.inf, "∞"), (0.0, "0"), (0.01234, "0.0123"), (4.5, "4.50"), (123.4, "123"),
     (12345.6, "12\u202f346"), (-0.5, "-0.500"), (1e-7, "1.00e-07"), (999.6, "1000")],
)  # fmt: skip
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_next_to_nothing_has_no_exponent() -> None:
    assert [amount(value) for value in (None, 0.0, 9.77e-05, 0.0012, 33.24)] == ["–", "0", "<0.001", "0.00120", "33.2"]


def test_rates_and_tables() -> None:
    assert [rate(value) for value in (8e6, 999.0, 2.5e9, None)] == ["8 Mbit/s", "999 bit/s", "2.50 Gbit/s", "–"]
    assert [percent(value) for value in (0.5, math.nan)] == ["50.0 %", "–"]
    assert table(["a", "b"], [["long", "1"], ["x", "200"]]) == "a       b\nlong    1\nx     200"


def test_named_places_have_a_point_each_and_an_interval() -> None:
    measured = [Sample.of([1.0, 2.0, 3.0]), Sample.of([4.0])]
    lines = [Line.of(name, [1, 2], measured) for name in ("one", "other")]
    html, names = chart(Panel("", "system", "share", lines, names=("slow", "fast")))
    _, data = _element(html)
    assert names == ("one", "other")
    assert data["x"]["names"] == [[1, "slow"], [2, "fast"]]
    assert [one["kind"] for one in data["series"]] == ["dots", "dots"]
    assert all(len(one["x"]) == len(one["low"]) == len(one["high"]) == 2 for one in data["series"])
    assert not set(data["series"][0]["x"]) & set(data["series"][1]["x"]), "none behind another"


def test_an_axis_need_not_begin_at_zero() -> None:
    late = Line("late", [20.0, 25.0], [0.97, 0.99])
    _, data = _element(chart(Panel("", "", "", [late], y_from=0.9))[0])
    assert data["x"]["range"][0] == 20
    assert data["y"]["range"][0] == 0.9
    _, below = _element(chart(Panel("", "", "", [Line("", [0.0, 1.0], [0.5, 1.0])], y_from=0.9))[0])
    assert below["y"]["range"][0] <= 0.5


def test_compared_panels_have_one_vertical_axis() -> None:
    low, high, alone = (
        Panel(name, "time (s)", "share", [Line("", [0.0, 1.0], [0.0, top])], compared=compared)
        for name, top, compared in (("low", 1.0, True), ("high", 8.0, True), ("alone", 90.0, False))
    )
    common = common_range([low, high, alone])
    assert common == (0.0, 8.0)
    assert _element(chart(low, common)[0])[1]["y"]["range"] == [0.0, 8.0]
    assert _element(chart(low)[0])[1]["y"]["range"] == [0.0, 1.0]
    assert common_range([alone]) is None


def test_a_logarithmic_axis_has_a_place_for_zero() -> None:
    curve = Line("", [0.0, 0.01, 1.0, 10.0], [4.0, 3.0, 2.0, 1.0])
    _, data = _element(chart(Panel("", "loss (%)", "rate", [curve], "x", zero=0.003))[0])
    assert data["series"][0]["x"] == [0.003, 0.01, 1, 10]
    assert data["x"]["names"] == [[0.003, "0"], [0.01, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"]]
    assert data["x"]["range"] == [0.003, 10]


def test_what_is_zero_is_not_on_a_logarithmic_axis() -> None:
    curve = Line("", [1.0, 2.0, 3.0], [1.0, 0.1, 0.0], [0.9, 0.0, 0.0], [1.1, 0.2, 0.0])
    _, data = _element(chart(Panel("", "", "", [curve], "y"))[0])
    assert data["series"][0]["y"] == [1, 0.1, None]
    assert data["series"][0]["low"] == [0.9, 0.1, None]
    assert data["series"][0]["high"] == [1.1, 0.2, None]
