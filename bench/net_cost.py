"""CPU per packet of `explicated send`, `recv` and `router`, of two binaries. Needs root and an idle machine.

    bench/net_cost.py OLD NEW [--rounds 9] [--seconds 5] [--judge 5]
    bench/net_cost.py OLD NEW --count

Both run in turn in separate namespaces: a host, a router of 500 Mbit/s with XCP's controller, a host. The order
alternates between rounds. Times are CPU times of the processes, including system calls, per data packet with its
acknowledgement; the ratio is the median over the rounds. `--judge` fails if the increase exceeds this percentage.

`--count` needs neither root nor an idle machine: instructions of `recv` outside the kernel (valgrind's callgrind) and
its system calls (strace), for each data packet of CUBIC and XCP over loopback.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROLES = ("send", "recv", "router")
PORT = 'right: rate = "500Mbit/s", queue = { kind = "droptail", limit = "500pkt" }'
TICKS = os.sysconf("SC_CLK_TCK")
PAYLOAD = 1452
"""Bytes in a packet of 1500 without congestion header."""


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


def receiver(binary: Path) -> list[str]:
    """The command that receives from any sender."""
    said = subprocess.run([binary, "recv", "--help"], capture_output=True, text=True, check=True).stdout
    return [str(binary), "recv", "--interval", "0", *(["--open"] if "--open" in said else [])]


def sender(binary: Path) -> list[str]:
    """The command that sends by UDP."""
    said = subprocess.run([binary, "send", "--help"], capture_output=True, text=True, check=True).stdout
    return [str(binary), "send", *(["--transport", "udp"] if "udp" in said else [])]


def received(binary: Path, tool: list[str], protocol: str, packets: int) -> None:
    """Receive so many packets over loopback under a tool."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with subprocess.Popen(
        [*tool, *receiver(binary), "--bind", address, "--once"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as recv:
        assert recv.stdout is not None
        recv.stdout.readline()  # it listens
        send = [*sender(binary), address, "-p", protocol, "--interval", "0", "--bytes", str(packets * PAYLOAD)]
        subprocess.run(send, capture_output=True, check=True)
        recv.communicate(timeout=60)


def counts(binary: Path, protocol: str, packets: int) -> tuple[int, int]:
    """Instructions outside the kernel, and system calls, of receiving so many packets."""
    with tempfile.TemporaryDirectory() as folder:
        out, calls = Path(folder) / "callgrind.out", Path(folder) / "strace.out"
        received(binary, ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"], protocol, packets)
        received(binary, ["strace", "-f", "-o", str(calls)], protocol, packets)
        totals = next(line for line in out.read_text(encoding="utf-8").splitlines() if line.startswith("totals:"))
        return int(totals.split()[1]), len(calls.read_text(encoding="utf-8").splitlines())


def count(binaries: list[Path]) -> None:
    """Print both counts for each packet, without those of start and end."""
    few, many = 1000, 6000
    print("| protocol | binary | instructions a packet | system calls a packet |\n| --- | --- | ---: | ---: |")
    for protocol, binary in itertools.product(("cubic", "xcp"), binaries):
        low, high = counts(binary, protocol, few), counts(binary, protocol, many)
        instructions, calls = ((end - start) / (many - few) for start, end in zip(low, high, strict=True))
        print(f"| {protocol} | {binary.name} | {instructions:.0f} | {calls:.3f} |")


def once(binary: Path, seconds: float) -> dict[str, float]:
    """Microseconds of CPU for each data packet, by role."""
    listen = receiver(binary)
    with ExitStack() as stack:
        names = stack.enter_context(namespaces())
        ports = ["--port", "left", "--port", PORT]
        router = stack.enter_context(running(names["m"], [str(binary), "router", *ports, "--json"]))
        recv = stack.enter_context(running(names["b"], listen))
        send = [*sender(binary), "10.9.0.2", "-p", "xcp", "--time", str(seconds), "--interval", "0", "--json"]
        before = os.times()
        done = subprocess.run(["ip", "netns", "exec", names["a"], *send], capture_output=True, text=True, check=False)
        after = os.times()
        if done.returncode != 0:
            raise SystemExit(f"{binary} send: {done.stderr}")
        cpu = {
            "send": after.children_user + after.children_system - before.children_user - before.children_system,
            "recv": spent(recv.pid),
            "router": spent(router.pid),
        }
        router.send_signal(signal.SIGINT)
        told: dict[str, Any] = json.loads(router.communicate(timeout=10)[0].splitlines()[-1])
    packets = told["explicit"] / 2
    return {role: 1e6 * cpu[role] / packets for role in ROLES}


def main() -> int:
    """Measure both in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--judge", type=float, metavar="PERCENT")
    parser.add_argument("--count", action="store_true")
    args = parser.parse_args()
    if args.count:
        count([args.old, args.new])
        return 0
    if os.geteuid() != 0:
        sys.exit("bench/net_cost.py makes network namespaces: run it as root")
    found: dict[Path, list[dict[str, float]]] = {args.old: [], args.new: []}
    for turn in range(args.rounds):
        for binary in (args.old, args.new) if turn % 2 == 0 else (args.new, args.old):
            found[binary].append(once(binary, args.seconds))
    over = []
    print("| role | old, us a packet | new | more |\n| --- | --- | --- | --- |")
    for role in ROLES:
        old, new = ([times[role] for times in found[binary]] for binary in (args.old, args.new))
        more = 100 * (statistics.median(n / o for o, n in zip(old, new, strict=True)) - 1)
        print(f"| {role} | {statistics.median(old):.2f} | {statistics.median(new):.2f} | {more:+.1f} % |")
        over += [role] if args.judge is not None and more > args.judge else []
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
