"""Sweeps resume after the end of their process or of a cluster's worker; all executors give the same results."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from conftest import Command, child_environment
from patience import eventually
from polars.testing import assert_frame_equal

import explicate
from explicate.cli import main
from explicate.sweeps.store import Store

HERE = Path(__file__).parent

DUMBBELL = """\
name = "dumbbell"
duration = "10s"

[topology]
kind = "dumbbell"
bottleneck = { rate = "100Mbit/s", delay = "38ms" }

[[flows]]
name = "bulk"
count = 4
protocol = "xcp"

[sweep]
"flows.bulk.count" = [1, 2, 3, 4]
"flows.bulk.protocol" = ["xcp", "newreno", "cubic"]
"""


def kept(folder: Path) -> list[str]:
    return [key for path in folder.glob("*.parquet") for key in pl.read_parquet(path, columns=["key"])["key"]]


def wait_for_more(folder: Path, there: int) -> None:
    """Wait until there are more files of finished runs than `there`."""
    eventually("finished runs", lambda: len(list(folder.glob("*.parquet"))) > there)


def test_killed_and_taken_up_again(scenario: Path, tmp_path: Path, process: Command) -> None:
    command = ["sweep", str(scenario), "--vary", "flows.0.count=" + ",".join(map(str, range(1, 41))), "--runs", "6"]
    command += ["--set", "name=slow", "--jobs", "2"]  # 40 runs a second at most
    out, whole = tmp_path / "killed", tmp_path / "whole"
    there = 0
    for _ in range(2):  # killed twice
        running = subprocess.Popen(
            [sys.executable, HERE / "fake_explicate.py", *command, "-o", out],
            env=child_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_for_more(out / "runs", there)
        finally:
            running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
        keys = kept(out / "runs")
        assert len(keys) == len(set(keys))
        assert there < len(keys) < 240
        there = len(list((out / "runs").glob("*.parquet")))
        before = len(keys)
    assert not (out / "flows.parquet").exists()
    done = process(*command, "-o", out)
    assert done.returncode == 0, done.stderr
    assert f"240 runs, 40 points, seed 7, explicate 0.1.0; {240 - before} computed now" in done.stdout
    keys = kept(out / "runs")
    assert len(keys) == len(set(keys)) == 240
    assert process(*command, "-o", whole).returncode == 0
    names = {path.name for path in whole.iterdir() if path.is_file()}
    assert {"measures.parquet", "intervals.parquet", "flows.parquet"} < names
    assert {path.name for path in out.iterdir() if path.is_file()} == names
    for name in names:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name


def test_an_interrupt_keeps_what_has_finished(scenario: Path, tmp_path: Path) -> None:
    command = ["sweep", str(scenario), "--vary", "name=a,b,c,interrupt,d", "--jobs", "1", "-o", str(tmp_path / "out")]
    assert main(command) == 130
    assert len(kept(tmp_path / "out" / "runs")) == 6


@pytest.fixture
def dumbbell(tmp_path: Path) -> Path:
    path = tmp_path / "dumbbell.toml"
    path.write_text(DUMBBELL, encoding="utf-8")
    return path


@pytest.mark.usefixtures("native_real")
@pytest.mark.parametrize("name", ["processes", "loky"])
def test_processes_give_what_threads_give(name: str, dumbbell: Path, tmp_path: Path) -> None:
    command = ["sweep", str(dumbbell), "--jobs", "2", "--set", "duration=2s", "-o"]
    assert main([*command, str(tmp_path / "threads")]) == 0
    assert main([*command, str(tmp_path / "processes"), "--executor", name]) == 0
    for path in (tmp_path / "threads").glob("*.parquet"):
        assert (tmp_path / "processes" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_loses_a_worker(
    native_real: ModuleType,
    dumbbell: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distributed: Any = importlib.import_module("distributed")
    runs, came = 4, []
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50
    ) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]

        def add(store: Store, key: str, results: explicate.Results) -> None:
            came.append(key)
            if len(came) == 10:  # with as many as 38 runs to go, every worker has one
                os.kill(pids[1], signal.SIGKILL)
            keep(store, key, results)

        keep = Store.add
        monkeypatch.setattr(Store, "add", add)
        command = ["sweep", str(dumbbell), "--runs", str(runs), "-o", str(tmp_path / "out"), "--executor"]
        status = main([*command, f"dask:{cluster.scheduler_address}"])
        assert pids[1] not in [worker.pid for worker in cluster.workers.values()]
    assert status == 0, capsys.readouterr().err
    keys = kept(tmp_path / "out" / "runs")
    assert sorted(keys) == sorted(set(came))
    assert len(keys) == 12 * runs
    alone = explicate.sweep(dumbbell, runs=runs)
    for name, table in alone.tables().items():
        assert_frame_equal(pl.read_parquet(tmp_path / "out" / f"{name}.parquet"), table)


def test_no_cluster_there(scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explicate.sweeps.executors.TIMEOUT_S", 1)
    command = ["sweep", str(scenario), "--vary", "seed=1,2", "--executor", "dask:tcp://127.0.0.1:9"]
    assert main(command) == 2
    assert "dask:tcp://127.0.0.1:9: no scheduler answers there" in capsys.readouterr().err
