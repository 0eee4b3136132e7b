"""Compares a simulation with the same scenario on real sockets, queues and clocks (``explicated lab``)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from explicate.engine import Override
from explicate.lab import run_source
from explicate.results import Results, stack
from explicate.scenario import ScenarioLike
from explicate.source import Source, overrides_of

WORLD = "world"
"""The axis of a comparison: `simulated` or `real`."""
PROGRAM = "explicated"
ROOT = Path(__file__).resolve().parent.parent.parent


def program() -> str:
    """Return the path of ``explicated``: EXPLICATED, on PATH, or in a source tree's build. Raise FileNotFoundError."""
    built = [ROOT / "target" / kind / PROGRAM for kind in ("release", "debug")]
    found = os.environ.get("EXPLICATED") or shutil.which(PROGRAM)
    found = found or next((str(path) for path in built if path.exists()), None)
    if found is None:
        raise FileNotFoundError(f"no {PROGRAM} on PATH; build it: cargo build --release -p explicate-net")
    return str(Path(found).absolute())


def real_source(source: Source, overrides: Sequence[Override], like: Results, extra: Sequence[str] = ()) -> Results:
    """Run `source` with `overrides` in the lab; needs root. The tables get the columns and types of `like`.

    Raise RuntimeError with what the program says if it fails.
    """
    with tempfile.TemporaryDirectory(prefix="explicate-") as scratch:
        file, out = Path(scratch) / "scenario.toml", Path(scratch) / "out"
        file.write_text(source.text, encoding="utf-8")
        sets = [word for key, value in overrides for word in ("--set", f"{key}={value}")]
        command = [program(), "lab", "--with-parent", str(file), "-o", str(out), *sets, *extra]
        done = subprocess.run(command, cwd=source.base or ".", capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().replace(str(file), source.origin) or f"{PROGRAM} failed")
        frames: dict[str, Any] = {
            name: pl.read_csv(out / f"{name}.csv", schema=frame.schema) for name, frame in like.tables().items()
        }
    return Results(**frames, warnings=tuple(line for line in done.stderr.splitlines() if line))


def compare(scenario: ScenarioLike, *, set: Mapping[str, Any] | Sequence[Override] | None = None) -> Results:  # noqa: A002
    """Simulate `scenario` and run it in the lab; the results have the axis ``world``. Needs root."""
    return compare_source(Source.of(scenario), overrides_of(set))


def compare_source(source: Source, overrides: Sequence[Override], extra: Sequence[str] = ()) -> Results:
    """Simulate `source` and run it in the lab; `extra` are further arguments of ``explicated lab``."""
    simulated = run_source(source, overrides)
    real = real_source(source, overrides, simulated, extra)
    return stack([{WORLD: "simulated"}, {WORLD: "real"}], [simulated, real])


def pairs(results: Results, table: str, column: str) -> list[tuple[str, float, float]]:
    """Return for each flow or link its name and a column's means over runs, simulated and real."""
    key = {"flows": "flow", "links": "link"}[table]
    frame = results.tables()[table].group_by(WORLD, key, maintain_order=True).agg(pl.col(column).mean())
    values: dict[str, dict[str, float]] = {}
    for world, name, value in frame.select(WORLD, key, column).iter_rows():
        values.setdefault(name, {})[world] = value
    return [(name, value["simulated"], value["real"]) for name, value in values.items() if len(value) == 2]


CALM = 0.5
"""Seconds after which a burst due to a stall of the machine no longer matters: several round trips."""


def undisturbed_queue(results: Results, link: str, since: float, calm: float = CALM) -> tuple[float, float]:
    """Return the mean of a link's sampled queue in the lab, in packets, without suspensions, and the share of samples.

    What was due while the machine stood still leaves in one burst; samples up to `calm` seconds after that are left
    out, and so are those before `since`.
    """
    real = results.samples.filter(pl.col(WORLD) == "real")
    queue = real.filter(pl.col("object") == link, pl.col("variable") == "queue_packets", pl.col("time_s") >= since)
    late = real.filter(pl.col("variable") == "late_ms").select("time_s", "value").iter_rows()
    kept = queue
    for at, milliseconds in late:
        kept = kept.filter(~pl.col("time_s").is_between(at - 0.01, at + milliseconds / 1e3 + calm))
    mean = kept["value"].mean()
    return (float("nan") if mean is None else float(str(mean))), len(kept) / max(len(queue), 1)
