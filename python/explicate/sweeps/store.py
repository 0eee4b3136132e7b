"""Finished runs of sweeps: Parquet files with a row for each run, under the hash of everything that determines it.

A run's row has its `key`, its warnings, and its tables, each as a list of that table's rows, so that one file holds
many runs and appears at once: it is written under another name, forced to the disk and renamed. Runs that finish within
two seconds share a file. Whatever kills the process, at most the runs of these last seconds are to be repeated.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Collection
from pathlib import Path

import polars as pl

from explicate.files import TABLES, sync, write_parquet
from explicate.results import Results

INTERVAL_S = 2.0
"""Writing and reading a file takes some milliseconds: at this interval, a few thousandths of the time."""
MOST_BYTES = 64 << 20
NAME = re.compile(r"[0-9a-f]{64}")
"""Names of the files; other files in the folder are not the store's."""
LEFT_BEHIND_S = 3600.0
"""Age after which scratch files are considered abandoned."""


class Store:
    """A folder of finished runs, or, without a folder, the memory of this process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._fresh: dict[str, Results] = {}
        self._bytes = 0
        self._due = 0.0
        self._memory: list[pl.DataFrame] = []
        self.damaged: list[Path] = []
        if folder is not None:
            for scratch in folder.glob("*.unfinished"):
                if time.time() - scratch.stat().st_mtime > LEFT_BEHIND_S:
                    scratch.unlink(missing_ok=True)

    def keys(self) -> set[str]:
        """Return the runs that are stored. A file that cannot be read is renamed, and its runs count as missing."""
        found = {key for part in self._memory for key in part["key"]}
        for path in self._parts():
            try:
                found.update(pl.read_parquet(path, columns=["key"])["key"])
            except (pl.exceptions.PolarsError, OSError):
                path.replace(path.with_suffix(".damaged"))
                self.damaged.append(path)
        return found

    def add(self, key: str, results: Results) -> None:
        """Store a run; it is on the disk after the next `flush`."""
        if not self._fresh:
            self._due = time.monotonic() + INTERVAL_S
        self._fresh[key] = results
        self._bytes += sum(int(frame.estimated_size()) for frame in results.tables().values())
        if self._bytes > MOST_BYTES or self.waits() == 0:
            self.flush()

    def waits(self) -> float | None:
        """Return the seconds until a `flush` is due; None if there is nothing to write."""
        return max(self._due - time.monotonic(), 0.0) if self._fresh else None

    def flush(self) -> None:
        """Write the runs that were added since the last time."""
        if not self._fresh:
            return
        columns = [
            pl.Series("key", list(self._fresh)),
            pl.Series("warnings", [list(run.warnings) for run in self._fresh.values()], dtype=pl.List(pl.String)),
        ]
        columns += [
            pl.Series(name, [run.tables()[name].to_struct() for run in self._fresh.values()]) for name in TABLES
        ]
        part = pl.DataFrame(columns)
        self._fresh, self._bytes = {}, 0
        if self._folder is None:
            self._memory.append(part)
            return
        name = hashlib.sha256("".join(part["key"]).encode()).hexdigest()
        self._folder.mkdir(parents=True, exist_ok=True)
        scratch = self._folder / f"{name}-{os.getpid()}.unfinished"
        try:
            write_parquet(part, scratch)
            sync(scratch)
            scratch.replace(self._folder / f"{name}.parquet")
        finally:
            scratch.unlink(missing_ok=True)

    def load(self, keys: Collection[str]) -> pl.DataFrame:
        """Return the rows of those of `keys` that are stored, one each."""
        self.flush()
        wanted = pl.col("key").is_in(pl.Series("key", list(keys), dtype=pl.String).implode())
        found = [part.filter(wanted) for part in self._memory]
        found += [pl.read_parquet(path).filter(wanted) for path in self._parts()]
        found = [part for part in found if part.height]
        return (
            pl.concat(found, how="diagonal").unique("key", keep="first", maintain_order=True)
            if found
            else pl.DataFrame()
        )

    def _parts(self) -> list[Path]:
        return [] if self._folder is None else parts(self._folder)


def parts(folder: Path) -> list[Path]:
    """Return the files of finished runs in `folder`."""
    return sorted(path for path in folder.glob("*.parquet") if NAME.fullmatch(path.stem))
