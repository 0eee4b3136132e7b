"""Runs parts of the tests, two at a time, and ends with a table of what each took: parts.py TIER or PART...

The parts and what they need stand in `scripts/parts.toml`. Each is a target of the Makefile; what it needs is run
before, once. The output of a part is printed when the part has ended, and kept in `target/parts/`. A part that fails
stops only those that need it. Exit status: 0; 1 if a part failed; 75 if all that failed did so because a registry of
packages did not answer.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "target" / "parts"
AT_ONCE = 2
# What cargo, pip, npm and apt write when they cannot reach what they download from.
UNREACHABLE = re.compile(
    r"spurious network error|failed to download from|Could not fetch URL|Temporary failure (?:in name )?resol"
    r"|NewConnectionError|ReadTimeoutError|npm (?:ERR!|error) (?:code )?(?:ETIMEDOUT|ENOTFOUND|ECONNRESET|EAI_AGAIN)"
    r"|E: Failed to fetch"
)
MARKS = ("<!-- parts:begin -->", "<!-- parts:end -->")


@dataclass
class Part:
    """A part, and once it has run what it took."""

    name: str
    tier: str
    needs: list[str] = field(default_factory=list)
    state: str = "waits"
    wall: float = 0.0
    processor: float = 0.0
    load: float = 0.0

    @property
    def log(self) -> Path:
        """Where its output is kept."""
        return LOGS / f"{self.name}.log"

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state not in ("waits", "runs")


def read(path: Path) -> dict[str, Part]:
    """All parts of the table."""
    return {name: Part(name, **keys) for name, keys in tomllib.loads(path.read_text()).items()}


def chosen(parts: dict[str, Part], names: list[str]) -> list[Part]:
    """The parts of these tiers and names, and what they need, which comes first."""
    wanted: dict[str, Part] = {}

    def add(part: Part) -> None:
        for need in part.needs:
            add(parts[need])
        wanted.setdefault(part.name, part)

    for name in names:
        of_tier = [part for part in parts.values() if part.tier == name]
        if not of_tier and name not in parts:
            tiers = sorted({part.tier for part in parts.values()})
            sys.exit(f"no part or tier `{name}`; tiers: {', '.join(tiers)}; parts: {', '.join(parts)}")
        for part in of_tier or [parts[name]]:
            add(part)
    return sorted(wanted.values(), key=lambda part: part.tier != "prepare")


def begin(part: Part) -> tuple[subprocess.Popen[bytes], IO[bytes], float]:
    """Starts a part."""
    part.state = "runs"
    log = part.log.open("wb")
    # What it needs has run, or it would not be here.
    before = [word for need in part.needs for word in ("-o", need)]
    make = ["make", "--no-print-directory", *before, part.name]
    # The job server of a `make` that called this is not for these.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }
    process = subprocess.Popen(make, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env=environment)
    return process, log, time.monotonic()


def end(part: Part, status: int, began: float, processor: float) -> None:
    """Notes how a part ended, and prints what it wrote."""
    part.wall, part.processor, part.load = time.monotonic() - began, processor, os.getloadavg()[0]
    text = part.log.read_text(errors="replace")
    if status == 0:
        part.state = "passed"
    else:
        part.state = "no registry" if UNREACHABLE.search(text) else "failed"
    print(f"==> {part.name}: {part.state} after {part.wall:.0f} s\n{text}", flush=True)


def run(parts: list[Part]) -> None:
    """Runs all parts; those whose needs failed are not run."""
    LOGS.mkdir(parents=True, exist_ok=True)
    by_name = {part.name: part for part in parts}
    running: dict[int, tuple[Part, subprocess.Popen[bytes], IO[bytes], float]] = {}
    while True:
        for part in parts:
            needs = [by_name[need] for need in part.needs]
            if part.state == "waits" and any(need.ended and need.state != "passed" for need in needs):
                part.state = "not run"
            ready = part.state == "waits" and all(need.state == "passed" for need in needs)
            if ready and len(running) < AT_ONCE:
                process, log, began = begin(part)
                running[process.pid] = (part, process, log, began)
        if not running:
            return
        pid, status, usage = os.wait4(-1, 0)
        if pid in running:
            part, process, log, began = running.pop(pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            log.close()
            end(part, process.returncode, began, usage.ru_utime + usage.ru_stime)


def table(parts: list[Part]) -> str:
    """The parts, and what they took, as Markdown."""
    rows = [("part", "tier", "result", "s", "processor, s", "load")]
    rows += [
        (p.name, p.tier, p.state, f"{p.wall:.0f}", f"{p.processor:.0f}", f"{p.load:.1f}")
        if p.state != "not run"
        else (p.name, p.tier, p.state, "", "", "")
        for p in parts
    ]
    rows.append(("sum", "", "", "", f"{sum(p.processor for p in parts):.0f}", ""))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: tuple[str, ...]) -> str:
        cells = [text.ljust(w) if i < 3 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))]
        return f"| {' | '.join(cells)} |"

    rule = [("-" * w) if i < 3 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(rows[0]), f"| {' | '.join(rule)} |", *map(line, rows[1:])])


def fill(page: Path, text: str) -> None:
    """Puts a table between the marks of a page."""
    before, rest = page.read_text().split(MARKS[0])
    _, after = rest.split(MARKS[1])
    page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")


def main() -> int:
    """Runs what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="+", metavar="TIER|PART")
    parser.add_argument("--markdown", type=Path, help="fill the table of this page")
    arguments = parser.parse_args()
    parts = chosen(read(ROOT / "scripts" / "parts.toml"), arguments.parts)
    began = time.monotonic()
    run(parts)
    minutes = (time.monotonic() - began) / 60
    failed = [part for part in parts if part.state != "passed"]
    summary = f"{minutes:.0f} minutes on {os.cpu_count()} processors, {platform.machine()}"
    print(f"{table(parts)}\n\n{summary}")
    for part in failed:
        print(f"{part.name}: {part.state}; its output: {part.log.relative_to(ROOT)}")
    if arguments.markdown and not failed:
        fill(arguments.markdown, f"{table(parts)}\n\n{summary[0].upper()}{summary[1:]}.")
    print(f"parts: {len(parts) - len(failed)} passed, {len(failed)} failed")
    unreachable = any(part.state == "no registry" for part in failed)
    if unreachable and all(part.state in ("no registry", "not run") for part in failed):
        return os.EX_TEMPFAIL
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
