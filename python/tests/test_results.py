"""Results: round trips, repeatable bytes, data that files must not contain."""

import builtins
import hashlib
import json
import math
import multiprocessing
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fake_native
import polars as pl
import pytest
from conftest import HERE, child_environment
from patience import PATIENCE_S
from polars.testing import assert_frame_equal

import explicate
from explicate.results import Results, rows
from explicate.source import overrides_of, value_text


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if path.name != "timing.json")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_frames_come_over_whole(scenario: Path) -> None:
    results = explicate.run(scenario)
    for name, frame in results.tables().items():
        assert dict(frame.schema) == {key: kind() for key, kind in fake_native.SCHEMAS[name].items()}
    assert results.flows.height == 2 * 5
    assert results.flows["goodput_bps"][1] == fake_native.goodput("xcp", 1, 7)
    assert (results.name, results.seed, results.version) == ("small", 7, fake_native.version())


def test_results_are_compared_by_their_tables(scenario: Path, tmp_path: Path) -> None:
    """Wall times and messages are no results."""
    results = explicate.run(scenario)
    assert results == Results.load(results.write(tmp_path / "out"))
    assert results != explicate.run(scenario, seed=8)
    assert results != "small"
    swept = explicate.sweep(scenario, {"warmup": ["5s", "4s"]})
    assert swept == explicate.sweep(scenario, {"warmup": ["5s", "4s"]})
    assert swept != results


def test_a_prompt_shows_a_line(scenario: Path) -> None:
    assert (
        repr(explicate.run(scenario, trace="flow=1")) == "<Results small, rows: flows 10, links 8, samples 880, run 2>"
    )
    assert explicate.run(scenario, runs=1)._repr_html_().startswith("<p><b>small</b>: 1 run</p>")
    swept = explicate.sweep(scenario, {"warmup": ["5s", "4s"]})
    assert repr(swept) == "<SweepResults small over warmup, rows: flows 20, links 16, samples 1760, run 4>"


def test_write_and_load(scenario: Path, tmp_path: Path) -> None:
    results = explicate.run(scenario, trace="flow=1")
    folder = results.write(tmp_path / "deep" / "out", csv=True)
    again = Results.load(folder)
    for name, frame in results.tables().items():
        assert_frame_equal(again.tables()[name], frame)
        assert pl.read_csv(folder / f"{name}.csv").height == frame.height
    assert (again.axes, again.warnings, again.trace) == (results.axes, results.warnings, results.trace)
    assert "flow=1" in again.trace
    assert again.jain() == results.jain()


def test_the_same_run_gives_the_same_bytes(scenario: Path, tmp_path: Path) -> None:
    explicate.run(scenario, jobs=1).write(tmp_path / "a", csv=True)
    explicate.run(scenario, jobs=2).write(tmp_path / "b", csv=True)
    first = _digests(tmp_path / "a")
    assert len(first) == 4 * 2 + 1
    assert first == _digests(tmp_path / "b")
    explicate.run(scenario, seed=8).write(tmp_path / "c", csv=True)
    assert first["flows.parquet"] != _digests(tmp_path / "c")["flows.parquet"]


def test_chunks_do_not_change_the_bytes(scenario: Path, tmp_path: Path) -> None:
    results = explicate.run(scenario)
    pieces = {name: pl.concat([f.head(3), f.slice(3)], rechunk=False) for name, f in results.tables().items()}
    results.write(tmp_path / "whole")
    Results(**pieces).write(tmp_path / "pieces")  # type: ignore[arg-type]
    assert _digests(tmp_path / "whole") == _digests(tmp_path / "pieces")


def test_files_know_nothing_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "all-warmup.toml"
    path.write_text('duration = "5s"\nwarmup = "5s"\n[[flows]]\nprotocol = "xcp"\n', encoding="utf-8")
    folder = explicate.run(path, jobs=3).write(tmp_path / "out")
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert about["warnings"] == ["scenario:1:1: the run is all warm-up; make `duration` longer"]
    for file in folder.iterdir():
        if file.name == "timing.json":
            continue
        content = file.read_bytes()
        for secret in (str(tmp_path), socket.gethostname(), "jobs", "wall"):
            assert secret.encode() not in content, f"{secret} in {file.name}"


@pytest.mark.parametrize("broken", ["flows.parquet", "run.json"])
def test_damage_is_named(scenario: Path, tmp_path: Path, broken: str) -> None:
    folder = explicate.run(scenario).write(tmp_path / "out")
    (folder / broken).write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=broken):
        Results.load(folder)
    (folder / broken).unlink()
    with pytest.raises(FileNotFoundError, match=broken):
        Results.load(folder)


def test_tables_of_other_results_are_told(scenario: Path, tmp_path: Path) -> None:
    folder = explicate.run(scenario).write(tmp_path / "out")
    other = explicate.sweep(scenario, {"flows.0.count": [1]}).write(tmp_path / "other")
    for file, of in (("flows", folder / "links"), ("links", other / "links"), ("samples", folder / "run")):
        kept = (folder / f"{file}.parquet").read_bytes()
        (folder / f"{file}.parquet").write_bytes(of.with_suffix(".parquet").read_bytes())
        with pytest.raises(ValueError, match=f"{file}.parquet: does not match the table `{file}`"):
            Results.load(folder)
        (folder / f"{file}.parquet").write_bytes(kept)
    explicate.run(scenario).run.clear().write_parquet(folder / "run.parquet")
    with pytest.raises(ValueError, match=r"run.parquet: has no run"):
        Results.load(folder)


@contextmanager
def _files_up_to(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes: as on a disk that is full then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 100, 4000])
def test_a_full_disk_leaves_the_older_results(scenario: Path, tmp_path: Path, size: int) -> None:
    older, newer = explicate.run(scenario), explicate.run(scenario, seed=9)
    folder = older.write(tmp_path / "out", csv=True)
    before = _digests(folder)
    with _files_up_to(size), pytest.raises(OSError, match=r"out/\w+\.\w+: .*results that were there are unchanged"):
        newer.write(folder, csv=True)
    assert _digests(folder) == before
    assert_frame_equal(Results.load(folder).flows, older.flows)
    with _files_up_to(size), pytest.raises(OSError, match="out2/") as caught:
        newer.write(tmp_path / "out2")
    assert "unchanged" not in str(caught.value)


def test_nothing_about_older_results_stays(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    explicate.sweep(scenario, {"flows.0.count": [1, 2]}).write(out, csv=True)
    for name in ("report.html", "notes.txt"):
        (out / name).write_text("older", encoding="utf-8")
    explicate.run(scenario).write(out)
    names = {path.name for path in out.iterdir()}
    assert names == {
        "flows.parquet",
        "links.parquet",
        "samples.parquet",
        "run.parquet",
        "run.json",
        "timing.json",
        "notes.txt",
    }


@pytest.mark.parametrize("table", ["flows", "links", "samples", "run"])
def test_tables_of_two_runs_are_refused(scenario: Path, tmp_path: Path, table: str) -> None:
    one = explicate.run(scenario, set={"flows.1.protocol": "newreno"}).write(tmp_path / "one")
    other = explicate.run(scenario, seed=9).write(tmp_path / "other")
    (one / f"{table}.parquet").write_bytes((other / f"{table}.parquet").read_bytes())
    with pytest.raises(ValueError, match=f"{table}.parquet: is not the table that run.json describes"):
        Results.load(one)


def test_other_formats_are_refused(scenario: Path, tmp_path: Path) -> None:
    folder = explicate.run(scenario).write(tmp_path / "out")
    (folder / "run.json").write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"run\.json: does not describe results"):
        Results.load(folder)


def test_jain(scenario: Path) -> None:
    results = explicate.run(scenario, set={"flows.0.protocol": "newreno"})
    by_hand = [explicate.jain_index(fake_native.goodput("newreno", i, 7 + run) for i in range(3)) for run in range(2)]
    assert results.jain("near") == pytest.approx(sum(by_hand) / 2)
    assert results.jain("far & away") > results.jain("near")
    with pytest.raises(ValueError, match="near, far & away"):
        results.jain("nowhere")


def test_compare_sets_every_group_and_keeps_the_rest(scenario: Path) -> None:
    both = explicate.compare(scenario, ["xcp", "newreno"], seed=3)
    assert both.axes == ("variant",)
    assert all(frame.columns[0] == "variant" for frame in both.tables().values())
    assert both.flows.select("variant", "protocol").unique().sort("variant").rows() == [
        ("newreno", "newreno"),
        ("xcp", "xcp"),
    ]
    assert both.run["seed"].to_list() == [3, 4, 3, 4]
    alone = explicate.run(scenario, seed=3)
    assert_frame_equal(both.select(variant="xcp").flows, alone.flows)
    assert both.select(variant="xcp").jain() == alone.jain()
    with pytest.raises(ValueError, match="select one point"):
        both.jain()
    with pytest.raises(KeyError, match="variant"):
        both.select(protocol="xcp")
    with pytest.raises(ValueError, match="nothing was run"):
        both.select(variant="vcp")


def test_a_bad_protocol_stops_before_anything_runs(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_native, "run", lambda *_: pytest.fail("ran"))
    with pytest.raises(explicate.ScenarioError, match=r"small\.toml:14:1: unknown protocol `nonsuch`; the protocols"):
        explicate.compare(scenario, ["xcp", "nonsuch"])
    with pytest.raises(explicate.ScenarioError, match="nonsuch"):
        explicate.sweep(scenario, {"flows.1.protocol": ["xcp", "nonsuch"]})


def test_sweep_is_a_product_in_order(scenario: Path) -> None:
    scenario.write_text(scenario.read_text(encoding="utf-8") + '[sweep]\n"flows.0.count" = [1, 2]\n', encoding="utf-8")
    swept = explicate.sweep(scenario, {"flows.0.protocol": ["xcp", "vcp"]}, runs=1)
    assert swept.axes == ("flows.0.count", "flows.0.protocol")
    assert [tuple(point.values()) for point in swept.points()] == [(1, "xcp"), (1, "vcp"), (2, "xcp"), (2, "vcp")]
    near = swept.flows.filter(pl.col("group") == "near")
    counts = near.group_by("flows.0.count", maintain_order=True).len().rows()
    assert counts == [(1, 2), (2, 4)]
    replaced = explicate.sweep(scenario, {"flows.0.count": [4]}, runs=1)
    assert replaced.points() == [{"flows.0.count": 4}]
    assert replaced.flows.height == 4 + 2


def test_an_axis_named_like_a_column_is_told_apart(scenario: Path) -> None:
    swept = explicate.sweep(scenario, {"seed": [1, 2]}, runs=1)
    assert swept.axes == ("set.seed",)
    varied = explicate.sweep(scenario, {"runs": [1, 2]})
    assert varied.intervals().select("set.runs", "runs").rows() == [(1, 1), (2, 2)]
    assert swept.run.select("set.seed", "seed").rows() == [(1, 1), (2, 2)]


def test_any_executor_gives_the_same(scenario: Path) -> None:
    axes = {"flows.0.count": [1, 2, 3]}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=fake_native.install) as processes:
        apart = explicate.sweep(scenario, axes, executor=processes)
    together = explicate.sweep(scenario, axes, jobs=1)
    assert_frame_equal(apart.flows, together.flows)
    assert_frame_equal(apart.samples, together.samples)


def test_nothing_to_vary(scenario: Path) -> None:
    with pytest.raises(ValueError, match="nothing to vary"):
        explicate.sweep(scenario)
    with pytest.raises(ValueError, match="list of one value"):
        explicate.sweep(scenario, {"flows.0.count": []})


def test_progress_rises_to_one(scenario: Path) -> None:
    seen: list[float] = []
    explicate.compare(scenario, ["xcp", "vcp"], progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_text_or_file(scenario: Path, tmp_path: Path) -> None:
    text = scenario.read_text(encoding="utf-8")
    assert_frame_equal(explicate.run(text).flows, explicate.run(str(scenario)).flows)
    with pytest.raises(explicate.ScenarioError, match=r"^<text>:1:1: unknown key"):
        explicate.run(text, set={"durration": "3s"})
    scenario.write_bytes(b'name = "x"\nname2 = "\xff"\n')
    with pytest.raises(ValueError, match=r"small\.toml:2:10: not UTF-8"):
        explicate.run(scenario)


def test_values_as_text() -> None:
    assert value_text("5ms") == "5ms"
    assert overrides_of({"a": True, "b": 2, "c": 0.5, "d": ["x", 1], "e": {"kind": "red"}}) == [
        ("a", "true"),
        ("b", "2"),
        ("c", "0.5"),
        ("d", '["x", 1]'),
        ("e", '{ "kind" = "red" }'),
    ]
    with pytest.raises(TypeError, match="NoneType"):
        value_text(None)
    with pytest.raises(TypeError, match=r"^settings are a dict, such as .*, not a text$"):
        overrides_of("duration=3s")  # type: ignore[arg-type]


def test_rows_hold_null_for_what_json_cannot() -> None:
    frame = pl.DataFrame({"a": [1.5, math.nan, math.inf, None], "b": ["x", "y", "z", None]})
    assert [row["a"] for row in rows(frame)] == [1.5, None, None, None]
    assert json.loads(json.dumps(rows(frame), allow_nan=False))[3] == {"a": None, "b": None}


def test_pandas(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = explicate.run(scenario)
    frames = results.to_pandas()
    assert list(frames) == ["flows", "links", "samples", "run"]
    assert frames["flows"]["goodput_bps"].sum() == pytest.approx(results.flows["goodput_bps"].sum())
    plain = builtins.__import__

    def without_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in {"pandas", "pyarrow"}:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(pl.DataFrame, "to_pandas", lambda _: without_pandas("pandas"))
    with pytest.raises(ImportError, match=r"explicate\[pandas\]"):
        results.to_pandas()


def test_threads_do_not_change_the_bytes(scenario: Path, tmp_path: Path) -> None:
    digests = []
    for threads in ("1", "4"):
        out = tmp_path / threads
        command = [sys.executable, str(HERE / "fake_explicate.py"), "run", str(scenario), "-o", str(out)]
        env = {**child_environment(), "POLARS_MAX_THREADS": threads}
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=PATIENCE_S)
        digests.append(_digests(out))
    assert digests[0] == digests[1]
