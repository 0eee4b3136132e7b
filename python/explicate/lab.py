"""Run a scenario: once, or with one protocol after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from explicate import engine
from explicate.engine import MOST_RUNS, Override
from explicate.files import adding
from explicate.results import Results, stack
from explicate.scenario import ScenarioLike
from explicate.source import Source, overrides_of

Progress = Callable[[float], None]
"""Callback for progress: gets the fraction done, 0 to 1."""

INTERVAL_S = 0.1
"""Interval of progress reports of runs in threads."""

VARIANT = "variant"
"""The axis of a comparison: the protocol as given."""


def run(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    set: Mapping[str, Any] | Sequence[Override] | None = None,  # noqa: A002  (the name of the command's option)
    trace: str | None = None,
    pcap: str | Path | None = None,
    fluid: bool = False,
    engine: str = "fast",
    progress: Progress | None = None,
) -> Results:
    """Simulate `scenario` and return its tables.

    It is a file, the text of one (more than one line), a dict with its content, or a `Scenario`.

    `seed` and `runs` override the scenario's own; `set` overrides any key, by dotted path; `jobs` runs go on at the
    same time and change no result. `trace` selects what to trace, such as ``flow=3``; `pcap` is a directory for
    captures. With `engine` "reference" every departure of a packet is an event, as in a textbook: the same tables, more
    slowly. With `fluid` it is computed as a fluid (docs/fluid.md): the rows of `flows` are then classes, with their
    `count`. Raise ScenarioError for a scenario that cannot be used, OSError for a file that cannot be read and
    RuntimeError for a run that failed.
    """
    return run_source(
        Source.of(scenario),
        overrides_of(set),
        seed=seed,
        runs=runs,
        jobs=jobs,
        trace=trace,
        pcap=pcap,
        fluid=fluid,
        kind=engine,
        progress=progress,
    )


def run_source(
    source: Source,
    overrides: Sequence[Override],
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    trace: str | None = None,
    pcap: str | Path | None = None,
    fluid: bool = False,
    kind: str = "fast",
    progress: Progress | None = None,
) -> Results:
    """Simulate `source` with `overrides`; as `run`, but picklable in all its parts, for executors."""
    _check_numbers(seed, runs, jobs)
    if kind not in engine.KINDS:
        raise ValueError(f"engine must be {' or '.join(engine.KINDS)}, not {kind!r}")
    if fluid and kind != "fast":
        raise ValueError("a fluid has no packets, and no reference engine; leave one of the two out")
    if fluid and (trace or pcap):
        raise ValueError("a fluid has no packets to trace or capture; leave one of the two out")
    where = (source.text, source.origin, source.base, overrides)
    if fluid:
        output = engine.fluid(*where, seed=seed, runs=runs, progress=progress)
    else:
        with nullcontext() if pcap is None else adding(Path(pcap)) as captures:
            output = engine.run(
                *where,
                seed=seed,
                runs=runs,
                jobs=jobs,
                trace=trace,
                pcap=None if captures is None else str(captures),
                progress=progress,
                kind=kind,
            )
    return Results(
        output.flows,
        output.links,
        output.samples,
        output.run,
        warnings=tuple(source.anonymous(warning) for warning in output.warnings),
        unused={source.anonymous(warning): setting for warning, setting in output.unused},
        trace=output.trace,
        timing=output.timing,
    )


def _check_numbers(seed: int | None, runs: int | None, jobs: int) -> None:
    if jobs < 1:
        raise ValueError(f"jobs must be 1 or more, not {jobs}")
    if runs is not None and not 1 <= runs <= MOST_RUNS:
        raise ValueError(f"runs must be from 1 to {MOST_RUNS:,}, not {runs}")
    if seed is not None and not 0 <= seed < 2**63:
        raise ValueError(f"seed must be from 0 to 2^63 - 1, not {seed}")


def compare(
    scenario: ScenarioLike,
    protocols: Sequence[str],
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    set: Mapping[str, Any] | Sequence[Override] | None = None,  # noqa: A002
    fluid: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Simulate `scenario` once per protocol, set for all flow groups; everything else, including seeds, is the same.

    The results have the axis ``variant``. With `fluid` each is computed as a fluid. Raise ScenarioError, before
    anything runs, if one cannot be used.
    """
    return compare_source(
        Source.of(scenario), protocols, overrides_of(set),
        seed=seed, runs=runs, jobs=jobs, fluid=fluid, progress=progress,
    )  # fmt: skip


def compare_source(
    source: Source,
    protocols: Sequence[str],
    settings: Sequence[Override],
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    fluid: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Simulate `source` once per protocol; see `compare`."""
    names = list(dict.fromkeys([protocols] if isinstance(protocols, str) else protocols))
    if not names:
        raise ValueError("nothing to compare: name one protocol or more")
    groups = len(source.sketch(settings, fluid=fluid)["flows"])
    variants = [[*settings, *((f"flows.{i}.protocol", name) for i in range(groups))] for name in names]
    for overrides in variants:
        source.check(overrides, fluid=fluid)

    def one(overrides: Sequence[Override], part: Progress | None, jobs: int) -> Results:
        return run_source(source, overrides, seed=seed, runs=runs, jobs=jobs, fluid=fluid, progress=part)

    done = _side_by_side(one, variants, jobs, progress)
    return stack([{VARIANT: name} for name in names], done)


class _AbandonedError(Exception):
    """Ends a run in another thread after an interrupt by the user."""


def _side_by_side(
    one: Callable[[Sequence[Override], Progress | None, int], Results],
    variants: Sequence[Sequence[Override]],
    jobs: int,
    progress: Progress | None,
) -> list[Results]:
    """Run all variants, `jobs` runs at the same time in all, and return their results in order.

    An interrupt, or an error of one of them, ends the others.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be 1 or more, not {jobs}")
    workers, count = min(jobs, len(variants)), len(variants)
    if workers == 1:
        return [one(variant, _part(progress, i, count), jobs) for i, variant in enumerate(variants)]
    fractions, stopped = [0.0] * len(variants), threading.Event()

    def part(index: int) -> Progress:
        def report(fraction: float) -> None:
            if stopped.is_set():
                raise _AbandonedError
            fractions[index] = fraction

        return report

    with ThreadPoolExecutor(workers) as threads:
        futures = [threads.submit(one, variant, part(i), jobs // workers) for i, variant in enumerate(variants)]
        try:
            pending: Collection[Future[Results]] = futures
            while pending:
                finished, pending = wait(pending, timeout=INTERVAL_S, return_when=FIRST_EXCEPTION)
                for future in finished:
                    future.result()
                if progress is not None:
                    progress(sum(fractions) / len(fractions))
        except BaseException:
            stopped.set()
            for future in futures:
                future.cancel()
            raise
    return [future.result() for future in futures]


def _part(progress: Progress | None, index: int, count: int) -> Progress | None:
    """Return the progress of all for one of `count` that run one after the other."""
    return None if progress is None else lambda fraction: progress((index + fraction) / count)
