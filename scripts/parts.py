"""Runs parts of the tests, two at a time, and ends with a table of what each took: parts.py TIER or PART...

The parts and what they need stand in `scripts/parts.toml`. Each is a target of the Makefile; what it needs is run
before, once. The output of a part is printed when the part has ended, and kept in `target/parts/`. A part that fails
stops only those that need it. However the run ends, the last lines say what each part took and what did not run.
With --resume a part that has passed here with the same files is not run again; its figures stand in the table.

Exit status: 0; 1 if a part failed; 75 if all that failed did so because a registry of packages did not answer; 130
after an interrupt.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import turns
from turns import ROOT, Part

LOGS = ROOT / "target" / "parts"
SCRIPTS = ROOT / "scripts"
# What cargo, rustup, pip, npm, apt, debootstrap and go write last when they cannot reach what they download from.
UNREACHABLE = re.compile(
    r"[Ff]ailed to download|could not download file|download of .* failed|Could not resolve host"
    r"|failed to query replaced source|Could not fetch URL|Temporary failure (?:in name )?resol|NewConnectionError"
    r"|ConnectTimeoutError|ReadTimeoutError"
    r"|Max retries exceeded|after connection broken by|npm could not fetch"
    r"|npm (?:ERR!|error) (?:code )?(?:ETIMEDOUT|ENOTFOUND|ECONNRESET|ECONNREFUSED|EAI_AGAIN)"
    r"|E: Failed to fetch|W: Failed to fetch|E: Couldn't download|E: Failed getting release file|dial tcp: "
)
# Lines at the end of an output in which that counts: further up it was overcome, or is the text of a test.
LAST_LINES = 25
# A part that takes so many times the seconds of the table is named: other work of the machine adds a little.
LONGER = 1.5
MARKS = ("<!-- parts:begin -->", "<!-- parts:end -->")
# Of a part that was not possible in every respect; what lacked is in its `missing`.
INCOMPLETE = "incomplete"
# What is kept of a part that has passed.
TOOK = ("wall", "processor", "compiling", "load")


@dataclass
class Running:
    """A part that runs."""

    part: Part
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    began: float


def log_of(part: Part) -> Path:
    """Where the output of a part is kept."""
    return LOGS / f"{part.name}.log"


def beside(part: Part, what: str) -> Path:
    """A file that the commands of a part write for this script."""
    return LOGS / f"{part.name}.{what}"


def begin(part: Part) -> Running:
    """Starts a part."""
    part.state = "runs"
    for what in ("compiling", "missing", "passed"):
        beside(part, what).unlink(missing_ok=True)
    log = log_of(part).open("wb")
    # What it needs has run, or it would not be here.
    before = [word for need in part.needs for word in ("-o", need)]
    make = ["make", "--no-print-directory", *before, part.name]
    # The job server of a `make` that called this is not for these.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }
    environment["NOT_RUN"] = str(beside(part, "missing"))
    if "RUSTC_WRAPPER" not in environment:
        environment["COMPILE_TIMES"] = str(beside(part, "compiling"))
        environment["RUSTC_WRAPPER"] = str(SCRIPTS / "rustc_times")
        environment["RUSTDOC"] = str(SCRIPTS / "rustdoc_times")
    # In a group of its own, so that an interrupt reaches all that it has started, by this script alone.
    process = subprocess.Popen(
        make, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment, process_group=0
    )
    return Running(part, process, log, time.monotonic())


class Interrupts:
    """SIGTERM ends a run as Ctrl-C does, but not between the start of a process and the note that it runs."""

    def __init__(self) -> None:
        self.waits = self.came = False

    def handle(self, _signal: int, _frame: FrameType | None) -> None:
        """Ends the run, now or later."""
        self.came = True
        if not self.waits:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def later(self) -> Iterator[None]:
        """What is done inside is done as a whole."""
        self.waits = True
        try:
            yield
        finally:
            self.waits = False
        if self.came:
            raise KeyboardInterrupt


INTERRUPTS = Interrupts()


def compile_seconds(path: Path) -> float:
    """The sum of what `times` wrote: minutes and seconds, of user and system, of a shell and its children."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return sum(60 * float(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", text))


def unreachable(text: str) -> bool:
    """Whether an output ends with the complaint of a program that could not download."""
    return UNREACHABLE.search("\n".join(text.splitlines()[-LAST_LINES:])) is not None


def keep(part: Part, tree: str) -> None:
    """Notes that a part has passed with the files of this hash, and what it took."""
    took = {name: getattr(part, name) for name in TOOK}
    beside(part, "passed").write_text(json.dumps({"tree": tree, **took}), encoding="utf-8")


def resume(parts: Sequence[Part], tree: str) -> None:
    """Lets the parts that have passed with the files of this hash be as they were then."""
    for part in parts:
        file = beside(part, "passed")
        kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if kept.pop("tree", None) == tree:
            part.state = "passed"
            for name, value in kept.items():
                setattr(part, name, value)


def end(run: Running, status: int, processor: float, tree: str) -> None:
    """Notes how a part ended, and prints what it wrote."""
    part = run.part
    run.process.returncode = status
    run.log.close()
    part.wall, part.processor, part.load = time.monotonic() - run.began, processor, os.getloadavg()[0]
    part.compiling = compile_seconds(beside(part, "compiling"))
    text = log_of(part).read_text(encoding="utf-8", errors="replace")
    missing = beside(part, "missing")
    part.missing = missing.read_text(encoding="utf-8") if missing.is_file() else ""
    if status:
        part.state = "no registry" if unreachable(text) else "failed"
    else:
        part.state = INCOMPLETE if part.missing else "passed"
        if tree and not part.missing:
            keep(part, tree)
    print(f"==> {part.name}: {part.state} after {part.wall:.0f} s\n{text}", flush=True)


def passed(part: Part) -> bool:
    """Whether what needs this part can run."""
    return part.state in ("passed", INCOMPLETE)


def stop(running: dict[int, Running], tree: str) -> None:
    """Ends the parts that run, and notes what they took so far."""
    for run in running.values():
        os.killpg(run.process.pid, signal.SIGTERM)
    until = time.monotonic() + 10
    for pid, run in running.items():
        done, status, usage = os.wait4(pid, os.WNOHANG)
        while not done:
            if time.monotonic() > until:
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.05)
            done, status, usage = os.wait4(pid, os.WNOHANG)
        end(run, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, tree)
        run.part.state = "interrupted"


def run_all(parts: Sequence[Part], at_once: int, tree: str) -> bool:
    """Runs all parts that wait, so many at once, and none whose needs failed. Returns whether it came to its end."""
    LOGS.mkdir(parents=True, exist_ok=True)
    by_name = {part.name: part for part in parts}
    running: dict[int, Running] = {}
    try:
        while True:
            for part in parts:
                needs = [by_name[need] for need in part.needs]
                if part.state == "waits" and any(need.ended and not passed(need) for need in needs):
                    part.state = "not run"
                if part.state == "waits" and all(passed(need) for need in needs) and len(running) < at_once:
                    with INTERRUPTS.later():
                        run = begin(part)
                        running[run.process.pid] = run
            if not running:
                return True
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            with INTERRUPTS.later():
                pid, status, usage = os.wait4(-1, 0)
                if pid in running:
                    processor = usage.ru_utime + usage.ru_stime
                    end(running.pop(pid), os.waitstatus_to_exitcode(status), processor, tree)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stop(running, tree)
        for part in parts:
            if part.state == "waits":
                part.state = "not run"
        return False


def table(parts: Sequence[Part]) -> str:
    """The parts, and what they took, as Markdown."""
    rows = [("part", "tier", "result", "s", "processor, s", "of it compiling, s", "load")]
    rows += [
        (p.name, p.tier, p.state, f"{p.wall:.0f}", f"{p.processor:.0f}", f"{p.compiling:.0f}", f"{p.load:.1f}")
        if p.state != "not run"
        else (p.name, p.tier, p.state, "", "", "", "")
        for p in parts
    ]
    rows.append(
        ("sum", "", "", "", f"{sum(p.processor for p in parts):.0f}", f"{sum(p.compiling for p in parts):.0f}", "")
    )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: tuple[str, ...]) -> str:
        cells = [text.ljust(w) if i < 3 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))]
        return f"| {' | '.join(cells)} |"

    rule = [("-" * w) if i < 3 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(rows[0]), f"| {' | '.join(rule)} |", *map(line, rows[1:])])


def fill(page: Path, text: str) -> None:
    """Puts a table between the marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    _, after = rest.split(MARKS[1])
    page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")


def notes(parts: Sequence[Part], others: Sequence[Part], why: dict[str, int]) -> list[str]:
    """What ran, what did not, why, and how to run it: the lines below the table."""
    lines = []
    for reason, text in enumerate(turns.REASONS):
        if of_it := [part.name for part in parts if part.name in why and why[part.name] == reason]:
            lines.append(f"run because {text}: {', '.join(of_it)}")
    if others:
        names = " ".join(part.name for part in others)
        lines.append(f"not run, since it is not their turn (all: make rest; these: python3 scripts/parts.py {names}):")
        lines.append(f"  {', '.join(f'{part.name}, {part.seconds:.0f} s' for part in others)}")
    if incomplete := [part for part in parts if part.missing]:
        lines.append("not run, since it is not possible here:")
        lines += [f"  {line.strip()}" for part in incomplete for line in part.missing.splitlines()]
    for part in parts:
        if part.seconds and part.processor > LONGER * part.seconds + 10:
            said = f"of processor time, and scripts/parts.toml says {part.seconds:.0f} s"
            lines.append(f"{part.name}: took {part.processor:.0f} s {said}")
        if part.state == "not run":
            failed = [need for need in part.needs if need in {one.name for one in parts if not passed(one)}]
            lines.append(f"{part.name}: not run" + (f", since it needs {', '.join(failed)}" if failed else ""))
        elif not passed(part):
            lines.append(f"{part.name}: {part.state}; its output: {log_of(part).relative_to(ROOT)}")
    return lines


def main() -> int:
    """Runs what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+", metavar="TIER|PART")
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 65), metavar="N", default=2, help="so many parts at once (2)"
    )
    parser.add_argument("--due", action="store_true", help="of the parts that take turns, those that this tree runs")
    parser.add_argument("--dry", action="store_true", help="only say which parts that are, and what they take")
    parser.add_argument("--resume", action="store_true", help="leave out what has passed here with the same files")
    parser.add_argument("--strict", action="store_true", help="fail if something is not possible on this machine")
    parser.add_argument("--markdown", type=Path, help="fill the table of this page, if all passed")
    parser.add_argument("--record", action="store_true", help="note that this tree passed, in tests/parts.json")
    arguments = parser.parse_args()
    known = turns.read()
    every = turns.named(known.parts, arguments.names)
    parts, why = every, dict[str, int]()
    tree = ""
    if (ROOT / ".git").exists():
        files = turns.contents()
        tree = turns.digest(files, list(files))
    if arguments.due:
        files = turns.contents()
        why = turns.reasons(known, files)
        parts = turns.due(known, every, tree, why)
    others = [part for part in every if part not in parts]
    if arguments.dry:
        for part in parts:
            reason = turns.REASONS[why[part.name]] if part.name in why else "always"
            print(f"{part.name:20} {part.seconds:5.0f} s  {reason}")
        print(f"{'sum':20} {sum(part.seconds for part in parts):5.0f} s", *notes([], others, why), sep="\n")
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, INTERRUPTS.handle)
    if arguments.resume and tree:
        resume(parts, tree)
    began = time.monotonic()
    ended = run_all(parts, arguments.jobs, tree)
    minutes = (time.monotonic() - began) / 60
    failed = [part for part in parts if not passed(part)]
    summary = f"{minutes:.0f} minutes on {os.cpu_count()} processors, {platform.machine()}"
    print(f"{table(parts)}\n\n{summary}", *notes(parts, others, why), sep="\n")
    if not failed and not any(part.missing for part in parts):
        if arguments.markdown:
            fill(arguments.markdown, f"{table(parts)}\n\n{summary[0].upper()}{summary[1:]}.")
        if arguments.record:
            turns.record(known)
    print(f"parts: {len(parts) - len(failed)} passed, {len(failed)} failed", flush=True)
    if not ended:
        return 128 + signal.SIGINT
    if failed:
        without = all(part.state in ("no registry", "not run") for part in failed)
        return os.EX_TEMPFAIL if without else 1
    return int(arguments.strict and any(part.missing for part in parts))


if __name__ == "__main__":
    sys.exit(main())
