"""Which protocol serves which path: the table behind `explicated advise`, made with the simulator.

    python scripts/advice.py --write     make the CSV beside the command, and the tables of docs/files.md, anew
    python scripts/advice.py --print     only the tables, from the CSV

A path is a link with losses at random in both directions, behind a port with a drop-tail queue of one bandwidth-delay
product (50 packets at least); explicit protocols have their router at that port, which shares its line with ordinary
flows as `explicated router` does. A flow sends for half a minute from its start on: alone, and beside one of CUBIC.
Its flows are guarded, as those of `explicated send`, with `--air-loss` as `advise` says it.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import statistics
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pages import replace_between

import explicate

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "crates/explicate-net/src/commands/advice.csv"
PAGE = ROOT / "docs/files.md"

EXPLICIT = {
    "xcp": ("xcp", "LR-XCP", "LR-LMXCP"),
    "vcp": ("vcp", "vcp-bise-wlte"),
    "xtcp": ("LR-XTCP", "LR-LMXTCP"),
}
"""Controllers of routers, and the presets that they answer."""
PLAIN = ("newreno", "sack", "cubic", "hybla", "westwood", "bbr")
REFERENCE = "cubic"
SHOWN = ("LR-LMXCP", "xcp", "LR-LMXTCP", "vcp-bise-wlte", "cubic", "hybla", "westwood", "bbr")
RTT_MS = (1, 20, 80, 600)
LOSS_PERCENT = (0.0, 0.1, 1.0, 5.0)
RATE_MBPS = (2, 20, 100)
SECONDS = 30
TRANSFER = {"max_rto": "5s", "recount": "at_once"}
"""Of recoveries that have these parameters: outages do not last longer, and the end of a transfer is not waited for."""
AIR_LOSS = 0.02
"""Losses of the air that are no sign of congestion unless `--air-loss` says another share (`commands/advise.rs`)."""
AIR_SHARE = 0.75
"""Of `--air-loss` that losses are at most."""

SCENARIO = """\
name = "advice"
duration = "{seconds}s"
runs = {runs}
seed = 1

[topology]
kind = "dumbbell"
pairs = 2
access = {{ rate = "10Gbit/s", delay = "1us", queue = "unlimited" }}

[topology.bottleneck]
rate = "{rate}Mbit/s"
delay = "{delay}us"
queue = {{ kind = "droptail", limit = "{limit}B" }}
router = "{router}"
share_by_flows = {shared}
channel = [{{ kind = "random_loss", rate = "{loss}%" }}]

[[flows]]
name = "one"
protocol = "{protocol}"
params = {{ {params} }}
"""
BESIDE = """
[[flows]]
name = "beside"
protocol = "{reference}"
"""


def seeds(rtt_ms: int, loss: float, rate: int) -> int:
    """Seeds of a path: many where few losses of a run decide, few where a run is dear."""
    if rtt_ms >= 600 and loss > 0.0:
        return 24
    return 3 if rate >= 100 else 8


class Row(NamedTuple):
    """What a protocol had on a path."""

    protocol: str
    routers: str
    rtt_ms: int
    loss_percent: float
    rate_mbps: int
    share: float
    """Of the link's rate, in payload, alone."""
    queue_ms: float
    """Mean, alone."""
    beside: float
    """What CUBIC has beside it, as a share of what it has beside another CUBIC."""


def params(protocol: str, loss: float, *, explicit: bool) -> str:
    """Parameters of a transfer by this protocol, with this percentage lost."""
    known = {p["name"] for e in explicate.registry() if e["name"] == protocol for p in e["parameters"]}
    given = {name: value for name, value in TRANSFER.items() if name == "max_rto" or name in known}
    words = [f'{name} = "{value}"' for name, value in given.items()]
    if explicit:
        words += ['guard = "on"', f"air_loss = {max(AIR_LOSS, loss / 100 / AIR_SHARE):.4g}"]
    return ", ".join(words)


def scenario(protocol: str, routers: str, rtt_ms: int, loss: float, rate: int, *, beside: bool) -> str:
    """The text of a path with this flow."""
    limit = max(round(rate * 1e6 / 8 * rtt_ms / 1e3), 50 * 1500)
    explicit = routers != "none"
    text = SCENARIO + (BESIDE if beside else "")
    return text.format(
        seconds=SECONDS,
        runs=seeds(rtt_ms, loss, rate),
        rate=rate,
        delay=rtt_ms * 500,
        limit=limit,
        router="auto" if explicit else "none",
        shared="true" if explicit else "false",
        loss=loss,
        protocol=protocol,
        params=params(protocol, loss, explicit=explicit),
        reference=REFERENCE,
    )


def measure(protocol: str, routers: str, rtt_ms: int, loss: float, rate: int) -> tuple[float, float, float]:
    """Share and queue alone, and the goodput of CUBIC beside, bit/s."""
    alone = explicate.run(scenario(protocol, routers, rtt_ms, loss, rate, beside=False))
    share = statistics.mean(alone.flows["goodput_bps"].to_list()) / (rate * 1e6)
    links = alone.links.to_dicts()
    queue = statistics.mean(row["queue_mean_ms"] for row in links if row["link"] == "r1->r2")
    both = explicate.run(scenario(protocol, routers, rtt_ms, loss, rate, beside=True))
    shares = {"beside"} if protocol != REFERENCE else {"one", "beside"}
    left = statistics.mean(row["goodput_bps"] for row in both.flows.to_dicts() if row["group"] in shares)
    return share, queue, left


def rows(jobs: int) -> list[Row]:
    """All protocols on all paths."""
    paths = list(itertools.product(RTT_MS, LOSS_PERCENT, RATE_MBPS))
    kinds = [("none", name) for name in PLAIN] + [(routers, name) for routers in EXPLICIT for name in EXPLICIT[routers]]
    points = [(name, routers, *path) for path in paths for routers, name in kinds]
    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(points, pool.map(lambda point: measure(*point), points), strict=True))
    return [
        Row(*point, round(share, 3), round(queue, 2), round(left / found[REFERENCE, "none", *point[2:]][2], 2))
        for point, (share, queue, left) in found.items()
    ]


def read() -> list[Row]:
    """The table as it was written."""
    with TABLE.open(encoding="utf-8") as file:
        return [
            Row(r["protocol"], r["routers"], int(r["rtt_ms"]), float(r["loss_percent"]), int(r["rate_mbps"]),
                float(r["share"]), float(r["queue_ms"]), float(r["beside"]))
            for r in csv.DictReader(line for line in file if not line.startswith("#"))
        ]  # fmt: skip


def write(table: Sequence[Row]) -> None:
    """Write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# Made by scripts/advice.py: {SECONDS} s from the start of the flow on.\n")
        file.write(f"# Recovery: {', '.join(f'{name}={value}' for name, value in TRANSFER.items())}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(table)


def means(table: Sequence[Row]) -> list[str]:
    """A line a protocol: the mean share by loss over all round trips and rates, and what is left to CUBIC."""
    losses = "".join(f" {loss:g} % |" for loss in LOSS_PERCENT)
    lines = [
        f"| protocol | routers |{losses} least | queue, ms | CUBIC beside: median, least |",
        "| --- | --- |" + " --- |" * (len(LOSS_PERCENT) + 3),
    ]
    for protocol, routers in dict.fromkeys((row.protocol, row.routers) for row in table):
        own = [row for row in table if (row.protocol, row.routers) == (protocol, routers)]
        by_loss = [statistics.mean(r.share for r in own if r.loss_percent == loss) for loss in LOSS_PERCENT]
        cells = [f"{100 * share:.0f} %" for share in (*by_loss, min(r.share for r in own))]
        kept = [r.beside for r in own]
        cells += [
            f"{statistics.median(r.queue_ms for r in own):.1f}",
            f"{statistics.median(kept):.2f}, {min(kept):.2f}",
        ]
        lines.append(f"| `{protocol}` | {routers} | " + " | ".join(cells) + " |")
    return lines


def by_path(table: Sequence[Row], rate: int, protocols: Iterable[str]) -> list[str]:
    """Shares of some protocols by round trip and loss."""
    names = list(protocols)
    lines = ["| round trip, loss | " + " | ".join(f"`{n}`" for n in names) + " |", "| --- |" + " --- |" * len(names)]
    for rtt, loss in itertools.product(RTT_MS, LOSS_PERCENT):
        here = {r.protocol: r.share for r in table if (r.rtt_ms, r.loss_percent, r.rate_mbps) == (rtt, loss, rate)}
        lines.append(f"| {rtt} ms, {loss:g} % | " + " | ".join(f"{100 * here[n]:.0f} %" for n in names) + " |")
    return lines


def main() -> int:
    """Make or show the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="measure, and write the CSV and the page")
    parser.add_argument("--print", action="store_true", help="only show the tables of the CSV")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    args = parser.parse_args()
    if args.print == args.write:
        parser.error("say --write or --print")
    if args.write:
        write(rows(args.jobs))
    table = read()
    text = "\n".join([*means(table), "", *by_path(table, 20, SHOWN)])
    if args.write:
        replace_between(PAGE, text, "advice")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
