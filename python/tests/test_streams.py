"""Full disks, closed streams and interrupts: a sentence, never a traceback, and no half of a file."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from conftest import HERE, child_environment
from patience import PATIENCE_S

from explicate.cli import main

FULL = Path("/dev/full")


def shell(command: str, *, unbuffered: bool = False) -> subprocess.CompletedProcess[str]:
    """Run ``explicate``, on the synthetic engine, in a line of bash."""
    script = f'explicate() {{ "{sys.executable}" "{HERE / "fake_explicate.py"}" "$@"; }}; {command}'
    environment = {**child_environment(), "PYTHONUNBUFFERED": "1" if unbuffered else ""}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=environment
    )


@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("arguments", ["run {s}", "check {s}", "protocols", "new dumbbell", "--version"])
def test_standard_output_on_a_full_disk(arguments: str, unbuffered: bool, scenario: Path) -> None:
    done = shell(f"explicate {arguments.replace('{s}', str(scenario))} >{FULL}", unbuffered=unbuffered)
    assert (done.returncode, done.stderr) == (2, "explicate: standard output: No space left on device\n")


@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full is Linux's")
def test_help_on_a_full_disk() -> None:
    done = shell(f"explicate run --help >{FULL}")
    assert (done.returncode, done.stderr) == (2, "explicate: standard output: No space left on device\n")


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams(streams: str, scenario: Path) -> None:
    assert shell(f"explicate run {scenario} {streams}").returncode == 0
    assert shell(f"explicate run nowhere.toml {streams}").returncode == 2
    assert "Traceback" not in shell(f"explicate run {scenario} {streams}").stderr


@pytest.mark.parametrize("arguments", ["protocols", "run {s} --json", "--help"])
def test_a_pipe_that_is_closed_early(arguments: str, scenario: Path) -> None:
    done = shell(f"explicate {arguments.replace('{s}', str(scenario))} | head -n 1")
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


INTERRUPTS_ITSELF = """
import os, signal, sys, threading, time
from importlib.machinery import PathFinder
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
sys.meta_path.insert(0, Finder)
import fake_native
fake_native.install()
sys.argv = ["explicate", *{arguments!r}]
from explicate.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "status", "message"),
    [
        ("explicate.commands", -signal.SIGINT, ""),  # before the command can report anything
        ("explicate.commands.run", 130, "explicate: interrupted\n"),
        ("explicate.progress", 130, "explicate: interrupted\n"),
        ("explicate.lab", 130, "explicate: interrupted\n"),
    ],
)
def test_an_interrupt_while_modules_are_imported(module: str, status: int, message: str, scenario: Path) -> None:
    code = INTERRUPTS_ITSELF.format(module=module, arguments=["run", str(scenario)])
    code = code.replace("import fake_native\nfake_native.install()\n", "") if module == "explicate.lab" else code
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=child_environment(),
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (status, message, "")


def test_an_interrupt_ends_a_long_call_of_the_engine(native_real: ModuleType) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "explicate", "curves", "fading", "--trials", "100000000", "-v"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child_environment(),
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline() == "drawing packets\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE_S) == ("", "")
    assert process.returncode == -signal.SIGINT


def test_an_interrupt_while_tables_are_written(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("explicate.results.write_table", interrupt)
    assert main(["run", str(scenario), "-o", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "explicate: interrupted; nothing was written\n"
    assert not (tmp_path / "out").exists()
    assert main(["sweep", str(scenario), "--vary", "seed=1,2", "-o", str(tmp_path / "sweep")]) == 130
    assert "finished runs are kept in" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "sweep").iterdir()] == ["runs"]
