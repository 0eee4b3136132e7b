"""Running one dumbbell under ns-2 or Explicate, and reading its output (`ns3.py` has ns-3).

Every simulator has the same two functions: `measure` (results at the bottleneck)
and `cost` (CPU time and memory of a run without traces).
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

ACCESS_DELAY_MS = 1.0
ACCESS_FACTOR = 4
START_SPREAD_S = 1.0
PACKET_BYTES = 1000
INITIAL_WINDOW = 2  # ns-2's
PROCESSING = 'processing = "none"'
"""The line of a group of flows that removes their processing time, as ns-2's `overhead_` of 0 does."""
XCP_PARAMS = "follow_duplicates = false"
"""ns-2's XCP agent drops the feedback of duplicate acknowledgements."""
XCP_ROUTER = '{ kind = "xcp", idle_rtt = "initial" }'
"""ns-2's XCP queue uses 50 ms as the mean RTT after an interval without data."""


def clock(protocol: str, time_stamps: bool = False, rtt_resolution: str = "0s") -> str:
    """The parameters of a sender's clock: the ticks of `tcpTick_` in the scripts for ns-2, and whether it has stamps.

    XCP has its own estimate for its headers, from every acknowledgement, beside that of the timer. ns-2 counts it in
    the same ticks but smooths it in 256ths of one, so here it is exact unless `rtt_resolution` is given.
    """
    own = 'clock_tick = "1ms"' + (', rto = "ns2_timestamps"' if time_stamps else "")
    return f'{own}, rtt_resolution = "{rtt_resolution}"' if protocol.partition("/")[0] == "xcp" else own


def processing(longest_s: float) -> str:
    """The line for a processing time of each packet, uniform up to this long: ns-2's `overhead_`."""
    return f'processing = "{longest_s * 1e6:g}us"' if longest_s else PROCESSING


class PeerError(Exception):
    """Something outside this program is missing or went wrong."""


@dataclass(frozen=True)
class Queue:
    """The bottleneck's discipline, in either side's words (ours without the limit)."""

    name: str = "drop-tail"
    ns2: str = "droptail"
    ours: str = 'kind = "droptail"'


@dataclass(frozen=True)
class Case:
    """A dumbbell; `rtt_high_ms` above `rtt_ms` spreads the flows' RTTs evenly.

    `starts` are even, or random. `processing_s` is the longest processing time of a packet at hosts, in both:
    it randomises which packets a full queue accepts (Floyd and Jacobson 1992).
    """

    system: str
    rate_mbps: int
    rtt_ms: int
    flows: int
    rtt_high_ms: int | None = None
    starts: str = "even"
    processing_s: float = 0.0
    duration_s: float = 40.0
    warmup_s: float = 20.0
    queue: Queue = Queue()
    seed: int = 1
    buffer: int | None = None  # packets; None is one bandwidth-delay product
    ours: str | None = None  # Explicate's name of the system, if another
    params: str = ""  # more of Explicate's parameters of the flows, as in a scenario
    router: str = '"auto"'  # Explicate's controllers, as in a scenario
    opposite: bool = False  # every second flow goes from right to left
    rtt_resolution: str = "0s"  # of the round trips in XCP's headers, Explicate's
    time_stamps: bool = False  # every acknowledgement is a sample, and the first one ends a back-off

    @property
    def protocol(self) -> str:
        """Explicate's name of the senders."""
        return self.ours or self.system

    @property
    def name(self) -> str:
        rtt = f"{self.rtt_ms}" if self.rtt_high_ms is None else f"{self.rtt_ms}..{self.rtt_high_ms}"
        flows = "1 flow" if self.flows == 1 else f"{self.flows} flows"
        return f"{self.system} {self.rate_mbps} Mbit/s, {rtt} ms, {flows}"

    @property
    def bench_name(self) -> str:
        rate = f"{self.rate_mbps // 1000}G" if self.rate_mbps >= 1000 else f"{self.rate_mbps}M"
        return f"{self.system}-{rate}-{self.flows}"

    @property
    def bottleneck_delay_ms(self) -> float:
        return self.rtt_ms / 2 - 2 * ACCESS_DELAY_MS

    @property
    def buffer_packets(self) -> int:
        """The given buffer, else one bandwidth-delay product of the mean RTT."""
        if self.buffer is not None:
            return self.buffer
        mean_rtt_ms = (self.rtt_ms + (self.rtt_high_ms or self.rtt_ms)) / 2
        return round(self.rate_mbps * 1e3 * mean_rtt_ms / (8 * PACKET_BYTES))


@dataclass(frozen=True)
class Outcome:
    """The bottleneck and the flows; "after warm-up" unless a field says otherwise."""

    utilisation: float
    queue_mean_packets: float
    queue_p95_packets: float
    queue_max_packets: float
    queue_peak_packets: float  # whole run
    drops: int
    drops_whole_run: int
    jain: float
    time_to_90_s: float | None  # whole run, from t = 0


@dataclass(frozen=True)
class Spent:
    """Cost of one run without traces."""

    hops: int
    cpu_s: float
    instructions: int | None = None


class Simulator(Protocol):
    name: str

    def measure(self, case: Case) -> Outcome: ...

    def cost_command(self, case: Case, duration_s: float) -> list[str]: ...


def jain(rates: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 0.0


def header_bytes(protocol: str) -> int:
    """The headers of a data packet, which ns-2's packets do not have (`explicate protocols NAME` prints them)."""
    return 72 if protocol.partition("/")[0] == "xcp" else 52


# --- processes --------------------------------------------------------------


def run(command: Sequence[str], core: int | None = None) -> tuple[dict[str, Any], str, float]:
    """Run a command that prints one JSON object: (object, stderr, CPU seconds)."""
    pinned = [*(["taskset", "-c", str(core)] if core is not None else []), *command]
    # One seed for Python's hashes, so that its start-up costs the same each time.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    for program in {pinned[0], command[0]}:
        if shutil.which(program) is None:
            raise PeerError(f"{program}: no such command (--install brings the simulators and valgrind)")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(pinned, check=False, capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    if done.returncode != 0:
        detail = (done.stderr or done.stdout).strip()[-2000:]
        raise PeerError(f"`{' '.join(command)}` ended with {done.returncode}:\n{detail}")
    return parse_report(done.stdout), done.stderr, cpu_s


def parse_report(text: str) -> dict[str, Any]:
    """The JSON object in a program's output; a simulator may chat before it."""
    start = text.find("{")
    try:
        report = json.loads(text[start:]) if start >= 0 else None
    except json.JSONDecodeError as error:
        raise PeerError(f"not a JSON object: {text[-200:]!r}") from error
    if not isinstance(report, dict):
        raise PeerError(f"no JSON object in: {text[-200:]!r}")
    return report


# Cachegrind without its caches is the fastest of valgrind's tools that count.
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
VALGRIND += ["--trace-children=yes"]  # a Python command may start through a launcher


def parse_instructions(log: str) -> int:
    """The instructions of all processes in valgrind's log."""
    found = re.findall(r"I\s+refs:\s+([\d,]+)", log)
    if not found:
        raise PeerError(f"no instruction count from valgrind: {log[-500:]!r}")
    return sum(int(count.replace(",", "")) for count in found)


def cost(simulator: Simulator, case: Case, duration_s: float, core: int, *, count: bool) -> Spent:
    """One untraced run on one core; `count` runs it under valgrind for instructions."""
    command = simulator.cost_command(case, duration_s)
    report, log, cpu_s = run([*VALGRIND, *command] if count else command, core)
    return Spent(int(only_case(report)["hops"]), cpu_s, parse_instructions(log) if count else None)


def cost_report(simulator: Simulator, case: Case, duration_s: float, core: int) -> tuple[dict[str, Any], float]:
    """The report of one run without traces on one core, and its CPU seconds."""
    report, _, cpu_s = run(simulator.cost_command(case, duration_s), core)
    return only_case(report), cpu_s


def only_case(report: dict[str, Any]) -> dict[str, Any]:
    return dict(report["cases"][0]) if "cases" in report else report


# --- ns-2 -------------------------------------------------------------------


class Ns2:
    name = "ns-2"
    script = Path(__file__).with_name("dumbbell.tcl")

    def __init__(self, command: str = "ns", core: int | None = None) -> None:
        self.command, self.core = command, core

    def arguments(self, case: Case) -> list[str]:
        high = case.rtt_ms if case.rtt_high_ms is None else case.rtt_high_ms
        options = {
            "system": case.system,
            "rate": case.rate_mbps,
            "rtt": f"{case.rtt_ms}:{high}",
            "flows": case.flows,
            "duration": case.duration_s,
            "warmup": case.warmup_s,
            "packet": PACKET_BYTES,
            "buffer": case.buffer_packets,
            "access": ACCESS_FACTOR * case.rate_mbps,
            "starts": case.starts,
            "spread": START_SPREAD_S,
            "overhead": case.processing_s,
            "queue": case.queue.ns2,
            "opposite": int(case.opposite),
            "reset": int(case.time_stamps),
            "seed": case.seed,
        }
        pairs = [text for key, value in options.items() for text in (f"-{key}", str(value))]
        return [self.command, str(self.script), *pairs]

    def measure(self, case: Case) -> Outcome:
        return self.outcome(run(self.arguments(case), self.core)[0])

    def cost_command(self, case: Case, duration_s: float) -> list[str]:
        timed = replace(case, duration_s=duration_s, warmup_s=0.0)
        return [*self.arguments(timed), "-sample", "0"]

    @staticmethod
    def outcome(report: dict[str, Any]) -> Outcome:
        return Outcome(
            utilisation=report["utilisation"],
            queue_mean_packets=report["queue_mean_packets"],
            queue_p95_packets=report["queue_p95_packets"],
            queue_max_packets=report["queue_max_packets"],
            queue_peak_packets=report["queue_peak_packets"],
            drops=report["drops_measured"],
            drops_whole_run=report["drops"],
            jain=jain(report["goodput_bps"]),
            time_to_90_s=report["time_to_90_s"],
        )


# --- Explicate --------------------------------------------------------------


class Explicate:
    name = "Explicate"
    bottleneck = "r1->r2"

    def __init__(self, command: str, bench_binary: str | None = None, core: int | None = None) -> None:
        self.command, self.core = command, core
        self.bench = [bench_binary] if bench_binary else [command, "bench", "--json"]

    def measure(self, case: Case) -> Outcome:
        # Its columns exclude the warm-up; a run without one has the start in them.
        return self.outcome(self.run(case), self.run(replace(case, warmup_s=0.0)))

    def run(self, case: Case) -> dict[str, Any]:
        return self.run_text(explicate_scenario(case))

    def run_text(self, text: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            scenario = Path(folder, "peers.toml")
            scenario.write_text(text, encoding="utf-8")
            return run([self.command, "run", str(scenario), "--json"], self.core)[0]

    def cost_command(self, case: Case, duration_s: float) -> list[str]:
        return [*self.bench, "--case", case.bench_name, "--duration", f"{duration_s:g}"]

    @classmethod
    def outcome(cls, measured: dict[str, Any], whole: dict[str, Any]) -> Outcome:
        link, link_whole = cls.link(measured), cls.link(whole)
        return Outcome(
            utilisation=link["utilisation"],
            queue_mean_packets=link["queue_mean_packets"],
            queue_p95_packets=link["queue_p95_packets"],
            queue_max_packets=link["queue_max_packets"],
            queue_peak_packets=link_whole["queue_max_packets"],
            drops=dropped(link),
            drops_whole_run=dropped(link_whole),
            jain=jain([flow["goodput_bps"] for flow in measured["flows"]]),
            time_to_90_s=link_whole["time_to_90_s"],
        )

    @classmethod
    def link(cls, report: dict[str, Any]) -> dict[str, Any]:
        for link in report["links"]:
            if link["link"] == cls.bottleneck:
                return dict(link)
        raise PeerError(f"Explicate reported no link {cls.bottleneck}")


def dropped(link: dict[str, Any]) -> int:
    return int(link["drops_overflow"] + link["drops_early"] + link["drops_channel"])


def explicate_scenario(case: Case) -> str:
    """The case as a scenario file; where RTTs differ, the access links carry the difference."""
    delay = f'"{ACCESS_DELAY_MS:g}ms"'
    if case.rtt_high_ms is not None:
        high_ms = (case.rtt_high_ms / 2 - case.bottleneck_delay_ms) / 2
        delay = f'{{ from = {delay}, to = "{high_ms:g}ms" }}'
    access = (
        f'rate = "{ACCESS_FACTOR * case.rate_mbps}Mbit/s", delay = {delay}, queue = "unlimited", router = {case.router}'
    )
    queue = f'{case.queue.ours}, limit = "{case.buffer_packets}pkt"'
    bottleneck = f'rate = "{case.rate_mbps}Mbit/s", delay = "{case.bottleneck_delay_ms:g}ms"'
    right = (case.flows + 1) // 2 if case.opposite else case.flows
    groups = group(case, "all", right, "long")
    if case.opposite:
        groups += group(case, "back", case.flows - right, "reverse")
    return f"""
name = "{case.bench_name}"
stack = "ns2"
duration = "{case.duration_s:g}s"
warmup = "{case.warmup_s:g}s"
seed = {case.seed}
[topology]
kind = "dumbbell"
pairs = {case.flows}
access = {{ {access} }}
bottleneck = {{ {bottleneck}, router = {case.router}, queue = {{ {queue} }} }}
{groups}"""


def group(case: Case, name: str, count: int, path: str) -> str:
    """The flows of one direction."""
    start = {"even": "spread", "random": "uniform"}[case.starts]
    more = f", {case.params}" if case.params else ""
    return f"""[[flows]]
name = "{name}"
count = {count}
protocol = "{case.protocol}"
path = "{path}"
packet = "{PACKET_BYTES}B"
params = {{ initial_window = {INITIAL_WINDOW}, {clock(case.protocol, case.time_stamps, case.rtt_resolution)}{more} }}
start = {{ {start} = "{START_SPREAD_S:g}s" }}
{processing(case.processing_s)}
"""


# --- what must be installed ---------------------------------------------------


def install(packages: Sequence[str]) -> None:
    """Install the Debian packages, on explicit request only."""
    command = ["apt-get", "install", "-y", *packages]
    if os.geteuid() != 0:
        raise PeerError(f"--install needs root; as root: {' '.join(command)}")
    if shutil.which(command[0]) is None:
        raise PeerError(f"--install needs apt-get; install {' and '.join(packages)} by hand")
    if subprocess.run(command, check=False).returncode != 0:
        raise PeerError(f"`{' '.join(command)}` failed (is the list of packages up to date?)")
