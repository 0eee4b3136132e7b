"""The drawing primitives: ticks, thinning, and where a value lands."""

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explicate.charts import (
    HEIGHT,
    LEFT,
    PLOT_HEIGHT,
    PLOT_WIDTH,
    TOP,
    WIDTH,
    Axes,
    Bar,
    Series,
    bar_chart,
    line_chart,
    picture,
    round_up,
    thin,
    tick_texts,
    ticks,
)
from explicate.text import number, percent, rate, table
from explicate_papers.gallery import chart
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


def test_tick_texts_differ() -> None:
    assert tick_texts(ticks(0, 1)) == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert tick_texts(ticks(0, 30)) == ["0", "10", "20", "30"]
    assert tick_texts(ticks(0, 1.25)) == ["0.00", "0.25", "0.50", "0.75", "1.00", "1.25"]
    assert len(set(tick_texts(ticks(42, 42.01)))) == len(ticks(42, 42.01))


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
    assert max(b for _, b in thin(x, values, columns, "greatest")) == max(values)


def test_thinning_leaves_out_what_is_not_finite() -> None:
    assert thin([0, 1, 2], [1.0, math.nan, math.inf], 10) == [(0, 1.0)]


def test_a_line_lands_where_its_values_are() -> None:
    axes = Axes("a <title>", "time (s)", "rate & more", (0, 10), (0, 4), (0, 2))
    svg = line_chart(axes, [Series("x", 3, [0, 5, 10], [0, 2, 4], [0, 1, 3], [0, 3, 4])])
    root = ET.fromstring(svg)
    line = next(node for node in root if node.get("class") == "line s3")
    bottom, right = TOP + PLOT_HEIGHT, LEFT + PLOT_WIDTH
    assert line.get("d") == f"M{LEFT} {bottom}L{LEFT + PLOT_WIDTH / 2:g} {TOP + PLOT_HEIGHT / 2:g}L{right} {TOP}"
    assert sum(node.get("class") == "band s3" for node in root) == 1
    shade = next(node for node in root if node.get("class") == "shade")
    assert float(shade.get("width", 0)) == pytest.approx(PLOT_WIDTH / 5, abs=0.1)
    words = [node.text for node in root if node.tag == "text"]
    assert {"time (s)", "rate & more", "10", "4"} <= set(words)
    for node in root.iter("text"):
        assert 0 <= float(node.get("x", -1)) <= WIDTH
        assert 0 <= float(node.get("y", -1)) <= HEIGHT


def test_bars_are_as_high_as_their_values() -> None:
    axes = Axes("bars", "flow", "Mbit/s", (0, 3), (0, 2))
    root = ET.fromstring(bar_chart(axes, [Bar("a", 0, 1), Bar("b", 1, 2), Bar("c", 1, math.nan)], "Mbit/s"))
    bars = [node for node in root if (node.get("class") or "").startswith("bar")]
    heights = [float(bar.get("height", 0)) for bar in bars]
    assert heights == [PLOT_HEIGHT / 2, PLOT_HEIGHT, 0.5]
    assert bars[1].findtext("title") == "b: 2 Mbit/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (math.nan, "–"), (math.inf, "∞"), (0.0, "0"), (0.01234, "0.0123"), (4.5, "4.50"), (123.4, "123"),
     (12345.6, "12\u202f346"), (-0.5, "-0.500"), (1e-7, "1.00e-07"), (999.6, "1000")],
)  # fmt: skip
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_rates_and_tables() -> None:
    assert [rate(value) for value in (8e6, 999.0, 2.5e9, None)] == ["8 Mbit/s", "999 bit/s", "2.50 Gbit/s", "–"]
    assert [percent(value) for value in (0.5, math.nan)] == ["50.0 %", "–"]
    assert table(["a", "b"], [["long", "1"], ["x", "200"]]) == "a       b\nlong    1\nx     200"


SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_has_two_panels_in_a_row_and_names_their_lines() -> None:
    axes = Axes("t", "time (s)", "packets", (0, 10), (0, 10))
    lines = [Series("one", 0, [0, 10], [0, 10]), Series("two", 1, [0, 10], [10, 0])]
    svg = ET.fromstring(picture("three < panels", [(axes, lines), (axes, lines[:1]), (axes, lines)], "p{}", 100))
    assert (svg.get("width"), svg.get("height")) == (str(2 * WIDTH), str(2 * HEIGHT))
    assert svg.findtext(f"{SVG}title") == "three < panels"
    panels = svg.findall(f"{SVG}g")
    assert [panel.get("transform") for panel in panels] == [
        "translate(0 0)", f"translate({WIDTH} 0)", f"translate(0 {HEIGHT})",
    ]  # fmt: skip
    said = [{text.text for text in panel.iter(f"{SVG}text")} & {"one", "two"} for panel in panels]
    assert said == [{"one", "two"}, set(), {"one", "two"}], "a line alone needs no name"


def test_dots_that_fall_on_each_other_are_one() -> None:
    axes = Axes("t", "x", "y", (0, PLOT_WIDTH), (0, PLOT_HEIGHT))
    dots = Series("d", 2, [0, 0.1, 5, 5], [0, 0, 0, 7], dots=True)
    chart = ET.fromstring(line_chart(axes, [dots]))
    path = next(p for p in chart.iter("path") if p.get("class") == "dots s2")
    bottom = TOP + PLOT_HEIGHT
    assert path.get("d") == f"M{LEFT} {bottom}h0M{LEFT + 5} {bottom}h0M{LEFT + 5} {bottom - 7}h0"


def test_named_places_have_a_point_each_and_a_bar() -> None:
    measured = [Sample.of([1.0, 2.0, 3.0]), Sample.of([4.0])]
    lines = [Line.of(name, [1, 2], measured) for name in ("one", "other")]
    svg, names = chart(Panel("", "system", "share", lines, names=("slow", "fast")))
    root = ET.fromstring(svg)
    assert names == ("one", "other")
    texts = [text.text for text in root.findall("text")]
    assert "slow" in texts
    assert "fast" in texts
    dots = [path.get("d", "").count("M") for path in root.findall("path") if path.get("class", "").startswith("dots")]
    places = {path.get("d") for path in root.findall("path")}
    assert dots == [2, 2], "two points each"
    assert len(places) == 4, "and their bars, none behind another"


def test_labels_stay_inside() -> None:
    svg = line_chart(Axes("", "", "", (10, 1_000_000), (0, 1), log="x"), [Series("x", 0, [10, 1e6], [0, 1])])
    last = next(text for text in ET.fromstring(svg).findall("text") if text.text == "1e+06")
    assert last.get("class") == "tick end"
    assert float(last.get("x", "nan")) <= WIDTH


def test_an_axis_need_not_begin_at_zero() -> None:
    late = Line("late", [20.0, 25.0], [0.97, 0.99])
    box = ET.fromstring(chart(Panel("", "", "", [late], y_from=0.9))[0])
    assert box.get("data-x", "").startswith("20 ")
    assert box.get("data-y", "").startswith("0.9 ")
    below = ET.fromstring(chart(Panel("", "", "", [Line("", [0.0, 1.0], [0.5, 1.0])], y_from=0.9))[0])
    assert float(below.get("data-y", "nan").split()[0]) <= 0.5
