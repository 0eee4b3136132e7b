"""Common parts of the commands that run scenarios: the source, the checks before a run, and the output after it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from explicate import console
from explicate.errors import BadInputError, StoppedError
from explicate.source import Source, decoded

if TYPE_CHECKING:
    from explicate.results import Results


RUN, COMPARISON, LABORATORY, SWEEP = "run", "comparison", "comparison with a laboratory", "sweep"
"""Kinds of results."""


def source(name: str) -> Source:
    """Read a scenario file, or standard input for ``-``."""
    console.detail(f"reading {name}")
    if name == "-":
        raw = getattr(sys.stdin, "buffer", None)  # a replaced stdin (StringIO) has no bytes
        return Source(decoded(raw, "<stdin>") if raw else sys.stdin.read(), "<stdin>", ".")
    try:
        return Source.of(Path(name))
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        remedy = f"; `explicate new dumbbell > {name}` creates a scenario" if missing else ""
        raise BadInputError(f"{name}: {error.strerror}{remedy}") from error


def check_outputs(args: argparse.Namespace) -> None:
    """Raise BadInputError if results could not be written; before the runs, not after them."""
    if args.csv and not args.out:
        raise BadInputError("--csv needs an output directory: add -o DIR")
    if not args.out:
        return
    folder = Path(args.out)
    if folder.exists() and not folder.is_dir():
        raise BadInputError(f"{args.out}: is not a directory; choose another name for -o")
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        raise BadInputError(f"{args.out}: {place} is not writable; choose another directory for -o")


def check_older(args: argparse.Namespace, name: str, kind: str) -> None:
    """Raise BadInputError if `-o` has files that a `kind` of scenario `name` must not replace.

    Results of the same name and kind are replaced, others with ``--force``, and files that are no results never.
    Finished runs of a sweep show that what lies beside them is a sweep's, even if run.json is damaged.
    """
    if not args.out:
        return
    from explicate.files import OTHERS
    from explicate.results import described
    from explicate.sweeps.store import parts

    other = "choose another directory for -o"
    finished = parts(Path(args.out, "runs"))  # what else is there is a sweep's too
    if finished and args.force:
        return
    resume = f"finished runs are in {Path(args.out, 'runs')}: --force writes the other files again; or "
    remedy = (resume if finished else "") + other
    try:
        about = described(Path(args.out))
    except FileNotFoundError as error:
        taken = [file for file in OTHERS if Path(args.out, file).exists()]
        if not taken:
            return
        raise BadInputError(f"{args.out}: has {taken[0]}, but no results (run.json is missing); {remedy}") from error
    except (OSError, ValueError) as error:
        raise BadInputError(f"{str(error).removesuffix('; run again')}; {remedy}") from error
    older = _kind(about["axes"])
    if not args.force and (about["name"], older) != (name, kind):
        raise BadInputError(f"{args.out}: has a {older} of `{about['name']}`; {other}, or replace it with --force")


def _kind(axes: list[str]) -> str:
    from explicate.lab import VARIANT
    from explicate.worlds import WORLD

    kinds = {(): RUN, (VARIANT,): COMPARISON, (WORLD,): LABORATORY}
    return kinds.get(tuple(axes), SWEEP)


@contextmanager
def keeping(kept: str, step: str = "running") -> Iterator[None]:
    """Report what is kept if the user interrupts this step."""
    try:
        console.detail(step)
        yield
    except KeyboardInterrupt as error:
        raise StoppedError(kept) from error


def warn(results: Results, origin: str) -> None:
    """Print the warnings of a run with the name of its file."""
    for warning in results.warnings:
        known = warning.startswith("scenario:")
        console.warning(f"{origin}:{warning.removeprefix('scenario:')}" if known else warning)


def as_json(results: Results) -> dict[str, Any]:
    """Return what ``--json`` prints of any results."""
    from explicate.results import rows

    return {
        "scenario": results.scenario,
        "seed": results.seed,
        "version": results.version,
        **({"axes": list(results.axes)} if results.axes else {}),
        "flows": rows(results.flows),
        "links": rows(results.links),
    }


def deliver(results: Results, args: argparse.Namespace, origin: str, out: TextIO) -> None:
    """Write the tables of a run and print its summary."""
    from explicate import display

    warn(results, origin)
    console.detail(f"{results.run.height} runs in {console.elapsed_s():.1f} s")
    failure: OSError | None = None
    if args.out:
        try:
            with keeping("nothing was written", f"writing {args.out}"):
                results.write(args.out, csv=args.csv)
        except OSError as error:  # a long run is not lost altogether: its summary follows
            failure = error
    if args.json:
        console.print_json(as_json(results))
    else:
        console.show(display.heading(results), file=out)
        console.show("\n" + display.groups(results), file=out)
        console.show("\n" + display.links(results), file=out)
    if failure is not None:
        raise failure
    if not args.json:
        finish(args, out)


def finish(args: argparse.Namespace, out: TextIO) -> None:
    """Print where the tables were written, or how to write them."""
    if not args.out:
        console.note("no files written; -o DIR writes the tables for `explicate report DIR`", file=out, blank=True)
        return
    kinds = "Parquet and CSV" if args.csv else "Parquet"
    end = f"written: {args.out}/ ({kinds} tables, run.json); page: explicate report {args.out}"
    console.note(end, file=out, blank=True)
