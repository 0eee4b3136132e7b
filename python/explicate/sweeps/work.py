"""The runs of a sweep, on any executor: missing runs are run, finished ones stored, failed ones collected."""

from __future__ import annotations

import queue
import re
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from explicate.engine import Override, ScenarioError
from explicate.identity import content_key, engine_digest
from explicate.lab import Progress, run_source
from explicate.protocols import Registration, digests, ensure, raised_in, registered
from explicate.results import Results
from explicate.source import Source
from explicate.sweeps.design import Point
from explicate.sweeps.store import Store

AHEAD = 1000
"""Maximum number of runs at the executor: enough for a large cluster, few enough for its scheduler."""

PLACE = "raised at "
"""Begins the note on an exception of a protocol in Python that has its file and line."""

NO_AXES: Override = ("sweep", "{}")
"""A single point has no axes, and the hash of a run must not depend on other points."""


@dataclass(frozen=True)
class Unit:
    """One run of a sweep: a point at one seed; `replica` numbers the seeds from 0. `key` is its name in the store.

    `unused` has the setting of each warning that nothing uses one.
    """

    point: Point
    replica: int
    seed: int
    overrides: tuple[Override, ...]
    resolved: str
    duration_s: float
    key: str
    warnings: tuple[str, ...]
    unused: Mapping[str, str]
    fluid: bool = False


@dataclass(frozen=True)
class Failure:
    """A run that failed: its point, the reason, and the scenario that repeats it."""

    point: Point
    seed: int
    error: str
    scenario: str

    def __str__(self) -> str:
        where = ", ".join(f"{key}={value}" for key, value in self.point.items())
        return f"{where}, seed {self.seed}: {self.error}"


def units_of(
    source: Source,
    point: Point,
    overrides: Sequence[Override],
    seed: int | None,
    runs: int | None,
    files: dict[str, str],
    fluid: bool = False,
) -> Iterator[Unit]:
    """Yield the runs of a point; raise ScenarioError if it cannot be used.

    `files` has the hashes of files that earlier points named, by name, and gets those of this one.
    """
    changed = (*overrides, NO_AXES)
    asked = [(key, str(value)) for key, value in (("seed", seed), ("runs", runs)) if value is not None]
    checked = source.check((*changed, *asked), fluid=fluid)
    first = checked["seed"]
    head, table, rest = checked["resolved"].partition("\n[")
    alone = re.sub(r"(?m)^(?:runs|seed) = .*\n?", "", head + "\n") + table + rest
    contents = _files_of(alone, source.base, files)
    warnings = tuple(map(source.anonymous, checked["warnings"]))
    unused = {source.anonymous(warning): setting for warning, setting in checked["unused"]}
    for replica in range(checked["runs"]):
        text = f"seed = {first + replica}\nruns = 1\n{alone}"
        key = content_key(alone, contents, first + replica, *(["fluid"] if fluid else []), *digests(alone))
        lasts = checked["duration_s"]
        yield Unit(point, replica, first + replica, changed, text, lasts, key, warnings, unused, fluid)


def _files_of(resolved: str, base: str, known: dict[str, str]) -> list[str]:
    """Return the hashes of the files that a scenario names, such as traces: other contents give other results.

    Each is read once as long as `known` is the same.
    """
    names = sorted(set(re.findall(r'"([^"\n]+)"', resolved)))
    for name in names:
        if name in known:
            continue
        path = Path(base, name)
        try:
            known[name] = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        except OSError:
            known[name] = ""
    return [known[name] for name in names if known[name]]


def perform(
    units: Sequence[Unit], source: Source, executor: Executor, store: Store, stop: threading.Event | None,
    progress: Progress | None,
) -> dict[str, str]:  # fmt: skip
    """Run `units` and return the errors of those that failed, by key.

    `stop` is for threads of this process alone: it ends their runs when this one is interrupted. Whatever happens,
    finished runs are kept. Raise RuntimeError if the executor itself broke.
    """
    everything = sum(unit.duration_s for unit in units)
    missing, done, came = iter(units), 0.0, queue.SimpleQueue[Future[Results]]()
    pending: dict[Future[Results], Unit] = {}
    errors: dict[str, str] = {}
    try:
        while True:
            while len(pending) < AHEAD and (unit := next(missing, None)) is not None:
                build = (engine_digest(), registered())
                future = executor.submit(run_unit, source, unit.overrides, unit.seed, build, stop, unit.fluid)
                pending[future] = unit
                future.add_done_callback(came.put)
            if not pending:
                break
            try:
                future = came.get(timeout=store.waits())
            except queue.Empty:
                store.flush()
                continue
            unit = pending.pop(future)
            done += unit.duration_s
            results = _outcome(future, unit)
            if isinstance(results, str):
                errors[unit.key] = results
            else:
                store.add(unit.key, results)
            if progress is not None:
                progress(done / everything)
    except BaseException:
        if stop is not None:
            stop.set()
        for future in pending:
            future.cancel()
        raise
    finally:
        store.flush()
    return errors


def _outcome(future: Future[Results], unit: Unit) -> Results | str:
    """Return the results of a run, or the reason for its failure; raise RuntimeError if the run is not the cause."""
    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise RuntimeError(
            f"the executor lost a worker ({error or type(error).__name__}), possibly because of {unit.point}, seed "
            f"{unit.seed}; finished runs are stored with -o, and the same command resumes"
        ) from error
    except (OSError, ScenarioError, RuntimeError) as error:
        return _described(error, str(error))
    except BaseException as error:  # such as a task that a cluster gave up, for it ended worker after worker
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            return _described(error, f"{type(error).__name__}: {error}")
        raise


def _described(error: BaseException, message: str) -> str:
    """Return the message of a failed run, with callback and simulated time if a protocol in Python raised it."""
    where = raised_in(error)
    if where is None:
        return message
    place = next((note for note in error.__notes__ if note.startswith(PLACE)), "").removeprefix(PLACE)
    return f"{type(error).__name__}: {error}, {where}{place and f' ({place})'}"


def run_unit(
    source: Source,
    overrides: Sequence[Override],
    seed: int,
    build: tuple[str, tuple[Registration, ...]],
    stop: threading.Event | None,
    fluid: bool = False,
) -> Results:
    """Run one unit, in any process; `build` identifies the engine and the protocols for the run."""
    digest, protocols = build
    if digest != engine_digest():
        raise RuntimeError("this worker has another build of explicate; install the same one everywhere")
    ensure(protocols)

    def look(_: float) -> None:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt

    progress = look if stop is not None else None
    try:
        return run_source(source, overrides, seed=seed, runs=1, fluid=fluid, progress=progress)
    except BaseException as error:
        # Another process does not return the frames of the exception.
        if raised_in(error) is not None:
            last = traceback.extract_tb(error.__traceback__)[-1]
            error.add_note(f"{PLACE}{Path(last.filename).name}:{last.lineno}")
        raise
