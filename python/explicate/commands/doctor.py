"""``explicate doctor``."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from explicate import console

EXAMPLES = ("explicate doctor", "explicate doctor --json")


@dataclass(frozen=True)
class Finding:
    """One finding; `remedy` states what to do if the thing is missing."""

    what: str
    needed: bool
    found: str
    remedy: str = ""

    @property
    def missing(self) -> bool:
        """Whether it was not found."""
        return not self.found


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def execute(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if something is missing that every command needs."""
    found = list(findings())
    if args.json:
        console.print_json([vars(finding) for finding in found])
    else:
        body = [[f.what, f.found or ("missing" if f.needed else "not installed"), f.remedy] for f in found]
        console.show(console.table(["", "", ""], body, left=3).strip("\n"))
    return 1 if any(finding.needed and finding.missing for finding in found) else 0


def findings() -> Iterator[Finding]:
    """Check everything, what is needed first."""
    yield Finding("python", True, f"{platform.python_version()} ({sys.executable})")
    yield Finding("system", True, f"{platform.system()} {platform.release()} {platform.machine()}")
    yield _engine()
    for name in ("polars", "rich", "shtab"):
        yield _package(name, needed=True)
    yield Finding("output", True, f"{sys.stdout.encoding}, {os.cpu_count()} cores")
    yield _package("explicate-papers", remedy="for `reproduce`: pip install explicate-papers")
    yield _package("pandas", remedy="for `to_pandas()`: pip install 'explicate[pandas]'")
    yield _package("matplotlib", remedy="for `plot -o`: pip install 'explicate[plot]'")
    yield _package("xarray", remedy="for `to_xarray()`: pip install 'explicate[xarray]'")
    yield _daemon()


def _engine() -> Finding:
    try:
        from explicate.identity import full_version
    except ImportError as error:
        return Finding("engine", True, "", str(error))
    return Finding("engine", True, full_version())


def _package(name: str, *, needed: bool = False, remedy: str = "") -> Finding:
    try:
        return Finding(name, needed, metadata.version(name))
    except metadata.PackageNotFoundError:
        if importlib.util.find_spec(name.replace("-", "_")) is not None:
            return Finding(name, needed, "from a source tree")
        return Finding(name, needed, "", remedy or f"pip install {name}")


def _daemon() -> Finding:
    """Look for the program for real networks, which `compare-lab` runs."""
    path = os.environ.get("EXPLICATED") or shutil.which("explicated")
    if path is None:
        remedy = "for `compare-lab` (Linux): the explicated package, or cargo build --release -p explicate-net"
        return Finding("explicated", False, "", remedy)
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("explicated", False, "", f"{path} does not run: {error}")
    return Finding("explicated", False, f"{said.strip().removeprefix('explicated ')} ({path})")
