"""``explicate compare-lab`` on this machine's kernel. Needs root and ``explicated``, so `make linux` runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
from patience import eventually

from explicate import worlds
from explicate.results import Results

SCENARIO = """
name = "both"
duration = "5s"
warmup = "2s"
[sampling]
every = "10ms"
of = ["queue"]
[topology]
kind = "dumbbell"
bottleneck = { rate = "20Mbit/s", delay = "8ms" }
[[flows]]
name = "f"
count = 2
protocol = "xcp"
"""


def command(*words: str) -> list[str]:
    """Return the command line of ``explicate``."""
    return [sys.executable, "-m", "explicate", *words]


def namespaces() -> set[str]:
    """Return the names of the laboratory's namespaces."""
    folder = Path("/run/netns")
    return (
        {entry.name for entry in folder.iterdir() if entry.name.startswith("explicate-")} if folder.exists() else set()
    )


def test_both_worlds_stand_side_by_side(tmp_path: Path) -> None:
    """The tables have the axis, both deliver, and the page can be made. `timed_worlds.py` has how well they agree."""
    both_worlds(tmp_path)


def both_worlds(tmp_path: Path) -> float:
    """Run both worlds; return by how much the real goodput differs, as a share of the simulated one."""
    scenario, out = tmp_path / "both.toml", tmp_path / "out"
    scenario.write_text(SCENARIO, encoding="utf-8")
    done = subprocess.run(
        command("compare-lab", str(scenario), "-o", str(out), "--set", "flows.f.count=1"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
    assert "real" in done.stdout
    results = Results.load(out)
    assert results.axes == (worlds.WORLD,)
    assert results.flows[worlds.WORLD].to_list() == ["simulated", "real"], "one flow in each"
    [(name, simulated, real)] = worlds.pairs(results, "flows", "goodput_bps")
    assert name == "f.0"
    assert simulated > 0
    assert real > 0
    mean, share = worlds.undisturbed_queue(results, "r1->r2", 2.0)
    assert share == 0.0 or mean >= 0.0
    late = results.samples.filter(pl.col("variable") == "late_ms")
    assert set(late["object"]) <= {"machine"}
    page = subprocess.run(command("report", str(out)), capture_output=True, text=True, check=False)
    assert page.returncode == 0, page.stderr
    return float(abs(real / simulated - 1))


def test_what_cannot_be_built_is_said_in_the_users_words(tmp_path: Path) -> None:
    """The program's error names the user's file, and nothing stays behind."""
    scenario = tmp_path / "mine.toml"
    half_duplex = SCENARIO.replace('"8ms"', '"8ms", half_duplex = true')
    scenario.write_text(half_duplex.replace('"xcp"', '"xcp_i"'), encoding="utf-8")
    before = namespaces()
    done = subprocess.run(command("compare-lab", str(scenario)), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr, done.stderr
    assert "is half duplex" in done.stderr, done.stderr
    assert namespaces() == before


def test_nothing_stays_behind_when_the_program_dies(tmp_path: Path) -> None:
    """If it is killed during a run, the lab's namespaces are removed."""
    scenario = tmp_path / "long.toml"
    scenario.write_text(SCENARIO.replace('"5s"', '"60s"'), encoding="utf-8")
    before = namespaces()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen(
            command("compare-lab", str(scenario)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child:
            eventually("the laboratory has begun", lambda: len(namespaces() - before) >= 4)
            os.kill(child.pid, number)
            child.wait()
        eventually(f"{number} ends its namespaces", lambda: not namespaces() - before)
