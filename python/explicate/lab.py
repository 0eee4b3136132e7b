"""Run a scenario: once, along axes, or with one protocol after the other."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from explicate import engine
from explicate.engine import Override
from explicate.results import TABLES, Results, stack
from explicate.source import Scenario, Source, overrides_of, value_text

Progress = Callable[[float], None]
"""Told the fraction done, 0 to 1, now and then."""

VARIANT = "variant"
"""The axis of a comparison: the protocol as it was asked for."""


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    set: Mapping[str, Any] | Sequence[Override] | None = None,  # noqa: A002  (the name of the command's option)
    trace: str | None = None,
    pcap: str | Path | None = None,
    fluid: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Simulate `scenario`, a file or a text of more than one line, and return its tables.

    `seed` and `runs` override the scenario's own; `set` overrides any key, by dotted path; `jobs` runs go on at the
    same time and change no result. `trace` selects what to trace, such as ``flow=3``; `pcap` is a directory for
    captures. With `fluid` it is computed as a fluid (docs/fluid.md): the rows of `flows` are then classes, with their
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
    progress: Progress | None = None,
) -> Results:
    """Simulate `source` with `overrides`; as `run`, but picklable in all its parts, for executors."""
    if jobs < 1:
        raise ValueError(f"jobs must be 1 or more, not {jobs}")
    if runs is not None and runs < 1:
        raise ValueError(f"runs must be 1 or more, not {runs}")
    if fluid and (trace or pcap):
        raise ValueError("a fluid has no packets to trace or capture; leave one of the two out")
    where = (source.text, source.origin, source.base, overrides)
    if fluid:
        output = engine.fluid(*where, seed=seed, runs=runs, progress=progress)
    else:
        output = engine.run(
            *where,
            seed=seed,
            runs=runs,
            jobs=jobs,
            trace=trace,
            pcap=None if pcap is None else str(pcap),
            progress=progress,
        )
    return Results(
        output.flows,
        output.links,
        output.samples,
        output.run,
        warnings=tuple(source.anonymous(warning) for warning in output.warnings),
        trace=output.trace,
        timing=output.timing,
    )


def sweep(
    scenario: Scenario,
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    seed: int | None = None,
    runs: int | None = None,
    set: Mapping[str, Any] | Sequence[Override] | None = None,  # noqa: A002
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Simulate every combination of `axes` and of the scenario's own ``[sweep]``; each axis becomes a column.

    An axis is a dotted key with its values; one that the scenario also has replaces the scenario's. All points run
    with the same seeds. `executor` may be any `concurrent.futures.Executor` (by default `jobs` threads, one per
    core); the order of the rows does not depend on it. Raise ScenarioError, before anything runs, if a point cannot
    be used, and ValueError if there is nothing to vary.
    """
    return sweep_source(
        Source.of(scenario), overrides_of(set), axes or {},
        seed=seed, runs=runs, executor=executor, jobs=jobs, progress=progress,
    )  # fmt: skip


def sweep_source(
    source: Source,
    settings: Sequence[Override],
    axes: Mapping[str, Sequence[Any]],
    *,
    seed: int | None = None,
    runs: int | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Simulate every combination; see `sweep`."""
    points = sweep_points(source, settings, axes)
    overrides = [[*settings, *((key, value_text(value)) for key, value in point.items())] for point in points]
    for changed in overrides:
        source.check(changed)
    taken = {column["name"] for table in TABLES for column in engine.columns().get(table, [])}
    labels = [{f"set.{key}" if key in taken else key: value for key, value in point.items()} for point in points]
    if executor is not None:
        return stack(labels, _run_all(executor, source, overrides, seed, runs, progress))
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as threads:
        return stack(labels, _run_all(threads, source, overrides, seed, runs, progress))


def sweep_points(
    source: Source, settings: Sequence[Override], axes: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Return each combination of the scenario's axes and `axes`, the last fastest; raise ValueError if none."""
    merged: dict[str, Sequence[Any]] = dict(source.check(settings)["sweep"])
    merged.update(axes)
    if not merged:
        raise ValueError("nothing to vary: give axes (--vary key=v1,v2) or a [sweep] table in the scenario")
    for key, values in merged.items():
        if isinstance(values, str) or not values:
            raise ValueError(f"the axis {key} needs a list of one value or more")
    columns = {key: _one_type(values) for key, values in merged.items()}
    return [dict(zip(columns, chosen, strict=True)) for chosen in itertools.product(*columns.values())]


def compare(
    scenario: Scenario,
    protocols: Sequence[str],
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    set: Mapping[str, Any] | Sequence[Override] | None = None,  # noqa: A002
    progress: Progress | None = None,
) -> Results:
    """Simulate `scenario` once per protocol, all flow groups speaking it, everything else and the seeds the same.

    The results have the axis ``variant``. Raise ScenarioError, before anything runs, if one cannot be used.
    """
    return compare_source(
        Source.of(scenario), protocols, overrides_of(set), seed=seed, runs=runs, jobs=jobs, progress=progress
    )


def compare_source(
    source: Source,
    protocols: Sequence[str],
    settings: Sequence[Override],
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Results:
    """Simulate `source` once per protocol; see `compare`."""
    names = list(dict.fromkeys(protocols))
    if not names:
        raise ValueError("nothing to compare: name one protocol or more")
    groups = len(source.check(settings)["flows"])
    variants = [[*settings, *((f"flows.{i}.protocol", name) for i in range(groups))] for name in names]
    for overrides in variants:
        source.check(overrides)
    done = [
        run_source(source, overrides, seed=seed, runs=runs, jobs=jobs, progress=_part(progress, i, len(names)))
        for i, overrides in enumerate(variants)
    ]
    return stack([{VARIANT: name} for name in names], done)


def _run_all(
    executor: Executor,
    source: Source,
    overrides: Sequence[Sequence[Override]],
    seed: int | None,
    runs: int | None,
    progress: Progress | None,
) -> list[Results]:
    futures: list[Future[Results]] = [
        executor.submit(run_source, source, changed, seed=seed, runs=runs) for changed in overrides
    ]
    try:
        for done, future in enumerate(as_completed(futures), start=1):
            future.result()
            if progress is not None:
                progress(done / len(futures))
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [future.result() for future in futures]


def _part(progress: Progress | None, index: int, count: int) -> Progress | None:
    if progress is None:
        return None
    return lambda fraction: progress((index + fraction) / count)


def _one_type(values: Sequence[Any]) -> list[Any]:
    """Return `values` as one column can hold them: whole numbers, numbers, or else their texts."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return list(values)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values]
    return [value_text(value) for value in values]
