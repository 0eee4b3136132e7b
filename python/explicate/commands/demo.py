"""``explicate demo``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tomllib
from pathlib import Path

from explicate import console, examples
from explicate.commands import delivery, options
from explicate.source import Source

EXAMPLES = ("explicate demo", "explicate demo -o first")
SCENARIO = "long-fat-pipe"
PROTOCOLS = ("xcp", "newreno", "cubic")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.output(parser, "directory (default: %(default)s)", default="explicate-demo")
    options.force(parser)
    parser.set_defaults(csv=False, json=False)


def execute(args: argparse.Namespace) -> None:
    """Compare, keep the tables and the scenario, and write the report."""
    delivery.check_outputs(args)
    from explicate import display, lab
    from explicate.progress import ProgressLine
    from explicate.report import write_report

    folder = Path(args.out)
    delivery.check_older(args, SCENARIO, delivery.COMPARISON)
    source = Source(examples.text(SCENARIO), f"{SCENARIO}.toml", ".")
    console.note(f"{SCENARIO}: five flows over 200 Mbit/s and a round trip of 200 ms, by {', '.join(PROTOCOLS)}")
    with delivery.keeping("nothing was written"), ProgressLine(sys.stderr, "comparing") as progress:
        results = lab.compare_source(
            source, PROTOCOLS, [], jobs=os.cpu_count() or 1, progress=progress if progress.active else None
        )
        results.write(folder)
    file = folder / f"{SCENARIO}.toml"
    _keep_scenario(file, source.text)
    page = write_report(results, folder / "report.html")
    console.show(display.groups(results))
    console.show("\n" + display.links(results))
    console.note(
        f"TCP: {_stacks(results.scenario)}; as ns-2 has it: "
        f"{_command()} compare {file} --protocols {','.join(PROTOCOLS)} --set stack=ns2\n"
        f"report: {page} (one file; open it in a browser)\n"
        f"change it: edit {file}, then {_command()} run {file}",
        file=sys.stdout, blank=True,
    )  # fmt: skip


def _command() -> str:
    """Return what the shell finds this command by: after `make demo` its path."""
    own = Path(sys.argv[0])
    return str(own) if own.name == "explicate" and not shutil.which("explicate") else "explicate"


def _stacks(resolved: str) -> str:
    """Return the stacks of the groups of a resolved scenario, as a scenario writes them."""
    names = sorted({group["stack"] for group in tomllib.loads(resolved)["flows"]})
    return ", ".join(f'stack = "{name}"' for name in names)


def _keep_scenario(file: Path, text: str) -> None:
    """Write the scenario, unless the user has changed an earlier copy of it."""
    if file.exists() and file.read_text(encoding="utf-8", errors="replace") != text:
        console.note(f"note: {file} has changes, which were kept; they are not in this report")
        return
    file.write_text(text, encoding="utf-8")
