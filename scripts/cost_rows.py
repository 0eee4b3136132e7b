"""Counts what every registered protocol, recovery, discipline and channel costs; fills docs/performance.md.

Instructions by callgrind, the run of 2 T minus that of T, as everywhere. A row's own share is the difference to a plain
one: of a protocol to Reno and of a recovery to SACK, for a data packet with its acknowledgement (six hops); of a discipline to
DropTail, for a packet at its port (one of three hops); of a channel to a wire, for a packet at a port that does nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cost import ROOT, channel_instructions, replace_between
from explicate import engine

SECONDS = 3.0
"""Simulated seconds T of a count."""

SCENARIO = """
name = "row"
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 10
access = {{ rate = "200Mbit/s", delay = "5ms", queue = "unlimited" }}
bottleneck = {{ rate = "50Mbit/s", delay = "30ms", queue = {{ kind = "{queue}", limit = "1.0bdp" }} }}
[[flows]]
name = "bulk"
count = 10
protocol = "{protocol}"
{recovery}
packet = "1000B"
start = {{ spread = "1s" }}
"""


def count(file: Path, seconds: float) -> tuple[int, int]:
    """Return instructions and packet-hops of a run."""
    program = ROOT / "target/release/examples/engine_cost"
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, file, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise ValueError(re.sub(r"==\d+==.*\n?", "", done.stderr).strip()[:300])
    return int(found[1]), int(json.loads(done.stdout)["hops"])


def per_hop(protocol: str = "reno", recovery: str = "", queue: str = "droptail") -> float:
    """Return the instructions of a packet-hop of a dumbbell with these words."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "row.toml"
        words = f'recovery = "{recovery}"' if recovery else ""
        file.write_text(SCENARIO.format(protocol=protocol, recovery=words, queue=queue), encoding="utf-8")
        once, twice = count(file, SECONDS), count(file, 2 * SECONDS)
    return (twice[0] - once[0]) / (twice[1] - once[1])


def section(title: str, names: list[str], word: str, plain: str, hops: int) -> list[str]:
    """Return the rows of one kind; `hops` packet-hops make the packet that the own share is of."""
    base = per_hop(**{word: plain})
    lines = []
    for name in names:
        try:
            cost = per_hop(**{word: name})
        except ValueError as error:
            print(f"{title} {name}: {error}", file=sys.stderr)
            lines.append(f"| {title} | `{name}` | not in this dumbbell | |")
            continue
        lines.append(f"| {title} | `{name}` | {cost:.0f} | {hops * (cost - base):+.0f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Count all that is registered."""
    for package, example in (("explicate-core", "port_cost"), ("explicate-sim", "engine_cost")):
        build = ["cargo", "build", "--release", "--quiet", "--package", package, "--example", example]
        subprocess.run(build, check=True, cwd=ROOT)
    entries = engine.registry()
    named = {kind: [e["name"] for e in entries if e["kind"] == kind] for kind in {e["kind"] for e in entries}}
    lines = ["| kind | name | instructions per hop | own share per packet |", "| --- | --- | ---: | ---: |"]
    lines += section("protocol", named["protocol"], "protocol", "reno", 6)
    lines += section("recovery", named["recovery"], "recovery", "sack", 6)
    lines += section("discipline", named["qdisc"], "queue", "droptail", 3)
    wire = channel_instructions("wire")
    for name in named["channel"]:
        try:
            cost = channel_instructions(name)
        except subprocess.CalledProcessError:
            lines.append(f"| channel | `{name}` | needs parameters | |")
            continue
        lines.append(f"| channel | `{name}` | | {cost - wire:+.0f} |")
        print(lines[-1], flush=True)
    replace_between(ROOT / "docs/performance.md", "\n".join(lines), "rows")


if __name__ == "__main__":
    main()
