"""`explicate.sweep`: run a scenario at many points and seeds."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from explicate.engine import Override
from explicate.lab import Progress
from explicate.scenario import ScenarioLike
from explicate.source import listed, overrides_of
from explicate.sweeps.plan import Plan, plan_of
from explicate.sweeps.store import Store
from explicate.sweeps.table import SweepResults, assemble
from explicate.sweeps.work import Failure, Unit, perform

Shard = tuple[int, int]
"""A part, counted from 1, and the number of parts."""


class EmptyPartError(RuntimeError):
    """A sweep has fewer runs than parts, and this part has none: there is no work to do."""


def sweep(
    scenario: ScenarioLike,
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    latin: Mapping[str, str] | None = None,
    points: int | None = None,
    draw: int | None = None,
    seed: int | None = None,
    runs: int | None = None,
    set: Mapping[str, Any] | Sequence[Override] | None = None,  # noqa: A002  (the name of the command's option)
    measures: Sequence[str] = (),
    fluid: bool = False,
    executor: Executor | None = None,
    jobs: int | None = None,
    store: str | Path | None = None,
    shard: Shard | None = None,
    progress: Progress | None = None,
) -> SweepResults:
    """Simulate every combination of `axes`, of the scenario's own ``[sweep]``, and of a Latin hypercube.

    `scenario` is a scenario or a sweep file. An axis is a dotted key with its values; one that the file also has
    replaces the file's. `latin` has a range for each key, such as ``"1ms..100ms"``; `points` points are drawn from
    these ranges (another `draw` draws others). Each point runs with `runs` seeds from `seed`, the same at all points.

    `executor` may be any `concurrent.futures.Executor` (by default `jobs` threads, one per core); no result depends on
    it. `store` is a folder that keeps each finished run: the same sweep, or a larger one, resumes from
    there. `shard` (2, 8) runs the second of eight parts.

    A run that fails does not stop the others: it is in `SweepResults.failures`, and a RuntimeWarning reports it.
    Raise ScenarioError or ValueError, before anything runs, if a point cannot be used or there is nothing to vary;
    RuntimeError if no run has a result or the executor broke, EmptyPartError if the shard has no runs.
    """
    if isinstance(executor, str):
        raise TypeError(f"executor is {executor!r}; give a concurrent.futures.Executor, such as ProcessPoolExecutor()")
    taken = {key: listed(values) for key, values in (axes or {}).items()}
    plan = extended(plan_of(scenario), taken, latin or {}, points=points, draw=draw)
    plan = replace(
        plan,
        settings=(*plan.settings, *overrides_of(set)),
        seed=plan.seed if seed is None else seed,
        runs=plan.runs if runs is None else runs,
        measures=((measures,) if isinstance(measures, str) else tuple(measures)) or plan.measures,
        fluid=fluid,
    )
    kept = Store(None if store is None else Path(store))
    results = sweep_plan(plan, kept, executor=executor, jobs=jobs, shard=shard, progress=progress)
    if results.failures:
        first = results.failures[0]
        warnings.warn(f"{len(results.failures)} runs failed; the first: {first}", RuntimeWarning, stacklevel=2)
    return results


def extended(
    plan: Plan, axes: Mapping[str, Sequence[Any]], latin: Mapping[str, str], *, points: int | None, draw: int | None
) -> Plan:
    """Return `plan` with more axes, which replace its own of the same names."""
    design = plan.design
    return replace(
        plan,
        design=replace(
            design,
            grid={**{key: values for key, values in design.grid.items() if key not in latin}, **axes},
            ranges={**{key: text for key, text in design.ranges.items() if key not in axes}, **latin},
            points=design.points if points is None else points,
            draw=design.draw if draw is None else draw,
        ),
    )


def sweep_plan(
    plan: Plan,
    store: Store,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    shard: Shard | None = None,
    progress: Progress | None = None,
) -> SweepResults:
    """Run what `store` does not have of `plan`, and return all; see `sweep`."""
    units = part(plan.units(), shard)
    if shard is not None and not units:
        raise EmptyPartError(f"part {shard[0]} of {shard[1]} has no runs: there are fewer than parts")
    there = store.keys()
    missing = [unit for key, unit in {unit.key: unit for unit in units}.items() if key not in there]
    if executor is not None:
        errors = perform(missing, plan.source, executor, store, None, progress)
    else:
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as threads:
            errors = perform(missing, plan.source, threads, store, threading.Event(), progress)
    failures = [
        Failure(unit.point, unit.seed, errors[unit.key], unit.resolved) for unit in missing if unit.key in errors
    ]
    rows = store.load({unit.key for unit in units})
    return assemble(units, rows, plan.wanted(), failures, len(missing) - len(failures))


def part(units: Sequence[Unit], shard: Shard | None) -> list[Unit]:
    """Return the units of a part: every n-th, so that all parts cost the same."""
    if shard is None:
        return list(units)
    index, count = shard
    if not 1 <= index <= count:
        raise ValueError(f"there is no part {index} of {count}; parts count from 1")
    distinct = list({unit.key: None for unit in units})
    mine = frozenset(distinct[index - 1 :: count])
    return [unit for unit in units if unit.key in mine]
