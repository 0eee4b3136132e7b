"""Runs tests that are built where their processes get little time: stress.py [--modes MODE...] [--only NAME...].

Modes: `busy` runs them beside four processes that compute, `core` on one processor, and `stops` stops one of their
processes, drawn at random, for 3 s every 10 s. What passed is kept in `target/stress.json` with the commit, or what
differs from it, and is not repeated; what failed is. Exit status: 0 if all has passed, else 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target"
MODES = ("busy", "core", "stops")
BUSY = 4
# Seconds for which a process is stopped, and from one stop to the next.
STOPPED, EVERY = 3.0, 10.0
NAMESPACES = "cargo test --offline --test linux -- --ignored --test-threads=4 --skip timed:: --skip root::"
COMMANDS = {
    "lib": "cargo test --offline --lib",
    "hostile": "cargo test --offline --test hostile",
    "loopback": "cargo test --offline --test loopback",
    "linux": NAMESPACES if os.geteuid() == 0 else f"scripts/in_namespace {NAMESPACES}",
    "rust": "cargo test --offline",
    "python": ".venv/bin/python -m pytest -q --require-native -m 'not papers' --numprocesses=2",
    "scripts": ".venv/bin/python -m pytest -q -c /dev/null --rootdir . tests bench validation/peers",
    "playground": "npm --prefix playground test --silent -- test/build.test.mjs test/equal.test.mjs test/page.test.mjs",
}
# The line of one test in the output of cargo; the last lines of pytest's, and of Node's runner.
RUST = re.compile(r"^test (\S+)(?: - .*)? \.\.\. (ok|FAILED)", re.MULTILINE)
PYTEST = re.compile(r"^.*?(\d+) passed.* in \d.*s", re.MULTILINE)
PYTEST_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::\S+)", re.MULTILINE)
NODE = re.compile(r"^\S+ (pass|fail) (\d+)$", re.MULTILINE)


def version() -> str:
    """The commit, and a digest of what differs from it."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout

    differs = git("diff", "HEAD")
    mark = f"+{hashlib.sha256(differs).hexdigest()[:8]}" if differs else ""
    return git("rev-parse", "--short=12", "HEAD").decode().strip() + mark


def counts(text: str) -> tuple[int, list[str]]:
    """How many tests passed by this output, and the names of those that failed, where they are said."""
    rust = RUST.findall(text)
    passed = sum(result == "ok" for _, result in rust)
    if not rust:
        passed += sum(map(int, PYTEST.findall(text)))
    passed += sum(int(number) for result, number in NODE.findall(text) if result == "pass")
    failed = [name for name, result in rust if result == "FAILED"]
    return passed, failed + PYTEST_FAILED.findall(text)


def parents() -> dict[int, tuple[int, int]]:
    """Of each process that runs: its parent and its session. One that a test has stopped is the test's to continue."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # A name may have spaces and parentheses.
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if words[0] not in "ZXTt":
            found[int(stat.parent.name)] = (int(words[1]), int(words[3]))
    return found


def descendants(root: int, processes: dict[int, tuple[int, int]]) -> list[int]:
    """The processes that a process began, and theirs; also those left behind in its session."""
    found = {pid for pid, (_, session) in processes.items() if session == root}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in processes.items() if parent in found | {root}} - found
        grown = bool(more)
        found |= more
    return sorted(found - {root})


def stop_some(root: int, over: threading.Event, draw: random.Random, stopped: list[str]) -> None:
    """Stops one process after the other until all is over."""
    while not over.wait(EVERY - STOPPED):
        candidates = descendants(root, parents())
        if not candidates:
            continue
        pid = draw.choice(candidates)
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            os.kill(pid, signal.SIGSTOP)
        except (OSError, ProcessLookupError):
            continue
        stopped.append(name)
        over.wait(STOPPED)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue


def run(name: str, command: str, mode: str, busy: int, seed: int) -> dict[str, Any]:
    """Runs a command in a mode: how it ended."""
    words = shlex.split(command)
    if mode == "core":
        words = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), *words]
    log = TARGET / "stress" / f"{mode}-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(busy if mode == "busy" else 0)]
    over, stopped, began = threading.Event(), [], time.monotonic()
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                words, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            if mode == "stops":
                arguments = (process.pid, over, random.Random(seed), stopped)
                stopper = threading.Thread(target=stop_some, args=arguments)
                stopper.start()
            status = process.wait()
            over.set()
            if mode == "stops":
                stopper.join()
    finally:
        over.set()
        for other in others:
            other.kill()
            other.wait()
    passed, failed = counts(log.read_text(errors="replace"))
    return {
        "status": status, "passed": passed, "failed": failed, "seconds": round(time.monotonic() - began, 1),
        "load": os.getloadavg()[0], "stops": len(stopped), "log": str(log.relative_to(ROOT)),
    }  # fmt: skip


def main() -> int:
    """Runs what has not passed at this commit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=[n for n in COMMANDS if n != "rust"])
    parser.add_argument("--busy", type=int, default=BUSY, help="processes that compute, in the mode `busy`")
    parser.add_argument("--seed", type=int, default=1, help="of the draw of processes to stop")
    parser.add_argument("--again", action="store_true", help="repeat what has passed, too")
    arguments = parser.parse_args()
    kept, now = TARGET / "stress.json", version()
    results: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    bad = 0
    for mode in arguments.modes:
        for name in arguments.only:
            key = f"{mode} {name}"
            before = results.get(key, {})
            if before.get("version") == now and before.get("status") == 0 and not arguments.again:
                print(f"{key}: has passed at {now}", flush=True)
                continue
            result = run(name, COMMANDS[name], mode, arguments.busy, arguments.seed)
            results[key] = {"version": now, **result}
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(results, indent=1) + "\n")
            bad += result["status"] != 0
            word = "passed" if result["status"] == 0 else f"FAILED: {', '.join(result['failed']) or result['log']}"
            took = f"{result['seconds']:.0f} s, load {result['load']:.1f}, {result['stops']} stops"
            print(f"{key}: {result['passed']} tests passed; {took}; {word}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
