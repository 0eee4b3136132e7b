"""Full disks, closed streams and interrupts: a sentence, never a traceback, and no half of a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HERE, child_environment

FULL = Path("/dev/full")


def shell(command: str, *, unbuffered: bool = False) -> subprocess.CompletedProcess[str]:
    """Run ``explicate``, on the synthetic engine, in a line of bash."""
    script = f'explicate() {{ "{sys.executable}" "{HERE / "fake_explicate.py"}" "$@"; }}; {command}'
    environment = {**child_environment(), "PYTHONUNBUFFERED": "1" if unbuffered else ""}
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, timeout=120, env=environment
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
