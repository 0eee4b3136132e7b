"""Compute the section of docs/validation.md on VCP, BISE, WLTE and XTCP.

    python validation/vcp.py

Every table is computed from runs, about three minutes of one core. `validation/make.py` leaves the section unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean

import polars as pl
from shared import (
    BOTTLENECK,
    PATHS,
    SCENARIOS,
    Network,
    Settings,
    drops,
    dumbbell,
    flows,
    in_parallel,
    link,
    place,
    table,
    verdict,
)

import explicate

START = SCENARIOS / "paper-004.toml"
LOSSY = SCENARIOS / "paper-003-fig3.toml"


def mean_of(values: Sequence[float], digits: int = 2) -> str:
    """A mean and its range as text."""
    return f"{fmean(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


# --------------------------------------------------------------------------------------------- VCP's goals


def vcp_targets() -> str:
    """Return the section on the design goals of VCP."""
    paths = [*PATHS[:2], PATHS[3], PATHS[4], PATHS[5]]
    cases: list[tuple[Network, str, Settings]] = []
    for path in paths:
        for scale in ("t_rho", "t_d"):
            more = {"flows.0.params.ai_scale": scale, "duration": "120s", "warmup": "60s"}
            router = {"kind": "vcp", "t_rho": "400ms"}
            if path.rtt[1] > 200:
                more |= {"flows.0.params.t_rho": "400ms", "topology.bottleneck.router": router}
                more |= {"topology.access.router": router}
            cases.append((path, "vcp", more))
    rows = []
    for (path, _, more), done in zip(cases, in_parallel(dumbbell, cases), strict=True):
        utilisation, queue = (
            link(done, BOTTLENECK, "utilisation"),
            link(done, BOTTLENECK, "queue_mean_bytes") / path.bdp,
        )
        rows.append([
            path.text, more["flows.0.params.ai_scale"], f"{utilisation:.4f}", f"{100 * queue:.2f} %", drops(done),
            f"{done.jain():.4f}", f"{link(done, BOTTLENECK, 'time_to_90_s'):.1f} s",
            verdict(utilisation >= 0.9 and queue < 0.02 and drops(done) == 0),
        ])  # fmt: skip
    heads = [
        "link and flows",
        "scale of alpha",
        "utilisation",
        "mean queue / BDP",
        "drops",
        "Jain",
        "90 % after",
        "holds",
    ]
    return f"""\
**VCP: a link that is nearly full, without a queue.** A cut reduces the load, 98 % of the link, by a factor of 0.875.
The load then grows back. The mean is {1.875 / 2 * 0.98:.3f}. The increase of one round trip overshoots, and
with more flows it overshoots by more. Second half of 120 s, buffer of one BDP, packets of 1000 bytes. Expected:
utilisation >= 0.90, mean queue < 2 % of the BDP, no drop in the whole run. `t_rho` is 0.2 s, and 0.4 s for longer
round trips. The two scales of the additive increase are that of paper K's equation 5 and that of the author's code,
which is four times as fast.

{table(heads, rows)}
"""


# ------------------------------------------------------------------------------------------------ BISE's start

RATES = (10, 100, 1000)
SEEDS = range(1, 11)
INTERVAL = 1.25
FLUID = {
    0.2: (10.5, 11.8, 13.0),
    0.275: (8.1, 9.4, 10.6),
    0.33: (7.0, 8.3, 9.5),
    0.415: (5.9, 7.2, 8.4),
    0.553: (4.8, 6.1, 7.3),
}
"""Equation 10 with growth of at most ten in an interval, from one packet, s, without the round trip of the set-up."""


def start(mbps: int, seed: int, more: Settings) -> tuple[float, int]:
    """Return when the router first measures a load factor of 0.8 (s), and the drops until the end."""
    settings = {"topology.bottleneck.rate": f"{mbps}Mbit/s", "topology.access.rate": f"{2 * mbps}Mbit/s", **more}
    done = explicate.run(START, set=settings, seed=seed)
    loads = done.samples.filter((pl.col("object") == BOTTLENECK) & (pl.col("variable") == "load_factor"))
    filled = loads.filter(pl.col("value") >= 0.8)["time_s"]
    return (float(filled[0]) if len(filled) else math.inf), drops(done)


def bise() -> str:
    """Return the section on the duration of starts."""
    alone = {"topology.access.router": "none", "sampling.of": ["router"]}
    rows = []
    for k, fluid in FLUID.items():
        cells: list[object] = [k, f"{INTERVAL * math.log(0.2) / math.log(1 - k):.2f}", " ".join(map(str, fluid))]
        lost = 0
        for more in (
            {**alone, "link.r1->r2.router": {"kind": "vcp-bise", "k": k}},
            {"sampling.of": ["router"], "topology.access.router": {"kind": "vcp-bise", "k": k},
             "link.r1->r2.router": {"kind": "vcp-bise", "k": k}},
        ):  # fmt: skip
            for mbps in RATES:
                done = in_parallel(start, [(mbps, seed, more) for seed in SEEDS])
                cells.append(mean_of([t for t, _ in done], 1))
                lost += sum(d > 0 for _, d in done)
        rows.append([*cells, lost])
    heads = [
        "k",
        "equation 12",
        "fluid",
        *(f"{b}, one router" for b in RATES),
        *(f"{b}, all ports" for b in RATES),
        "runs with drops",
    ]
    plain = []
    for t_rho, seconds in (("200ms", 45), ("1.25s", 260)):
        router = {"kind": "vcp", "t_rho": t_rho}
        more = {
            **alone, "flows.bulk.protocol": "vcp", "flows.bulk.params.t_rho": t_rho, "link.r1->r2.router": router,
            "duration": f"{seconds}s", "sampling.of": ["router"],
        }  # fmt: skip
        times = [t for t, _ in in_parallel(start, [(mbps, 1, more) for mbps in RATES])]
        packets = [mbps * 1e6 * 0.5 / 8 / 1040 for mbps in RATES]
        expected = [math.log(0.8 * n) / math.log(1.0625) * (0.2 if t_rho == "200ms" else 1.25) for n in packets]
        plain.append([f"VCP, {t_rho}", " ".join(f"{t:.1f}" for t in expected), *(f"{t:.1f}" for t in times)])
    return f"""\
**BISE: the start takes nearly the same time on slow and fast links.** Paper K's path (figure 5) has a round trip of
0.5 s, packets of 1040 bytes and a drop-tail queue of one BDP; `t_rho` is 1.25 s. One flow starts with a window of one
packet. Cells are seconds until the router measures a load of 80 %: mean and range of {len(SEEDS)} seeds, which differ
in the phase of the interval. The rates are {", ".join(map(str, RATES))} Mbit/s. VCP runs at the bottleneck alone or
at every port. *Equation 12* is the paper's analysis. *Fluid* is the same at the three rates, with growth of at most
ten in an interval: a tenfold rate costs one more such interval. Runs are faster than the fluid, and for smaller k by
more. From k = 0.415 on, growth is always by ten. A load that is measured over an interval in which it grew tenfold is
out of date, and the share computed from it is too large. The start therefore overshoots into overload for one
interval, which causes a cut of 12.5 %.

{table(heads, rows)}

VCP without BISE needs ln(10) / ln(1.0625) = 38 intervals for each factor of ten:

{table(["", "expected, s", *(f"{b} Mbit/s" for b in RATES)], plain)}
"""


# ------------------------------------------------------------------------------------------------ wireless losses


def goodput(protocol: str, loss: float, seed: int) -> tuple[float, int]:
    """Return goodput (Mbit/s) and timeouts of paper K's path."""
    settings = {
        "flows.bulk.protocol": protocol, "topology.access.router": "none", "link.r1->r2.channel.0.rate": loss,
        "sampling.of": ["router"], "sampling.every": "1s",
    }  # fmt: skip
    done = explicate.run(START, set=settings, seed=seed)
    return flows(done, "bulk", "goodput_bps")[0] / 1e6, int(done.flows["timeouts"].sum())


def wlte() -> str:
    """Return the section on wireless losses."""
    losses = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
    rows = []
    for protocol in ("newreno", "vcp", "vcp-bise", "vcp-bise-wlte", "vcp-bise/sack"):
        cells: list[object] = [protocol]
        for loss in losses:
            done = in_parallel(goodput, [(protocol, loss, seed) for seed in range(1, 21)])
            cells.append(f"{fmean(g for g, _ in done):.1f} ({fmean(t for _, t in done):.1f})")
        rows.append(cells)
    return f"""\
**WLTE: a wireless loss costs only the lost packet.** The same path at 100 Mbit/s (figure 7). Cells are the goodput in
Mbit/s in the first 30 s, and in brackets the timeouts per run, means of 20 seeds. `vcp` uses its default interval of
0.2 s. WLTE gains little where losses are rare, and most at 1e-5 and 1e-4. At 1e-3 several packets are lost in a round
trip, and NewReno repairs one of them.

{table(["", *(f"loss {loss:g}" for loss in losses)], rows)}
"""


# ------------------------------------------------------------------------------------------------------------ XTCP


def fairness(protocol: str, loss: str, *, duplicates: bool, seed: int) -> float:
    """Return lossy over loss-free flows' share of the bottleneck on paper D's network."""
    settings: dict[str, object] = {"link.n1->n3.channel.0.rate": loss, "duration": "120s", "sampling.every": "10s"}
    for group in ("free", "lossy"):
        settings[f"flows.{group}.protocol"] = protocol
        if not duplicates:
            settings[f"flows.{group}.params.grow_on_duplicates"] = False
    done = explicate.run(LOSSY, set=settings, seed=seed)
    return link(done, "n1->n3", "utilisation") / link(done, "n1->n2", "utilisation")


def queues(queue: str, protocol: str) -> list[object]:
    """Return a row: ten flows of one kind over one queue."""
    settings = {
        "topology.bottleneck.queue": {"kind": queue, "limit": "50pkt"}, "topology.bottleneck.delay": "20ms",
        "topology.access.rate": "5Mbit/s", "topology.access.delay": "20ms", "topology.bottleneck.rate": "5Mbit/s",
        "flows.0.protocol": protocol, "flows.0.start": {"uniform": "1s"}, "duration": "200s",
    }  # fmt: skip
    done = explicate.run(SCENARIOS.parent / "validation" / "dumbbell.toml", set=settings)
    return [
        protocol, queue, f"{link(done, BOTTLENECK, 'utilisation'):.4f}", f"{done.jain():.3f}",
        f"{link(done, BOTTLENECK, 'queue_mean_packets'):.1f}", drops(done), int(done.flows["timeouts"].sum()),
    ]  # fmt: skip


def xtcp() -> str:
    """Return the sections on XTCP over queues that drop packets and over lossy links."""
    pairs = [(q, p) for q in ("droptail", "red") for p in ("xtcp", "sack")]
    one = table(
        ["flows", "queue", "utilisation", "Jain", "queue mean", "drops", "timeouts"], in_parallel(queues, pairs)
    )
    rows = []
    for protocol, duplicates in (
        ("reno", True), ("LR-XTCP", True), ("LR-XTCP_PA", True), ("LR-LMXTCP", True), ("LR-LMXTCP_TCPfriend", True),
        ("LR-XTCP", False), ("LR-XTCP_PA", False), ("LR-LMXTCP", False), ("LR-LMXTCP_TCPfriend", False),
        ("LR-LMXCP", True),
    ):  # fmt: skip
        cells: list[object] = [protocol + ("" if duplicates else ", duplicates ignored")]
        for loss in ("0%", "1%", "5%", "10%"):
            runs = [(partial(fairness, protocol, loss, duplicates=duplicates, seed=seed),) for seed in range(1, 11)]
            cells.append(mean_of(in_parallel(lambda run: run(), runs)))
        rows.append(cells)
    return f"""\
**XTCP: TCP's behaviour where queues drop packets.** Ten flows, three links of 5 Mbit/s and 20 ms, buffer of 50
packets, as in paper D section 6; 20 to 200 s. Expected: utilisation >= 0.95 and Jain index >= 0.9 over either queue.

{one}

**XTCP: no reaction to wireless losses.** Paper D, figure 8: half of the flows cross a lossy link. Cells are their
share of the bottleneck divided by that of the loss-free flows, mean and range of ten seeds. According to the paper's
text LR-LMXTCP achieves as much as LR-LMXCP, and the TCP-friendly variant more. The first statement nearly holds if
duplicates increase the window (the paper's section 3.2), the second if they do not (section 4.4).

{table(["", *(f"loss {loss}" for loss in ("0 %", "1 %", "5 %", "10 %"))], rows)}
"""


def main() -> None:
    """Write the section."""
    parts = [vcp_targets(), bise(), wlte(), xtcp()]
    tests = "cargo test -p explicate-sim --test runs -- --nocapture vcp_targets xtcp_targets"
    text = "\n".join([*parts, f"    {tests}\n    python validation/vcp.py"])
    place("vcp", "VCP, BISE, WLTE and XTCP", text)


if __name__ == "__main__":
    main()
