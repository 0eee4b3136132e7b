"""Compute docs/validation.md: what is known, and what the simulator says, side by side.

    python validation/make.py [--traces DIR]

Every table is made from runs. Parts are kept as they stand in the document: the comparison with other simulators,
which `make peers` fills in, what follows it, which scripts beside this one write (see `place`), and the recorded
cellular links, if the recordings are not there. Nothing depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import polars as pl

import explicate

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "validation.md"
DUMBBELL = Path(__file__).with_name("dumbbell.toml")
SCENARIOS = ROOT / "scenarios"
BOTTLENECK = "r1->r2"
HEADERS = {"tcp": 52, "xcp": 72}
"""Bytes in front of the payload of a data packet."""

ALPHA, BETA, GAMMA = 0.4, 0.226, 0.1

Settings = Mapping[str, Any]
Row = Sequence[object]


def table(heads: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [heads, ["---"] * len(heads), *rows]]
    return "\n".join(lines)


def verdict(holds: bool) -> str:
    """Return how a table says whether a statement holds."""
    return "yes" if holds else "**no**"


def in_parallel(work: Callable[..., Any], cases: Sequence[Any]) -> list[Any]:
    """Apply `work` to the tuples of `cases`, one per core at a time; the order is theirs."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return list(threads.map(lambda case: work(*case), cases))


def link(results: explicate.Results, name: str, column: str) -> float:
    """Return a cell of the table of links; a plain run has one row per link."""
    return float(results.links.filter(pl.col("link") == name)[column][0])


def flows(results: explicate.Results, group: str, column: str) -> list[float]:
    """Return a column of the table of flows, of one group."""
    return [float(value) for value in results.flows.filter(pl.col("group") == group)[column]]


def drops(results: explicate.Results) -> int:
    """Return the packets that were dropped anywhere in the whole run."""
    return int(results.links["drops_total"].sum())


# ------------------------------------------------------------------------------------------- the dumbbell


@dataclass(frozen=True)
class Network:
    """A bottleneck with its flows; round trips in ms, spread evenly."""

    mbps: float
    rtt: tuple[float, float]
    flows: int

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product of the mean round trip, bytes."""
        return self.mbps * 125 * sum(self.rtt) / 2

    @property
    def text(self) -> str:
        """Say it in a table."""
        low, high = self.rtt
        rtt = f"{low:g}" if low == high else f"{low:g}..{high:g}"
        return f"{self.mbps:g} Mbit/s, {rtt} ms, {self.flows} flow{'s' * (self.flows > 1)}"

    def settings(self, protocol: str, more: Settings) -> Settings:
        """Return what makes the dumbbell this one."""
        low, high = self.rtt
        return {
            "topology.pairs": self.flows,
            "topology.access.rate": f"{10 * self.mbps:g}Mbit/s",
            "topology.access.delay.to": f"{1 + (high - low) / 4:g}ms",
            "topology.bottleneck.rate": f"{self.mbps:g}Mbit/s",
            "topology.bottleneck.delay": f"{low / 2 - 2:g}ms",
            "flows.0.count": self.flows,
            "flows.0.protocol": protocol,
            **more,
        }


LARGE = Network(100, (80, 80), 10)
SPREAD = Network(45, (40, 330), 30)
PATHS = [
    LARGE,
    Network(100, (80, 80), 50),
    Network(30, (100, 100), 1),
    Network(10, (40, 40), 2),
    SPREAD,
    Network(1000, (80, 80), 10),
]


def xcp_targets() -> str:
    """Return the section on what XCP is for."""
    rows = []
    for path, done in zip(PATHS, in_parallel(dumbbell, [(p, "xcp") for p in PATHS]), strict=True):
        utilisation, jain = link(done, BOTTLENECK, "utilisation"), done.jain()
        queue, lost = link(done, BOTTLENECK, "queue_mean_bytes") / path.bdp, drops(done)
        peak = link(done, BOTTLENECK, "queue_peak_packets")
        holds = utilisation >= 0.99 and jain >= 0.999 and queue <= 0.03 and lost == 0
        rows.append([
            path.text, f"{utilisation:.4f}", f"{jain:.5f}", f"{100 * queue:.2f} %", lost, verdict(holds),
            f"{link(done, BOTTLENECK, 'time_to_90_s'):.1f} s", f"{peak:.0f} ({100 * peak * 1000 / path.bdp:.0f} %)",
        ])  # fmt: skip
    heads = ["link and flows", "utilisation", "Jain index", "mean queue / BDP", "drops", "holds", "90 % after", "peak"]
    return f"""## XCP: a full link, an empty queue, equal shares

XCP's own promise. All flows start at once; second half of 40 s, drops of the whole run; buffer one
bandwidth-delay product (BDP), packets of 1000 bytes. Expected: utilisation >= 0.99, Jain index >= 0.999, mean
queue <= 3 % of the BDP, no drop. The last two columns tell of the start: the end of the first 100 ms in which
90 % of the link was used, and the most packets that waited (in brackets: of the BDP).

{table(heads, rows)}

    cargo test -p explicate-sim --test xcp_targets -- --nocapture
"""


def dumbbell(path: Network, protocol: str, more: Settings | None = None) -> explicate.Results:
    """Run the dumbbell."""
    return explicate.run(DUMBBELL, set=path.settings(protocol, more or {}))


# ------------------------------------------------------------------------------------------- TCP


def tcp_targets() -> str:
    """Return the section on what TCP is known for."""
    full = [(path, protocol) for path in PATHS[:4] for protocol in ("reno", "sack")]
    rows = []
    for (path, protocol), done in zip(full, in_parallel(dumbbell, full), strict=True):
        queue = link(done, BOTTLENECK, "queue_mean_bytes") / path.bdp
        rows.append([path.text, protocol, f"{100 * queue:.0f} %", verdict(queue >= 0.5)])
    unfair = []
    for protocol, done in zip(
        ("reno", "sack", "xcp"), in_parallel(dumbbell, [(SPREAD, p) for p in ("reno", "sack", "xcp")]), strict=True
    ):
        goodput = done.flows["goodput_bps"].to_list()
        unfair.append([protocol, f"{done.jain():.3f}", f"{sum(goodput[:10]) / sum(goodput[20:]):.2f}"])
    teeth = [(b, p) for b in (0.1, 0.25, 0.5, 0.75) for p in ("newreno", "sack")]
    cases = [(Network(10, (80, 80), 1), p, {
        "topology.bottleneck.queue.limit": f"{b}bdp", "duration": "240s", "warmup": "60s",
    }) for b, p in teeth]  # fmt: skip
    shares = []
    for (b, protocol), done in zip(teeth, in_parallel(dumbbell, cases), strict=True):
        expected, got = 0.75 * (1 + b) ** 2 / (1 + b + b * b), link(done, BOTTLENECK, "utilisation")
        shares.append(
            [b, protocol, f"{expected:.4f}", f"{got:.4f}", percent(got, expected), close(got, expected, 0.015)]
        )
    return f"""## TCP: a full buffer, short round trips first, the saw-tooth's share

The same dumbbells over drop-tail. Expected: at least half of the buffer is full on average, however large it
is.

{table(["link and flows", "protocol", "mean queue / buffer", "holds"], rows)}

Unequal round trips, {SPREAD.text}. Expected: a Jain index of at most 0.9 (XCP for comparison); the last column
divides what the ten flows with the shortest round trips get by what the ten longest get.

{table(["protocol", "Jain index", "shortest / longest"], unfair)}

A lone flow over a buffer of b BDP moves between (1 + b) / 2 and 1 + b of them. Integrated over a tooth it uses
3/4 (1 + b)^2 / (1 + b + b^2) of the link, if it never waits for a timer. 10 Mbit/s, 80 ms; expected within 1.5
%.

{table(["b", "protocol", "expected", "got", "difference", "holds"], shares)}

    cargo test -p explicate-sim --test tcp_targets -- --nocapture
"""


def percent(got: float, expected: float) -> str:
    """Return the relative difference."""
    return f"{100 * (got / expected - 1):+.2f} %"


def close(got: float, expected: float, tolerance: float) -> str:
    """Return whether `got` is `expected` within a relative tolerance, as tables say it."""
    return verdict(abs(got / expected - 1) < tolerance)


# ------------------------------------------------------------------------------------------- equilibrium


@dataclass(frozen=True)
class Elsewhere:
    """A free flow shares `capacity` with others that links of their own limit, downstream or upstream (Mbit/s)."""

    limited: str
    capacity: float
    others: int
    total: float
    expected: float
    paced: tuple[bool, bool] = (True, True)
    longer_ms: float = 0.0

    @property
    def text(self) -> str:
        """Say it in a table."""
        return f"{self.capacity:g}, {self.others} with {self.total:g} together"

    def scenario(self, every_ms: float = 0.0) -> str:
        """Return the scenario, sampled if asked.

        It is a -> r1 -> r2 -> z, and a source, a link and a sink for each of the others.
        """
        fast, own = 10 * self.capacity, self.total / self.others
        nodes = ["r1", "r2", "a", "z"]
        links = [
            ("r1", "r2", self.capacity, 25.0),
            ("a", "r1", fast, 12.5 + self.longer_ms / 2),
            ("r2", "z", fast, 12.5),
        ]
        for i in range(self.others):
            s, m, d = f"s{i}", f"m{i}", f"d{i}"
            nodes += [s, m, d]
            if self.limited == "downstream":
                links += [(s, "r1", fast, 12.5), ("r2", m, own, 7.5), (m, d, fast, 5.0)]
            else:
                links += [(s, m, fast, 5.0), (m, "r1", own, 7.5), ("r2", d, fast, 12.5)]
        text = [f'[[node]]\nname = "{name}"' for name in nodes]
        for start, end, rate, delay in links:
            for a, b, mbps in ((start, end, rate), (end, start, fast)):
                text.append(f'[[link]]\nfrom = "{a}"\nto = "{b}"\nrate = "{mbps:g}Mbit/s"\ndelay = "{delay}ms"')
                if (a, b) == (start, end):
                    text.append('queue = { kind = "droptail", limit = "4.0bdp" }')
        many = [[f"{kind}{i}" for i in range(self.others)] for kind in "sd"]
        groups: list[tuple[str, int, Sequence[str], Sequence[str]]] = [
            ("free", 1, ["a"], ["z"]),
            ("limited", self.others, many[0], many[1]),
        ]
        for (name, count, sources, sinks), paced in zip(groups, self.paced, strict=True):
            text.append(
                f'[[flows]]\nname = "{name}"\ncount = {count}\nprotocol = "xcp"\npacket = "500B"\n'
                f"paced = {str(paced).lower()}\nfrom = {quoted(sources)}\nto = {quoted(sinks)}"
            )
        text.append('start = { spread = "1s" }')
        if every_ms:
            text.append(f'[sampling]\nevery = "{every_ms:.0f}ms"\nof = ["throughput"]')
        seconds = 120 if self.others == 100 else 60
        return f'duration = "{seconds}s"\nwarmup = "{seconds / 2}s"\n' + "\n".join(text) + "\n"

    def run(self, every_ms: float = 0.0) -> explicate.Results:
        """Run it."""
        return explicate.run(self.scenario(every_ms))


def quoted(names: Sequence[str]) -> str:
    """Return a TOML list of texts."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


ELSEWHERE = [
    Elsewhere("downstream", 40, 1, 10, 27.08),
    Elsewhere("downstream", 100, 1, 10, 80.14),
    Elsewhere("downstream", 100, 10, 10, 71.69),
    Elsewhere("downstream", 100, 100, 10, 70.18),
    Elsewhere("downstream", 100, 1, 50, 50.0),
    Elsewhere("upstream", 40, 1, 10, 28.85),
    Elsewhere("upstream", 100, 1, 10, 86.03),
    Elsewhere("upstream", 100, 10, 10, 76.11),
]


def fluid(case: Elsewhere) -> float:
    """Solve x = gamma y^2 / (N (gamma y - alpha (C - y))), y = x + r, for x, by bisection (downstream)."""
    c, r, n = case.capacity, case.total, case.others + 1

    def excess(y: float) -> float:
        return (y - r) * n * (GAMMA * y - ALPHA * (c - y)) - GAMMA * y * y

    low, high = ALPHA * c / (ALPHA + GAMMA), c
    if excess(high) <= 0:
        return c - r
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return low - r


def equilibrium() -> str:
    """Return the section on flows that are limited elsewhere."""
    bursts = [Elsewhere(c.limited, c.capacity, c.others, c.total, c.expected, (False, False)) for c in ELSEWHERE]
    done = in_parallel(Elsewhere.run, [(case,) for case in ELSEWHERE + bursts])
    got = [flows(results, "free", "throughput_bps")[0] / 1e6 for results in done]
    rows = []
    for case, spread, burst in zip(ELSEWHERE, got[: len(bursts)], got[len(bursts) :], strict=True):
        expected = fluid(case) if case.limited == "downstream" else case.expected
        rows.append([
            case.limited, case.text, f"{case.capacity - case.total:g}", f"{expected:.2f}",
            f"{spread:.2f}", percent(spread, expected), close(spread, expected, 0.01),
            f"{burst:.2f}", percent(burst, expected), close(burst, expected, 0.01),
        ])  # fmt: skip
    delicate, results = bursts[3], done[len(bursts) + 3]
    rtts = [fmean(flows(results, group, "rtt_mean_ms")) for group in ("free", "limited")]
    causes = [
        ("sends bursts, one per round trip of its own", (False, False), 0.0),
        ("spreads its packets; the others do not", (True, False), 0.0),
        ("sends bursts; its path is longer, so all round trips are equal", (False, False), rtts[1] - rtts[0]),
    ]
    cases = [Elsewhere("downstream", 100, 100, 10, delicate.expected, paced, more) for _, paced, more in causes]
    why = []
    for (what, *_), results in zip(causes, in_parallel(Elsewhere.run, [(c, rtts[1]) for c in cases]), strict=True):
        x = flows(results, "free", "throughput_bps")[0] / 1e6
        rtt = flows(results, "free", "rtt_mean_ms")[0]
        own = (pl.col("object") == BOTTLENECK) & (pl.col("variable") == "utilisation") & (pl.col("time_s") > 60)
        y = [float(value) for value in results.samples.filter(own)["value"]]
        why.append(
            [what, f"{rtt:.0f} ms", f"{x:.2f}", percent(x, fluid(delicate)), f"{fmean(y):.3f}", f"{pstdev(y):.3f}"]
        )
    carried = fluid(delicate) + delicate.total
    needed = (GAMMA * carried - ALPHA * (delicate.capacity - carried)) / delicate.capacity
    heads = [
        "limited", "C, others", "max-min x", "expected x", "spread", "difference", "within 1 %",
        "ACK-clocked", "difference", "within 1 %",
    ]  # fmt: skip
    return f"""## XCP: where it settles if flows are limited elsewhere

Shuffling keeps a free flow under its max-min share x if others on its link are limited elsewhere (Low, Andrew,
Wydrowski, INFOCOM 2005). Limited *downstream*: x = gamma y^2 / (N (gamma y - alpha (C - y))) with y = x + r,
for N flows of which the others take r together. Limited *upstream*, the draft's reclaim rule gives part of it
back; what is expected there comes from a simulation of the bare router with packets interleaved at random and
all round trips equal to the control interval. Rates in Mbit/s; each of the others has a link of its own; XCP
routers everywhere; round trips of 100 ms; packets of 500 bytes. Both derivations take packets for interleaved,
which the column *spread* has: senders pace. In *ACK-clocked*, nothing spreads the free flow's packets.

{table(heads, rows)}

The case that ACK-clocking misses is the delicate one. With a hundred others the equilibrium needs a mean
negative feedback of {100 * needed:.2f} % of C. Their packets take 40 ms on their own links, so the mean round
trip, which is the control interval, is {rtts[1]:.0f} ms, while the free flow's burst comes every {rtts[0]:.0f}
ms: an interval sees one burst or two. Negative feedback cannot become less than zero, so its mean grows with
that noise, and y falls even below the fluid bound 0.8 C. Either remedy confirms it:

{table(["the free flow", "its round trip", "x", "difference", "y / C", "its deviation over an interval"], why)}

    cargo test -p explicate-sim --test equilibrium -- --nocapture
"""


# ------------------------------------------------------------------------------------------- capacity error


def believing(error: float, buffer: str, more: Settings | None = None) -> explicate.Results:
    """Run the large dumbbell with a router that believes in (1 + error) C."""
    settings = {
        "duration": "60s",
        "warmup": "30s",
        "link.r1->r2.capacity": f"{100 * (1 + error):g}Mbit/s",
        "topology.bottleneck.queue.limit": buffer,
        **(more or {}),
    }
    return dumbbell(LARGE, "xcp", settings)


def persistent(results: explicate.Results, since: float) -> float:
    """Return the mean persistent queue of the router from `since` (s) on, in bandwidth-delay products."""
    own = (pl.col("object") == BOTTLENECK) & (pl.col("variable") == "persistent_queue_bytes")
    queue = results.samples.filter(own & (pl.col("time_s") >= since))["value"].mean()
    return float(queue) / LARGE.bdp if isinstance(queue, float) else 0.0


def capacity_error() -> str:
    """Return the section on routers that believe in the wrong capacity."""
    known = [(0.02, 0.037), (0.05, 0.097), (0.1, 0.215), (0.2, 0.55), (0.3, 1.13)]
    rows = []
    for (e, expected), done in zip(known, in_parallel(believing, [(e, "20.0bdp") for e, _ in known]), strict=True):
        queue = persistent(done, 30)
        waiting = link(done, BOTTLENECK, "queue_mean_bytes") / LARGE.bdp
        closed = ALPHA / BETA * e / (1 - ALPHA / BETA * e)
        rows.append([
            f"{100 * e:g} %", expected, f"{closed:.4f}", f"{queue:.4f}", percent(queue, expected),
            close(queue, expected, 0.05), f"{waiting:.4f}",
        ])  # fmt: skip
    under = []
    for e, done in zip((-0.05, -0.2), in_parallel(believing, [(-0.05, "1.0bdp"), (-0.2, "1.0bdp")]), strict=True):
        used = link(done, BOTTLENECK, "utilisation")
        under.append(
            [f"{100 * e:g} %", f"{1 + e:.2f}", f"{used:.4f}", close(used, 1 + e, 0.01), f"{persistent(done, 30):.4f}"]
        )
    long: Settings = {"duration": "200s", "warmup": "100s"}
    beyond: Settings = {**long, "link.r1->r2.router": '{ kind = "xcp", max_interval = "100s" }'}
    gross = [(e, buffer, beyond) for e, buffer in
             ((0.6, "1.0bdp"), (0.6, "4.0bdp"), (0.6, "16.0bdp"), (1.25, "32.0bdp"), (1.25, "64.0bdp"))]  # fmt: skip
    overflow = []
    for (e, buffer, _), done in zip(gross, in_parallel(believing, gross), strict=True):
        overflow.append([f"{100 * e:g} %", buffer, drops(done), verdict(drops(done) > 0)])
    bound, settled = ALPHA / BETA * 0.6 / 0.08, persistent(believing(0.6, "32.0bdp", long), 150)
    return f"""## XCP: the standing queue of a wrong capacity

A router that believes in (1 + e) C on a link of C has a queue at its fixed point: alpha e C = beta Q / d, with
d = d0 + Q / C, so Q* = (alpha / beta) e / (1 - (alpha / beta) e) bandwidth-delay products C d0. {LARGE.text},
buffer 20 BDP, second half of 60 s. The queue is the persistent one that the router sees, without the packet in
service; the mean queue stands beside it. Expected within 5 % of
the rounded values in the second column.

{table(["e", "expected", "closed form", "persistent queue / BDP", "difference", "holds", "mean queue / BDP"], rows)}

Believing in too little costs utilisation and nothing else:

{table(["e", "expected utilisation", "got", "holds", "persistent queue / BDP"], under)}

From e = beta / alpha = 56.5 % on there is no fixed point, and any buffer overflows; 125 % is 54 Mbit/s believed
of a link that carries 24. Slowly, just beyond the bound: 200 s. This is the law without the draft's
MAX_INTERVAL (set to 100 s here):

{table(["e", "buffer", "drops", "overflows"], overflow)}

With the draft's MAX_INTERVAL of 1 s the statement does **not** hold for buffers of more than a second: an RTT
counts at most 1 s, so the mean RTT stops growing while the queue's share of the feedback does not, and the
queue settles at (alpha / beta) e C times 1 s. At e = 60 %: expected {bound:.2f} BDP, got {settled:.2f}
({percent(settled, bound)}), no drop with a buffer of 32 BDP.

    cargo test -p explicate-sim --test capacity_error -- --nocapture
"""


# ------------------------------------------------------------------------------------------- paper 001, figure 2

DELAYS = (2, 5, 10, 20, 40)
BUFFERS = (0.25, 0.5, 1.0, 2.0, 4.0)
PAPER = {"a": 215.004, "b": 223.808, "c": 52.426}
LINK_MB = 225


def delivered(which: str, results: explicate.Results) -> float:
    """Return MB that arrived in order in a minute, counted in whole packets as ns-2 counts them."""
    payload = 1000 - HEADERS["tcp" if which == "a" else "xcp"]
    return flows(results, "bulk", "goodput_bps")[0] / 8 * 60 * 1000 / payload / 1e6


def figure(which: str, delay: float = 10, buffer: float = 1.0) -> explicate.Results:
    """Run one of the three scenarios of the figure."""
    hops = ["sender->r1", "r1->r2", "r2->r3", "r3->receiver"]
    both = hops + ["->".join(reversed(hop.split("->"))) for hop in hops]
    settings = {f"link.{name}.delay": f"{delay}ms" for name in both}
    settings |= {f"link.{name}.queue.limit": f"{buffer}bdp" for name in hops[1:]}
    return explicate.run(SCENARIOS / f"paper-001-fig2-{which}.toml", set=settings)


def figure_2() -> str:
    """Return the section on figure 2 of paper 001."""
    chosen = dict(zip("abc", in_parallel(figure, [(w,) for w in "abc"]), strict=True))
    mb = {which: delivered(which, results) for which, results in chosen.items()}
    rows = [[
        {"a": "TCP, plain routers", "b": "XCP, XCP routers", "c": "XCP around a plain bottleneck"}[which],
        f"{PAPER[which]:.1f}", f"{100 * PAPER[which] / LINK_MB:.1f} %", f"{mb[which]:.1f}",
        f"{100 * mb[which] / LINK_MB:.1f} %", drops(chosen[which]), int(chosen[which].flows["timeouts"].sum()),
    ] for which in "abc"]  # fmt: skip
    grid = [(w, d, b) for d in DELAYS for b in BUFFERS for w in "abc"]
    got = {case: delivered(case[0], r) for case, r in zip(grid, in_parallel(figure, grid), strict=True)}
    cells, order, half = [], 0, 0
    for d in DELAYS:
        row = [f"{d} ms"]
        for buffer in BUFFERS:
            a, b, c = (got[w, d, buffer] for w in "abc")
            order += b > a > c
            half += c <= 0.5 * a
            row.append(f"{a:.0f} / {b:.0f} / {c:.0f}" + ("" if b > a > c and c <= 0.5 * a else " (no)"))
        cells.append(row)
    holds = [mb["b"] > mb["a"] > mb["c"], mb["c"] <= 0.5 * mb["a"]]
    timers = {"flows.bulk.params": '{ min_rto = "1s" }'}
    patient = delivered("c", explicate.run(SCENARIOS / "paper-001-fig2-c.toml", set=timers))
    return f"""## Paper 001, figure 2: a plain bottleneck among XCP routers

One bulk flow of 60 s, narrow link 30 Mbit/s, the others 80. The paper gives no delays, buffers, packet size or
TCP flavour. Chosen once for a, b and c: 10 ms a link (80 ms round trip), buffers of one BDP, packets of 1000
bytes (ns-2's default), TCP NewReno in a (TCP of that time, without SACK), and Reno's recovery below XCP in b
and c, as in ns-2's agent. MB are counted in whole packets that arrived in order, as ns-2 counts them; the link
can carry {LINK_MB}.

{table(["scenario", "paper, MB", "of the link", "got, MB", "of the link", "drops", "timeouts"], rows)}

Expected: b > a > c ({verdict(holds[0])}), c at most half of a ({verdict(holds[1])}: {mb["c"] / mb["a"]:.2f};
the paper has {PAPER["c"] / PAPER["a"]:.2f}). How bad c is is a matter of timers, which decide how long the
sender rests after a window is lost: the runs above have a least retransmission timeout of 0.2 s; with the 1 s
of RFC 6298, c delivers {patient:.1f} MB.

The same over delay of a link (rows) and buffer in BDP (columns), MB of a / b / c. Of
{len(DELAYS) * len(BUFFERS)} choices b > a > c holds in {order}, c <= a / 2 in {half}; *(no)* where one of them
fails. Where b fails, XCP's own start overflows a small buffer, and Reno's recovery waits for timers. With large
buffers a plain bottleneck forgives more; over long paths TCP too is short of the link's capacity after a
minute.

{table(["", *(f"{b:g} BDP" for b in BUFFERS)], cells)}

    cargo test -p explicate-sim --test paper_001_fig2 -- --nocapture
    explicate run scenarios/paper-001-fig2-c.toml
"""


# ------------------------------------------------------------------------------------------- recorded links

RECORDED = ["ATT-LTE-driving-2016", "TMobile-LTE-short", "Verizon-LTE-short"]
BASE_RTT_MS = 40
BELIEFS = (0.5, 1.0, 2.0)


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
        for factor in BELIEFS:
            told = {**recorded, "link.r1->r2.capacity": f"{factor * mean_mbps(files[name, way]):.6f}Mbit/s"}
            ours.append((f"xcp, told {factor:g} x mean", explicate.run(scenario, set=told)))
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
    heads = ["data over, mean Mbit/s", "protocol", "goodput", "of what it offered", "queueing, ms", "p95, ms", "drops"]
    return f"""One flow of 120 s (the first 10 left out) over recorded LTE capacity in the mahimahi format, data
and acknowledgements each over their own direction's recording; 40 ms round trip, a buffer of 500 kB, packets of
1500 bytes. Nothing is known in advance here: the table says what XCP is worth where the capacity that its
router is told is a constant (half, once and twice the recording's mean) and the radio's is not. Queueing is the
round trip less its 40 ms; the p95 is over means of 100 ms.

{table(heads, rows)}

    explicate compare scenarios/traces.toml --protocols xcp,newreno,cubic \\
      --set "link.r1->r2.channel.0.file=DIR/Verizon-LTE-short.down" \\
      --set "link.r2->r1.channel.0.file=DIR/Verizon-LTE-short.up"
    python validation/make.py --traces DIR
"""


# ------------------------------------------------------------------------------------------- the document


def kept(name: str, text: str | None = None) -> str:
    """Return the part of the document between the markers `name`, with new `text` if there is any."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text is None:
        old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
        _, found, rest = old.partition(begin)
        inner, closed, _ = rest.partition(end)
        text = inner.strip("\n") if found and closed else "Not computed yet."
    return f"{begin}\n{text.strip(chr(10))}\n{end}\n"


def appended() -> str:
    """Return what follows the comparison with other simulators: sections of other scripts."""
    old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
    return old.partition("<!-- peers:end -->\n")[2]


def place(name: str, heading: str, text: str) -> None:
    """Write a section of the document between the markers `name`, at the end if it is not there yet."""
    old = DOCUMENT.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    block = f"{begin}\n{text.strip(chr(10))}\n{end}"
    before, found, rest = old.partition(begin)
    _, closed, after = rest.partition(end)
    if found and closed:
        DOCUMENT.write_text(f"{before}{block}{after}", encoding="utf-8")
    else:
        DOCUMENT.write_text(f"{old.rstrip(chr(10))}\n\n## {heading}\n\n{block}\n", encoding="utf-8")


def document(traces: Path) -> str:
    """Return the whole document."""
    recorded = cellular(traces)
    if recorded is None:
        print(f"note: no recordings in {traces} (--traces DIR): that section stays as it is", file=sys.stderr)
    sections = [
        xcp_targets(),
        tcp_targets(),
        equilibrium(),
        capacity_error(),
        figure_2(),
        f"## Recorded cellular links\n\n{kept('cellular', recorded)}",
        f"## Other simulators\n\n{kept('peers')}" + appended(),
    ]
    return """# Validation

What is known about the protocols, and what this simulator says. Every table is computed by `make validation`
(another simulator's numbers by `make peers`); the statements marked with a `cargo test` line are tests, and
fail if they do not hold. A **no** is a result too, and the text says why.

""" + "\n".join(sections)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the document."""
    parser = argparse.ArgumentParser(description="Compute docs/validation.md.")
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("EXPLICATE_TRACES", ROOT.parent / "shared" / "traces")),
        help="folder of mahimahi recordings (or EXPLICATE_TRACES; default ../shared/traces)",
    )  # fmt: skip
    text = document(parser.parse_args(argv).traces)
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
