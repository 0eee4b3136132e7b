"""Sweeps: points, stored runs, measures, failures."""

from __future__ import annotations

import json
import math
import re
import statistics
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import fake_native
import numpy
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import explicate
from explicate.cli import main
from explicate.identity import engine_digest
from explicate.source import Source, value_text
from explicate.summary import t_95
from explicate.sweeps.design import Range, latin
from explicate.sweeps.measures import COUNT, STATISTICS
from explicate.sweeps.table import once
from explicate.sweeps.work import run_unit

AXES: dict[str, list[int] | list[str]] = {"flows.0.count": [1, 2, 3], "flows.1.protocol": ["xcp", "vcp"]}


class Counted:
    """The synthetic engine's `run`, which counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.run = fake_native.run

    def __call__(self, *args: Any) -> fake_native.Output:
        self.calls += 1
        return self.run(*args)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counter = Counted()
    monkeypatch.setattr(fake_native, "run", counter)
    return counter


@given(st.integers(1, 60), st.integers(0, 2**32), st.booleans())
def test_every_part_of_every_axis_has_one_point(points: int, draw: int, log: bool) -> None:
    law = ":log" if log else ""
    ranges = {"a": Range.of("a", f"2ms..50ms{law}"), "b": Range.of("b", f"0.5..8{law}")}
    drawn = latin(ranges, points, draw)
    for key, low, high in (("a", 2.0, 50.0), ("b", 0.5, 8.0)):
        values = [float(str(point[key]).removesuffix("ms")) for point in drawn]
        shares = [math.log(v / low) / math.log(high / low) if log else (v - low) / (high - low) for v in values]
        # Values have six digits; one that was rounded over the edge of its part may count there.
        assert all(abs(share * points - i - 0.5) < 0.51 for i, share in enumerate(sorted(shares)))
    alone = latin({"b": ranges["b"]}, points, draw)
    assert [point["b"] for point in alone] == [point["b"] for point in drawn]


def test_whole_numbers_and_units() -> None:
    drawn = latin({"n": Range.of("n", "1..4"), "m": Range.of("m", "1..1000:log")}, 400, 1)
    counts = [sum(point["n"] == n for point in drawn) for n in (1, 2, 3, 4)]
    assert counts == [100, 100, 100, 100]
    assert {type(point["m"]) for point in drawn} == {int}
    assert min(point["m"] for point in drawn) == 1
    assert max(point["m"] for point in drawn) > 900
    assert Range.of("r", "1e6bit/s..2e6bit/s").at(0.25) == "1250000bit/s"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1ms", "is not a range"),
        ("1ms..2s", "two units"),
        ("2ms..1ms", "does not rise"),
        ("0ms..1ms:log", "must be above 0"),
        ("1ms..2ms:lgo", "did you mean `log`"),
    ],
)
def test_bad_ranges(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Range.of("key", text)


def test_a_hypercube_with_each_of_a_grid(scenario: Path) -> None:
    swept = explicate.sweep(scenario, {"flows.0.protocol": ["xcp", "vcp"]}, latin={"flows.0.count": "1..9"}, points=3)
    assert swept.axes == ("flows.0.protocol", "flows.0.count")
    points = [tuple(point.values()) for point in swept.points()]
    counts = [count for protocol, count in points if protocol == "xcp"]
    assert points == [("xcp", count) for count in counts] + [("vcp", count) for count in counts]
    assert sorted((count - 1) // 3 for count in counts) == [0, 1, 2]
    with pytest.raises(ValueError, match="number of points"):
        explicate.sweep(scenario, latin={"flows.0.count": "1..9"})
    with pytest.raises(ValueError, match="is for a Latin hypercube"):
        explicate.sweep(scenario, AXES, points=3)


def test_measures_are_those_of_the_tables(scenario: Path) -> None:
    swept = explicate.sweep(scenario, {"flows.0.count": [1, 4]}, runs=3)
    taken = swept.measures(["flows.goodput_bps", "flows.near.goodput_bps.max", "links.r1->r2.utilisation"])
    assert taken.columns[:3] == ["flows.0.count", "run", "seed"]
    assert taken["seed"].to_list() == [7, 8, 9, 7, 8, 9]
    for row in taken.rows(named=True):
        flows = swept.flows.filter(pl.col("flows.0.count") == row["flows.0.count"], pl.col("run") == row["run"])
        goodputs = flows["goodput_bps"].to_list()
        assert row["flows.goodput_bps"] == pytest.approx(statistics.fmean(goodputs), rel=1e-12)
        near = flows.filter(pl.col("group") == "near")["goodput_bps"].to_list()
        assert row["flows.near.goodput_bps.max"] == max(near)
        assert row["links.r1->r2.utilisation"] == 0.97
    means = swept.intervals(["flows.goodput_bps"]).rows(named=True)[1]
    values = taken.filter(pl.col("flows.0.count") == 4)["flows.goodput_bps"].to_list()
    assert means["runs"] == 3
    assert means["flows.goodput_bps"] == pytest.approx(statistics.fmean(values))
    half = 4.303 * statistics.stdev(values) / math.sqrt(3)
    assert means["flows.goodput_bps.margin_95"] == pytest.approx(half)
    single = explicate.sweep(scenario, {"flows.0.count": [1, 4]}, runs=1).intervals()
    assert single["flows.goodput_bps.margin_95"].null_count() == 2
    # Student's quantiles, of a published table, on both sides of where ours ends.
    assert [round(t_95(n), 3) for n in (1, 30, 40, 60, 120)] == [12.706, 2.042, 2.021, 2.000, 1.980]


def test_an_axis_of_one_unit_is_a_column_of_numbers(scenario: Path) -> None:
    swept = explicate.sweep(scenario, {"duration": ["10s", "2.5s"], "name": ["1s", "2ms"]}, runs=1)
    assert swept.measures().columns[:2] == ["duration (s)", "set.name"]
    assert swept.measures()["duration (s)"].to_list() == [10.0, 10.0, 2.5, 2.5]
    assert set(swept.flows["duration"]) == {"10s", "2.5s"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flow.goodput_bps", "did you mean `flows`"),
        ("flows", "names no column"),
        ("flows.goodput", "did you mean `goodput_bps`"),
        ("flows.goodput_bps.maen", "did you mean `mean`"),
    ],
)
def test_bad_measures(scenario: Path, text: str, message: str, counted: Counted) -> None:
    with pytest.raises(ValueError, match=message):
        explicate.sweep(scenario, AXES, measures=[text])
    assert counted.calls == 0


def test_values_from_numpy_and_generators(scenario: Path) -> None:
    expected = explicate.sweep(scenario, {"flows.0.count": [1, 2]}).measures()
    for values in (numpy.arange(1, 3), [numpy.int64(1), numpy.int64(2)], range(1, 3), (n for n in (1, 2))):
        assert_frame_equal(explicate.sweep(scenario, {"flows.0.count": values}).measures(), expected)  # type: ignore[dict-item]
    text = value_text({"a": numpy.float64(0.5), "b": [numpy.int8(1), numpy.bool_(True)], "c": numpy.array([1.5, 2])})
    assert text == '{ "a" = 0.5, "b" = [1, true], "c" = [1.5, 2.0] }'


def test_one_name_is_a_list_of_one(scenario: Path) -> None:
    assert explicate.compare(scenario, "vcp").run["variant"].unique().to_list() == ["vcp"]
    swept = explicate.sweep(scenario, {"flows.0.count": [1]}, measures="flows.goodput_bps")
    assert swept.measures().columns[-1] == "flows.goodput_bps"
    with pytest.raises(ValueError, match="points must be 1 or more, not -1"):
        explicate.sweep(scenario, latin={"seed": "1..9"}, points=-1)


@pytest.mark.parametrize(
    ("measure", "hint"),
    [
        ("links.r1->r3.utilisation", "`r1->r3` is not known; did you mean `r1->r2`?"),
        ("links.r1:r3.utilisation.max", "`r1->r3` is not known; did you mean `r1->r2`?"),
        ("links.up.utilisation", "`up` is not known; there are r1->r2, r2->r1, s0->r1, r2->d0"),
        ("flows.neer.goodput_bps", "`neer` is not known; did you mean `near`?"),
    ],
)
def test_a_name_that_nothing_has_is_an_error(
    measure: str, hint: str, scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=re.escape(f"measure {measure}: {hint}")):
        explicate.sweep(scenario, AXES, measures=[measure, "flows.goodput_bps"])
    words = ["sweep", str(scenario), "--vary", "flows.0.count=1,2", "-o", str(tmp_path / "out"), "--measure"]
    assert main([*words, f"flows.goodput_bps,{measure}"]) == 2
    assert f"measure {measure}: {hint}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists(), "before anything runs"
    assert main([*words, "flows.near.goodput_bps,links.r1:r2.utilisation"]) == 0
    swept = explicate.sweep(scenario, {"flows.0.count": [1, 2]})
    with pytest.raises(ValueError, match=re.escape(f"measure {measure}: {hint}")):
        swept.measures([measure])
    assert main(["diff", str(tmp_path / "out"), str(tmp_path / "out"), "--measure", measure]) == 2
    assert f"measure {measure}: {hint}" in capsys.readouterr().err


def test_a_name_that_one_point_has_is_a_measure(scenario: Path) -> None:
    swept = explicate.sweep(scenario, {"flows.0.name": ["near", "other"]}, measures=["flows.other.goodput_bps"])
    found = swept.measures()["flows.other.goodput_bps"]
    assert 0 < found.null_count() < swept.run.height


VALUES = st.none() | st.just(0.0) | st.floats(1e-6, 1e6)
"""Squares of the smallest floats are zero, so that nothing of them is known exactly."""


@settings(deadline=None)  # the first query takes as long as it takes to start the threads
@given(st.lists(st.tuples(VALUES, st.integers(1, 4)), min_size=1, max_size=9))
def test_classes_count_as_their_flows(rows: list[tuple[float | None, int]]) -> None:
    schema = {"x": pl.Float64, COUNT: pl.UInt64}
    classes = pl.DataFrame(rows, schema, orient="row").with_columns(key=0)
    flows = pl.DataFrame([(x, 1) for x, count in rows for _ in range(count)], schema, orient="row").with_columns(key=0)
    for name, of in STATISTICS.items():
        found, expected = (
            frame.group_by("key").agg(of("x", count).alias(name))[name][0]
            for frame, count in ((classes, pl.col(COUNT)), (flows, None))
        )
        assert (found is None) == (expected is None), name
        assert found is None or found == pytest.approx(expected, rel=1e-6, abs=1e-3, nan_ok=True), name


def test_a_sweep_of_fluids(scenario: Path, tmp_path: Path, counted: Counted) -> None:
    folder = tmp_path / "runs"
    packets = explicate.sweep(scenario, {"flows.0.count": [1, 3]}, store=folder)
    swept = explicate.sweep(scenario, {"flows.0.count": [1, 3]}, store=folder, fluid=True)
    assert swept.fresh == packets.fresh == 4  # neither uses the other's runs
    assert swept.flows.columns[-1] == "count"
    sums = ["flows.sent_packets.sum"]
    fluids = [explicate.run(scenario, set={"flows.0.count": n}, fluid=True).flows for n in (1, 3)]
    expected = [int((frame.filter(run=0)["sent_packets"] * frame.filter(run=0)["count"]).sum()) for frame in fluids]
    assert swept.measures(sums).filter(run=0)[sums[0]].to_list() == expected


def test_nothing_is_run_twice(scenario: Path, tmp_path: Path, counted: Counted) -> None:
    whole = explicate.sweep(scenario, AXES, store=tmp_path / "runs")
    assert (counted.calls, whole.fresh) == (12, 12)
    again = explicate.sweep(scenario, AXES, store=tmp_path / "runs")
    assert (counted.calls, again.fresh) == (12, 0)
    for name, table in whole.tables().items():
        assert_frame_equal(again.tables()[name], table)
    memory = explicate.sweep(scenario, AXES)
    assert_frame_equal(memory.flows, whole.flows)
    assert_frame_equal(memory.samples, whole.samples)
    counted.calls = 0
    more = explicate.sweep(scenario, {**AXES, "flows.0.count": [3, 4]}, store=tmp_path / "runs", runs=3)
    assert counted.calls == 4 * 3 - 2 * 2
    assert more.run["seed"].to_list() == [7, 8, 9] * 4
    assert more.run["run"].to_list() == [0, 1, 2] * 4


def test_a_point_that_is_asked_for_twice_is_one(scenario: Path) -> None:
    swept = explicate.sweep(scenario, {"flows.0.count": [2, 1, 2], "flows.1.protocol": ["xcp", "xcp"]}, runs=2)
    assert swept.intervals().select("flows.0.count", "runs").rows() == [(2, 2), (1, 2)]
    spelled = explicate.sweep(scenario, {"duration": ["20s", "20.0s"]}, runs=2)
    assert spelled.intervals().select("duration (s)", "runs").rows() == [(20, 2)]
    squared = explicate.sweep(scenario, latin={"flows.0.count": "1..3"}, points=9, runs=1)
    assert sorted(squared.intervals().select("flows.0.count", "runs").rows()) == [(1, 1), (2, 1), (3, 1)]


def test_points_that_are_the_same_run_once(scenario: Path, counted: Counted) -> None:
    swept = explicate.sweep(scenario, {"seed": [1, 2]}, runs=2)
    assert counted.calls == 3
    assert swept.run.select("set.seed", "run", "seed").rows() == [(1, 0, 1), (1, 1, 2), (2, 0, 2), (2, 1, 3)]


def test_a_file_that_a_scenario_names_decides_too(tmp_path: Path, scenario: Path, counted: Counted) -> None:
    trace = tmp_path / "steps.trace"
    settings = {"rate": "steps.trace"}
    for text in ("1\n", "2\n", "1\n"):
        other = tmp_path / "elsewhere" / text.strip()
        other.mkdir(parents=True, exist_ok=True)
        trace.write_text(text, encoding="utf-8")
        (other / "small.toml").write_bytes(scenario.read_bytes())
        (other / "steps.trace").write_text(text, encoding="utf-8")
        explicate.sweep(other / "small.toml", {"flows.0.count": [1]}, set=settings, runs=1, store=tmp_path / "runs")
    assert counted.calls == 2


def test_a_file_that_changes_between_two_sweeps_is_read_again(tmp_path: Path, scenario: Path, counted: Counted) -> None:
    trace = tmp_path / "steps.trace"
    for calls, text in enumerate(("1\n", "2\n"), 1):
        trace.write_text(text, encoding="utf-8")
        explicate.sweep(scenario, {"flows.0.count": [1]}, set={"rate": "steps.trace"}, runs=1, store=tmp_path / "runs")
        assert counted.calls == calls, "in one notebook, say"


def test_a_damaged_file_is_put_aside(scenario: Path, tmp_path: Path) -> None:
    whole = explicate.sweep(scenario, AXES, store=tmp_path / "runs")
    (part,) = (tmp_path / "runs").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-100])
    again = explicate.sweep(scenario, AXES, store=tmp_path / "runs")
    assert again.fresh == 12
    assert_frame_equal(again.flows, whole.flows)
    assert [path.suffix for path in sorted((tmp_path / "runs").iterdir())] in (
        [".damaged", ".parquet"], [".parquet", ".damaged"],
    )  # fmt: skip


def test_shards_are_parts_of_the_whole(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", str(scenario), "--vary", "flows.0.count=1,2,3,4,5"]
    assert main([*command, "-o", str(tmp_path / "whole")]) == 0
    capsys.readouterr()
    told = []
    for shard in ("1/3", "3/3", "2/3"):
        assert main([*command, "-o", str(tmp_path / "parts"), "--shard", shard]) == 0
        told.append(capsys.readouterr().out)
    assert not (tmp_path / "parts" / "flows.parquet").exists()
    assert sum(int(text.partition("; ")[2].split()[0]) for text in told) == 10
    assert main([*command, "-o", str(tmp_path / "parts")]) == 0
    assert "; 0 computed now" in capsys.readouterr().out
    assert tables_of(tmp_path / "whole") == tables_of(tmp_path / "parts")
    capsys.readouterr()
    assert main([*command, "-o", str(tmp_path / "parts"), "--shard", "99/99"]) == 0  # an array of more jobs than runs
    assert "part 99 of 99 has no runs" in capsys.readouterr().err
    assert main([*command, "--shard", "1/3"]) == 2
    assert main([*command, "--shard", "4/3"]) == 2


def tables_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".parquet", ".json")}


def test_a_failure_stops_no_other(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", str(scenario), "--vary", "name=small,crash,other", "-o", str(tmp_path / "out")]
    assert main(command) == 1
    streams = capsys.readouterr()
    assert "2 of 6 runs failed" in streams.err
    assert "name=crash, seed 7: run 0 failed: packets not conserved on r1->r2" in streams.err
    assert pl.read_parquet(tmp_path / "out" / "run.parquet")["set.name"].to_list() == ["small"] * 2 + ["other"] * 2
    listed = json.loads((tmp_path / "out" / "failures.json").read_text(encoding="utf-8"))
    assert [failure["seed"] for failure in listed] == [7, 8]
    assert main(["report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<li>2 of 6 runs failed, and are in no table; failures.json lists them</li>" in page
    kept = explicate.engine.check((tmp_path / "out" / listed[1]["scenario"]).read_text(encoding="utf-8"), "", ".", [])
    assert (kept["seed"], kept["runs"], kept["name"]) == (8, 1, "crash")
    with pytest.warns(RuntimeWarning, match="2 runs failed; the first: name=crash, seed 7: run 0 failed"):
        swept = explicate.sweep(scenario, {"name": ["small", "crash"]})
    assert [failure.point for failure in swept.failures] == [{"name": "crash"}] * 2
    assert main(["sweep", str(scenario), "--vary", "name=crash", "-o", str(tmp_path / "none")]) == 1
    assert "not one run of 2 has a result" in capsys.readouterr().err
    assert (tmp_path / "none" / "failures" / "0.toml").is_file()
    assert main(["sweep", str(scenario), "--vary", "name=small", "-o", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out" / "failures.json").exists()


def test_a_refused_sweep_leaves_no_folder(scenario: Path, tmp_path: Path) -> None:
    assert main(["sweep", str(scenario), "--vary", "durration=20s", "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


class Breaking(Executor):
    """Runs three, and then has lost its worker."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.count += 1
        if self.count > 3:
            future.set_exception(BrokenExecutor("a process ended"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_broken_executor_is_no_failure_of_a_run(scenario: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"lost a worker \(a process ended\).*resumes"):
        explicate.sweep(scenario, AXES, executor=Breaking(), store=tmp_path / "runs")
    assert explicate.sweep(scenario, AXES, store=tmp_path / "runs").fresh == 12 - 3


def test_a_worker_of_another_build_is_refused(scenario: Path) -> None:
    source = Source.of(scenario)
    with pytest.raises(RuntimeError, match="another build"):
        run_unit(source, (), 1, ("0" * 16, ()), None)
    assert run_unit(source, (), 1, (engine_digest(), ()), None).seed == 1


SWEEP_FILE = """\
scenario = "small.toml"
runs = 3
points = 4
measure = ["flows.goodput_bps", "links.r1->r2.utilisation"]

[set]
warmup = "1s"

[grid]
"flows.0.protocol" = ["xcp", "vcp"]

[latin]
"flows.0.count" = "1..8"
"""


@pytest.fixture
def study(scenario: Path) -> Path:
    """A sweep file beside its scenario."""
    path = scenario.with_name("study.toml")
    path.write_text(SWEEP_FILE, encoding="utf-8")
    return path


def test_a_sweep_file(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swept = explicate.sweep(study)
    assert swept.axes == ("flows.0.protocol", "flows.0.count")
    assert (len(swept.points()), swept.run.height) == (8, 24)
    assert 'warmup = "1s"' in swept.scenario
    assert swept.measures().columns[4:] == ["flows.goodput_bps", "links.r1->r2.utilisation"]
    out = tmp_path / "out"
    assert main(["sweep", str(study), "--runs", "2", "--vary", "flows.0.count=1,2", "-o", str(out), "--csv"]) == 2
    assert "is for a Latin hypercube" in capsys.readouterr().err
    assert main(["sweep", str(study), "--runs", "2", "-o", str(out), "--csv"]) == 0
    assert pl.read_csv(out / "intervals.csv").height == 8
    assert explicate.Results.load(out).axes == swept.axes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs = 3", "rnus = 3", "study.toml:2: unknown key `rnus`; did you mean `runs`?"),
        ("runs = 3", "runs = 0", "study.toml:2: `runs` is 0, which is too small"),
        ("runs = 3", 'runs = "3"', "study.toml:2: `runs` is a whole number, not '3'"),
        ("small.toml", "smal.toml", "study.toml:1: {d}/smal.toml: No such file"),
        ('["xcp", "vcp"]', '"xcp"', "study.toml:10: [grid] `flows.0.protocol` needs a list"),
        ('"flows.0.protocol"', "flows.0.protocol", "study.toml:10: [grid]: a path with dots stands in quotes"),
        ("1..8", "8..1", "study.toml:13: flows.0.count: '8..1' does not rise"),
        ("goodput_bps", "godput_bps", "study.toml:4: measure flows.godput_bps: `godput_bps` is not known; did you"),
        ("[grid]", "[grid", "study.toml:1"),
    ],
)
def test_what_is_wrong_in_a_sweep_file(
    study: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str], counted: Counted
) -> None:
    study.write_text(SWEEP_FILE.replace(old, new, 1), encoding="utf-8")
    assert main(["sweep", str(study)]) == 2
    assert message.replace("{d}", str(study.parent)) in capsys.readouterr().err
    assert counted.calls == 0


def test_an_executor_by_a_wrong_name(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", str(scenario), "--vary", "seed=1,2", "--executor"]
    for name, message in (
        ("proceses", "did you mean `processes`?"),
        ("dask", "dask:tcp://host:8786"),
        ("cluster9", "there are threads, processes, loky, dask:ADDRESS"),
    ):
        assert main([*command, name]) == 2
        assert message in capsys.readouterr().err


def test_a_warning_with_other_numbers_is_said_once() -> None:
    """Two links of one run are two warnings; the same cause at another rate is none."""
    first = ["line 6: the pi queue of r1->r2: 37 packets", "line 6: the pi queue of r2->r3: 37 packets"]
    later = ["line 6: the pi queue of r1->r2: 75.5 packets", "line 6: the red queue of r1->r2: 75.5 packets"]
    assert list(once([first, later, first])) == [*first, later[1]]
