"""One run of a case over one way, and its figures."""

from __future__ import annotations

import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .case import Figures, Run
from .hosts import VOICES as VOICE_INTERVAL
from .net import REPORTS, SERVER, BenchError, Net, running, site, until
from .ways import status

HOSTS = str(Path(__file__).with_name("hosts.py"))
# Times, and what was seen then.
Seen = list[tuple[float, float]]
# How long flows start up before anything is counted, seconds.
WARM = 8.0
# When all ways are open, seconds after the start of the link.
SET_UP = 12.0
# How long everything is idle before a transfer begins beside it.
IDLE = 15.0
# Over so long the rate after a fade is taken.
FADE_SPAN = 0.2


def host(net: Net, name: str, *words: str, output: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a program of hosts.py."""
    return net.start(name, sys.executable, HOSTS, *words, output=output)


@contextmanager
def serving(run: Run, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server, as long as this lasts."""
    with running(host(run.net, "s", *words)) as process:
        ready = run.net.inside("s", "ss", "-Hltn", "sport = :80")
        until("the server listens", lambda: bool(subprocess.check_output(ready)))
        yield process


def percentile(values: list[float], share: float) -> float:
    """The least value that a share of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def jain(shares: list[float]) -> float:
    """Jain's index: 1 where all are equal."""
    return sum(shares) ** 2 / (len(shares) * sum(x * x for x in shares)) if any(shares) else 0.0


def transfer(run: Run) -> Figures:
    """Fetch all files at once; every byte is compared."""
    www, got = run.net.folder / "www", run.net.folder / "got"
    for folder in (www, got):
        folder.mkdir()
    digests = {}
    for name, size in run.case.files:
        content = os.urandom(size)
        (www / name).write_bytes(content)
        digests[name] = hashlib.sha256(content).hexdigest()
    most = str(run.case.most)
    words = ["curl", "-s", "--max-time", most, "--parallel", "--parallel-immediate", "--parallel-max", "100"]
    for name in digests:
        words += ["-o", str(got / name), f"http://{run.way.address}/{name}"]
    with serving(run, "files", str(www), run.law):
        began = time.monotonic()
        done = subprocess.run(run.net.inside("c0", *words), check=False, capture_output=True)
        seconds = time.monotonic() - began
    whole = done.returncode == 0
    if whole and any(hashlib.sha256((got / name).read_bytes()).hexdigest() != of for name, of in digests.items()):
        message = "other bytes arrived"
        raise BenchError(message)
    if not whole and seconds < run.case.most - 1:
        message = f"curl ended with {done.returncode}"
        raise BenchError(message)
    received = sum(path.stat().st_size for path in got.iterdir())
    return {"seconds": seconds, "share of the line": 8 * received / seconds / run.case.line.bits}


@dataclass
class Sunk:
    """What clients have read: when they began, and bytes of each connection in each 0.1 s."""

    began: float
    bins: list[list[int]]

    def between(self, first: float, last: float) -> list[int]:
        """Bytes of each connection between two times, seconds since the start."""
        return [sum(column) for column in zip(*self.bins[int(10 * first) : int(10 * last)], strict=True)]


@contextmanager
def sinks(run: Run, seconds: float) -> Iterator[list[Path]]:
    """The connections of all sites; their records are there at the end."""
    records = [run.net.folder / f"sink{i}.json" for i in range(run.net.sites)]
    words = ("sink", run.way.address, str(run.case.connections), str(seconds))
    clients = [host(run.net, f"c{i}", *words, output=record) for i, record in enumerate(records)]
    try:
        yield records
        for client in clients:
            if client.wait(seconds + 30):
                message = "a client failed"
                raise BenchError(message)
    finally:
        for client in clients:
            client.kill()


def read_sunk(record: Path) -> Sunk:
    """What a client has written."""
    return Sunk(**json.loads(record.read_text()))


def reports(run: Run, since: float) -> list[dict[str, float]]:
    """Of the link's port to the clients, for the length of the case since a time of time.time()."""
    first = since - run.net.link_began
    return [of for of in run.net.link_reports() if first <= of["time"] <= first + run.case.seconds]


def overflow(reports: list[dict[str, float]]) -> float:
    """Packets that found the queue full."""
    return reports[-1]["drops"] - reports[0]["drops"]


def line(run: Run, since: float) -> Figures:
    """How full the link was, and its queue."""
    found = reports(run, since)
    seconds = found[-1]["time"] - found[0]["time"]
    return {
        "use of the line": 8 * (found[-1]["bytes"] - found[0]["bytes"]) / seconds / run.case.line.bits,
        "mean queue of the link, packets": statistics.mean(report["queue_packets"] for report in found),
        "losses by overflow": overflow(found),
    }


def ports(run: Run, until: float) -> list[float]:
    """Packets in the far gateway's port, sampled to a time of time.time()."""
    seen = []
    while (now := time.time()) < until:
        state = status(run.net, "b")
        if not state:
            time.sleep(until - now)
            return []
        seen.append(state["port"]["queue_packets"])
        time.sleep(0.1)
    return seen


def many(run: Run) -> Figures:
    """Many connections at once: how equal, how full, how short the queue."""
    last = WARM + run.case.seconds
    with serving(run, "source", run.law), sinks(run, last) as records:
        time.sleep(WARM)
        queues = ports(run, time.time() + run.case.seconds)
    sunk = [read_sunk(record) for record in records]
    shares = [of.between(WARM, last) for of in sunk]
    equals = [sum(of) for of in shares] if run.net.sites > 1 else shares[0]
    figures = {"Jain's index": jain([float(share) for share in equals])} | line(run, sunk[0].began + WARM)
    return figures | ({"mean queue of the port, packets": statistics.mean(queues)} if queues else {})


def pings(net: Net, seconds: float, output: Path) -> subprocess.Popen[bytes]:
    """Ten pings a second to the server."""
    return net.start("c0", "ping", "-D", "-i", "0.1", "-w", str(int(seconds)), SERVER, output=output)


def answered(output: Path) -> Seen:
    """When each ping was answered, and its round trip in seconds."""
    found = re.findall(r"\[([\d.]+)\].*time=([\d.]+)", output.read_text())
    return [(float(at), float(took) / 1e3) for at, took in found]


def at_fixed_time(run: Run) -> None:
    """A line that changes is at the same place of its changes in all ways."""
    time.sleep(max(0.0, run.net.link_began + SET_UP - time.time()))


def changing(run: Run) -> Figures:
    """One transfer over a line with recorded capacity, and pings beside it."""
    last, output = WARM + run.case.seconds, run.net.folder / "pings"
    at_fixed_time(run)
    with serving(run, "source", run.law), running(pings(run.net, last, output)), sinks(run, last) as records:
        pass
    sunk = read_sunk(records[0])
    took = [took for at, took in answered(output) if at > sunk.began + WARM]
    return {
        "Mbit/s": 8 * sum(sunk.between(WARM, last)) / run.case.seconds / 1e6,
        "ping beside it, p95, ms over the empty path": 1e3 * (percentile(took, 0.95) - run.case.line.round_trip),
        "losses by overflow": overflow(reports(run, sunk.began + WARM)),
    }


def fade(run: Run) -> Figures:
    """The line becomes narrow and wide again; how soon it is full then."""
    at_fixed_time(run)
    last = run.case.steps[-1][0] - SET_UP
    with serving(run, "source", run.law), sinks(run, last):
        pass
    _, (recovery, _), (_, wide) = run.case.steps
    kept = [report for report in run.net.link_reports() if report["time"] >= SET_UP + WARM]
    after = [report for report in kept if report["time"] >= recovery]
    full = (
        new["time"] - recovery
        for old, new in zip(after, after[int(FADE_SPAN / REPORTS) :], strict=False)
        if 8 * (new["bytes"] - old["bytes"]) >= 0.95 * wide * (new["time"] - old["time"])
    )
    return {
        "losses by overflow": overflow(kept),
        "round trips to 95 % of the wide line": next(full, float("inf")) / run.case.line.round_trip,
    }


def cpu(processes: list[subprocess.Popen[bytes]]) -> float:
    """Seconds of CPU that programs have used."""
    fields = [Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split() for process in processes]
    return sum(int(of[11]) + int(of[12]) for of in fields) / os.sysconf("SC_CLK_TCK")


def resident(process: subprocess.Popen[bytes]) -> float:
    """The most memory that a program had, MiB."""
    return int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[0]) / 1024


def unshaped(run: Run) -> Figures:
    """As fast as the machine: throughput, memory of a gateway, CPU of hosts and gateways."""
    last = WARM + run.case.seconds
    with serving(run, "source", run.law) as server, sinks(run, last) as records:
        time.sleep(WARM)
        programs = [server, *run.way.programs]
        before = cpu(programs)
        time.sleep(run.case.seconds - 0.5)
        used, memory = cpu(programs) - before, [resident(program) for program in run.way.programs]
    sunk = read_sunk(records[0])
    carried = sum(sunk.between(WARM, last - 0.5))
    figures = {
        "Gbit/s": 8 * carried / (run.case.seconds - 0.5) / 1e9,
        "CPU of server and gateways, ns a byte": 1e9 * used / carried,
    }
    return figures | ({"most memory of a gateway, MiB": max(memory)} if memory else {})


def ssh(folder: Path) -> tuple[list[str], list[str]]:
    """A server for keystrokes, and the command that connects to it."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "keys").write_text((folder / "user.pub").read_text())
    options = {
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "keys",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
    }
    Path("/run/sshd").mkdir(exist_ok=True)
    server = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null"]
    for key, value in options.items():
        server += ["-o", f"{key}={value}"]
    client = ["ssh", "-tt", "-F", "none", "-i", str(folder / "user")]
    for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"):
        client += ["-o", option]
    return server, [*client, f"root@{SERVER}", "stty raw -echo; echo ready; exec cat"]


def interactive(run: Run) -> Figures:
    """Keystrokes by ssh, pings, and voice, before a transfer and beside it."""
    net, all_of_it = run.net, IDLE + WARM + run.case.seconds
    folder = net.folder / "ssh"
    folder.mkdir()
    server, client = ssh(folder)
    outputs = {name: net.folder / name for name in ("keys", "pings", "voice")}
    with ExitStack() as stack:
        stack.enter_context(running(net.start("s", *server)))
        stack.enter_context(serving(run, "source", run.law))
        time.sleep(1)
        began = time.time()
        others = [
            host(net, "c0", "keys", str(all_of_it), *client, output=outputs["keys"]),
            pings(net, all_of_it, outputs["pings"]),
            host(net, "c0", "voice-from", str(all_of_it), output=outputs["voice"]),
            host(net, "s", "voice-to", site(0)[0], str(all_of_it)),
        ]
        for other in others:
            stack.callback(other.kill)
        time.sleep(IDLE)
        with sinks(run, WARM + run.case.seconds):
            pass
        for other in others:
            other.wait(30)
    seen = {name: json.loads(outputs[name].read_text()) for name in ("keys", "voice")}
    seen["pings"] = answered(outputs["pings"])
    figures = {}
    for name in ("keys", "pings", "voice"):
        idle = statistics.median(took for at, took in seen[name] if began + 4 < at < began + IDLE)
        beside = [took for at, took in seen[name] if began + IDLE + WARM < at < began + all_of_it - 1]
        figures[f"{name}, p99, ms over idle"] = 1e3 * (percentile(beside, 0.99) - idle)
    sent = (run.case.seconds - 1) / VOICE_INTERVAL
    figures["voice, lost"] = max(0.0, 1 - (len(beside) + 1) / sent)
    return figures
