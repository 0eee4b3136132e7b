"""How applications' bytes get over a path: by gateways, by the kernel alone, split by haproxy, or by kcptun."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from bisect import bisect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .net import FAR, SERVER, Net, run, running, site, until

PORT, KCP = 80, 29900
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
# Files of the gateways that have the rate of the line.
STEP = 0.04
# What a modem grants of a capacity that changes, until when its queue is to be empty, and what it always grants.
EAGER, DRAIN, LEAST = 1.25, 0.15, 1e5
# A line with recorded capacity begins with this rate.
UNKNOWN = "5Mbit/s"
# kcptun's packets by its documentation, bytes.
SEGMENT = 1350
HAPROXY = """global
    maxconn 4096
defaults
    mode tcp
    timeout connect 60s
    timeout client 300s
    timeout server 300s
listen split
    bind {bind}:80
    server next {next}:80
"""


@dataclass
class Capacity:
    """The file with the rate of the far gateway's port, as a modem would write it.

    Of a recorded capacity a modem knows that of the last `span`, and its own queue, which is to be empty `DRAIN` later.
    """

    file: Path
    net: Net
    # Seconds since the start of the link, and what holds until then, bit/s.
    steps: list[tuple[float, float]]
    span: float = 0.0

    def rate(self) -> float:
        """What may be sent now, bit/s."""
        period = self.steps[-1][0]
        at = (time.time() - self.net.link_began - self.span) % period
        known = self.steps[bisect(self.steps, at, key=lambda step: step[0])][1]
        if self.span:
            known = EAGER * known - 8 * self.net.last_report()["queue_bytes"] / DRAIN
        return max(LEAST, known)

    def write(self) -> None:
        """The file, now."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{self.rate():.0f}\n")
        new.rename(self.file)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """The file is written as long as this lasts."""
        stop = threading.Event()

        def follow() -> None:
            while not stop.wait(STEP):
                self.write()

        self.write()
        thread = threading.Thread(target=follow)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@dataclass
class Way:
    """A way that is open: where clients of a site connect, and the programs on it."""

    address: str
    programs: list[subprocess.Popen[bytes]] = field(default_factory=list)


def status(net: Net, host: str) -> dict[str, Any]:
    """The state of a gateway; nothing, where there is none."""
    config = str(net.folder / host / "gateway.toml")
    words = net.inside(host, net.program, "gateway", "status", "--json", "--config", config)
    text = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    return dict(json.loads(text)) if text else {}


class Gateways:
    """`explicated gateway` at the sites and at the far end."""

    def __init__(self, net: Net, capacity: Capacity | None) -> None:
        """Make the keys."""
        self.net, self.capacity, self.keys = net, capacity, dict[str, str]()
        self.hosts = ["b", *(f"a{i}" for i in range(net.sites))]
        for host in self.hosts:
            (net.folder / host).mkdir()
            self.keys[host] = run(net.program, "gateway", "keygen", str(net.folder / host / "key")).strip()

    def wan(self, host: str) -> str:
        """What a configuration says of the line."""
        line = self.net.line
        if not line.linked:
            return ""
        rate = (f"{line.share * line.bits:.0f}bit/s" if host == "b" else line.up) if line.down else UNKNOWN
        text = f'[wan]\nrate = "{rate}"\ninterface = "wan0"\n'
        text += f"parity = {str(line.parity).lower()}\n"
        if self.capacity and host == "b":
            text += f'capacity = {{ file = "{self.capacity.file}", floor = "100kbit/s" }}\n'
        return text

    def configure(self, host: str) -> str:
        """Write the configuration of a gateway."""
        folder = self.net.folder / host
        own = "10.2" if host == "b" else f"10.{10 + int(host[1:])}"
        text = (
            f'key = "{folder}/key"\nstatus = "{folder}/run/gateway.sock"\n'
            f'[site]\ninterfaces = ["site0"]\nnetworks = ["{own}.0.0/16"]\n{self.wan(host)}'
        )
        if limit := self.net.line.limit:
            text += f"[limits]\nconnection_bytes = {limit}\npeer_bytes = {8 * limit}\n"
        for peer in self.hosts[1:] if host == "b" else ["b"]:
            network = "10.2" if peer == "b" else f"10.{10 + int(peer[1:])}"
            address = f'address = "{FAR}:49407"\n' if peer == "b" else ""
            text += f'[[peer]]\nname = "{peer}"\nkey = "{self.keys[peer]}"\nnetworks = ["{network}.0.0/16"]\n{address}'
        path = folder / "gateway.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def connected(self) -> bool:
        """Whether each site's gateway has its peer."""
        return all(
            peer["connected"]
            for host in self.hosts
            for peer in status(self.net, host).get("peers", [{"connected": False}])
        )

    @contextmanager
    def open(self) -> Iterator[Way]:
        """They run, connected and idle."""
        with ExitStack() as stack:
            if self.capacity:
                stack.enter_context(self.capacity.followed())
            way = Way(SERVER)
            for host in self.hosts:
                config, program = self.configure(host), self.net.program
                self.net.exec(host, f"{program} gateway up --config {config}")
                stack.callback(self.net.exec, host, f"{program} gateway down --config {config}")
                words = (program, "-v", "gateway", "run", "--config", config)
                way.programs.append(stack.enter_context(running(self.net.start(host, *words))))
            until("the gateways connect", self.connected)
            time.sleep(3)
            yield way


@contextmanager
def allowed(law: str) -> Iterator[None]:
    """Namespaces may make a congestion control their default, as long as this lasts."""
    known = ALLOWED.read_text().split()
    ALLOWED.write_text(" ".join({*known, law}))
    try:
        yield
    finally:
        ALLOWED.write_text(" ".join(known))


@contextmanager
def haproxy(net: Net, law: str) -> Iterator[Way]:
    """TCP connections are split at both gateways, which use a congestion control of the kernel."""
    with ExitStack() as stack:
        way = Way(f"{site(0)[0][:-1]}1")
        stack.enter_context(allowed(law))
        for host, bind, onward in (("b", FAR, SERVER), ("a0", way.address, FAR)):
            net.exec(host, f"sysctl -qw net.ipv4.tcp_congestion_control={law}")
            config = net.folder / f"haproxy-{host}.cfg"
            config.write_text(HAPROXY.format(bind=bind, next=onward))
            way.programs.append(stack.enter_context(running(net.start(host, "haproxy", "-db", "-f", str(config)))))
        time.sleep(1)
        yield way


@contextmanager
def kcptun(net: Net) -> Iterator[Way]:
    """Windows of one bandwidth-delay product, which its user has to compute; the rest as its documentation has it."""
    line, way = net.line, Way(f"{site(0)[0][:-1]}1")
    window = str(max(1024, int(line.bits * line.round_trip / 8 / SEGMENT)))
    common = ("--nocomp", "--sndwnd", window, "--rcvwnd", window, "--sockbuf", "16777217", "--smuxver", "2")
    buffers = ("--smuxbuf", "67108864", "--streambuf", "67108864", "--quiet")
    with ExitStack() as stack:
        for host, words in (
            ("b", ("kcptun-server", "-l", f":{KCP}", "-t", f"{SERVER}:{PORT}")),
            ("a0", ("kcptun-client", "-l", f"{way.address}:{PORT}", "-r", f"{FAR}:{KCP}")),
        ):
            way.programs.append(stack.enter_context(running(net.start(host, *words, *common, *buffers))))
        time.sleep(1)
        yield way


@contextmanager
def opened(net: Net, name: str, capacity: Capacity | None = None) -> Iterator[Way]:
    """A way by its name: gateway, cubic, bbr, haproxy cubic, haproxy bbr, kcptun."""
    with ExitStack() as stack:
        if name == "gateway":
            yield stack.enter_context(Gateways(net, capacity).open())
        elif name.startswith("haproxy"):
            yield stack.enter_context(haproxy(net, name.split()[1]))
        elif name == "kcptun":
            yield stack.enter_context(kcptun(net))
        else:
            yield Way(SERVER)


def law(name: str) -> str:
    """The congestion control of the server's kernel."""
    return name if name in ("cubic", "bbr") else "cubic"
