"""Counts the cost of every registered protocol, recovery, queue, channel and estimator, a row each.

    python bench/cost_rows.py                     print the table
    python bench/cost_rows.py --markdown FILE     and put it between the `rows` markers of a document
    python bench/cost_rows.py --judge             fail if a row has grown by more than 5 %, and name it
    python bench/cost_rows.py --accept            record these counts as the accepted ones: bench/costs.json

Rows come from the registry: a new entry adds a row, whose count must be accepted. Each is a small network in which only
that entry differs, counted by callgrind over a span of simulated time.

Counts repeat exactly for the same program: rust-toolchain.toml pins the compiler and Cargo.lock the libraries, `libm`
among them, and the program is built for the plain instruction set. Machines differ in the C library: its version, and
the code that it chooses by the processor's features to copy memory. A row's count therefore excludes libraries. Their
instructions, at most 2 per hop now, have a separate limit: growth by more than 5 % of the row, which would result from
an allocation per packet. Counts are kept by architecture.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from callgrind import ENGINE, CountError, build_engine, count
from shared import ROOT, replace_between

from explicate import engine

KEPT = Path(__file__).with_name("costs.json")
SLACK = 1.05
"""Limit of a row's growth: ratio to the accepted count."""

DUMBBELL = """
name = "row"
[topology]
kind = "dumbbell"
access = {{ rate = "400Mbit/s", delay = "5ms", queue = "unlimited" }}
[topology.bottleneck]
rate = "100Mbit/s"
delay = "30ms"
queue = {{ kind = "{queue}", limit = "1.0bdp" }}
channel = [{channel}]
"""

CLOUDS = """
name = "row"
[topology]
kind = "chain"
hops = 4
access = {{ rate = "200Mbit/s", delay = "5ms", queue = "unlimited" }}
link = {{ rate = "50Mbit/s", delay = "7.5ms", router = {{ kind = "xcp_i", estimator = "{estimator}" }} }}
[[link]]
name = "r2->r3"
router = "none"
[[link]]
name = "r2->r1"
router = "none"
"""

FLOWS = """
[[flows]]
name = "bulk"
count = 10
protocol = "{protocol}"
stack = "{stack}"
packet = "1000B"
start = {{ spread = "1s" }}
"""

NEUTRAL = "ns2"
"""The stack that leaves recovery and start to the protocol, below everything but stacks."""

UNGUARDED = """params = {{ guard = "off" }}
"""
"""Estimators are measured below XCP-i's controller without the guard, which the cloud's plain routers would start."""

SPAN = "4..8"
"""Simulated seconds that are counted: all flows have started, the routers' first intervals are over."""

WORDS = {
    "random_loss": "rate = 0.001",
    "burst_loss": "rate = 0.001",
    "gilbert_elliott": "good = 1000, bad = 2",
    "corruption": "rate = 0.001",
    "duplication": "rate = 0.001",
    "reordering": "rate = 0.001",
    "outages": 'up = "1s", down = "50ms"',
    "rate_steps": 'steps = [{ at = "0s", rate = "100Mbit/s" }, { at = "5s", rate = "80Mbit/s" }]',
    "trace": f'file = "{ROOT / "scenarios/steps.trace"}"',
}
"""Parameters of channels that have no effect by default, or need a parameter."""


def dumbbell(protocol: str = "reno/sack", queue: str = "droptail", channel: str = "", stack: str = NEUTRAL) -> str:
    """A dumbbell with these words."""
    return (DUMBBELL + FLOWS).format(protocol=protocol, queue=queue, channel=channel, stack=stack)


def with_channel(name: str) -> str:
    """A dumbbell whose bottleneck has this channel, both ways."""
    more = f", {WORDS[name]}" if name in WORDS else ""
    return dumbbell(channel=f'{{ kind = "{name}"{more} }}')


@dataclass(frozen=True)
class Kind:
    """The measurement of one kind of entries, and the reference of their own share."""

    scenario: Callable[[str], str]
    hops: float
    """Packet-hops for each time that the thing handles a packet."""
    neutral: str = ""
    """The entry that does nothing; without one, the cheapest."""
    meaning: str = ""
    """The unit of the own share."""


KINDS = {
    "protocol": Kind(lambda name: dumbbell(f"{name}/sack"), 6, meaning="a data packet with its acknowledgement"),
    "recovery": Kind(
        lambda name: dumbbell(f"reno/{name}", channel='{ kind = "random_loss", rate = 0.005 }'),
        6,
        meaning="a data packet with its acknowledgement",
    ),
    "qdisc": Kind(lambda name: dumbbell(queue=name), 3, "droptail", "a packet at one port"),
    "channel": Kind(with_channel, 3, "wire", "a packet at one port"),
    "estimator": Kind(
        lambda name: (CLOUDS + FLOWS + UNGUARDED).format(protocol="xcp_i", stack=NEUTRAL, estimator=name),
        12,
        meaning="a data packet with its acknowledgement through one cloud",
    ),
    "stack": Kind(lambda name: dumbbell("cubic", stack=name), 6, NEUTRAL, "a data packet with its acknowledgement"),
}


@dataclass(frozen=True)
class Row:
    """The cost of an entry, instructions per packet-hop: in our own code, and in libraries."""

    kind: str
    name: str
    own: float
    library: float

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def total(self) -> float:
        """Instructions per packet-hop."""
        return self.own + self.library


def measure(kind: str, name: str) -> Row:
    """Count one row; raise CountError, saying which, if the scenario is refused."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "row.toml"
        file.write_text(KINDS[kind].scenario(name), encoding="utf-8")
        try:
            counted = count(ENGINE, [file, SPAN])
        except CountError as error:
            remedy = "parameters that it needs belong into WORDS of bench/cost_rows.py"
            raise CountError(f"{kind} {name}: {error}; {remedy}") from error
    hops, own = counted.told["hops"], counted.inside(ENGINE)
    return Row(kind, name, own / hops, (counted.total() - own) / hops)


def measure_all(wanted: Sequence[str]) -> list[Row]:
    """Count the rows of all entries, or of those whose kind or name is given, on all processors."""
    entries = [(e["kind"], e["name"]) for e in engine.registry() if e["kind"] in KINDS]
    chosen = [entry for entry in entries if not wanted or set(entry) & set(wanted)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda entry: measure(*entry), chosen))


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown, a table for each kind."""
    parts = []
    for kind, about in KINDS.items():
        of_kind = [row for row in rows if row.kind == kind]
        if not of_kind:
            continue
        neutral = next((r for r in of_kind if r.name == about.neutral), min(of_kind, key=Row.total))
        lines = [f"| {kind} | instructions per hop | own share, of {about.meaning} |", "| --- | ---: | ---: |"]
        for row in of_kind:
            share = about.hops * (row.total() - neutral.total())
            told = "0, by definition" if row is neutral else f"{share:+.0f}"
            lines.append(f"| `{row.name}` | {row.total():.0f} | {told} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def judge(rows: Sequence[Row], kept: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Rows that have grown too much, are new, or no longer exist; `kept` has their counts, ours and of libraries."""
    for row in rows:
        if str(row) not in kept:
            yield f"{row}: {row.own:.1f} instructions per hop, and no count was accepted yet"
            continue
        own, library = kept[str(row)]
        if row.own > SLACK * own:
            yield f"{row}: {row.own:.1f} instructions per hop, {row.own / own - 1:+.1%} over the {own:.1f} accepted"
        if row.library - library > (SLACK - 1) * own:
            grown = f"{row.library:.1f} instructions per hop in libraries, {library:.1f} were accepted"
            yield f"{row}: {grown}; does it allocate?"
    for name in kept.keys() - {str(row) for row in rows}:
        yield f"{name}: a count was accepted, but it is not in the registry"


def write_kept(kept: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """Write the counts, a line each, so that a change of one reads as such."""
    machines = []
    for machine, rows in kept.items():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(counts)}" for name, counts in rows.items())
        machines.append(f" {json.dumps(machine)}: {{\n{lines}\n }}")
    KEPT.write_text("{\n" + ",\n".join(machines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Count; print, judge or accept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wanted", nargs="*", help="kinds or names (default: all)")
    parser.add_argument("--markdown", type=Path, help="document whose table of rows is replaced")
    parser.add_argument("--judge", action="store_true", help="compare with the counts accepted last")
    parser.add_argument("--accept", action="store_true", help="make these the counts to compare with")
    options = parser.parse_args()
    if options.markdown and options.wanted:
        parser.error("--markdown replaces the whole table: name no rows with it")
    build_engine()
    try:
        rows = measure_all(options.wanted)
    except CountError as error:
        sys.exit(str(error))
    print(table(rows))
    if options.markdown:
        replace_between(options.markdown, table(rows), "rows")
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    machine = platform.machine()
    if options.accept:
        accepted = {} if not options.wanted else kept.get(machine, {})
        accepted |= {str(row): [round(row.own, 2), round(row.library, 2)] for row in rows}
        write_kept(kept | {machine: accepted})
    elif options.judge:
        accepted = kept.get(machine, {})
        if options.wanted:
            accepted = {name: counts for name, counts in accepted.items() if name in map(str, rows)}
        wrong = list(judge(rows, accepted))
        if wrong:
            sys.exit("\n".join([*wrong, "if that is meant: `make cost-accept`"]))
        print(f"no row has grown by more than {SLACK - 1:.0%}")


if __name__ == "__main__":
    main()
