"""Files of results: written beside older ones, which they replace when all is on the disk; errors name the file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

TABLES = ("flows", "links", "samples", "run")
DESCRIPTION = "run.json"
UNFINISHED = ".unfinished"
"""Marks what is being written: a folder inside that of the results, or a file beside the one that it replaces."""

OTHERS = (
    *(f"{name}.{end}" for name in (*TABLES, "measures", "intervals") for end in ("parquet", "csv")),
    *(DESCRIPTION, "timing.json", "trace.txt", "report.html"),
)
"""All files that commands write about results, but for failed runs; those that new results lack are removed."""


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield an empty folder; its files then replace the results in `folder`, unless an error occurred."""
    fresh = folder / UNFINISHED
    try:
        with _scratch(folder, fresh):
            yield fresh
            for path in fresh.rglob("*"):
                if path.is_file():
                    sync(path)
            made = {path.name for path in fresh.iterdir()}
            for name in OTHERS:
                if name not in made:
                    _remove(folder / name)
            remove_failures(folder)
            for name in sorted(made, key=lambda name: name == DESCRIPTION):  # last, because it has the tables' digests
                (fresh / name).replace(folder / name)
    except OSError as error:
        kept = "; the results that were there are unchanged" if (folder / DESCRIPTION).exists() else ""
        raise OSError(_named_as(error, fresh, folder) + kept) from error


@contextmanager
def adding(folder: Path) -> Iterator[Path]:
    """Yield an empty folder; its files are then moved into `folder`, unless an error occurred."""
    fresh = folder / f"{UNFINISHED}-{os.getpid()}"  # other processes may add files too
    try:
        with _scratch(folder, fresh):
            yield fresh
            for path in sorted(fresh.iterdir()):
                path.replace(folder / path.name)
    except OSError as error:
        raise OSError(_named_as(error, fresh, folder)) from error


@contextmanager
def _scratch(folder: Path, fresh: Path) -> Iterator[None]:
    """Make `folder`, and `fresh` in it for the time being; if nothing came of it, `folder` is not left behind."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    _remove(fresh)
    try:
        fresh.mkdir()
        yield
    finally:
        _remove(fresh)
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


def _named_as(error: OSError, fresh: Path, folder: Path) -> str:
    """Return what happened, with the name that the file in `fresh` was to get."""
    text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    return text.replace(str(fresh), str(folder))


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Yield a name for a new file, which then replaces `path`; after an error, `path` is as it was.

    A device or a pipe is written itself.
    """
    if path.exists() and not path.is_file():
        with named(path):
            yield path
        return
    target = path.resolve()  # of a symbolic link, what it leads to is replaced
    fresh = target.with_name(f".{target.name}{UNFINISHED}-{os.getpid()}")
    try:
        with named(path):
            yield fresh
            fresh.replace(target)
    except OSError as error:
        if error.errno is None or error.filename not in {str(fresh), None}:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        fresh.unlink(missing_ok=True)


def remove_failures(folder: Path) -> None:
    """Remove ``failures.json`` from `folder`, and the folder ``failures`` that it lists."""
    index = folder / "failures.json"
    if index.exists():
        _remove(folder / "failures")
        _remove(index)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file is on the disk: some file systems detect only then that they are full."""
    with named(path), path.open("r+b") as file:  # Windows syncs no file that is open for reading only
        os.fsync(file.fileno())


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write `frame` so that the same table always gives the same bytes, whatever its chunks were."""
    with named(path):
        frame.rechunk().write_parquet(
            path,
            compression="zstd",
            compression_level=3,
            statistics=True,
            row_group_size=1 << 20,
            data_page_size=1 << 20,
        )


def write_table(frame: pl.DataFrame, folder: Path, name: str, *, csv: bool) -> None:
    """Write `frame` as Parquet, and with `csv` as CSV too."""
    write_parquet(frame, folder / f"{name}.parquet")
    if csv:
        with named(folder / f"{name}.csv"):
            frame.write_csv(folder / f"{name}.csv")


def write_text(path: Path, text: str) -> None:
    """Write a text file; an OSError names it, and leaves an older one as it was."""
    with written(path) as fresh:
        fresh.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as JSON to read."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Turn any error while writing `path`, such as a full disk, into an OSError that names it."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or str(path) in str(error):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    except pl.exceptions.ComputeError as error:
        text = str(error)
        reason = text.rpartition("IO error: ")[2] if "IO error: " in text else f"{text} (a full disk may be the cause)"
        raise OSError(f"{path}: {reason}") from error
