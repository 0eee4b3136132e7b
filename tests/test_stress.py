"""`scripts/stress.py`: what it counts, whom it stops, and what it does not repeat."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import stress

CARGO = """
test a::b ... ok
test c ... FAILED
test d ... ignored, needs root
test src/lib.rs - e (line 3) ... ok
test result: FAILED. 2 passed; 1 failed
"""


def test_outcomes_are_counted_in_the_words_of_each_runner() -> None:
    assert stress.counts(CARGO) == (2, ["c"])
    assert stress.counts("FAILED x/test_a.py::test_b - assert 0\n1 failed, 7 passed in 3s\n") == (
        7,
        ["x/test_a.py::test_b"],
    )
    assert stress.counts("ℹ pass 12\nℹ fail 0\n") == (12, [])


def test_children_of_children_are_found_and_others_are_not() -> None:
    processes = {10: (1, 10), 11: (10, 10), 12: (11, 12), 13: (1, 10), 14: (1, 14), 15: (14, 14)}
    assert stress.descendants(10, processes) == [11, 12, 13]


def test_a_process_is_stopped_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "EVERY", 0.02)
    monkeypatch.setattr(stress, "STOPPED", 0.01)
    process = subprocess.Popen(["sh", "-c", "sleep 1000 & wait"], start_new_session=True)
    over, stopped = threading.Event(), list[str]()
    stopper = threading.Thread(target=stress.stop_some, args=(process.pid, over, random.Random(1), stopped))
    stopper.start()
    try:
        end = time.monotonic() + 120
        while len(stopped) < 3:
            assert time.monotonic() < end, "nothing is stopped"
            time.sleep(0.01)
        over.set()
        stopper.join()
        children = stress.descendants(process.pid, stress.parents())
        assert len(children) == 1
        assert set(stopped) == {"sleep"}
        state = Path(f"/proc/{children[0]}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        assert state != "T", "it stands still"
    finally:
        over.set()
        for pid in [*stress.descendants(process.pid, stress.parents()), process.pid]:
            subprocess.run(["kill", "-KILL", str(pid)], check=True)
        process.wait()


def test_what_has_passed_at_a_commit_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "note"
    script = tmp_path / "command"
    script.write_text(f"echo once >>{note}\necho 'test a ... ok'\ntest -e {tmp_path}/good || exit 1\n")
    monkeypatch.setattr(stress, "TARGET", tmp_path / "target")
    monkeypatch.setattr(stress, "ROOT", tmp_path)
    monkeypatch.setattr(stress, "COMMANDS", {"one": f"sh {script}"})
    versions = iter(["c1", "c1", "c1", "c2"])
    monkeypatch.setattr(stress, "version", lambda: next(versions))
    monkeypatch.setattr(sys, "argv", ["stress.py", "--modes", "core"])
    assert stress.main() == 1
    (tmp_path / "good").touch()
    assert stress.main() == 0
    assert stress.main() == 0
    assert capsys.readouterr().out.endswith("core one: has passed at c1\n")
    assert note.read_text() == "once\n" * 2
    assert stress.main() == 0, "another commit"
    assert note.read_text() == "once\n" * 3
    kept = json.loads((tmp_path / "target" / "stress.json").read_text())["core one"]
    assert (kept["version"], kept["status"], kept["passed"]) == ("c2", 0, 1)


def test_busy_processes_end_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "TARGET", tmp_path / "target")
    monkeypatch.setattr(stress, "ROOT", tmp_path)
    started = []
    popen = subprocess.Popen

    def start(*arguments: object, **settings: object) -> object:
        process = popen(*arguments, **settings)  # type: ignore[call-overload]
        started.append(process)
        return process

    monkeypatch.setattr(stress.subprocess, "Popen", start)
    assert stress.run("one", "true", "busy", 2, 1)["status"] == 0
    assert len(started) == 3
    assert all(process.poll() is not None for process in started)
