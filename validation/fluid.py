"""Compute the section of docs/validation.md on the fluid models, and the picture docs/fluid.svg.

    python validation/fluid.py

The same scenarios through both engines, side by side. `validation/make.py` keeps the section as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean

import polars as pl
from shared import BOTTLENECK, ROOT, in_parallel, link, place, table, verdict

import explicate

DROPTAIL = '{ kind = "droptail", limit = "1.0bdp" }'
RED = '{{ kind = "red", min_th = "{0}pkt", max_th = "{1}pkt", limit = "3000pkt" }}'
PICTURE = ROOT / "docs" / "fluid.svg"


@dataclass(frozen=True)
class Case:
    """A dumbbell, or a scenario of its own; what is compared in it."""

    name: str
    protocol: str = "xcp"
    mbps: float = 10
    rtt: tuple[float, float] = (40, 40)
    flows: int = 2
    seconds: int = 60
    queue: str = DROPTAIL
    text: str = ""
    groups: tuple[str, ...] = ("f",)
    links: tuple[str, ...] = (BOTTLENECK,)
    seeds: int = 1
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def bdp(self) -> float:
        """Packets of 1000 bytes in a mean round trip."""
        return self.mbps * sum(self.rtt) / 2 / 8

    def scenario(self) -> str:
        """Return it as text."""
        low, high = self.rtt
        return (
            self.text
            or f"""
name = "fluid"
duration = "{self.seconds}s"
warmup = "{self.seconds // 2}s"
[topology]
kind = "dumbbell"
pairs = {self.flows}
access = {{ rate = "{10 * self.mbps}Mbit/s", delay = {{ from = "1ms", to = "{1 + (high - low) / 4}ms" }} }}
bottleneck = {{ rate = "{self.mbps}Mbit/s", delay = "{low / 2 - 2}ms", queue = {self.queue} }}
[[flows]]
name = "f"
count = {self.flows}
protocol = "{self.protocol}"
packet = "1000B"
start = {{ spread = "1s" }}
"""
        )

    def where(self) -> str:
        """Say the dumbbell in a table."""
        low, high = self.rtt
        rtt = f"{low:g}" if low == high else f"{low:g}..{high:g}"
        return self.name + (
            "" if self.text else f", {self.mbps:g} Mbit/s, {rtt} ms, {self.flows} flow{'s' * (self.flows > 1)}"
        )


LOT = """
name = "lot"
duration = "60s"
warmup = "30s"
[topology]
kind = "parking_lot"
hops = 3
cross = 1
link = {{ rate = "20Mbit/s", delay = "10ms", queue = {{ kind = "droptail", limit = "100pkt" }} }}
[[link]]
name = "r2->r3"
rate = "10Mbit/s"
[[flows]]
name = "long"
count = 2
protocol = "{0}"
packet = "1000B"
[[flows]]
name = "one"
protocol = "{0}"
packet = "1000B"
path = "cross.1"
[[flows]]
name = "two"
count = 2
protocol = "{0}"
packet = "1000B"
path = "cross.2"
[[flows]]
name = "three"
protocol = "{0}"
packet = "1000B"
path = "cross.3"
"""
LOT_GROUPS = ("long", "one", "two", "three")
LOT_LINKS = ("r1->r2", "r2->r3", "r3->r4")

VISIT = """
name = "visit"
duration = "60s"
warmup = "{1}s"
[topology]
kind = "dumbbell"
pairs = 10
bottleneck = {{ rate = "50Mbit/s", delay = "38ms" }}
[[flows]]
name = "f"
count = 5
protocol = "{0}"
packet = "1000B"
[[flows]]
name = "visits"
count = 5
protocol = "{0}"
packet = "1000B"
start = "20s"
stop = "40s"
[sampling]
every = "{2}ms"
of = ["queue", "throughput"]
"""

LIMITED = """
name = "limited"
duration = "60s"
warmup = "30s"
[topology]
kind = "explicit"
[[link]]
from = "r1"
to = "r2"
duplex = true
rate = "40Mbit/s"
delay = "25ms"
[[link]]
from = "a"
to = "r1"
duplex = true
rate = "400Mbit/s"
delay = "12.5ms"
[[link]]
from = "r2"
to = "z"
duplex = true
rate = "400Mbit/s"
delay = "12.5ms"
[[link]]
from = "r2"
to = "d"
duplex = true
rate = "10Mbit/s"
delay = "12.5ms"
[[link]]
from = "s"
to = "r1"
duplex = true
rate = "400Mbit/s"
delay = "12.5ms"
[[flows]]
name = "free"
protocol = "xcp"
packet = "500B"
paced = true
from = "a"
to = "z"
[[flows]]
name = "limited"
protocol = "xcp"
packet = "500B"
paced = true
from = "s"
to = "d"
"""
NODES = "".join(
    f'[[node]]\nname = "{name}"\nkind = "{"router" if name[0] == "r" else "host"}"\n'
    for name in ("r1", "r2", "a", "z", "s", "d")
)

CASES = [
    *(Case("xcp", "xcp", *size) for size in [
        (10, (40, 40), 2), (100, (80, 80), 10), (100, (80, 80), 50), (30, (100, 100), 1), (45, (40, 330), 30),
        (500, (80, 80), 20),
    ]),
    Case("xcp, parking lot", text=LOT.format("xcp"), groups=LOT_GROUPS, links=LOT_LINKS, mbps=20, rtt=(80, 80)),
    Case("xcp, limited behind", text=LIMITED.replace("[[link]]", NODES + "[[link]]", 1), groups=("free", "limited"),
         links=("r1->r2", "r2->d"), mbps=40, rtt=(100, 100)),
    Case("xcp, others there", text=VISIT.format("xcp", 0, 100), groups=("f", "visits"), mbps=50, rtt=(80, 80)),
    *(Case("vcp", "vcp", *size, seconds=240) for size in [
        (10, (40, 40), 2), (100, (80, 80), 10), (100, (80, 80), 50), (45, (40, 160), 15),
    ]),
    Case("vcp, parking lot", text=LOT.format("vcp").replace("60s", "400s").replace("30s", "200s"), groups=LOT_GROUPS,
         links=LOT_LINKS, mbps=20, rtt=(80, 80)),
    Case("vcp-bise", "vcp-bise", 30, (500, 500), 5, seconds=1000, seeds=3),
    Case("vcp-bise", "vcp-bise", 100, (500, 500), 20, seconds=600, seeds=3),
    Case("reno, RED 20..1000", "sack", 100, (80, 80), 60, queue=RED.format(20, 1000)),
    Case("reno, RED 50..500", "sack", 100, (80, 80), 60, queue=RED.format(50, 500)),
    Case("reno, RED 100..600", "sack", 200, (80, 80), 100, queue=RED.format(100, 600)),
    Case("reno, RED 20..1000", "sack", 100, (60, 120), 60, queue=RED.format(20, 1000)),
    Case("reno, DropTail", "sack", 20, (60, 100), 20),
    Case("reno, DropTail", "sack", 50, (80, 80), 50),
]  # fmt: skip


def both(case: Case, seed: int) -> tuple[explicate.Results, explicate.Results]:
    """Run a case as fluid and packet by packet."""
    text = case.scenario()
    return explicate.run(text, seed=seed, fluid=True), explicate.run(text, seed=seed)


def goodput(results: explicate.Results, group: str) -> float:
    """Return the mean goodput of a group's flows, Mbit/s."""
    return float(results.summary().filter(pl.col("group") == group)["goodput_bps"][0]) / 1e6


def rows_of(case: Case) -> list[list[object]]:
    """Return the rows of a case: groups, then links."""
    runs = [both(case, seed) for seed in range(1, case.seeds + 1)]
    rows: list[list[object]] = []
    for group in case.groups:
        fluid, packets = (fmean(goodput(run[i], group) for run in runs) for i in (0, 1))
        off = fluid / packets - 1
        name = case.where() if group == "f" else f"{case.where()}: {group}"
        rows.append(
            [name, "Mbit/s", f"{fluid:.3f}", f"{packets:.3f}", f"{100 * off:+.1f} %", verdict(abs(off) <= 0.03)]
        )
    for name in case.links:
        fluid, packets = (fmean(link(run[i], name, "queue_mean_packets") for run in runs) for i in (0, 1))
        close = abs(fluid - packets) <= max(0.1 * packets, 3, 0.01 * case.bdp)
        cells = [f"{fluid:.2f}", f"{packets:.2f}", f"{fluid - packets:+.2f}", verdict(close)]
        rows.append([f"{case.where()}: {name}", f"queue of {case.bdp:.0f}", *cells])
    return rows


# ---------------------------------------------------------------------------------------------------- the picture


def series(results: explicate.Results, object_: str, variable: str) -> tuple[list[float], list[float]]:
    """Return times and values of a sampled variable."""
    rows = results.samples.filter((pl.col("object") == object_) & (pl.col("variable") == variable))
    return rows["time_s"].to_list(), rows["value"].to_list()


def picture() -> None:
    """Draw fluid over packets: five flows of XCP and of VCP, and five more from second 20 to 40."""
    width, height, left, top, gap = 380, 130, 52, 30, 46
    parts = []
    for column, protocol in enumerate(("xcp", "vcp")):
        fluid, packets = both(Case(protocol, text=VISIT.format(protocol, 0, 400)), 1)
        panels = [
            ("a flow that stays, Mbit/s", "f.0", "throughput_bps", 1e-6, 15.0),
            ("a flow that visits, Mbit/s", "visits.0", "throughput_bps", 1e-6, 15.0),
            ("queue, packets", BOTTLENECK, "queue_packets", 1.0, 60.0),
        ]
        for row, (title, object_, variable, scale, most) in enumerate(panels):
            x0, y0 = left + column * (width + gap), top + row * (height + gap)
            parts.append(f'<text x="{x0}" y="{y0 - 6}" font-weight="bold">{protocol}: {title}</text>')
            parts.append(f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#999"/>')
            for share in (0, 0.5, 1):
                y = y0 + height * (1 - share)
                parts.append(f'<text x="{x0 - 6}" y="{y + 4:.0f}" text-anchor="end">{most * share:g}</text>')
            for second in range(0, 61, 20):
                x = x0 + width * second / 60
                parts.append(f'<text x="{x:.0f}" y="{y0 + height + 15}" text-anchor="middle">{second} s</text>')
            for results, colour, thick in ((packets, "#e69f00", 2.6), (fluid, "#0072b2", 1.1)):
                times, values = series(results, object_, variable)
                points = " ".join(
                    f"{x0 + width * t / 60:.1f},{y0 + height * (1 - min(v * scale / most, 1)):.1f}"
                    for t, v in zip(times, values, strict=True)
                )
                parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{thick}"/>')
    whole = left + 2 * (width + gap), top + 3 * (height + gap) + 10
    y = whole[1] - 14
    for x, colour, name in ((left, "#e69f00", "packets"), (left + 120, "#0072b2", "fluid")):
        parts.append(f'<line x1="{x}" x2="{x + 26}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2.6"/>')
        parts.append(f'<text x="{x + 32}" y="{y + 4}">{name}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]} {whole[1]}" font-family="sans-serif"'
    background = f'<rect width="{whole[0]}" height="{whole[1]}" fill="white"/>'
    PICTURE.write_text("\n".join([head + ' font-size="12">', background, *parts, "</svg>"]) + "\n", encoding="utf-8")


def main() -> None:
    """Write the section and the picture."""
    picture()
    rows = [row for rows in in_parallel(rows_of, [(case,) for case in CASES]) for row in rows]
    text = f"""\
The same file, packet by packet and with `--fluid` ([what the models are](fluid.md)). Second half of the run, but
"others there", all of it: five flows more come at 20 s and leave at 40 s. Goodput of a flow is to agree within
3 %, the mean queue within 10 %, or 3 packets, or 1 % of the bandwidth-delay product. "Limited behind" is the
equilibrium of `equilibrium.rs` in which shuffling keeps XCP's free flow below its share.

{table(["case", "", "fluid", "packets", "difference", "holds"], rows)}

Of flows with equal round trips DropTail makes flows that lose together, in packets; a mean cannot, and its queue stays
too long.

The equilibria of XCP next to their closed forms, joining and leaving, what is refused:

    cargo test -p explicate-fluid -- --nocapture
    python validation/fluid.py"""
    place("fluid", "Fluid and packets", text)


if __name__ == "__main__":
    main()
