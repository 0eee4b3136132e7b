"""The how-to of docs/gateway.md, step by step. Needs root and ``explicated``, so `make linux` runs it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from patience import eventually

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("EXPLICATED", ROOT / "target" / "debug" / "explicated")).resolve()
PAGE = (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8")
UNIT = (ROOT / "packaging" / "explicated-gateway.service").read_text(encoding="utf-8")
BLOCK = re.compile(r"^( *)```\w+ title=\"([^\"]+)\"\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ANSWERS = (
    "import sys, socketserver\n"
    + """
class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        request = self.request.recv(100)
        self.request.sendall(self.client_address[0].encode() + b" " + request * 20000)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer((sys.argv[1], 8000), Answer).serve_forever()
"""
)
ASKS = """
import hashlib, socket, sys
with socket.create_connection((sys.argv[1], 8000), 15) as peer:
    peer.sendall(b"question")
    peer.shutdown(socket.SHUT_WR)
    answer = b"".join(iter(lambda: peer.recv(65536), b""))
address, _, rest = answer.partition(b" ")
assert rest == b"question" * 20000, len(rest)
print(address.decode())
"""
"""Prints the address from which the server saw the question."""
ECHOES = """
import sys, socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer((sys.argv[1], 7000), Echo).serve_forever()
"""
KEYS = """
import socket, sys
with socket.create_connection((sys.argv[1], 7000), 15) as peer, peer.makefile("rw") as lines:
    for line in sys.stdin:
        lines.write("kept" + line)
        lines.flush()
        print(lines.readline(), end="", flush=True)
"""
"""Sends a line for each line that it reads, and prints what comes back."""


@dataclass
class Step:
    """A block of the page: commands, or a file, at some machines."""

    machines: list[str]
    file: str
    text: str


def steps(section: str) -> list[Step]:
    """Return the blocks of a section of the page, in order."""
    text = PAGE.split(f"\n### {section}\n")[1].split("\n##")[0]
    found = []
    for indent, title, body in BLOCK.findall(text):
        machines, _, file = title.partition(": ")
        lines = (line.removeprefix(indent) for line in body.splitlines())
        found.append(Step(machines.split(", "), file, "\n".join(lines) + "\n"))
    return found


def run(*words: str, stdin: str = "") -> str:
    """Run a command that has to succeed."""
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass
class World:
    """Machines in network namespaces; each gateway has its own /etc/explicated and /run/explicated."""

    prefix: str
    folder: Path
    names: list[str] = field(default_factory=list)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    public: dict[str, str] = field(default_factory=dict)
    environment: str = ""
    """Variables of the services, as for ``env``."""

    def add(self, *names: str) -> None:
        """Add machines."""
        for name in names:
            run("ip", "netns", "add", self.prefix + name)
            self.names.append(name)
            run("ip", "-n", self.prefix + name, "link", "set", "lo", "up")
            for place in ("etc", "run"):
                (self.folder / name / place).mkdir(parents=True)

    def cable(self, a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
        """Join two machines: name, interface, address."""
        (near, device, _), (far, other, _) = a, b
        cable = f"ip -n {self.prefix}{near} link add {device} type veth peer name {other} netns {self.prefix}{far}"
        run(*cable.split())
        for name, device, address in (a, b):
            if address:
                run("ip", "-n", self.prefix + name, "addr", "add", address, "dev", device)
            run("ip", "-n", self.prefix + name, "link", "set", device, "up")

    def site(self, gateway: str, network: str, wan: str) -> None:
        """A gateway with a site of one host, named after it, and an interface to the narrow path."""
        host = f"{gateway}-host"
        self.add(gateway, host)
        self.cable((gateway, "eth1", f"{network}.0.1/24"), (host, "eth0", f"{network}.0.2/24"))
        run("ip", "-n", self.prefix + host, "route", "add", "default", "via", f"{network}.0.1")
        self.cable((gateway, "eth0", wan), ("path", f"to-{gateway}", ""))
        run("ip", "-n", self.prefix + "path", "link", "set", f"to-{gateway}", "master", "bridge0")

    def inside(self, machine: str, command: str) -> list[str]:
        """Return the arguments that run a shell command at a machine, with its folders."""
        place = self.folder / machine
        enter = (
            "mount -t tmpfs etc /etc && mkdir /etc/explicated && mount -t tmpfs run /run && mkdir /run/explicated && "
            f"mount --bind {place}/etc /etc/explicated && mount --bind {place}/run /run/explicated && "
            f"PATH={self.folder}/bin:$PATH && {command}"
        )
        return ["ip", "netns", "exec", self.prefix + machine, "sh", "-c", enter]

    def service(self, machine: str, verb: str) -> None:
        """Start the unit's command as systemd does."""

        def commands(key: str) -> list[str]:
            return [line.removeprefix("/usr/bin/") for line in re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)]

        if verb == "restart":
            self.running[machine].terminate()
            assert self.running[machine].wait(30) == 0
            for command in commands("ExecStopPost"):
                run(*self.inside(machine, command))
            verb = "enable"
        if verb == "enable":
            for command in commands("ExecStartPre"):
                run(*self.inside(machine, command))
            (start,) = commands("ExecStart")
            words = self.inside(machine, f"exec env --default-signal=HUP {self.environment} {start}")
            with (self.folder / f"{machine}.log").open("ab") as log:
                self.running[machine] = subprocess.Popen(words, stdout=log, stderr=log)
        else:
            for command in commands("ExecReload"):
                run(*self.inside(machine, command.replace("$MAINPID", str(self.running[machine].pid))))

    def follow(self, step: Step) -> str:
        """Run one step of the page; return the output of its commands."""
        printed = ""
        for machine in step.machines:
            if step.file:
                text = re.sub(r"(?:NEXT )?PUBLIC LINE OF \w+", lambda found: self.public[found[0]], step.text)
                path = self.folder / machine / "etc" / Path(step.file).name
                if step.file.startswith("[[peer]] of "):
                    text = path.read_text(encoding="utf-8").partition("[[peer]]")[0] + text
                path.write_text(text, encoding="utf-8")
                continue
            for command in step.text.splitlines():
                service = re.fullmatch(r"systemctl (enable|reload|restart).* explicated-gateway", command)
                if service:
                    self.service(machine, service[1])
                    continue
                output = run(*self.inside(machine, command))
                if " keygen " in command:
                    which = "NEXT " if command.endswith(".next") else ""
                    self.public[f"{which}PUBLIC LINE OF {machine}"] = output.strip()
                printed += output
        return printed

    def connected(self, machine: str, peers: int) -> None:
        """Wait until so many peers are connected."""

        def are_connected() -> bool:
            with contextlib.suppress(AssertionError):
                report = json.loads(run(*self.inside(machine, "explicated gateway status --json")))
                return sum(bool(peer["connected"]) for peer in report["peers"]) == peers
            return False

        try:
            eventually(f"{machine} is connected", are_connected)
        except AssertionError as vain:
            pytest.fail(f"{vain}: " + (self.folder / f"{machine}.log").read_text(encoding="utf-8"))

    def serve(self, gateway: str, address: str) -> None:
        """Answer questions at a gateway's host, and echo lines."""
        host = f"{gateway}-host"
        for program, port in ((ANSWERS, 8000), (ECHOES, 7000)):
            words = ["ip", "netns", "exec", self.prefix + host, "python3", "-c", program, address]
            self.running[f"{host} {port}"] = subprocess.Popen(words)
        listening = ("ip", "netns", "exec", self.prefix + host, "ss", "-tlnH")
        eventually("the host listens", lambda: all(f":{port} " in run(*listening) for port in (7000, 8000)))

    def ask(self, gateway: str, address: str) -> str:
        """Send a request from a gateway's host; return the address that the server received."""
        return run("ip", "netns", "exec", f"{self.prefix}{gateway}-host", "python3", "-c", ASKS, address).strip()

    @contextlib.contextmanager
    def carried(self, gateway: str, address: str) -> Iterator[Callable[[], None]]:
        """A connection from a gateway's host that stays open. What is returned shows that it lives."""
        words = ["ip", "netns", "exec", f"{self.prefix}{gateway}-host", "python3", "-c", KEYS, address]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keys:
            assert keys.stdin is not None
            assert keys.stdout is not None
            stdin, stdout = keys.stdin, keys.stdout

            def lives() -> None:
                stdin.write("\n")
                stdin.flush()
                assert stdout.readline() == "kept\n"

            lives()
            yield lives
            stdin.close()
            assert keys.wait(30) == 0

    def counted(self, machine: str, key: str) -> int:
        """Return a number of a gateway's status."""
        return int(json.loads(run(*self.inside(machine, "explicated gateway status --json")))[key])


@pytest.fixture
def world() -> Iterator[World]:
    """Return machines that end with the test; `path` joins their narrow sides."""
    with tempfile.TemporaryDirectory() as place:
        found = World(f"howto-{os.getpid()}-", Path(place))
        (found.folder / "bin").mkdir()
        (found.folder / "bin" / "explicated").symlink_to(PROGRAM)
        try:
            found.add("path")
            run("ip", "-n", found.prefix + "path", "link", "add", "bridge0", "type", "bridge")
            run("ip", "-n", found.prefix + "path", "link", "set", "bridge0", "up")
            yield found
        finally:
            for process in found.running.values():
                process.kill()
                process.wait()
            for name in found.names:
                run("ip", "netns", "delete", found.prefix + name)


def test_two_sites_are_joined_by_the_page_as_it_stands(world: World) -> None:
    """Every step in order; a connection is carried with its addresses, also after the reload."""
    page = steps("Two sites")
    assert [step.file.rpartition("/")[2] for step in page] == ["", "gateway.toml", "gateway.toml", "", "", ""]
    join_two_sites(world)
    look, reload = page[4:]
    assert world.ask("A", "10.2.0.2") == "10.1.0.2"
    printed = world.follow(look)
    assert "headquarters at 192.0.2.2:49407: round trip" in printed
    assert "nothing here" in printed
    world.follow(reload)
    assert world.ask("A", "10.2.0.2") == "10.1.0.2"
    assert (world.counted("A", "intercepted"), world.counted("B", "onward"), world.counted("A", "resets")) == (2, 2, 0)


def test_a_hub_with_three_spokes_as_on_the_page(world: World) -> None:
    """Each spoke reaches the hub's site and every other spoke, through the tunnels."""
    spokes = {f"S{number}": f"10.1{number}" for number in (1, 2, 3)}
    world.site("H", "10.2", "192.0.2.2/24")
    world.serve("H", "10.2.0.2")
    for number, (name, network) in enumerate(spokes.items()):
        world.site(name, network, f"192.0.2.{11 + number}/24")
        world.serve(name, f"{network}.0.2")
    keygen, *_, start = (
        step for step in steps("Two sites") if not step.file and "status" not in step.text and "reload" not in step.text
    )
    hub, spoke = steps("A hub with three spokes")
    everyone = ["H", *spokes]
    world.follow(Step(everyone, "", keygen.text))
    world.follow(hub)
    for name, network in spokes.items():
        world.follow(Step([name], spoke.file, spoke.text.replace('["10.11.0.0/16"]', f'["{network}.0.0/16"]')))
    world.follow(Step(everyone, "", start.text))
    world.connected("H", 3)
    for name in spokes:
        world.connected(name, 1)
    for name, network in spokes.items():
        assert world.ask(name, "10.2.0.2") == f"{network}.0.2"
        for other in spokes.values():
            if other != network:
                assert world.ask(name, f"{other}.0.2") == f"{network}.0.2"
    assert world.counted("H", "onward") == 9
    assert [world.counted(name, "onward") for name in spokes] == [2, 2, 2]


def join_two_sites(world: World) -> None:
    """Set two sites up as on the page."""
    world.site("A", "10.1", "192.0.2.1/24")
    world.site("B", "10.2", "192.0.2.2/24")
    world.serve("B", "10.2.0.2")
    for step in steps("Two sites")[:4]:
        world.follow(step)
    world.connected("A", 1)


def test_a_key_is_replaced_by_the_page_as_it_stands(world: World) -> None:
    """Every step in order; connections live through all steps but the restart, and the old key is refused at last."""
    join_two_sites(world)
    make, know, reload, change, restart, look, forget, *end = steps("Replace a key")
    with world.carried("A", "10.2.0.2") as lives:
        for step in (make, know, reload):
            world.follow(step)
            lives()
        assert world.ask("A", "10.2.0.2") == "10.1.0.2"
        assert "its first key" in world.follow(look)
        old = (world.folder / "A" / "etc" / "gateway.key").read_text(encoding="ascii")
        world.follow(change)
        lives()
        assert world.ask("A", "10.2.0.2") == "10.1.0.2"
        assert "set up with this gateway's key before" in world.follow(Step(["A"], "", look.text))
    assert [world.counted(machine, "resets") for machine in ("A", "B")] == [0, 0]
    world.follow(restart)
    world.connected("A", 1)
    assert "its second key" in world.follow(look)
    assert "key before" not in world.follow(Step(["A"], "", look.text))
    with world.carried("A", "10.2.0.2") as lives:
        for step in (forget, *end):
            world.follow(step)
            lives()
        assert world.ask("A", "10.2.0.2") == "10.1.0.2"
        assert world.counted("A", "resets") == 0
    assert "key" not in world.follow(look)
    key = world.folder / "A" / "etc" / "gateway.key"
    key.write_text(old, encoding="ascii")
    world.follow(restart)
    log = world.folder / "A.log"
    needs = 'needs key = \\"' + world.public["PUBLIC LINE OF A"]
    eventually("the old key is refused", lambda: needs in log.read_text(encoding="utf-8"))


def test_a_watch_fills_a_screen_and_leaves_the_terminal_as_it_was(world: World) -> None:
    """On a terminal: the second screen, drawn over and never cleared, until Ctrl-C. Else: plain lines."""
    join_two_sites(world)
    with world.carried("A", "10.2.0.2") as lives:
        lives()
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
        words = world.inside("A", "exec explicated gateway status --watch --interval 0.2")
        with subprocess.Popen(words, stdout=theirs, stderr=theirs) as watch:
            os.close(theirs)
            shown = b""
            while shown.count(b"\x1b[H") < 3:
                shown += os.read(ours, 65536)
            watch.send_signal(signal.SIGINT)
            assert watch.wait(30) == 0
        with contextlib.suppress(OSError):
            while more := os.read(ours, 65536):
                shown += more
        os.close(ours)
        text = shown.decode()
        assert text.startswith("\x1b[?1049h\x1b[?25l\x1b[H")
        assert text.endswith("\x1b[?25h\x1b[?1049l")
        assert "\x1b[2J" not in text
        frame = text.split("\x1b[H")[2].removesuffix("\x1b[J")
        lines = frame.split("\x1b[K")[:-1]
        assert len(lines) <= 12
        assert max(len(line.strip()) for line in lines) <= 60
        assert "headquarters" in frame
        assert "10.1.0.2" in frame
        plain = world.inside("A", "exec explicated gateway status -w -i 0.2")
        with subprocess.Popen(plain, stdout=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            first = [watch.stdout.readline() for _ in range(12)]
            watch.send_signal(signal.SIGINT)
            watch.stdout.read()
            assert watch.wait(30) == 0
        assert "\x1b" not in "".join(first)
        assert any("headquarters" in line for line in first)


def test_a_step_of_the_clock_disturbs_no_connection(world: World) -> None:
    """The clock of both gateways steps by a day, forwards and back, and one of them starts anew each time."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    clock = world.folder / "clock"
    clock.write_text("+0", encoding="ascii")
    fake = f"LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE={clock} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1"
    world.environment = fake
    join_two_sites(world)
    assert "libfaketime" in Path(f"/proc/{world.running['A'].pid}/maps").read_text(encoding="ascii")
    for step, year in (("+400d", 1), ("-400d", -1)):
        clock.write_text(step, encoding="ascii")
        stepped = int(run("env", *fake.split(), "date", "+%s")) - time.time()
        assert abs(stepped - year * 400 * 86400) < 60, "the clock has stepped"
        assert world.ask("A", "10.2.0.2") == "10.1.0.2"
        assert world.counted("A", "direct") == 0
        world.running["A"].kill()
        world.running["A"].wait()
        world.service("A", "enable")
        world.connected("A", 1)
        assert world.ask("A", "10.2.0.2") == "10.1.0.2"
        assert world.counted("A", "intercepted") == 1


def test_the_packaged_example_is_valid(world: World) -> None:
    """With a key it passes the check as it is, and each commented key is one that exists."""
    world.add("A")
    example = (ROOT / "packaging" / "gateway.toml").read_text(encoding="utf-8")
    run(*world.inside("A", "explicated gateway keygen /etc/explicated/gateway.key"))
    for text in (example, re.sub(r"^# (?=\[?\w+\]?( = .*)?$)", "", example, flags=re.MULTILINE)):
        (world.folder / "A" / "etc" / "gateway.toml").write_text(text, encoding="utf-8")
        assert "gateway.toml: valid\n\nThe public line" in run(*world.inside("A", "explicated gateway check"))
