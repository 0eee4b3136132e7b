"""The subcommands of ``explicate``, given their parsed arguments."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from explicate import cost, display, engine, lab, worlds
from explicate.curves import channel_curves
from explicate.errors import BadInputError
from explicate.progress import ProgressLine
from explicate.report import write_report
from explicate.results import Results, rows
from explicate.source import Source, decoded
from explicate.sweeps.api import EmptyPartError, extended, sweep_plan
from explicate.sweeps.executors import opened
from explicate.sweeps.plan import plan_of_source
from explicate.sweeps.plot import plot
from explicate.sweeps.store import Store
from explicate.sweeps.table import AllFailedError, SweepResults, write_failures


def split_values(text: str) -> list[int | float | str]:
    """Split at commas outside quotes and brackets; numbers if all parts are numbers."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        if char == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    kept = [part.strip() for part in parts if part.strip()]
    for kind in (int, float):
        try:
            return [kind(part) for part in kept]
        except ValueError:
            continue
    return list(kept)


def _source(name: str) -> Source:
    if name == "-":
        raw = getattr(sys.stdin, "buffer", None)  # a replaced stdin (StringIO) has no bytes
        return Source(decoded(raw, "<stdin>") if raw else sys.stdin.read(), "<stdin>", ".")
    try:
        return Source.of(Path(name))
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        remedy = f"; `explicate new dumbbell > {name}` creates a scenario" if missing else ""
        raise BadInputError(f"{name}: {error.strerror}{remedy}") from error


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def _warn(results: Results, origin: str) -> None:
    for warning in results.warnings:
        print(f"warning: {warning.replace('scenario:', f'{origin}:', 1)}", file=sys.stderr)


def _check_outputs(args: argparse.Namespace) -> None:
    if args.csv and not args.out:
        raise BadInputError("--csv needs an output directory: add -o DIR")
    if args.out and Path(args.out).exists() and not Path(args.out).is_dir():
        raise BadInputError(f"{args.out}: is not a directory; choose another name for -o")
    if args.out:  # before the runs, not after them
        place = next(path for path in (Path(args.out).absolute(), *Path(args.out).absolute().parents) if path.exists())
        if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
            raise BadInputError(f"{args.out}: {place} is not writable; choose another directory for -o")


def _finish(args: argparse.Namespace, out: Any) -> None:
    """Print where the tables were written, or how to write them."""
    if not args.out:
        print(
            "\nno files written; -o DIR writes the tables for `explicate report DIR`",
            file=out,
        )
        return
    kinds = "Parquet and CSV" if args.csv else "Parquet"
    print(f"\nwritten: {args.out}/ ({kinds} tables, run.json); page: explicate report {args.out}", file=out)


def _as_json(results: Results) -> dict[str, Any]:
    return {
        "scenario": results.scenario,
        "seed": results.seed,
        "version": results.version,
        **({"axes": list(results.axes)} if results.axes else {}),
        "flows": rows(results.flows),
        "links": rows(results.links),
    }


def _deliver(results: Results, args: argparse.Namespace, origin: str, out: Any) -> None:
    _warn(results, origin)
    if args.out:
        results.write(args.out, csv=args.csv)
    if args.json:
        _print_json(_as_json(results))
        return
    print(display.heading(results), file=out)
    print("\n" + display.groups(results), file=out)
    print("\n" + display.links(results), file=out)
    _finish(args, out)


def run(args: argparse.Namespace) -> None:
    """Simulate once; without -o, the trace goes to standard output and the tables to standard error."""
    _check_outputs(args)
    if args.trace and args.json and not args.out:
        raise BadInputError(
            "--trace and --json both write to standard output: add -o DIR to write the trace to DIR/trace.txt"
        )
    if args.fluid and args.engine != "fast":
        raise BadInputError("--fluid has no packets, and no reference engine; leave out --engine")
    if args.fluid and (args.trace or args.pcap):
        raise BadInputError("--fluid has no packets to trace or capture; remove --trace and --pcap")
    source = _source(args.scenario)
    axes = [] if args.fluid else source.check(args.set)["sweep"]
    if axes:
        keys = ", ".join(key for key, _ in axes)
        print(f"note: [sweep] ({keys}) is ignored; `explicate sweep {args.scenario}` runs it", file=sys.stderr)
    with ProgressLine(sys.stderr, "running") as progress:
        results = lab.run_source(
            source, args.set, seed=args.seed, runs=args.runs, jobs=args.jobs or 1, trace=args.trace, pcap=args.pcap,
            fluid=args.fluid, kind=args.engine,
            progress=progress if progress.active else None,
        )  # fmt: skip
    trace_alone = bool(args.trace) and not args.out
    if trace_alone:
        sys.stdout.write(results.trace)
    _deliver(results, args, source.origin, sys.stderr if trace_alone else sys.stdout)
    if args.fluid and not args.json:
        print(display.fluid(results))


def compare(args: argparse.Namespace) -> None:
    """Simulate once per protocol."""
    _check_outputs(args)
    source = _source(args.scenario)
    with ProgressLine(sys.stderr, "comparing") as progress:
        results = lab.compare_source(
            source, args.protocols, args.set, seed=args.seed, runs=args.runs, jobs=args.jobs or 1, fluid=args.fluid,
            progress=progress if progress.active else None,
        )  # fmt: skip
    _deliver(results, args, source.origin, sys.stdout)


def compare_worlds(args: argparse.Namespace) -> None:
    """Old name of compare-lab."""
    message = "`compare-worlds` is now called `compare-lab`; the old name works for one more release"
    print(f"warning: {message}", file=sys.stderr)
    compare_lab(args)


def compare_lab(args: argparse.Namespace) -> None:
    """Simulate, and run the same scenario on real sockets."""
    _check_outputs(args)
    source = _source(args.scenario)
    overrides = [
        *args.set,
        *((key, str(value)) for key in ("seed", "runs") if (value := getattr(args, key)) is not None),
    ]
    try:
        results = worlds.compare_source(source, overrides)
    except FileNotFoundError as error:
        raise BadInputError(str(error)) from error
    _deliver(results, args, source.origin, sys.stdout)


def sweep(args: argparse.Namespace) -> int:
    """Simulate every point; 1 if a run failed."""
    _check_outputs(args)
    if args.shard and not args.out:
        raise BadInputError("--shard needs a directory for its runs: add -o DIR")
    source = _source(args.scenario)
    plan = extended(
        plan_of_source(source), dict(args.vary), dict(args.latin), points=args.points, draw=args.draw
    )  # fmt: skip
    plan = replace(
        plan,
        settings=(*plan.settings, *args.set),
        seed=plan.seed if args.seed is None else args.seed,
        runs=plan.runs if args.runs is None else args.runs,
        measures=tuple(args.measure) or plan.measures,
        fluid=args.fluid,
    )
    store = Store(Path(args.out) / "runs" if args.out else None)
    try:
        with ProgressLine(sys.stderr, "sweeping") as progress, opened(args.executor, args.jobs) as executor:
            results = sweep_plan(
                plan, store, executor=executor, jobs=args.jobs, shard=args.shard,
                progress=progress if progress.active else None,
            )  # fmt: skip
    except EmptyPartError as error:
        print(f"{error}; nothing to do", file=sys.stderr)
        return 0
    except AllFailedError as error:
        if args.out:
            write_failures(Path(args.out), error.failures)
        raise
    for path in store.damaged:
        print(f"warning: {path} was damaged; it was renamed, and its runs were repeated", file=sys.stderr)
    _deliver_sweep(results, args, plan.source.origin)
    return 1 if results.failures else 0


def _deliver_sweep(results: SweepResults, args: argparse.Namespace, origin: str) -> None:
    _warn(results, origin)
    if args.shard:
        write_failures(Path(args.out) / "shard-{}-of-{}".format(*args.shard), results.failures)
    elif args.out:
        results.write(args.out, csv=args.csv)
        plot(results, Path(args.out) / "sweep.svg")
    if results.failures:
        print(display.failures(results, args.out), file=sys.stderr)
    if args.json:
        more = {"measures": rows(results.measures()), "failures": [asdict(failure) for failure in results.failures]}
        _print_json({**_as_json(results), **more})
        return
    print(display.heading(results) + f"; {results.fresh} run now")
    if args.shard:
        print("\nstored the runs of this shard; when all shards are done, run the same command without --shard")
        return
    print("\n" + display.intervals(results))
    _finish(args, sys.stdout)


def report(args: argparse.Namespace) -> None:
    """Make the page."""
    try:
        results = Results.load(args.directory)
    except (OSError, ValueError) as error:
        raise BadInputError(error) from error
    path = write_report(results, args.out or Path(args.directory) / "report.html")
    print(f"written: {path} (one file; open it in a browser)")


def check(args: argparse.Namespace) -> None:
    """Validate and print resolved."""
    source = _source(args.scenario)
    checked = source.check(args.set)
    for warning in checked["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    if args.json:
        _print_json(checked)
    else:
        print(checked["resolved"], end="" if checked["resolved"].endswith("\n") else "\n")


def new(args: argparse.Namespace) -> None:
    """Print a template scenario; create the files that it reads in the current folder."""
    print(engine.template(args.kind), end="")
    for name, contents in engine.companions(args.kind).items():
        path = Path(name)
        if path.exists():
            print(f"note: the scenario reads {name}, which exists already", file=sys.stderr)
        else:
            path.write_text(contents, encoding="utf-8")
            print(f"note: the scenario reads {name}, which was created", file=sys.stderr)


def protocols(args: argparse.Namespace) -> None:
    """Print the registry, or one entry of it."""
    entries = engine.registry()
    if args.name is not None:
        entries = [entry for entry in entries if entry["name"] == args.name]
        if not entries:
            raise BadInputError(f"unknown name {args.name!r}; `explicate protocols` lists all names")
    if args.json:
        _print_json(entries)
    else:
        print(display.registry(entries) if args.name is None else "\n\n".join(map(display.entry, entries)))


def columns(args: argparse.Namespace) -> None:
    """Print the columns of the tables."""
    tables = engine.columns()
    if args.json:
        _print_json(tables)
    else:
        print(display.columns(tables))


def schema(_: argparse.Namespace) -> None:
    """Print the JSON Schema."""
    _print_json(engine.schema())


def curves(args: argparse.Namespace) -> None:
    """Print the statistics of a channel."""
    params = {**dict(args.set), **dict(args.vary)}
    try:
        frame = channel_curves(
            args.kind, bytes=args.bytes, acks=args.acks, trials=args.trials, seed=args.seed, **params
        )
    except ValueError as error:
        raise BadInputError(error) from error
    if args.json:
        _print_json(frame.to_dicts())
    elif args.csv:
        print(frame.write_csv(), end="")
    else:
        print(display.curves(frame))


def bench(args: argparse.Namespace) -> None:
    """Benchmark the engine; also count instructions, unless a duration is given."""
    if args.floor:
        if args.case is not None or args.duration is not None:
            raise BadInputError("--floor has its own cases and durations; remove --case and --duration")
        rows = cost.beside_floor()
        if args.json:
            _print_json({"cases": rows})
        else:
            print(display.floor(rows))
        return
    known = engine.bench_cases()
    if args.case is not None and args.case not in known:
        raise BadInputError(f"unknown case {args.case!r}; there are {', '.join(known)}")
    names = known if args.case is None else [args.case]
    if args.duration is None:
        cases = [cost.measure(name) for name in names]
    else:
        cases = [row for name in names for row in engine.bench(name, args.duration)]
    if args.json:
        _print_json({"cases": cases})
    else:
        print(display.bench(cases))


def reproduce(args: argparse.Namespace) -> int:
    """Reproduce experiments of the papers; 1 if a predicate does not hold."""
    try:
        from explicate_papers import command  # noqa: PLC0415 (a distribution of its own)
    except ModuleNotFoundError as error:
        if error.name != "explicate_papers":
            raise
        raise BadInputError(
            "`explicate reproduce` needs the papers' experiments: `pip install explicate-papers`; "
            "in a clone `make install` installs them"
        ) from error
    return command.reproduce(args)


COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    command.__name__.replace("_", "-"): command
    for command in (
        run,
        compare,
        compare_lab,
        compare_worlds,
        sweep,
        report,
        check,
        new,
        protocols,
        columns,
        schema,
        curves,
        bench,
        reproduce,
    )
}
