"""Runs whose tables do not fit into memory are refused before they begin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

import explicate

resource = pytest.importorskip("resource")
LIMIT = 4 << 30


def limited(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with an address space of 4 GiB."""
    return subprocess.run(
        [sys.executable, "-m", "explicate", *arguments],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S, env={**os.environ, "POLARS_MAX_THREADS": "2"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)),
    )  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="the limit is Linux's")
@pytest.mark.usefixtures("native_real")
@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        (("sampling.every=10us",), "lengthen `every` or shorten `of` in [sampling]"),
        (("sampling.every=1ms", "flows.0.count=2000"), "lengthen `every` or shorten `of` in [sampling]"),
        (("sampling.every=1s", "topology.pairs=100000"), "lengthen `every` or shorten `of` in [sampling]"),
        (("sampling.every=10ms", "runs=1000"), "or make fewer `runs` at once"),
        (("sampling.every=60s", "runs=1000000"), "make fewer `runs` at once"),
        (("sampling.every=60s", "flows.0.count=3900000"), "take fewer flows"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path: Path, settings: tuple[str, ...], remedy: str) -> None:
    path = tmp_path / "d.toml"
    path.write_text(explicate.engine.template("dumbbell"), encoding="utf-8")
    done = limited("run", str(path), *(word for setting in settings for word in ("--set", setting)))
    assert done.returncode == 2, done.stderr
    assert "d.toml: about " in done.stderr
    assert "GB are free" in done.stderr
    assert remedy in done.stderr
    assert "allocation" not in done.stderr
    assert limited("run", str(path), "--set", "duration=1s").returncode == 0
