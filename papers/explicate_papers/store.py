"""Finished runs, each under the hash of its resolved scenario, its seed and the engine, so that none is repeated."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Protocol

from explicate.identity import content_key
from explicate.lab import run_source
from explicate.results import Results
from explicate.source import Source
from explicate_papers.study import Case


@dataclass(frozen=True)
class Job:
    """One run: a case at one seed. `key` is its name in the store."""

    case: Case
    seed: int
    key: str
    cost: float

    @classmethod
    def of(cls, case: Case, seeds: Iterable[int]) -> list[Job]:
        """Resolve `case` for each seed; raise ScenarioError if it cannot be used."""
        checked = _source(case).check(case.overrides())
        resolved, cost = checked["resolved"], checked["duration_s"]
        return [cls(case, seed, content_key(resolved, case.trace, seed), cost) for seed in seeds]


class Told(Protocol):
    """Takes progress: simulated seconds done and to do."""

    def __call__(self, done: float, all_of: float, /) -> None:
        """Take it."""


class Store:
    """A folder of finished runs; runs in the store `beside` count as part of it."""

    def __init__(self, folder: Path, beside: Store | None = None) -> None:
        self._folder = folder
        self._beside = beside

    def has(self, job: Job) -> bool:
        """Whether the run is stored."""
        return self._place(job).is_dir() or (self._beside is not None and self._beside.has(job))

    def load(self, job: Job) -> Results:
        """Return a finished run; raise FileNotFoundError if it is not there."""
        if self._beside is not None and not self._place(job).is_dir():
            return self._beside.load(job)
        return Results.load(self._place(job))

    def perform(self, jobs: Sequence[Job], workers: int, told: Told) -> None:
        """Run the missing runs, `workers` at a time. If one fails or is interrupted, finished runs are kept.

        Raise RuntimeError for a run that failed.
        """
        missing = list({job.key: job for job in jobs if not self.has(job)}.values())
        everything, done, stop = sum(job.cost for job in missing), 0.0, Event()
        told(0.0, everything)
        threads, pending = ThreadPoolExecutor(workers), dict[Future[None], Job]()
        try:
            for job in missing:
                pending[threads.submit(self._run, job, stop)] = job
            while pending:
                finished, _ = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    done += pending.pop(future).cost
                    future.result()
                told(done, everything)
        finally:
            # An interrupt may come at any time, also while runs are submitted: no further run begins, and those in
            # progress end soon.
            stop.set()
            threads.shutdown(cancel_futures=True)

    def _run(self, job: Job, stop: Event) -> None:
        def look(_: float) -> None:
            if stop.is_set():
                raise KeyboardInterrupt

        case = job.case
        results = run_source(_source(case), case.overrides(), seed=job.seed, runs=1, trace=case.trace, progress=look)
        self._folder.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=self._folder, prefix="unfinished-"))
        try:
            results.write(scratch)
            place = self._place(job)
            place.parent.mkdir(exist_ok=True)
            if not place.exists():
                scratch.replace(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _place(self, job: Job) -> Path:
        return self._folder / job.key[:2] / job.key


def _source(case: Case) -> Source:
    return Source.of(case.text)
