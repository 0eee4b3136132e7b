"""Explicate beside ns-2 2.35: the same dumbbells, what happens and what it costs.

`--install` brings ns2 and valgrind (Debian, as root); without it, the comparison runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import report
import simulators
from simulators import Case, Explicate, Ns2, Outcome, PeerError, Simulator, Spent

DUMBBELLS: Sequence[dict[str, int]] = [
    {"rate_mbps": 100, "rtt_ms": 80, "flows": 10},
    {"rate_mbps": 100, "rtt_ms": 80, "flows": 50},
    {"rate_mbps": 30, "rtt_ms": 100, "flows": 1},
    {"rate_mbps": 10, "rtt_ms": 40, "flows": 2},
    {"rate_mbps": 45, "rtt_ms": 40, "rtt_high_ms": 330, "flows": 30},
    {"rate_mbps": 1000, "rtt_ms": 80, "flows": 10},
]
CASES = [Case(system, **shape) for system in ("xcp", "sack") for shape in DUMBBELLS]


@dataclass(frozen=True)
class Timing:
    """A cost is that of the second half of a run of twice these seconds."""

    case: Case
    timed_s: float
    counted_s: float


TIMINGS = [
    Timing(Case(system, rate, 80, 10), timed_s, counted_s)
    for system in ("xcp", "sack")
    for rate, timed_s, counted_s in ((100, 200.0, 4.0), (1000, 20.0, 5.0))
]
REPETITIONS = 3


def quick(cases: Sequence[Case], timings: Sequence[Timing]) -> tuple[list[Case], list[Timing]]:
    """The cheap cases at full length, the cheap costs at a fifth."""
    few = [case for case in cases if case.rate_mbps * case.flows <= 1000]
    short = [Timing(t.case, t.timed_s / 5, t.counted_s) for t in timings if t.case.rate_mbps <= 100]
    return few, short


def compare(case: Case, peers: Sequence[Simulator]) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for peer in peers:
        progress(f"{case.name}: {peer.name}")
        outcomes[peer.name] = peer.measure(case)
    return outcomes


def price(timing: Timing, peers: Sequence[Simulator], core: int, repetitions: int) -> dict[str, report.Price]:
    """Rates with the simulators taking turns, then instructions."""

    def halves(peer: Simulator, seconds: float, *, count: bool) -> list[Spent]:
        return [simulators.cost(peer, timing.case, n * seconds, core, count=count) for n in (1, 2)]

    rates: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for repetition in range(repetitions):
        for peer in peers:
            progress(f"cost of {timing.case.name}: {peer.name}, {repetition + 1}/{repetitions}")
            short, long = halves(peer, timing.timed_s, count=False)
            rates[peer.name].append(report.per_cpu_second(short, long))
    prices: dict[str, report.Price] = {}
    for peer in peers:
        progress(f"instructions of {timing.case.name}: {peer.name}")
        short, long = halves(peer, timing.counted_s, count=True)
        prices[peer.name] = report.Price(report.per_hop(short, long), rates[peer.name])
    return prices


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def as_json(results: Mapping[Case, Mapping[str, Outcome]], prices: Mapping[Case, report.Prices]) -> dict[str, Any]:
    return {
        "cases": [
            {"case": asdict(case), "outcomes": {name: asdict(o) for name, o in outcomes.items()}}
            for case, outcomes in results.items()
        ],
        "costs": [
            {
                "case": asdict(case),
                "prices": {name: asdict(p) for name, p in of.items()},
                "ratios": report.ratios(of, Explicate.name, Ns2.name),
            }
            for case, of in prices.items()
        ],
    }


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="peers", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--install", action="store_true", help="install ns2 and valgrind with apt-get, then stop")
    add("--quick", action="store_true", help="the cheap cases only")
    add("--only", choices=["ns2", "explicate"], help="run one side alone")
    add("--no-cost", action="store_true", help="leave out the cost table")
    add("--explicate", default=".venv/bin/explicate", metavar="COMMAND")
    add("--bench-binary", metavar="PATH", help="takes `--case NAME --duration S` like the bench")
    add("--ns", default="ns", metavar="COMMAND")
    add("--core", type=int, default=max(os.sched_getaffinity(0)), help="run on this core")
    add("--json", type=Path, metavar="FILE", help="write everything")
    add("--markdown", metavar="PREFIX", help="fill PREFIXvalidation.md and PREFIXperformance.md")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments().parse_args(argv)
    try:
        if options.install:
            simulators.install()
            return 0
        compare_peers(options)
    except PeerError as error:
        print(f"peers: {error}", file=sys.stderr)
        return 2
    return 0


def compare_peers(options: argparse.Namespace) -> None:
    peers: list[Simulator] = []
    if options.only != "explicate":
        peers.append(Ns2(options.ns, options.core))
    if options.only != "ns2":
        peers.append(Explicate(options.explicate, options.bench_binary, options.core))
    cases, timings = quick(CASES, TIMINGS) if options.quick else (CASES, TIMINGS)
    names = [Ns2.name, Explicate.name]
    results: dict[Case, dict[str, Outcome]] = {}
    for case in cases:
        results[case] = compare(case, peers)
        table = report.text_table(report.case_rows(results[case], names))
        print(f"\n{case.name}\n\n{table}", flush=True)
    prices: dict[Case, dict[str, report.Price]] = {}
    if not options.no_cost:
        repetitions = 1 if options.quick else REPETITIONS
        for timing in timings:
            prices[timing.case] = price(timing, peers, options.core, repetitions)
        rows = report.cost_rows(prices, Explicate.name, Ns2.name)
        # Its headings are long: for a terminal, a row for each case becomes a column.
        print(f"\n{report.text_table([list(row) for row in zip(*rows, strict=True)])}")
    if options.json:
        text = json.dumps(as_json(results, prices), indent=2)
        options.json.write_text(f"{text}\n", encoding="utf-8")
    if options.markdown is not None:
        validation = report.validation_fragment(results, names)
        report.place(Path(f"{options.markdown}validation.md"), validation)
        if prices:
            performance = report.markdown_table(report.cost_rows(prices, Explicate.name, Ns2.name))
            report.place(Path(f"{options.markdown}performance.md"), performance)


if __name__ == "__main__":
    sys.exit(main())
