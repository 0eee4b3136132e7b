"""Measures what depends on how fast this machine is today: measure.py [--only NAME...] [--runs N] [--record].

Each measurement is made N times, as long as the machine is left alone. Medians and spreads are printed beside the
recorded ones and kept in `target/measured.json`; with --record they replace those of `validation/measured.json`. A
median that is beyond three recorded spreads on the bad side is called "worse". That is said, and fails nothing: the
exit status is 0 unless the arguments are wrong.

A run gives no figure where the machine is too busy: if, before it, one of twenty waits of 1 ms is late by more than
`LATE_MS`, or others use much of the processors (the load of those that wait to run); and if, during it, others use
more than `OTHERS` of the processors, a host takes more than `STOLEN` of them, or they wait for disks for more than
`WAITING`. It is repeated, after a pause, as often as it was asked for; then the measurement has no figure.

Tests of Rust and Node append a line of JSON for each figure (`name`, `value`, `unit`, `better`: "more" or "less") to
the file that `EXPLICATE_FIGURES` names.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "validation" / "measured.json"
TODAY = ROOT / "target" / "measured.json"
RUNS = 5
# The limits of a machine that is left alone: see above. Shares are of the time of all processors.
LATE_MS, OTHERS, STOLEN, WAITING = 1.0, 0.1, 0.02, 0.1
# Seconds for which a look before a run lasts, and after which it is repeated.
LOOK, PAUSE = 2.0, 10.0
# A median is worse beyond so many spreads; a spread is at least this share of its median.
SPREADS, LEAST_SPREAD = 3.0, 0.01
# Figures of the gateway's tables of which more is better.
MORE = ("share", "use of", "Gbit/s", "Mbit/s", "Jain's index")

LINUX = "cargo test --offline --test linux -- --ignored --test-threads=1"


@dataclass(frozen=True)
class Measurement:
    """What is measured: its command, how often at most, and its settings. `{figures}` is the file of the figures."""

    name: str
    command: str
    most: int = RUNS
    settings: dict[str, str] = field(default_factory=dict)
    gateway_tables: bool = False


MEASUREMENTS = [
    Measurement("library", "cargo test --offline --lib -- --ignored --test-threads=1 timed::"),
    Measurement("transfers", f"{LINUX} timed::files:: timed::rates::"),
    Measurement("gateway", f"{LINUX} timed::gateway::"),
    Measurement("laboratory", f"{LINUX} timed::lab:: timed::ways::"),
    Measurement("classes", f"{LINUX} timed::classes::", most=3),
    Measurement("shares", f"{LINUX} timed::shares::", most=3),
    Measurement("guard", f"{LINUX} timed::guard::", most=3),
    Measurement("soak", f"{LINUX} timed::soak::", most=3, settings={"SOAK_MINUTES": "10"}),
    Measurement("worlds", ".venv/bin/python -m pytest -q python/tests/timed_worlds.py"),
    Measurement("playground", "npm --prefix playground run --silent measure"),
    Measurement(
        "gateway tables",
        ".venv/bin/python -m gateway_bench target/release/explicated --connections --runs 1 --json {figures}",
        most=3, settings={"PYTHONPATH": "bench"}, gateway_tables=True,
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Ticks:
    """Hundredths of a second that all processors have spent: on programs, stolen by a host, on disks, and in all."""

    busy: float
    stolen: float
    waiting: float
    total: float

    @classmethod
    def now(cls) -> Ticks:
        """Those since the start of the machine."""
        words = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
        user, nice, system, idle, waiting, hard, soft, stolen = map(float, words)
        # Time in interrupts counts in the total only: frames of the tests' own networks cause most of it.
        return cls(user + nice + system, stolen, waiting, user + nice + system + idle + waiting + hard + soft + stolen)

    def since(self, before: Ticks) -> Ticks:
        """Those since then."""
        return Ticks(
            self.busy - before.busy, self.stolen - before.stolen, self.waiting - before.waiting,
            self.total - before.total,
        )  # fmt: skip


def disturbance(spent: Ticks, own_seconds: float, late_ms: float = 0.0) -> str:
    """What disturbed a run, or a look before it, by what the processors spent; nothing if nothing did."""
    own = 100 * own_seconds
    total = max(spent.total, 1.0)  # A run may be shorter than a tick.
    shares = {
        "others use {:.0%} of the processors": ((spent.busy - own) / total, OTHERS),
        "the host takes {:.0%} of the processors": (spent.stolen / total, STOLEN),
        "{:.0%} of the processors wait for disks": (spent.waiting / total, WAITING),
    }
    found = [text.format(share) for text, (share, most) in shares.items() if share > most]
    if late_ms > LATE_MS:
        found.append(f"a timer is late by {late_ms:.1f} ms")
    return ", ".join(found)


def lateness(seconds: float) -> float:
    """By how much waits of 1 ms are late, ms: one of twenty is later."""
    late, end = [], time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        time.sleep(1e-3)
        late.append(1e3 * (time.perf_counter() - began) - 1.0)
    return sorted(late)[int(0.95 * (len(late) - 1))]


PR_SET_CHILD_SUBREAPER = 36


class Descendants:
    """The processor time of all processes that stem from this one, while it is open.

    What `wait4` reports of a command leaves out processes whose parents did not call `wait`, as most of a browser's.
    """

    EVERY = 0.2

    def __init__(self) -> None:
        # A process whose parent has ended becomes a child of this one, not of the first of the machine.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.ticks: dict[tuple[int, int], int] = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self) -> Descendants:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def watch(self) -> None:
        """Looks until the end; what a process spends after its last look is left out."""
        while not self.ended.wait(self.EVERY):
            self.see()

    def see(self) -> None:
        """Notes what each has spent so far."""
        parents, spent = {}, {}
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, _, rest = file.read_text(encoding="utf-8", errors="replace").partition(" (")
            except OSError:
                continue  # It has ended meanwhile.
            words = rest.rpartition(") ")[2].split()
            # State, parent, ..., user and system time, ..., start: proc(5).
            parents[int(pid)] = int(words[1])
            spent[int(pid)] = (int(words[19]), int(words[11]) + int(words[12]))
        for pid, (start, ticks) in spent.items():
            above = pid
            while above in parents and above != os.getpid():
                above = parents[above]
            if above == os.getpid() != pid:
                self.ticks[pid, start] = ticks

    def seconds(self) -> float:
        """What they have spent."""
        return sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")


def look() -> str:
    """What disturbs the machine now; nothing if nothing does."""
    before, began = Ticks.now(), time.process_time()
    late = lateness(LOOK)
    return disturbance(Ticks.now().since(before), time.process_time() - began, late)


@dataclass(frozen=True)
class Run:
    """One run: its figures with units and directions, what disturbed it, and whether its command failed."""

    figures: dict[str, tuple[float, str, str]]
    disturbed: str
    failed: bool


def figures_in(text: str) -> dict[str, tuple[float, str, str]]:
    """The figures in lines of JSON. Of a name that comes several times, the median."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        figure = json.loads(line)
        found.setdefault(figure["name"], []).append(figure)
    return {
        name: (statistics.median(f["value"] for f in all_), all_[0]["unit"], all_[0]["better"])
        for name, all_ in found.items()
    }


def figures_of_tables(text: str) -> dict[str, tuple[float, str, str]]:
    """The figures of the gateway, in the results of `gateway_bench`."""
    found = {}
    for case, ways in json.loads(text or "{}").items():
        for figures in ways.get("gateway", []):
            for name, value in figures.items() if isinstance(figures, dict) else ():
                better = "more" if any(word in name for word in MORE) else "less"
                found[f"gateway tables: {case}, {name}"] = (float(value), "", better)
    return found


def run(measurement: Measurement) -> Run:
    """Makes one run."""
    with tempfile.TemporaryDirectory() as place:
        file, log = Path(place) / "figures", TODAY.parent / "measure" / f"{measurement.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command = shlex.split(measurement.command.replace("{figures}", str(file)))
        environment = {**os.environ, "EXPLICATE_FIGURES": str(file), **measurement.settings}
        before = Ticks.now()
        with log.open("wb") as output, Descendants() as descendants:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        # Each leaves some out.
        own = max(usage.ru_utime + usage.ru_stime, descendants.seconds())
        disturbed = disturbance(Ticks.now().since(before), own)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
    if process.returncode:
        # The next run writes its own.
        shutil.copy(log, log.with_suffix(".failed.log"))
    read = figures_of_tables if measurement.gateway_tables else figures_in
    return Run(read(text), disturbed, process.returncode != 0)


def spread(values: list[float]) -> float:
    """The standard deviation of single values, and at least `LEAST_SPREAD` of their median."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return max(deviation, LEAST_SPREAD * abs(statistics.median(values)))


def summary(runs: list[Run]) -> dict[str, dict[str, Any]]:
    """Median and spread of each figure."""
    values: dict[str, list[float]] = {}
    kinds = {}
    for one in runs:
        for name, (value, unit, better) in one.figures.items():
            values.setdefault(name, []).append(value)
            kinds[name] = (unit, better)
    return {
        name: {
            "median": statistics.median(all_), "spread": spread(all_), "runs": len(all_),
            "unit": kinds[name][0], "better": kinds[name][1],
        }
        for name, all_ in values.items()
    }  # fmt: skip


def verdict(now: dict[str, Any], recorded: dict[str, Any] | None) -> str:
    """How a figure is beside the recorded one."""
    if recorded is None:
        return "not recorded"
    beyond = (now["median"] - recorded["median"]) / (recorded["spread"] or 1e-12)
    if now["better"] == "more":
        beyond = -beyond
    return "worse" if beyond > SPREADS else "better" if beyond < -SPREADS else "as recorded"


def machine() -> dict[str, Any]:
    """What the figures are of."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {"processors": os.cpu_count(), "model": model or platform.machine()}


def commit() -> str:
    """The commit of the tree, with a mark if other files than the recorded figures differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    others = [":/", f":(exclude,top){RECORDED.relative_to(ROOT)}"]
    differs = git("status", "--porcelain", "--untracked-files=no", "--", *others)
    return git("rev-parse", "--short=12", "HEAD") + ("-dirty" if differs else "")


def measured(
    measurement: Measurement, count: int, make: Callable[[Measurement], Run] = run, before: Callable[[], str] = look,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, Any] | str:  # fmt: skip
    """What so many runs come to, or why there are no figures."""
    runs: list[Run] = []
    loads: list[float] = []
    why = ""
    for _ in range(2 * count):
        why = before()
        if why:
            pause(PAUSE)
            continue
        load = os.getloadavg()[0]
        one = make(measurement)
        why = one.disturbed
        if not why:
            runs.append(one)
            loads.append(load)
        if len(runs) == count:
            break
    if len(runs) < count:
        return f"too busy, {len(runs)} of {count} runs: {why}"
    if not any(one.figures for one in runs):
        return f"no figures: see target/measure/{measurement.name}.log"
    return {
        "machine": machine(), "kernel": platform.release(), "commit": commit(), "load": statistics.median(loads),
        "runs": count, "failed": sum(one.failed for one in runs), "figures": summary(runs),
    }  # fmt: skip


def report(name: str, found: dict[str, Any] | str, recorded: dict[str, Any]) -> str:
    """The table of a measurement."""
    if isinstance(found, str):
        return f"{name}: {found}"
    lines = [f"{name}: {found['runs']} runs, load {found['load']:.1f}, kernel {found['kernel']}"]
    if found["failed"]:
        lines.append(
            f"  {found['failed']} runs missed a bound or failed: target/measure/{name}.failed.log has the last of them"
        )
    other = recorded and recorded["machine"] != found["machine"]
    if other:
        lines.append(f"  recorded on another machine, and so not compared: {recorded['machine']}")
    for figure, now in found["figures"].items():
        then = recorded.get("figures", {}).get(figure)
        said = f"{now['median']:.4g} ± {now['spread']:.2g} {now['unit']}"
        kept = f"recorded {then['median']:.4g} ± {then['spread']:.2g}" if then else ""
        word = "other machine" if other and then else verdict(now, then)
        lines.append(f"  {figure:<70} {said:<28} {kept:<30} {word}")
    return "\n".join(lines)


def read(path: Path) -> dict[str, Any]:
    """What was measured before."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def main() -> None:
    """Measures what the arguments name."""
    names = [measurement.name for measurement in MEASUREMENTS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--runs", type=int, help="runs of each, in place of those that the table says")
    parser.add_argument("--record", action="store_true", help="replace what is recorded")
    arguments = parser.parse_args()
    recorded, today = read(RECORDED), read(TODAY)
    for measurement in MEASUREMENTS:
        if measurement.name not in arguments.only:
            continue
        found = measured(measurement, arguments.runs or measurement.most)
        print(report(measurement.name, found, recorded.get(measurement.name, {})), flush=True)
        if isinstance(found, str):
            continue
        for path, kept in ((TODAY, today), *([(RECORDED, recorded)] if arguments.record else [])):
            kept[measurement.name] = found
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
