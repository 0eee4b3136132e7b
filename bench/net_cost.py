"""CPU a packet of `explicated send`, `recv` and `router`, of one binary against another. Needs root and quiet.

    bench/net_cost.py OLD NEW [--rounds 9] [--seconds 5] [--judge 5]

Both run in turn in namespaces of their own: a host, a router of 500 Mbit/s with XCP's controller, a host. Which is
first changes with each round. Times are of the processes, system calls included, for each data packet with its
acknowledgement; the ratio is the median over the rounds. `--judge` fails above so many per cent more.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROLES = ("send", "recv", "router")
PORT = 'right: rate = "500Mbit/s", queue = { kind = "droptail", limit = "500pkt" }'
TICKS = os.sysconf("SC_CLK_TCK")


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


def once(binary: Path, seconds: float) -> dict[str, float]:
    """Microseconds of CPU for each data packet, by role."""
    said = subprocess.run([binary, "recv", "--help"], capture_output=True, text=True, check=True).stdout
    listen = [str(binary), "recv", "--interval", "0", *(["--open"] if "--open" in said else [])]
    with ExitStack() as stack:
        names = stack.enter_context(namespaces())
        ports = ["--port", "left", "--port", PORT]
        router = stack.enter_context(running(names["m"], [str(binary), "router", *ports, "--json"]))
        recv = stack.enter_context(running(names["b"], listen))
        send = [str(binary), "send", "10.9.0.2", "-p", "xcp", "--time", str(seconds), "--interval", "0", "--json"]
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
    args = parser.parse_args()
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
