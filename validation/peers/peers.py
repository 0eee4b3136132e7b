"""Explicate beside ns-2 2.35, and the cost of TCP under ns-3: results and costs of the same dumbbells.

`--install` brings ns2, libns3-dev and valgrind (Debian, as root); without it, the comparison runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import report
import simulators
from footing import Footing, footing
from ns3 import PACKAGES, SYSTEMS, Ns3, compiled
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
    """A cost is that of the second half of a run of twice these seconds.

    `slow` has the times and repetitions of ns-3, which is much slower; with 0 s its instructions are not counted.
    """

    case: Case
    timed_s: float
    counted_s: float
    slow: tuple[float, float, int] | None = None


TIMINGS = [
    Timing(Case(system, rate, 80, 10), timed_s, counted_s, slow if system in SYSTEMS else None)
    for system in ("xcp", "sack")
    for rate, timed_s, counted_s, slow in ((100, 200.0, 4.0, (10.0, 4.0, 3)), (1000, 20.0, 5.0, (1.0, 0.0, 1)))
]
REPETITIONS = 3


def quick(cases: Sequence[Case], timings: Sequence[Timing]) -> tuple[list[Case], list[Timing]]:
    """The cheap cases at full length, the cheap costs at a fifth."""
    few = [case for case in cases if case.rate_mbps * case.flows <= 1000]
    short = [replace(t, timed_s=t.timed_s / 5) for t in timings if t.case.rate_mbps <= 100]
    return few, short


def compare(case: Case, peers: Sequence[Simulator]) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for peer in peers:
        progress(f"{case.name}: {peer.name}")
        outcomes[peer.name] = peer.measure(case)
    return outcomes


def price(timing: Timing, peers: Sequence[Simulator], core: int, repetitions: int) -> dict[str, report.Price]:
    """Rates with the simulators taking turns, then instructions."""
    plans = {peer.name: (timing.timed_s, timing.counted_s, repetitions) for peer in peers}
    if timing.slow:
        plans[Ns3.name] = (*timing.slow[:2], min(timing.slow[2], repetitions))
    else:
        plans.pop(Ns3.name, None)
    peers = [peer for peer in peers if peer.name in plans]

    def halves(peer: Simulator, seconds: float, *, count: bool) -> list[Spent]:
        return [simulators.cost(peer, timing.case, n * seconds, core, count=count) for n in (1, 2)]

    rates: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for repetition in range(repetitions):
        for peer in peers:
            timed_s, _, times = plans[peer.name]
            if repetition < times:
                progress(f"cost of {timing.case.name}: {peer.name}, {repetition + 1}/{times}")
                short, long = halves(peer, timed_s, count=False)
                rates[peer.name].append(report.per_cpu_second(short, long))
    prices: dict[str, report.Price] = {}
    for peer in peers:
        counted_s = plans[peer.name][1]
        counted = None
        if counted_s:
            progress(f"instructions of {timing.case.name}: {peer.name}")
            short, long = halves(peer, counted_s, count=True)
            counted = report.per_hop(short, long)
        prices[peer.name] = report.Price(counted, rates[peer.name])
    return prices


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def as_json(
    results: Mapping[Case, Mapping[str, Outcome]],
    prices: Mapping[Case, report.Prices],
    footings: Mapping[str, Footing],
) -> dict[str, Any]:
    return {
        "cases": [
            {"case": asdict(case), "outcomes": {name: asdict(o) for name, o in outcomes.items()}}
            for case, outcomes in results.items()
        ],
        "costs": [
            {
                "case": asdict(case),
                "prices": {name: asdict(p) for name, p in of.items()},
                "ratios": {name: report.ratios(of, Explicate.name, name) for name in of if name != Explicate.name},
            }
            for case, of in prices.items()
        ],
        "footings": {name: asdict(one) for name, one in footings.items()},
    }


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="peers", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--install", action="store_true", help="install ns2, libns3-dev and valgrind with apt-get, then stop")
    add("--quick", action="store_true", help="the cheap cases only")
    add("--only", choices=["ns2", "ns3", "explicate"], help="run one side alone")
    add("--no-cost", action="store_true", help="leave out the cost table")
    add("--no-results", action="store_true", help="leave out what happens: the cost table only")
    add("--explicate", default=".venv/bin/explicate", metavar="COMMAND")
    add("--bench-binary", metavar="PATH", help="takes `--case NAME --duration S` like the bench")
    add("--ns", default="ns", metavar="COMMAND")
    add("--ns3", metavar="PROGRAM", help="dumbbell.cc compiled by hand")
    add("--core", type=int, default=max(os.sched_getaffinity(0)), help="run on this core")
    add("--json", type=Path, metavar="FILE", help="write everything")
    add("--markdown", metavar="PREFIX", help="fill PREFIXvalidation.md and PREFIXperformance.md")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments().parse_args(argv)
    try:
        if options.install:
            simulators.install(["ns2", "valgrind", *PACKAGES])
            compiled()
            return 0
        compare_peers(options)
    except PeerError as error:
        print(f"peers: {error}", file=sys.stderr)
        return 2
    return 0


def compare_peers(options: argparse.Namespace) -> None:
    peers: list[Simulator] = []
    if options.only in (None, "ns2"):
        peers.append(Ns2(options.ns, options.core))
    if options.only in (None, "explicate"):
        peers.append(Explicate(options.explicate, options.bench_binary, options.core))
    cases, timings = quick(CASES, TIMINGS) if options.quick else (CASES, TIMINGS)
    names = [Ns2.name, Explicate.name]
    results: dict[Case, dict[str, Outcome]] = {}
    for case in () if options.no_results else cases:
        results[case] = compare(case, peers)
        table = report.text_table(report.case_rows(results[case], names))
        print(f"\n{case.name}\n\n{table}", flush=True)
    prices: dict[Case, dict[str, report.Price]] = {}
    footings: dict[str, Footing] = {}
    if not options.no_cost:
        repetitions = 1 if options.quick else REPETITIONS
        if options.only in (None, "ns3"):
            peers.insert(1, Ns3(options.ns3, options.core))
        for timing in timings:
            prices[timing.case] = price(timing, peers, options.core, repetitions)
        for peer in peers:
            progress(f"set-up: {peer.name}")
            footings[peer.name] = footing(peer, options.core, repetitions)
        print(f"\n{report.text_table(report.cost_rows(prices, footings, Explicate.name))}")
    if options.json:
        text = json.dumps(as_json(results, prices, footings), indent=2)
        options.json.write_text(f"{text}\n", encoding="utf-8")
    if options.markdown is not None:
        if results:
            validation = report.validation_fragment(results, names)
            report.place(Path(f"{options.markdown}validation.md"), validation)
        if prices:
            performance = report.markdown_table(report.cost_rows(prices, footings, Explicate.name))
            report.place(Path(f"{options.markdown}performance.md"), performance)


if __name__ == "__main__":
    sys.exit(main())
