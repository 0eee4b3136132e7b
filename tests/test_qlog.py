"""An export in qlog is read by another implementation's types: those of the crate `qlog`, in tests/qlog."""

import json
import subprocess
from pathlib import Path

import pytest

import explicate
from explicate.export import qlog

HERE = Path(__file__).parent
COMMAND = ["cargo", "run", "--quiet", "--locked", "--manifest-path", str(HERE / "qlog" / "Cargo.toml"), "--target-dir"]


def _read(log: dict[str, object]) -> subprocess.CompletedProcess[str]:
    target = str(HERE.parent / "target" / "qlog-check")
    return subprocess.run([*COMMAND, target], input=json.dumps(log), capture_output=True, text=True, check=False)


def test_another_implementation_reads_it() -> None:
    results = explicate.run(explicate.template("dumbbell"))
    log = qlog(results)
    events = sum(len(trace["events"]) for trace in log["traces"])
    done = _read(log)
    assert done.stdout.split() == ["0.3", "4", str(events)], done.stderr
    assert events > 1000


@pytest.mark.parametrize("wrong", ["recovery:metric_updated", "latest_rtt"])
def test_it_refuses_what_is_no_event(wrong: str) -> None:
    log = qlog(explicate.run(explicate.template("dumbbell"), set={"duration": "12s"}))
    event = log["traces"][0]["events"][0]
    if wrong in event["data"]:
        event["data"][wrong] = "soon"
    else:
        event["name"] = wrong
    assert _read(log).returncode != 0
