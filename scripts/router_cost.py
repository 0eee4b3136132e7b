"""What a forwarded packet costs `explicated router`, with its controller and without; needs root and a release build.

Two hosts in namespaces, flows of 1200-byte packets with a bounded window between them, three rounds each way by turns,
of which the median counts. CPU time is the router's own thread's, in the kernel and outside.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import time
from typing import Any

from explicate.worlds import program

SPACES = {name: f"cost-{os.getpid()}-{name}" for name in ("a", "m", "b")}
SECONDS = 4
ROUNDS = 3


def ip(words: str) -> None:
    """Run `ip`; raise CalledProcessError if it fails."""
    subprocess.run(["ip", *words.split()], check=True)


def inside(name: str, *words: str) -> list[str]:
    """Return the command that runs `explicated` in a namespace."""
    return ["ip", "netns", "exec", SPACES[name], program(), *words]


def furnish() -> None:
    """Make the namespaces and the cables between them."""
    for name in SPACES.values():
        ip(f"netns add {name}")
    for host, end, number in (("a", "left", 1), ("b", "right", 2)):
        ip(f"-n {SPACES[host]} link add eth0 type veth peer name {end} netns {SPACES['m']}")
        ip(f"-n {SPACES[host]} addr add 10.9.0.{number}/24 dev eth0")
        ip(f"-n {SPACES[host]} link set eth0 up")
        ip(f"-n {SPACES['m']} link set {end} up")


def measure(controller: str) -> tuple[float, float]:
    """Return microseconds of CPU per forwarded frame, and frames forwarded per second."""
    queue = '{ kind = "droptail", limit = "2MB" }'
    port = f'rate = "500Mbit/s", delay = "1ms", queue = {queue}, router = "{controller}"'
    command = inside("m", "router", "--port", "left", "--port", f"right: {port}", "--json", "--real-time")
    router = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    receiver = subprocess.Popen(inside("b", "recv", "-i", "0", "--window", "300"), stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    words = ["send", "10.9.0.2", "-P", "2", "--packet", "1200B", "-J"]
    sent = subprocess.run(inside("a", *words, "--time", str(SECONDS)), stdout=subprocess.DEVNULL, check=False)
    router.send_signal(signal.SIGINT)
    told: dict[str, Any] = json.loads(router.communicate()[0].splitlines()[-1])
    receiver.send_signal(signal.SIGINT)
    receiver.wait()
    sent.check_returncode()
    return told["cpu_us_per_frame"], told["sent"] / SECONDS


def main() -> None:
    """Measure and print."""
    try:
        furnish()
        found: dict[str, list[tuple[float, float]]] = {"xcp": [], "none": []}
        for _ in range(ROUNDS):
            for controller, rounds in found.items():
                rounds.append(measure(controller))
        cost = {name: statistics.median(r[0] for r in rounds) for name, rounds in found.items()}
        rate = {name: statistics.median(r[1] for r in rounds) for name, rounds in found.items()}
        for name in found:
            print(f"controller {name}: {cost[name]:.2f} us of CPU a frame, {rate[name]:.0f} frames/s")
        more = 1e3 * (cost["xcp"] - cost["none"])
        print(f"ratio {cost['xcp'] / cost['none']:.2f}; the controller costs {more:.0f} ns a frame")
    finally:
        for name in SPACES.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
