"""Transfers through two gateways beside kernel TCP over the same link. Needs root, nft, curl; make gateway-bench.

    bench/gateway_bench.py EXPLICATED [--cases NAME...] [--runs 5] [--markdown docs/gateway.md] [--json FILE]

client - gateway - `explicated link` - gateway - server, each in a network namespace. The server sends at the first rate
of a case, the client at the second. A case is run with gateways, and without them with CUBIC and BBR of the kernel at
the server; the runs of all are interleaved. Figures are medians.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HOSTS = ("c", "ga", "l", "gb", "s")
SERVER = """
import http.server, os, socket, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
os.chdir(sys.argv[1])
class Many(http.server.ThreadingHTTPServer):
    request_queue_size = 512
server = Many(("0.0.0.0", 80), Quiet)
server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[2].encode())
server.serve_forever()
"""
BEGIN, END = "<!-- gateway-bench:begin -->", "<!-- gateway-bench:end -->"


@dataclass(frozen=True)
class Case:
    """A path and what is fetched over it."""

    name: str
    down: str
    up: str
    delay: str
    loss: str
    files: tuple[tuple[str, int], ...]
    most: float = 120.0

    @property
    def bits(self) -> float:
        """Of the line to the client, bit/s."""
        return float(self.down.removesuffix("Mbit/s")) * 1e6


def page() -> tuple[tuple[str, int], ...]:
    """40 objects, 2.5 MB in all: a few large, many small."""
    sizes = (
        [8_000 + 2_000 * (i % 10) for i in range(30)] + [100_000] * 5 + [200_000, 250_000, 300_000, 350_000, 390_000]
    )
    return tuple((f"object{i}", size) for i, size in enumerate(sizes))


CASES = (
    Case("geo-lossy-10MiB", "20Mbit/s", "2Mbit/s", "300ms", "1%", (("10MiB", 10 << 20),)),
    Case("geo-lossy-100MB", "20Mbit/s", "2Mbit/s", "300ms", "1%", (("100MB", 100_000_000),)),
    Case("geo-lossy-page", "20Mbit/s", "2Mbit/s", "300ms", "1%", page()),
    Case("geo-clean-10MiB", "20Mbit/s", "2Mbit/s", "300ms", "", (("10MiB", 10 << 20),)),
    Case("etosat-clean", "250Mbit/s", "3Mbit/s", "300ms", "", (("100MB", 100_000_000),)),
    Case("etosat-lossy", "250Mbit/s", "3Mbit/s", "300ms", "1.5625%", (("100MB", 100_000_000),)),
)


def run(*words: str) -> str:
    """Run a command that has to succeed."""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Net:
    """The namespaces, and programs in them."""

    def __init__(self, program: str) -> None:
        """Names of this run."""
        self.program = program
        self.prefix = f"gwbench-{os.getpid()}-"
        self.folder = Path(tempfile.mkdtemp(prefix=self.prefix))

    def name(self, host: str) -> str:
        """The namespace of a host."""
        return self.prefix + host

    def exec(self, host: str, words: str) -> str:
        """Run a command in a namespace."""
        return run("ip", "netns", "exec", self.name(host), *words.split())

    def start(self, host: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a program in a namespace."""
        command = ["ip", "netns", "exec", self.name(host), *words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(self.folder / f"{host}.log").open("ab"))

    def cable(self, a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
        """A cable between two hosts: host, device, address."""
        run(
            "ip",
            "-n",
            self.name(a[0]),
            "link",
            "add",
            a[1],
            "type",
            "veth",
            "peer",
            "name",
            b[1],
            "netns",
            self.name(b[0]),
        )
        for host, device, address in (a, b):
            if address:
                run("ip", "-n", self.name(host), "addr", "add", address, "dev", device)
            run("ip", "-n", self.name(host), "link", "set", device, "up")
            subprocess.run(
                [
                    "ip",
                    "netns",
                    "exec",
                    self.name(host),
                    "ethtool",
                    "-K",
                    device,
                    *["tso", "off", "gso", "off", "gro", "off", "tx", "off"],
                ],
                check=False,
                capture_output=True,
            )

    def build(self) -> None:
        """Hosts, addresses, routes, keys."""
        for host in HOSTS:
            run("ip", "netns", "add", self.name(host))
            run("ip", "-n", self.name(host), "link", "set", "lo", "up")
        self.cable(("c", "eth0", "10.1.0.2/24"), ("ga", "site0", "10.1.0.1/24"))
        self.cable(("s", "eth0", "10.2.0.2/24"), ("gb", "site0", "10.2.0.1/24"))
        self.cable(("ga", "wan0", "192.0.2.1/24"), ("l", "left", ""))
        self.cable(("gb", "wan0", "192.0.2.2/24"), ("l", "right", ""))
        for host, words in (
            ("c", "ip route add default via 10.1.0.1"),
            ("s", "ip route add default via 10.2.0.1"),
            ("ga", "ip route add 10.2.0.0/24 via 192.0.2.2"),
            ("gb", "ip route add 10.1.0.0/24 via 192.0.2.1"),
            ("ga", "sysctl -qw net.ipv4.ip_forward=1"),
            ("gb", "sysctl -qw net.ipv4.ip_forward=1"),
        ):
            self.exec(host, words)
        for host in ("c", "s"):
            # Windows that a bandwidth-delay product of 19 MB needs.
            for key in ("tcp_rmem", "tcp_wmem"):
                value = f"net.ipv4.{key}=4096 131072 67108864"
                run("ip", "netns", "exec", self.name(host), "sysctl", "-qw", value)

    def configure(self, host: str, rate: str, keys: dict[str, str]) -> str:
        """Write the configuration of a gateway."""
        own, other, peer = (1, 2, "gb") if host == "ga" else (2, 1, "ga")
        folder = self.folder / host
        address = 'address = "192.0.2.2:49407"' if host == "ga" else ""
        path = folder / "gateway.toml"
        path.write_text(
            f'key = "{folder}/key"\nstatus = "{folder}/run/gateway.sock"\n'
            f'[site]\ninterfaces = ["site0"]\nnetworks = ["10.{own}.0.0/16"]\n'
            f'[wan]\nrate = "{rate}"\n'
            "[limits]\nconnection_bytes = 67108864\npeer_bytes = 67108864\n"
            f'[[peer]]\nname = "{peer}"\nkey = "{keys[peer]}"\nnetworks = ["10.{other}.0.0/16"]\n{address}\n',
            encoding="utf-8",
        )
        return str(path)

    def status(self, host: str) -> str:
        """The state of a gateway, as JSON."""
        config = str(self.folder / host / "gateway.toml")
        command = ["ip", "netns", "exec", self.name(host), self.program, "gateway", "status", "--json", "--config"]
        return subprocess.run([*command, config], check=False, capture_output=True, text=True).stdout

    def close(self) -> None:
        """Remove the namespaces."""
        for host in HOSTS:
            subprocess.run(["ip", "netns", "delete", self.name(host)], check=False, capture_output=True)


@contextmanager
def running(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """A program as long as this lasts."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(what: str, holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"in vain: {what}")
        time.sleep(0.05)


@contextmanager
def link(net: Net, case: Case, seed: int) -> Iterator[None]:
    """The link between the gateways."""
    loss = f', channel = [{{ kind = "random_loss", rate = "{case.loss}" }}]' if case.loss else ""
    queue = int(case.bits / 8 * 0.6)
    there = f'rate = "{case.up}", delay = "{case.delay}", queue = {{ kind = "droptail", limit = "300kB" }}{loss}'
    back = f'rate = "{case.down}", delay = "{case.delay}", queue = {{ kind = "droptail", limit = "{queue}B" }}{loss}'
    words = ("link", "left", "right", "--there", there, "--back", back, "--seed", str(seed))
    with running(net.start("l", net.program, *words)):
        until(
            "the link forwards",
            lambda: (
                subprocess.run(
                    ["ip", "netns", "exec", net.name("ga"), "ping", "-c", "1", "-W", "1", "192.0.2.2"],
                    check=False,
                    capture_output=True,
                ).returncode
                == 0
            ),
        )
        yield


def fetch(net: Net, case: Case, digests: dict[str, str]) -> dict[str, float]:
    """Fetch all files at once; seconds, and the share of the line."""
    folder = Path(tempfile.mkdtemp(dir=net.folder))
    words = ["curl", "-s", "--max-time", str(case.most), "--parallel", "--parallel-immediate", "--parallel-max", "64"]
    for name, _ in case.files:
        words += ["-o", str(folder / name), f"http://10.2.0.2/{name}"]
    began = time.monotonic()
    done = subprocess.run(["ip", "netns", "exec", net.name("c"), *words], check=False, capture_output=True)
    seconds = time.monotonic() - began
    received = sum(path.stat().st_size for path in folder.iterdir())
    if done.returncode == 0:
        for name, _ in case.files:
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digests[name]:
                sys.exit(f"{name}: other bytes")
    for path in folder.iterdir():
        path.unlink()
    return {"seconds": seconds, "share": 8 * received / seconds / case.bits, "whole": float(done.returncode == 0)}


def once(net: Net, case: Case, way: str, seed: int, digests: dict[str, str], keys: dict[str, str]) -> dict[str, float]:
    """One run, `way` is `gateway` or a congestion control of the kernel."""
    with ExitStack() as stack:
        stack.enter_context(link(net, case, seed))
        for host in ("c", "s"):
            net.exec(host, "ip tcp_metrics flush all")
        law = "cubic" if way == "gateway" else way
        stack.enter_context(running(net.start("s", sys.executable, "-c", SERVER, str(net.folder / "www"), law)))
        serves = ["ip", "netns", "exec", net.name("gb"), "curl", "-s", "-o", "/dev/null", "http://10.2.0.2/none"]
        until("the server answers", lambda: subprocess.run(serves, check=False).returncode == 0)
        if way != "gateway":
            return fetch(net, case, digests)
        for host, rate in (("gb", case.down), ("ga", case.up)):
            config = net.configure(host, rate, keys)
            net.exec(host, f"{net.program} gateway up --config {config}")
            stack.callback(net.exec, host, f"{net.program} gateway down --config {config}")
            stack.enter_context(running(net.start(host, net.program, "-v", "gateway", "run", "--config", config)))
        until(
            "the gateways connect",
            lambda: '"connected":true' in net.status("ga") and '"connected":true' in net.status("gb"),
        )
        time.sleep(3)
        figures = fetch(net, case, digests)
        if os.environ.get("GATEWAY_STATUS"):
            print(net.status("gb"), file=sys.stderr)
            print(net.status("ga"), file=sys.stderr)
        return figures


def main() -> None:
    """Run the cases, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("program")
    parser.add_argument("--cases", nargs="*", default=[case.name for case in CASES])
    parser.add_argument("--ways", nargs="*", default=["gateway", "bbr", "cubic"])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    cases = [case for case in CASES if case.name in arguments.cases]
    net = Net(str(Path(arguments.program).resolve()))
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    try:
        net.build()
        digests, keys = {}, {}
        www = net.folder / "www"
        www.mkdir()
        for case in cases:
            for name, size in case.files:
                content = os.urandom(size)
                (www / name).write_bytes(content)
                digests[name] = hashlib.sha256(content).hexdigest()
        for host in ("ga", "gb"):
            (net.folder / host).mkdir()
            keys[host] = run(net.program, "gateway", "keygen", str(net.folder / host / "key")).strip()
        for case in cases:
            ways = results.setdefault(case.name, {way: [] for way in arguments.ways})
            for number in range(arguments.runs):
                for way in arguments.ways:
                    figures = once(net, case, way, number + 1, digests, keys)
                    ways[way].append(figures)
                    print(f"{case.name} {way} {number}: {figures['seconds']:.2f} s, {figures['share']:.1%}", flush=True)
    finally:
        net.close()
    lines = [
        "| case | way | runs | seconds, median (range) | share of the line |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for case_name, ways in results.items():
        for way, runs in ways.items():
            seconds = sorted(figures["seconds"] for figures in runs)
            share = statistics.median(figures["share"] for figures in runs)
            span = f"{statistics.median(seconds):.2f} ({seconds[0]:.2f}-{seconds[-1]:.2f})"
            lines.append(f"| {case_name} | {way} | {len(runs)} | {span} | {share:.1%} |")
    table = "\n".join(lines)
    print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if arguments.markdown:
        text = arguments.markdown.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        arguments.markdown.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
