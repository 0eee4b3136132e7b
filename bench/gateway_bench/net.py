"""Network namespaces: sites, their gateways, a link, a far gateway and a server.

    c0 - a0 -+
    c1 - a1 -+- l - b - s
    c2 - a2 -+

Site i has the network 10.(10 + i).0.0/24, and its gateway is 192.0.2.(10 + i). The server 10.2.0.2 is behind 192.0.2.2.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVER = "10.2.0.2"
FAR = "192.0.2.2"
# Between two reports of the link, seconds.
REPORTS = 0.02
# Two reports are no longer, bytes.
LONGEST = 16_384
OFFLOADS = ("tso", "off", "gso", "off", "gro", "off", "tx", "off")
# Windows that a bandwidth-delay product of 19 MB needs.
BUFFERS = "4096 131072 67108864"


class BenchError(Exception):
    """A run that did not come about, with its reason."""


@dataclass(frozen=True)
class Line:
    """What lies between the gateways."""

    down: str = ""
    up: str = ""
    delay: str = "0ms"
    loss: str = ""
    # Traces in the mahimahi format that the link follows, down and up, instead of rates.
    traces: tuple[str, str] | None = None
    # Longest queue to the client, bytes; without it, 0.6 s at the rate down.
    queue: int = 0
    # Of that rate, what a gateway's port is given.
    share: float = 1.0
    # Whether gateways repair losses by parity.
    parity: bool = True
    # Bytes that a gateway may keep for a connection and a peer; without it, its defaults.
    limit: int = 0

    @property
    def linked(self) -> bool:
        """There is a link, else a cable."""
        return bool(self.down or self.traces)

    @property
    def bits(self) -> float:
        """Of the line to the client, bit/s; 0 where it has no rate."""
        return float(self.down.removesuffix("Mbit/s")) * 1e6 if self.down else 0.0

    def port(self, direction: int) -> str:
        """The port of the link, down (0) or up (1), in the words of `explicated link`."""
        channels = [f'{{ kind = "random_loss", rate = "{self.loss}" }}'] if self.loss else []
        if self.traces and self.traces[direction]:
            channels.append(f'{{ kind = "trace", file = "{self.traces[direction]}" }}')
        # A trace takes the place of the rate.
        rate = (self.down, self.up)[direction] or "1Gbit/s"
        limit = (self.queue or int(self.bits / 8 * 0.6), max(300_000, int(self.bits / 80)))[direction]
        queue = f'{{ kind = "droptail", limit = "{limit}B" }}'
        return f'rate = "{rate}", delay = "{self.delay}", queue = {queue}, channel = [{", ".join(channels)}]'

    @property
    def round_trip(self) -> float:
        """Of an empty path, seconds."""
        return 2 * float(self.delay.removesuffix("ms")) / 1e3


def site(index: int) -> tuple[str, str]:
    """The address of a site's client, and that of its gateway on the path."""
    return f"10.{10 + index}.0.2", f"192.0.2.{10 + index}"


def run(*words: str) -> str:
    """Run a command that has to succeed."""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        message = f"{' '.join(words)}: {done.stderr.strip()}"
        raise BenchError(message)
    return done.stdout


def until(what: str, holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            message = f"in vain: {what}"
            raise BenchError(message)
        time.sleep(0.05)


@contextmanager
def running(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A program as long as this lasts."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def of_left(line: str) -> dict[str, float]:
    """What a report of the link has of the port to the clients."""
    report = json.loads(line)
    port = next(port for port in report["ports"] if port["name"].endswith("left"))
    return {"time": report["time_s"], **{key: port[key] for key in ("bytes", "drops", "queue_packets", "queue_bytes")}}


class Net:
    """The namespaces of one run, and programs in them."""

    def __init__(self, program: str, folder: Path, sites: int, line: Line) -> None:
        """Of a run with so many sites; `folder` is its own."""
        self.program, self.folder, self.sites, self.line = program, folder, sites, line
        self.prefix = f"gwbench-{os.getpid()}-"
        self.link_began = 0.0
        self.hosts = [f"{kind}{i}" for i in range(sites) for kind in "ca"] + ["l", "b", "s"]

    def inside(self, host: str, *words: str) -> list[str]:
        """The command that runs another one in a namespace."""
        return ["ip", "netns", "exec", self.prefix + host, *words]

    def exec(self, host: str, words: str) -> str:
        """Run a command in a namespace."""
        return run(*self.inside(host, *words.split()))

    def start(self, host: str, *words: str, output: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a program in a namespace; its errors, and its output unless that has a file, go to a log."""
        log = (self.folder / f"{host}.log").open("ab")
        return subprocess.Popen(
            self.inside(host, *words), stdin=subprocess.DEVNULL, stdout=output.open("wb") if output else log, stderr=log
        )

    def cable(self, a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
        """A cable between two hosts: host, device, address."""
        names = [self.prefix + host for host, *_ in (a, b)]
        run("ip", "-n", names[0], "link", "add", a[1], "type", "veth", "peer", "name", b[1], "netns", names[1])
        for host, device, address in (a, b):
            if address:
                self.exec(host, f"ip addr add {address} dev {device}")
            self.exec(host, f"ip link set {device} up")
            if self.line.linked:
                self.exec(host, f"ethtool -K {device} {' '.join(OFFLOADS)}")

    def build(self) -> None:
        """Hosts, addresses, routes."""
        for host in self.hosts:
            run("ip", "netns", "add", self.prefix + host)
            self.exec(host, "ip link set lo up")
        self.cable(("s", "eth0", f"{SERVER}/24"), ("b", "site0", "10.2.0.1/24"))
        self.exec("s", "ip route add default via 10.2.0.1")
        for i in range(self.sites):
            client, gateway = site(i)
            self.cable((f"c{i}", "eth0", f"{client}/24"), (f"a{i}", "site0", client[:-1] + "1/24"))
            self.exec(f"c{i}", f"ip route add default via {client[:-1]}1")
        self._join()
        for i in range(self.sites):
            client, gateway = site(i)
            self.exec(f"a{i}", f"ip route add 10.2.0.0/24 via {FAR}")
            self.exec("b", f"ip route add {client[:-1]}0/24 via {gateway}")
        for host in self.hosts:
            for key in ("tcp_rmem", "tcp_wmem"):
                run(*self.inside(host, "sysctl", "-qw", f"net.ipv4.{key}={BUFFERS}"))
            if host[0] in "ab":
                self.exec(host, "sysctl -qw net.ipv4.ip_forward=1")

    def _join(self) -> None:
        """The gateways with the link, or with one another where the path has no rate."""
        if not self.line.linked:
            self.cable(("a0", "wan0", f"{site(0)[1]}/24"), ("b", "wan0", f"{FAR}/24"))
            return
        self.cable(("b", "wan0", f"{FAR}/24"), ("l", "right", ""))
        if self.sites == 1:
            self.cable(("a0", "wan0", f"{site(0)[1]}/24"), ("l", "left", ""))
            return
        self.exec("l", "ip link add hub type bridge")
        self.exec("l", "ip link set hub up")
        self.cable(("l", "left", ""), ("l", "port", ""))
        self.exec("l", "ip link set port master hub")
        for i in range(self.sites):
            self.cable((f"a{i}", "wan0", f"{site(i)[1]}/24"), ("l", f"port{i}", ""))
            self.exec("l", f"ip link set port{i} master hub")

    def reaches(self, host: str, address: str) -> bool:
        """Whether an answer to a ping comes."""
        words = self.inside(host, "ping", "-c", "1", "-W", "1", address)
        return subprocess.run(words, check=False, capture_output=True).returncode == 0

    @contextmanager
    def link(self, seed: int) -> Iterator[None]:
        """The link between the gateways, which writes its reports to `link.json`."""
        if not self.line.linked:
            yield
            return
        there, back = (self.line.port(direction) for direction in (1, 0))
        command = ("link", "left", "right", "--there", there, "--back", back, "--seed", str(seed))
        reports = ("--json", "--interval", str(REPORTS))
        self.link_began = time.time()
        with running(self.start("l", self.program, *command, *reports, output=self.folder / "link.json")):
            for i in range(self.sites):
                until("the link forwards", lambda host=f"a{i}": self.reaches(host, FAR))  # type: ignore[misc]
            yield

    def link_reports(self) -> list[dict[str, float]]:
        """What the port to the clients had: time (of the link's start), bytes, drops, queue."""
        return [of_left(line) for line in (self.folder / "link.json").read_text().splitlines()]

    def last_report(self) -> dict[str, float]:
        """The last one that is whole."""
        with (self.folder / "link.json").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST))
            whole = file.read().decode().split("\n")[-2]
        return of_left(whole)

    def close(self) -> None:
        """Remove the namespaces."""
        for host in self.hosts:
            subprocess.run(["ip", "netns", "delete", self.prefix + host], check=False, capture_output=True)
