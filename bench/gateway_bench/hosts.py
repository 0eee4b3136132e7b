"""Programs of hosts, each run in a namespace: hosts.py NAME ARGUMENTS. Times are those of time.time().

files FOLDER LAW            serves a folder by HTTP
source LAW                  sends without end to who connects
sink ADDRESS N SECONDS      opens N connections and reads; prints how much of each, and all of every 0.1 s
keys SECONDS SSH...         types into a shell by ssh, five keys a second; prints when, and how long the echo took
voice-to ADDRESS SECONDS    sends 50 datagrams of 200 bytes a second, marked EF
voice-from SECONDS          prints when each came, and how long it took
"""

from __future__ import annotations

import http.server
import json
import os
import selectors
import socket
import socketserver
import subprocess
import sys
import time
from threading import Thread

PORT, VOICE = 80, 5004
EF = 46 << 2
BIN = 0.1
KEYS, VOICES = 0.2, 0.02
# How long the last echo may take.
LAST = 3.0


def use_law(listener: socket.socket, law: str) -> None:
    """Congestion control of a listener's connections."""
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, law.encode())


def files(folder: str, law: str) -> None:
    """An HTTP server."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

    class Many(http.server.ThreadingHTTPServer):
        request_queue_size = 512

    os.chdir(folder)
    server = Many(("0.0.0.0", PORT), Quiet)
    use_law(server.socket, law)
    server.serve_forever()


def source(law: str) -> None:
    """An endless file for everybody."""
    block = os.urandom(1 << 18)

    class Endless(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                while True:
                    self.request.sendall(block)
            except OSError:
                pass

    class Many(socketserver.ThreadingTCPServer):
        request_queue_size = 512
        daemon_threads = True

    server = Many(("0.0.0.0", PORT), Endless)
    use_law(server.socket, law)
    server.serve_forever()


def sink(address: str, connections: str, seconds: str) -> None:
    """Read from so many connections for so long."""
    count, selector = int(connections), selectors.DefaultSelector()
    began = time.time()
    for i in range(count):
        tcp = socket.socket()
        tcp.setblocking(False)
        tcp.connect_ex((address, PORT))
        selector.register(tcp, selectors.EVENT_READ, i)
    buffer = memoryview(bytearray(1 << 20))
    bins = [[0] * count]
    while (now := time.time()) < began + float(seconds):
        while now >= began + BIN * len(bins):
            bins.append([0] * count)
        for key, _ in selector.select(BIN):
            length = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
            if length == 0:
                sys.exit("a connection ended")
            bins[-1][key.data] += length
    print(json.dumps({"began": began, "bins": bins}))


def keys(seconds: str, *words: str) -> None:
    """Keystrokes and their echoes."""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ssh:
        assert ssh.stdin
        assert ssh.stdout
        while b"ready" not in ssh.stdout.readline():
            pass
        end, typed, echoed = time.time() + float(seconds), [], []

        def read() -> None:
            while os.read(ssh.stdout.fileno(), 1):  # type: ignore[union-attr]
                echoed.append(time.time())

        Thread(target=read, daemon=True).start()
        while time.time() < end:
            typed.append(time.time())
            os.write(ssh.stdin.fileno(), b"x")
            time.sleep(KEYS)
        time.sleep(LAST)
        ssh.terminate()
    print(json.dumps([(at, echo - at) for at, echo in zip(typed, echoed, strict=False)]))


def voice_to(address: str, seconds: str) -> None:
    """A telephone."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, EF)
    began = time.time()
    for i in range(int(float(seconds) / VOICES)):
        time.sleep(max(0.0, began + i * VOICES - time.time()))
        udp.sendto(repr(time.time()).encode().ljust(172), (address, VOICE))


def voice_from(seconds: str) -> None:
    """The other one."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("0.0.0.0", VOICE))
    udp.settimeout(0.5)
    end, seen = time.time() + float(seconds), []
    while time.time() < end:
        try:
            sent = float(udp.recv(200))
        except TimeoutError:
            continue
        seen.append((sent, time.time() - sent))
    print(json.dumps(seen))


if __name__ == "__main__":
    programs = (files, source, sink, keys, voice_to, voice_from)
    {program.__name__.replace("_", "-"): program for program in programs}[sys.argv[1]](*sys.argv[2:])
