"""XCP over recorded cellular links, whose capacity is not known in advance."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from shared import BOTTLENECK, SCENARIOS, drops, in_parallel, link, table

import explicate

RECORDED = ["ATT-LTE-driving-2016", "TMobile-LTE-short", "Verizon-LTE-short"]
BASE_RTT_MS = 40
CAPACITY_FACTORS = (0.5, 1.0, 2.0)


def mean_mbps(trace: Path) -> float:
    """Return the mean rate of a recording: 1500 bytes a line, the last line ends it."""
    lines = trace.read_text(encoding="ascii").split()
    return len(lines) * 1500 * 8 / float(lines[-1]) / 1e3


def cellular(traces: Path) -> str | None:
    """Return the section on recorded links; None if the recordings are not all there."""
    files = {(name, way): traces / f"{name}.{way}" for name in RECORDED for way in ("down", "up")}
    if not all(path.is_file() for path in files.values()):
        return None
    directions = [(name, way, "up" if way == "down" else "down") for name in RECORDED for way in ("down", "up")]

    def compare(name: str, way: str, back: str) -> list[tuple[str, explicate.Results]]:
        recorded = {
            "link.r1->r2.channel.0.file": str(files[name, way].resolve()),
            "link.r2->r1.channel.0.file": str(files[name, back].resolve()),
        }
        scenario = SCENARIOS / "traces.toml"
        ours = []
        for factor in CAPACITY_FACTORS:
            settings = {**recorded, "link.r1->r2.capacity": f"{factor * mean_mbps(files[name, way]):.6f}Mbit/s"}
            ours.append((f"xcp, capacity {factor:g} x mean", explicate.run(scenario, set=settings)))
        others = explicate.compare(scenario, ["newreno", "cubic"], set=recorded)
        return ours + [(protocol, others.select(variant=protocol)) for protocol in ("newreno", "cubic")]

    rows = []
    for (name, way, _), results in zip(directions, in_parallel(compare, directions), strict=True):
        mean = mean_mbps(files[name, way])
        for variant, done in results:
            rtt = done.samples.filter((pl.col("object") == "bulk.0") & (pl.col("variable") == "rtt_ms"))
            p95 = rtt.filter(pl.col("time_s") > 10)["value"].quantile(0.95, "nearest")
            rows.append([
                f"{name} {way}, {mean:.2f}", variant,
                f"{done.flows['goodput_bps'][0] / 1e6:.2f}", f"{100 * link(done, BOTTLENECK, 'utilisation'):.1f} %",
                f"{done.flows['rtt_mean_ms'][0] - BASE_RTT_MS:.0f}", f"{(p95 or 0) - BASE_RTT_MS:.0f}",
                drops(done),
            ])  # fmt: skip
    heads = ["data over, mean Mbit/s", "protocol", "goodput", "utilisation", "queueing, ms", "p95, ms", "drops"]
    return f"""\
One flow runs for 120 s (the first 10 s excluded) over recorded LTE capacity in the mahimahi format. Data and
acknowledgements use the recordings of their directions. The round trip is 40 ms, the buffer 500 kB, packets have
1500 bytes. There is no expected value. The table shows XCP with a constant configured capacity (half, once and
twice the recording's mean) on a link whose capacity varies. Queueing is the round-trip time minus 40 ms; the
p95 is over means of 100 ms.

{table(heads, rows)}

    explicate compare scenarios/traces.toml --protocols xcp,newreno,cubic \\
      --set "link.r1->r2.channel.0.file=DIR/Verizon-LTE-short.down" \\
      --set "link.r2->r1.channel.0.file=DIR/Verizon-LTE-short.up"
    python validation/make.py --traces DIR
"""
