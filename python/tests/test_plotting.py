"""Figures for papers: files of the right kind and width, the same every time, and clear words where there is none."""

import builtins
import pickle
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import explicate
from explicate import figures, plotting
from explicate.charts import Axes, Bar
from explicate.cli import main
from explicate.figures import Panel
from explicate.plotting import Plot, _plain
from explicate.sweeps.table import AllFailedError
from explicate.sweeps.work import Failure

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def results(scenario: Path) -> explicate.Results:
    found = explicate.compare(
        scenario, ["xcp", "newreno"], runs=3, set={"sampling.of": ["throughput", "queue", "rtt", "cwnd"]}
    )
    flows = found.flows.with_columns(
        size_bytes=pl.int_range(1, pl.len() + 1) * 1e4, completion_s=pl.int_range(1, pl.len() + 1) / 10
    )
    return explicate.Results(flows, found.links, found.samples, found.run, found.axes)


@pytest.mark.parametrize("kind", sorted(set(figures.ALL) - {"response", "utilisation", "feedback"}))
def test_every_kind_is_drawn(kind: str, results: explicate.Results, tmp_path: Path) -> None:
    svg = results.plot(kind).save(tmp_path / "figure.svg").read_text(encoding="utf-8")
    words = {node.text for node in ET.fromstring(svg).iter(f"{SVG}text")}
    panel = results.plot(kind).figure.panels[0]
    assert {panel.axes.y_label, panel.axes.x_label} - {""} <= words
    assert results.plot(kind).save(tmp_path / "again.svg").read_text(encoding="utf-8") == svg


def test_pdf_and_png_in_the_width_of_a_column(results: explicate.Results, tmp_path: Path) -> None:
    assert results.plot("rtt").save(tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    png = results.plot("fairness").save(tmp_path / "f.png", width=3.5).read_bytes()
    assert int.from_bytes(png[16:20], "big") == 3.5 * 300
    lines = results.plot("queue").matplotlib().axes[0].get_lines()
    wanted = results.plot("queue").figure.panels[0].series
    assert [list(line.get_ydata()) for line in lines] == [list(one.y) for one in wanted]


def test_what_cannot_be_drawn(results: explicate.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no figure 'pie'; the figures are: response, tradeoff"):
        results.plot("pie")
    with pytest.raises(ValueError, match=r'nothing to draw .utilisation. from; put of = \["throughput"\]'):
        explicate.Results(results.flows, results.links, results.samples.clear(), results.run).plot("utilisation")
    with pytest.raises(ValueError, match=r"must end with \.pdf, \.svg, \.png"):
        results.plot("rtt").save(tmp_path / "figure.gif")
    plain = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match=r"need matplotlib: pip install 'explicate\[plot\]'"):
        results.plot("rtt").save(tmp_path / "figure.pdf")


def test_the_command(results: explicate.Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(results.write(tmp_path / "out"))
    assert main(["plot", folder]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(figures.ALL)
    assert listed[0].startswith("response     – (nothing to draw")
    assert main(["plot", folder, "completion", "-o", str(tmp_path / "f.pdf")]) == 0
    assert (tmp_path / "f.pdf").stat().st_size > 2000
    capsys.readouterr()
    assert main(["plot", folder, "completion"]) == 2
    assert "-o completion.pdf" in capsys.readouterr().err


def test_a_notebook_shows_results_and_plots(results: explicate.Results) -> None:
    html = results._repr_html_()
    assert html.count("<table") == 2
    assert "newreno" in html
    assert "r1-&gt;r2" in html
    assert results.plot("rtt")._repr_svg_().count("<svg") == 1


def test_xarray(results: explicate.Results) -> None:
    found = results.to_xarray()
    assert set(found.data_vars) == {"throughput_bps", "queue_packets", "rtt_ms", "cwnd"}
    at = {"variant": "newreno", "run": 1, "object": "near/0", "time_s": 2.0}
    where = [pl.col(key) == value for key, value in at.items()]
    (value,) = results.samples.filter(*where, pl.col("variable") == "rtt_ms")["value"].to_list()
    assert float(found["rtt_ms"].sel(at)) == value
    assert found.attrs["seed"] == 7


def test_xarray_keeps_the_order_of_points(scenario: Path) -> None:
    found = explicate.sweep(scenario, {"warmup": ["5s", "10s", "15s"]}).to_xarray()
    assert found["warmup"].values.tolist() == ["5s", "10s", "15s"]


@pytest.mark.usefixtures("native_real")
def test_errors_cross_processes(scenario: Path) -> None:
    """A bad scenario in a pool of processes is an error of its own job, not the end of the pool."""
    scenario.write_text("durration = 1\n", encoding="utf-8")
    with pytest.raises(explicate.ScenarioError) as caught:
        explicate.run(scenario)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is explicate.ScenarioError
    assert str(again) == str(caught.value)
    failed = AllFailedError("not one run", [Failure({"a": 1}, 7, "why", "text")])
    assert pickle.loads(pickle.dumps(failed)).failures == failed.failures


def test_a_logarithmic_axis_has_plain_numbers() -> None:
    assert [_plain(value) for value in (0.01, 0.5, 1, 100, 1000, 1e6)] == [
        "0.01",
        "0.5",
        "1",
        "100",
        "1,000",
        "1,000,000",
    ]


def test_a_short_logarithmic_axis_has_numbers_side_by_side(results: explicate.Results) -> None:
    """Of a decade and a third, matplotlib would name every tick, with powers of ten."""
    figure = results.plot("completion").figure
    frame = replace(figure.panels[0].axes, x=(0.1, 2.0))
    canvas = Plot(replace(figure, panels=(replace(figure.panels[0], axes=frame),))).matplotlib()
    canvas.draw_without_rendering()
    (axes,) = canvas.axes
    labels = [label for minor in (False, True) for label in axes.get_xticklabels(minor=minor) if label.get_text()]
    inside = {label.get_text() for label in labels if 0.1 <= label.get_position()[0] <= 2.0}
    assert inside == {"0.1", "0.2", "0.5", "1", "2"}


def test_legends_and_names_take_no_room_from_the_panel(results: explicate.Results) -> None:
    """Six points of a sweep: their names are long and stand below each other."""
    named = tuple(f"delay = {i}0ms, protocol = newreno" for i in range(6))
    tradeoff = results.plot("tradeoff").figure
    figure = replace(tradeoff, panels=tradeoff.panels[:1], names=named)
    frame = Axes("losses", "", "packets", (0, 3), (0, 9))
    names = tuple((i + 0.5, name) for i, name in enumerate(named[:3]))
    bars = Panel("", frame, bars=tuple(Bar("x", 0, 3.0) for _ in range(3)), names=names)
    for one in (figure, replace(figure, panels=(bars,), names=("queue full",))):
        canvas = Plot(one).matplotlib()
        canvas.draw_without_rendering()
        (axes,) = canvas.axes
        assert axes.get_window_extent().height / canvas.dpi > 0.9, "inches"
    assert [label.get_rotation() for label in axes.get_xticklabels()] == [90] * 3


def test_names_are_drawn_as_they_are_written(results: explicate.Results, tmp_path: Path) -> None:
    """Dollars in names are no mathematics; matplotlib could not even set the first of these."""
    named = ("$\\frac{a}$", "a$^2$ \\$", "_b_ 5 %")
    figure = results.plot("tradeoff").figure
    first = figure.panels[0]
    panel = replace(first, caption=named[0], axes=replace(first.axes, x_label=named[0], y_label=named[1]))
    bars = Panel(named[1], replace(first.axes, x=(0, 1)), bars=(Bar("x", 0, 3.0),), names=((0.5, named[1]),))
    drawn = Plot(replace(figure, panels=(panel, bars), names=named)).save(tmp_path / "f.svg")
    words = [node.text for node in ET.parse(drawn).iter(f"{SVG}text")]
    assert [words.count(name) for name in named] == [3, 4, 1]


def test_names_in_other_scripts_use_the_fonts_that_are_installed(
    results: explicate.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters that no font has are named once, and not by matplotlib, letter by letter."""
    named = replace(results.plot("tradeoff").figure, names=("\u663e\u5f0f", "b"))
    monkeypatch.setattr(plotting, "OTHER_SCRIPTS", ("No such font",))
    with pytest.warns(UserWarning, match="no installed font") as raised:
        Plot(named).save(tmp_path / "f.png")
    assert [str(one.message).partition(":")[0] for one in raised] == ["no installed font has \u663e \u5f0f"]
    # A font of matplotlib's own that has a box with a letter's number for each letter.
    monkeypatch.setattr(plotting, "OTHER_SCRIPTS", ("No such font", "Last Resort High-Efficiency"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Plot(named).save(tmp_path / "g.png")


def test_long_names_stay_in_their_places(results: explicate.Results) -> None:
    """Captions of panels side by side, the legend of a column, and names below many bars."""
    named = tuple(f"delay = {i}0ms, protocol = newreno, rate = 10Mbit/s, buffer = 1.0bdp" for i in range(8))
    figure = results.plot("tradeoff").figure
    first = figure.panels[0]
    apart = tuple(replace(first, caption=name) for name in named)
    for one, width in ((replace(figure, panels=apart), 7.0), (replace(figure, names=named, panels=apart[:1]), 3.33)):
        canvas = Plot(one).matplotlib(width=width)
        canvas.draw_without_rendering()
        shown = [axes for axes in canvas.axes if axes.get_visible()]
        boxes = [axes._left_title.get_window_extent() for axes in shown]
        boxes += [legend.get_window_extent() for legend in canvas.legends]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert all(box.x0 >= 0 and box.x1 <= canvas.bbox.x1 for box in boxes)
        assert all(axes.get_window_extent().height / canvas.dpi > 0.9 for axes in shown), "inches"
    frame = Axes("losses", "", "packets", (0, 8), (0, 9))
    below = tuple((i + 0.5, name) for i, name in enumerate(named))
    bars = Panel("", frame, bars=tuple(Bar("x", 0, 3.0) for _ in named), names=below)
    canvas = Plot(replace(figure, panels=(bars,), names=())).matplotlib()
    canvas.draw_without_rendering()
    (axes,) = canvas.axes
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert axes.get_window_extent().width > 0.7 * canvas.bbox.width


def test_what_a_figure_leaves_out_is_printed(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explicate.sweep(scenario, {"warmup": [f"{i}s" for i in range(10)]}, runs=1)
    assert main(["plot", str(found.write(tmp_path / "out")), "queue", "-o", str(tmp_path / "f.svg")]) == 0
    assert capsys.readouterr().err == "warning: The first 8 of 10 points are drawn.\n"


def test_samples_are_asked_for_only_where_they_lack(scenario: Path) -> None:
    """One flow was sampled, so that more samples would not make it fair."""
    found = explicate.run(scenario)
    alone = explicate.Results(found.flows.head(1), found.links, found.samples, found.run)
    with pytest.raises(ValueError, match=r"^nothing to draw 'fairness' from in these results$"):
        alone.plot("fairness")


def test_places_of_a_horizontal_axis_have_names() -> None:
    frame = Axes("t", "law", "y", (0.5, 2.5), (0.0, 1.0), x_names=["one\n0", "two\n1"])
    drawn = Plot(figures.Figure("f", "", "", (Panel("", frame),), ())).matplotlib().axes[0]
    assert [(label.get_position()[0], label.get_text()) for label in drawn.get_xticklabels()] == [
        (1, "one\n0"), (2, "two\n1"),
    ]  # fmt: skip
