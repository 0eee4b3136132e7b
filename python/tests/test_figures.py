"""Which data go into which figure: spans, distributions, ellipses, fairness, response curves."""

import math
from pathlib import Path

import polars as pl
import pytest

import explicate
from explicate import figures
from explicate.figures import Figure, Study
from explicate.figures.spread import _around, _cdf, _decade_ends, _ellipse
from explicate.figures.study import POINT, _samples, _warmup, binned, span_text
from explicate.figures.sweep import axis_label, measure_label
from explicate.results import Results
from explicate.summary import with_slowdown
from explicate.sweeps.measures import Measure, measured


def _figure(name: str, results: Results) -> Figure:
    figure = figures.ALL[name](Study.of(results))
    assert figure is not None
    return figure


def _with_flows(results: Results, **columns: list[float | None]) -> Results:
    flows = results.flows.with_columns(pl.Series(name, values) for name, values in columns.items())
    return Results(flows, results.links, results.samples, results.run)


def test_a_span_has_the_mean_of_its_samples() -> None:
    frame = pl.DataFrame({POINT: ["a"] * 5, "time_s": [0.1, 0.2, 0.3, 0.4, 0.5], "value": [1.0, 3.0, 5.0, 7.0, 4.0]})
    spans = binned(frame, {"a": 0.2})
    assert spans["time_s"].to_list() == pytest.approx([0.2, 0.4]), "the third span is not whole"
    assert spans["value"].to_list() == [2.0, 6.0]


def test_spans_are_whole_round_trips_of_each_point() -> None:
    assert _samples(2.0008, 50) == 2, "a round trip a little longer than two samples"
    assert _samples(2.6, 50) == 13, "five round trips"
    assert _samples(2.6, 5) == 5, "of a short run the best there is"
    assert _samples(0.3, 50) == 3, "ten round trips"
    assert _samples(300.0, 50) == 294, "a round trip longer than the run has spans"
    assert span_text({"xcp": 0.2, "cubic": 1.3}) == "200 ms to 1.3 s"
    assert span_text({"": 0.4}) == "400 ms"


def test_bursts_a_round_trip_apart_are_a_steady_rate() -> None:
    times = [round(0.1 * i, 1) for i in range(1, 201)]
    bursts = {"two": [1.0, 3.0] * 100, "three": [2.0, 6.0, 1.0] * 66 + [2.0, 6.0]}
    rows = [(point, time, value) for point, values in bursts.items() for time, value in zip(times, values, strict=True)]
    frame = pl.DataFrame(rows, schema=[POINT, "time_s", "value"], orient="row")
    spans = {point: 0.1 * _samples(trip, 4) for point, trip in (("two", 2.0), ("three", 3.0))}
    means = binned(frame, spans)
    assert set(means.filter(pl.col(POINT) == "two")["value"]) == {2.0}
    assert set(means.filter(pl.col(POINT) == "three")["value"]) == {3.0}


def test_small_differences_look_small() -> None:
    assert _around([39.993, 40.0]) == pytest.approx((35.993, 44.0))
    assert _around([0.0, 0.0]) == (0.0, 1.0)


def test_rates_are_means_of_a_round_trip(scenario: Path) -> None:
    results = explicate.run(scenario, runs=1)
    trips = results.flows.with_columns(rtt_mean_ms=pl.lit(1400.0))
    slow = Results(trips, results.links, results.samples, results.run)
    (panel,) = _figure("throughput", slow).panels
    line = panel.series[0]
    assert line.name == "near/0"
    assert line.x[:2] == pytest.approx([1.5, 3.0]), "samples every 0.5 s, a round trip of 1.4 s"
    first = results.samples.filter(
        pl.col("object") == "near/0", pl.col("variable") == "throughput_bps", pl.col("time_s") <= 1.5
    )
    assert line.y[0] * 1e3 == pytest.approx(first["value"].mean())
    assert "1.5 s" in _figure("throughput", slow).about


def test_many_flows_are_groups(scenario: Path) -> None:
    figure = _figure("throughput", explicate.run(scenario, set={"flows.0.count": 7}))
    assert figure.names == ("near", "far & away")
    assert "There are 9 flows" in figure.about


@pytest.mark.usefixtures("native_real")
def test_feedback_is_what_ports_say_and_senders_see(tmp_path: Path) -> None:
    scenario = (
        explicate.Scenario("marks", duration="3s", warmup="1s")
        .topology("dumbbell", pairs=2, bottleneck={"rate": "20Mbit/s", "delay": "10ms", "queue": "dualpi2"})
        .flows("own", "prague", count=2)
        .sampling("100ms", ["flow", "router"])
    )
    results = explicate.run(scenario)
    figure = _figure("feedback", results)
    assert figure.names == ("r1->r2", "own")
    assert "share of marks that senders see" in results.plot("feedback").save(tmp_path / "f.svg").read_text("utf-8")
    assert [panel.axes.title for panel in figure.panels] == [
        "probability of a mark",
        "probability in the queue beside L4S's",
        "wait in the queue for L4S (ms)",
        "wait in the queue beside L4S's (ms)",
        "share of marks that senders see",
    ]
    assert [[one.name for one in panel.series] for panel in figure.panels] == [["r1->r2"]] * 4 + [["own"]]
    compared = _figure("feedback", explicate.compare(scenario, ["prague", "dctcp"]))
    assert compared.names == ("prague", "dctcp")
    assert compared.panels[0].caption == "probability of a mark, r1->r2"
    silent = explicate.run(scenario, set={"flows.own.protocol": "cubic", "topology.bottleneck.queue": "droptail"})
    assert figures.ALL["feedback"](Study.of(silent)) is None
    assert 'put of = ["flow", "router"]' in figures.nothing("feedback", Study.of(silent))


def test_a_distribution_counts_what_did_not_complete() -> None:
    x, y = _cdf(pl.Series([3.0, 1.0, None, 2.0]), 4)
    assert (x, y) == ([1.0, 2.0, 3.0], [25.0, 50.0, 75.0])
    assert _cdf(pl.Series([None], dtype=pl.Float64), 1) == ([], [])


def test_completion_times(scenario: Path) -> None:
    results = _with_flows(
        explicate.run(scenario, runs=1),
        size_bytes=[1e4, 1e4, 1e4, 1e4, None],
        completion_s=[0.3, 4.0, None, 0.7, None],
    )
    figure = _figure("completion", results)
    (panel,) = figure.panels
    assert panel.axes.log == "x"
    assert panel.axes.x == pytest.approx((0.2, 5.0))
    assert [(one.name, one.x, one.y) for one in panel.series] == [
        ("near", [0.3, 4.0], pytest.approx([100 / 3, 200 / 3])),
        ("far & away", [0.7], [100.0]),
    ]
    assert "1 of 4 did not complete" in figure.about


def test_slowdown_against_the_fastest_of_its_size() -> None:
    flows = pl.DataFrame(
        {
            "size_bytes": [100, 100, 1000, 1000, None, 5000],
            "completion_s": [0.6, 0.3, 0.2, math.nan, None, 4.0],
        }
    )
    found = with_slowdown(flows)["slowdown"].to_list()
    assert found == [pytest.approx(3.0), pytest.approx(1.5), 1.0, None, None, 1.0], "0.2 s is the best of 100 bytes too"


def test_equal_sizes_have_an_axis() -> None:
    assert _decade_ends(pl.Series([1e5, 1e5])) == (5e4, 2e5)
    assert _decade_ends(pl.Series([1.5e5, 3e5])) == (1e5, 5e5)


def test_slowdown_is_a_figure_and_a_measure(scenario: Path) -> None:
    results = explicate.run(scenario, runs=2)
    assert figures.ALL["slowdown"](Study.of(results)) is None, "no transfer ends"
    sizes = _with_flows(
        results, size_bytes=[1e4, 2e4, 3e4, 4e4, 5e4] * 2, completion_s=[float(i) for i in range(1, 11)]
    )
    (panel,) = _figure("slowdown", sizes).panels
    assert [one.name for one in panel.series] == ["near", "far & away"]
    assert min(low for one in panel.series for low in one.low) == 1.0
    measure = Measure.of("flows.near.slowdown.p99")
    table = measured(sizes.tables(), (), [measure])
    # Sizes 10, 20 and 30 kB took 1, 2, 3 s and 6, 7, 8 s; the fastest of at least their sizes 1, 2 and 3 s.
    assert table["flows.near.slowdown.p99"].to_list() == pytest.approx([1.0, 6 - 0.02 * 2.5])


def test_an_ellipse_of_one_deviation() -> None:
    ((x, y),) = _ellipse([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    assert max(x) == pytest.approx(3.0)
    assert max(y) == pytest.approx(30.0)
    assert all(b == pytest.approx(10 * a) for a, b in zip(x, y, strict=True)), "perfectly correlated: a line"
    ((x, y),) = _ellipse([-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, -2.0, 2.0])
    sd_x, sd_y = math.sqrt(2 / 3), math.sqrt(8 / 3)
    assert all((a / sd_x) ** 2 + (b / sd_y) ** 2 == pytest.approx(1) for a, b in zip(x, y, strict=True))
    assert _ellipse([1.0, 2.0], [1.0, 2.0]) == []
    assert _ellipse([1.0] * 3, [2.0] * 3) == []


def test_throughput_against_delay_has_a_dot_for_each_run(scenario: Path) -> None:
    figure = _figure("tradeoff", explicate.compare(scenario, ["xcp", "newreno"], runs=3))
    assert [panel.caption for panel in figure.panels] == ["near", "far & away"]
    dots = [one for one in figure.panels[0].series if one.dots]
    assert [(one.name, len(one.x)) for one in dots] == [("xcp", 3), ("newreno", 3)]
    assert sum(one.loose and not one.dots for one in figure.panels[0].series) == 2, "and an ellipse for each"


def test_fairness_over_time(scenario: Path) -> None:
    results = explicate.run(scenario, runs=1)
    last = results.samples.filter(pl.col("variable") == "throughput_bps", pl.col("time_s") == 20.0)["value"].to_list()
    (panel,) = _figure("fairness", results).panels
    assert panel.series[0].x[-1] == 20.0
    assert panel.series[0].y[-1] == pytest.approx(explicate.jain_index(last))


def test_losses_by_cause(scenario: Path) -> None:
    figure = _figure("losses", explicate.compare(scenario, ["xcp", "newreno"]))
    (panel,) = figure.panels
    assert [(bar.name, bar.value) for bar in panel.bars] == [("xcp: queue full", 0.0), ("newreno: queue full", 120.0)]
    assert {panel.axes.y_label for panel in figure.panels} == {"packets (queue full)"}, "without a legend on paper"
    assert figures.ALL["losses"](Study.of(explicate.run(scenario))) is None, "nothing was lost"


def test_two_flows_against_each_other(scenario: Path) -> None:
    (panel,) = _figure("phase", explicate.run(scenario)).panels
    path, diagonal = panel.series
    assert path.loose
    assert len(path.x) == 40
    assert (diagonal.x, diagonal.y) == ([0, panel.axes.x[1]], [0, panel.axes.y[1]])


def test_a_sweeps_response_curves(scenario: Path, tmp_path: Path) -> None:
    swept = explicate.sweep(scenario, {"flows.0.count": [2, 4, 8]}, runs=2, measures=["flows.goodput_bps"])
    loaded = Results.load(swept.write(tmp_path / "out"))
    for results in (swept, loaded):
        (panel,) = _figure("response", results).panels
        assert panel.axes.x_label == "flows count"
        assert panel.caption == "Mean goodput, all flows"
        (line,) = panel.series
        assert line.x == [2, 4, 8]
        values = swept.measures()["flows.goodput_bps"].to_list()
        assert sum(line.y) / 3 == pytest.approx(sum(values) / 6 / 1e3, rel=1e-9)
        assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    words = explicate.sweep(scenario, {"flows.0.protocol": ["xcp", "vcp"]})
    assert figures.ALL["response"](Study.of(words)) is None, "an axis of words has no curve"


def test_names_of_axes_and_measures() -> None:
    assert axis_label("topology.bottleneck.rate (Mbit/s)") == "bottleneck rate (Mbit/s)"
    assert axis_label("flows.0.count") == "flows count"
    assert measure_label("links.r1->r2.queue_mean_packets")[0] == "queue mean, r1->r2"
    assert measure_label("flows.near.completion_s.p99")[0] == "99th percentile completion, near"


def test_a_span_longer_than_the_run_has_everything() -> None:
    frame = pl.DataFrame({POINT: ["a"] * 2, "time_s": [0.1, 0.2], "value": [1.0, 3.0]})
    assert binned(frame, {"a": 10.0})["value"].to_list() == [2.0]


def test_times_are_what_their_decimal_texts_are_read_as() -> None:
    assert [_warmup(f'warmup = "{text}"') for text in ("700ms", "3us", "1.1s", "2min")] == [0.7, 3e-6, 1.1, 120.0]
    frame = pl.DataFrame({POINT: ["a"] * 9, "time_s": [k / 10 for k in range(1, 10)], "value": [1.0] * 9})
    assert binned(frame, {"a": 0.1})["time_s"].to_list() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
