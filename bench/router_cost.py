"""Cost of a forwarded packet in `explicated router`, with its controller and without; needs root.

Two hosts in namespaces with the router between them, packets of 1200 bytes, with and without controller in turn. CPU
time is that of the router's thread, in kernel and user mode; on virtual cables it includes the work of the receiving
host's kernel. There are two loads: evenly spaced packets that ignore feedback, and as many of them as pass. A loop that
forwards frames without parsing them shows the minimum cost of packet sockets. The cost of the controller alone is
measured on the path of frames without system calls. Processors are kept awake, because the wake-up of a virtual
processor is the work of its host, not of the router. `--markdown` puts the figures into a document.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared import ROOT, replace_between

from explicate.worlds import program

SPACES = {name: f"cost-{os.getpid()}-{name}" for name in ("a", "m", "b")}
CONTROLLERS = ("xcp", "none")
BARE = "bare loop"
"""Replaces the controller's name: frames are forwarded without parsing."""
APART = 800
"""Microseconds between two turns: the maximum of the router (its default), constant in the bare loop."""
FIRST = ("chrt", "--rr", "1")
"""Sender, router and receiver go before whatever else the machine does, which would thin the load."""
SECONDS = 3
EVEN = 45_000
"""Packets per second of the first load: 432 Mbit/s."""
LIMIT_US, LIMIT_RATIO = 5.5, 1.3
"""Limits under the first load: microseconds a packet with the controller, and their ratio to those without."""
SINK = "import socket, time; s = socket.socket(2, 2); s.bind(('0.0.0.0', 49407)); time.sleep(3600)"
"""Holds the port and reads nothing."""


@dataclass
class Run:
    """The output of one run of the router."""

    cost: float
    """Microseconds of CPU a packet."""
    kernel: float
    """The share of it that the kernel took."""
    rate: float
    """Packets forwarded per second."""
    together: float
    """Packets per poll of the router."""


def example(name: str) -> str:
    """Return the path of a built example."""
    return str(ROOT / "target/release/examples" / name)


def ip(words: str) -> None:
    """Run `ip`; raise CalledProcessError if it fails."""
    subprocess.run(["ip", *words.split()], check=True)


def inside(name: str, *words: str) -> list[str]:
    """Return the command that runs something in a namespace, at real-time priority."""
    return ["ip", "netns", "exec", SPACES[name], *FIRST, *words]


def furnish() -> None:
    """Make the namespaces and the cables between them."""
    for name in SPACES.values():
        ip(f"netns add {name}")
    for host, end, number in (("a", "left", 1), ("b", "right", 2)):
        ip(f"-n {SPACES[host]} link add eth0 type veth peer name {end} netns {SPACES['m']}")
        ip(f"-n {SPACES[host]} addr add 10.9.0.{number}/24 dev eth0")
        ip(f"-n {SPACES[host]} link set eth0 up")
        ip(f"-n {SPACES['m']} link set {end} up")


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Keep all processors from halting; run whatever is measured inside of it."""
    with subprocess.Popen([example("keep_awake")]) as loops:
        try:
            yield
        finally:
            loops.terminate()


def forward(controller: str, rate: str, receiver: list[str], load: list[str]) -> Run:
    """Run a router whose port has `rate`, and `load` through it."""
    port = f'rate = "{rate}", queue = {{ kind = "droptail", limit = "2MB" }}, router = "{controller}"'
    words = [program(), "router", "--port", "left", "--port", f"right: {port}", "--json", "--real-time"]
    words = [example("bare_forward"), "left", "right"] if controller == BARE else [*words, "--coalesce"]
    with subprocess.Popen(inside("b", *receiver), stdout=subprocess.DEVNULL) as sink:
        with subprocess.Popen(inside("m", *words, str(APART)), stdout=subprocess.PIPE, text=True) as router:
            time.sleep(0.6)
            sent = subprocess.run(inside("a", *load), stdout=subprocess.DEVNULL, check=False)
            router.send_signal(signal.SIGINT)
            told: dict[str, Any] = json.loads((router.stdout or sys.stdin).read().splitlines()[-1])
            _, router.returncode, used = os.wait4(router.pid, 0)
        sink.terminate()
    sent.check_returncode()
    kernel = used.ru_stime / (used.ru_stime + used.ru_utime)
    frames = told["sent"]
    return Run(told["cpu_us_per_frame"], kernel, frames / SECONDS, frames / told["turns"])


def flood(controller: str, rate: float, burst: int) -> Run:
    """Send to a host that reads nothing and answers nothing."""
    load = [example("flood"), "10.9.0.2", str(rate), str(SECONDS), str(burst)]
    return forward(controller, "500Mbit/s" if rate == EVEN else "10Gbit/s", [sys.executable, "-c", SINK], load)


LOADS: dict[str, Callable[[str], Run]] = {
    f"{EVEN:,} packets/s at even distances": lambda controller: flood(controller, EVEN, 1),
    "as many as come through": lambda controller: flood(controller, 1e6, 32),
}


def control() -> list[float]:
    """Return nanoseconds of CPU that the controller adds to a frame, in several pairs of measurements."""

    def once(controller: str) -> float:
        words = [example("frame_cost"), controller, "2000000"]
        return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    return [once("xcp") - once("none") for _ in range(9)]


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, help="document whose router table is replaced")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of runs for each load")
    options = parser.parse_args()
    build = ["cargo", "build", "--release", "--quiet", "--package", "explicate-net", "--bins", "--examples"]
    subprocess.run(build, check=True, cwd=ROOT)
    load_before = os.getloadavg()[0]
    lines = [
        "| load | controller | us of CPU a packet, median (least) | in the kernel | packets/s | packets a turn |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    ratios: dict[str, float] = {}
    first: list[Run] = []
    try:
        furnish()
        for load, run in LOADS.items():
            with awake():
                rounds = [[run(controller) for controller in (*CONTROLLERS, BARE)] for _ in range(options.rounds)]
            ratios[load] = statistics.median(on.cost / off.cost for on, off, _ in rounds)
            first = first or [on for on, _, _ in rounds]
            for controller, of in zip((*CONTROLLERS, BARE), zip(*rounds, strict=True), strict=True):
                costs = [r.cost for r in of]
                cost = f"{statistics.median(costs):.2f} ({min(costs):.2f})"
                kernel = statistics.median(r.kernel for r in of)
                rate = statistics.median(r.rate for r in of)
                together = statistics.median(r.together for r in of)
                lines.append(f"| {load} | {controller} | {cost} | {kernel:.0%} | {rate:,.0f} | {together:.1f} |")
    finally:
        for name in SPACES.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)
    nanoseconds = control()
    listed = ", ".join(f"{ratio:.2f}" for ratio in ratios.values())
    few, many, middle = min(nanoseconds), max(nanoseconds), statistics.median(nanoseconds)
    lines += [
        "",
        f"With the controller over without, median of the pairs: {listed}. The controller itself, with the writing of",
        f"its feedback and the checksum's correction: {middle:.0f} ns a packet ({few:.0f} to {many:.0f}).",
        f"Measured with a load average of {load_before:.1f} at the start, on {os.cpu_count()} processors, kept awake,",
        f"that sender, router and receiver share, at real-time priority; {options.rounds} rounds of {SECONDS} s each.",
    ]
    text = "\n".join(lines)
    print(text)
    if options.markdown:
        replace_between(options.markdown, text, "router")
    reached, ratio = statistics.median(r.cost for r in first), next(iter(ratios.values()))
    if reached > LIMIT_US or ratio > LIMIT_RATIO:
        sys.exit(f"over the limit of {LIMIT_US} us a packet or {LIMIT_RATIO} times what it is without a controller")


if __name__ == "__main__":
    main()
