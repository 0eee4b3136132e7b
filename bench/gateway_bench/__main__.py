"""Applications through two gateways, beside what else there is, over the same paths. Needs root; make gateway-bench.

    PYTHONPATH=bench python -m gateway_bench EXPLICATED [--connections] [--cases NAME...] [--ways NAME...] [--runs 5]
        [--traces FOLDER] [--markdown docs/gateway.md] [--json FILE]

client - gateway - `explicated link` - gateway - server, each in a network namespace. Every run has namespaces of its
own; the runs of all ways are interleaved. A run that fails stands in the table with its reason. A way that did not
finish a transfer in its time is not tried again. With --connections only the gateway is measured, in short cases with
1, 10 and 100 connections, which have a table of their own. With --json, results are kept as they come, and a later
call adds to them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from . import table
from .case import ALL, Case, Figures, Run
from .cases import CASES, COUNTED
from .net import Net
from .ways import Capacity, law, opened

# Over so long recorded capacity is taken, seconds.
SPAN = 0.1


def trace_of(steps: tuple[tuple[float, float], ...], file: Path) -> None:
    """A trace in the mahimahi format of a rate that changes."""
    at, lines = 0.0, []
    for end, rate in steps:
        while at < end:
            lines.append(f"{math.ceil(1e3 * at)}\n")
            at += 12_000 / rate
    file.write_text("".join(lines))


def steps_of(trace: Path, bin_seconds: float) -> list[tuple[float, float]]:
    """The rate of a trace in each bin: its end in seconds, bit/s."""
    times = [int(line) / 1e3 for line in trace.read_text().split()]
    counts = [0] * (int(times[-1] / bin_seconds) + 1)
    for at in times:
        counts[int(at / bin_seconds)] += 1
    return [((i + 1) * bin_seconds, 12_000 * count / bin_seconds) for i, count in enumerate(counts)]


def once(program: str, case: Case, way: str, seed: int, traces: Path) -> Figures:
    """One run."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="gwbench-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        line, capacity = case.line, None
        if case.steps:
            trace_of(case.steps, folder / "down.trace")
            line = replace(line, traces=(str(folder / "down.trace"), ""))
        elif line.traces:
            line = replace(line, traces=(str(traces / line.traces[0]), str(traces / line.traces[1])))
        net = Net(program, folder, case.sites, line)
        if case.steps:
            capacity = Capacity(folder / "rate", net, list(case.steps))
        elif line.traces:
            capacity = Capacity(folder / "rate", net, steps_of(Path(line.traces[0]), SPAN), SPAN)
        stack.callback(net.close)
        net.build()
        stack.enter_context(net.link(seed))
        return case.measure(Run(case, net, stack.enter_context(opened(net, way, capacity)), law(way)))


def attempt(program: str, case: Case, way: str, seed: int, traces: Path) -> Figures | str:
    """The figures of a run, or why there are none: whatever it is, the other runs are made."""
    try:
        return once(program, case, way, seed, traces)
    except Exception as reason:
        return f"{type(reason).__name__}: {reason}".replace("\n", " ")[:120]


def main() -> None:
    """Run the cases, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("program")
    parser.add_argument("--connections", action="store_true")
    parser.add_argument("--cases", nargs="*")
    parser.add_argument("--ways", nargs="*", default=list(ALL))
    parser.add_argument("--runs", type=int, default=5)
    traces = os.environ.get("EXPLICATE_TRACES", Path(__file__).parents[3] / "shared" / "traces")
    parser.add_argument("--traces", type=Path, default=traces, help="folder of recordings (or EXPLICATE_TRACES)")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    known = [case for of in COUNTED.values() for case in of] if arguments.connections else CASES
    cases = [case for case in known if arguments.cases is None or case.name in arguments.cases]
    results: table.Results = {}
    if arguments.json and arguments.json.exists():
        results = json.loads(arguments.json.read_text(encoding="utf-8"))
    program = str(Path(arguments.program).resolve())
    for case in cases:
        ways = [way for way in case.ways if way in arguments.ways]
        for seed in range(1, arguments.runs + 1):
            for way in list(ways):
                began = time.monotonic()
                figures = attempt(program, case, way, seed, arguments.traces.resolve())
                results.setdefault(case.name, {}).setdefault(way, []).append(figures)
                print(f"{case.name}, {way}, {seed}, {time.monotonic() - began:.0f} s: {figures}", flush=True)
                if case.files and isinstance(figures, dict) and figures["seconds"] >= case.most:
                    ways.remove(way)
                if arguments.json:
                    arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if arguments.connections:
        name, text = table.CONNECTIONS, table.by_connections(COUNTED, results)
    else:
        name, text = table.WAYS, table.table(CASES, results)
    print(text)
    if arguments.markdown:
        table.put(arguments.markdown, name, text)
    if not all(isinstance(figures, dict) for ways in results.values() for runs in ways.values() for figures in runs):
        sys.exit("some runs failed: see the table")


if __name__ == "__main__":
    main()
