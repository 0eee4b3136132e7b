"""Transfers by `explicated send`: CPU of router and ends, and rates without a router. Needs root and quiet.

    bench/quic_cost.py PROGRAM [--rounds 5] [--seconds 5] [--megabytes 500]

First over a router of 500 Mbit/s with XCP's controller: microseconds of CPU of the router for each frame, and
milliseconds of the ends for each megabyte, system calls included. Then over a bridge of the kernel, where nothing
limits: Mbit/s of filler data, and of a file in memory with its digests at both ends. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

PORT = 'right: rate = "500Mbit/s", queue = { kind = "droptail", limit = "500pkt" }'
TICKS = os.sysconf("SC_CLK_TCK")
MEMORY = "/dev/shm"


def ip(words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words.split()], check=True)


@contextmanager
def namespaces() -> Iterator[dict[str, str]]:
    """Two hosts and a router between them, as long as this lasts."""
    names = {role: f"netcost-{os.getpid()}-{role}" for role in "amb"}
    try:
        for name in names.values():
            ip(f"netns add {name}")
        for host, device, address in (("a", "left", "10.9.0.1/24"), ("b", "right", "10.9.0.2/24")):
            ip(f"-n {names[host]} link add eth0 type veth peer name {device} netns {names['m']}")
            ip(f"-n {names[host]} addr add {address} dev eth0")
            ip(f"-n {names[host]} link set eth0 up")
            ip(f"-n {names['m']} link set {device} up")
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


def spent(pid: int) -> float:
    """CPU seconds of a process, and of those it has waited for."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(int(word) for word in words[11:13]) / TICKS


@contextmanager
def running(name: str, command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A program in a namespace, which ends with this."""
    words = ["ip", "netns", "exec", name, *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        time.sleep(0.4)
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def receiver(program: Path, names: dict[str, str], folder: Path) -> Iterator[tuple[list[str], int]]:
    """A receiver in `b`: the command that sends to it from `a`, and its process."""
    into = folder / "in"
    state = ["--state", str(folder / "receiver")]
    receive = [str(program), "recv", "--json", "--replace", "--interval", "0", "--to", str(into), *state]
    with running(names["b"], receive) as recv:
        assert recv.stdout is not None
        listening = json.loads(recv.stdout.readline())
        send = ["ip", "netns", "exec", names["a"], str(program), "send", "10.9.0.2"]
        send += ["-p", "xcp", "--interval", "0", "--json", "--state", str(folder / "sender")]
        if line := listening.get("pair"):
            subprocess.run([*send, "--bytes", "1", "--pair", line], check=True, capture_output=True)
        yield send, recv.pid


def sent(send: list[str], *more: str) -> dict[str, Any]:
    """Send, and return what the receiver has counted."""
    done = subprocess.run([*send, *more], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(send)}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    received: dict[str, Any] = report["end"]["sum_received"]
    return received


def over_a_router(program: Path, seconds: float) -> dict[str, float]:
    """CPU of router and ends."""
    with ExitStack() as stack:
        names = stack.enter_context(namespaces())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
        route = [str(program), "router", "--port", "left", "--port", PORT, "--json"]
        router = stack.enter_context(running(names["m"], route))
        send, recv = stack.enter_context(receiver(program, names, folder))
        before, received_before = os.times(), spent(recv)
        received = sent(send, "--time", str(seconds))
        after = os.times()
        megabytes = received["bytes"] / 1e6
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        router.terminate()
        told = json.loads(router.communicate(timeout=10)[0].splitlines()[-1])
        return {
            "router, us a frame": told["cpu_us_per_frame"],
            "send, ms a MB": 1e3 * cpu / megabytes,
            "recv, ms a MB": 1e3 * (spent(recv) - received_before) / megabytes,
            "over the router, Mbit/s": received["bits_per_second"] / 1e6,
        }


def over_a_bridge(program: Path, seconds: float, megabytes: int) -> dict[str, float]:
    """Rates where nothing limits."""
    with ExitStack() as stack:
        names = stack.enter_context(namespaces())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
        ip(f"-n {names['m']} link add bridge type bridge")
        for device in ("left", "right"):
            ip(f"-n {names['m']} link set {device} master bridge")
        ip(f"-n {names['m']} link set bridge up")
        send, _ = stack.enter_context(receiver(program, names, folder))
        file = folder / "file"
        file.write_bytes(os.urandom(megabytes * 1_000_000))
        return {
            "filler, Mbit/s": sent(send, "--time", str(seconds))["bits_per_second"] / 1e6,
            "file, Mbit/s": sent(send, str(file))["bits_per_second"] / 1e6,
        }


def main() -> int:
    """Measure in rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--megabytes", type=int, default=500)
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench/quic_cost.py makes network namespaces: run it as root")
    program = args.program.resolve()
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(args.rounds):
        measured = over_a_router(program, args.seconds)
        measured |= over_a_bridge(program, args.seconds, args.megabytes)
        for what, value in measured.items():
            found[what].append(value)
    print("| | median |\n| --- | ---: |")
    for what, values in found.items():
        print(f"| {what} | {statistics.median(values):.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
