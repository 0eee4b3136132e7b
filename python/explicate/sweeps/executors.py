"""The executors that the command knows by name; `explicate.sweep` takes any `concurrent.futures.Executor`."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from explicate.errors import BadInputError
from explicate.suggestions import instead

KINDS = ("threads", "processes", "loky", "dask:ADDRESS")
TIMEOUT_S = 20


@contextmanager
def opened(name: str, jobs: int | None) -> Iterator[Executor | None]:
    """Open an executor by its name, one of `KINDS`, and close it; raise BadInputError if it cannot be had.

    None stands for the sweep's own threads.
    """
    count = jobs or os.cpu_count() or 1
    kind, _, address = name.partition(":")
    if kind == "dask":
        with _dask(address) as executor:
            yield executor
    elif name == "threads":
        yield None
    elif name == "processes":
        # A forked copy of a process with threads, as the frames' library starts them, may hang.
        with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("forkserver")) as processes:
            yield processes
    elif name == "loky":
        with _module("loky").ProcessPoolExecutor(count) as processes:
            yield processes
    else:
        hint = instead(kind, ["threads", "processes", "loky", "dask"], KINDS)
        raise BadInputError(f"no executor is called {name!r}; {hint}")


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    """Connect to a scheduler by its address or by the file that it wrote (``dask scheduler --scheduler-file``)."""
    if not address:
        raise BadInputError("dask needs the scheduler's address or file: dask:tcp://host:8786, dask:scheduler.json")
    distributed = _module("distributed", extra="dask")
    where: dict[str, Any] = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        client = distributed.Client(**where, timeout=TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise BadInputError(f"dask:{address}: no scheduler answers there ({error})") from error
    with client:
        yield client.get_executor(pure=False)


def _module(name: str, extra: str | None = None) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise BadInputError(f"{name} is not installed: pip install 'explicate[{extra or name}]'") from error
