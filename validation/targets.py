"""Known properties of XCP and TCP on six dumbbells."""

from __future__ import annotations

from statistics import fmean

from shared import (
    BOTTLENECK,
    PATHS,
    SPREAD,
    Network,
    close,
    drops,
    dumbbell,
    in_parallel,
    link,
    percent,
    table,
    verdict,
)

EXACT = {"processing": "none"}
"""Hosts send at the instant at which they may."""
SEEDS = range(1, 6)


def xcp_targets() -> str:
    """Return the section on the design goals of XCP."""
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

These are the design goals of XCP. All flows start at once. The figures are of the second half of 40 s, drops of the
whole run. The buffer is one bandwidth-delay product (BDP), packets have 1000 bytes. Expected: utilisation >= 0.99,
Jain index >= 0.999, mean queue <= 3 % of the BDP, no drop. The last two columns describe the start. *90 % after* is
the end of the first 100 ms with a utilisation of 90 %, *peak* the longest queue in packets (in brackets: of the BDP).

{table(heads, rows)}

    cargo test -p explicate-sim --test runs -- --nocapture xcp_targets
"""


def tcp_targets() -> str:
    """Return the section on known properties of TCP."""
    full = [(path, protocol, EXACT if path.flows <= 2 else None) for path in PATHS[:4] for protocol in ("reno", "sack")]
    rows = []
    for (path, protocol, _), done in zip(full, in_parallel(dumbbell, full), strict=True):
        queue = link(done, BOTTLENECK, "queue_mean_bytes") / path.bdp
        rows.append([path.text, protocol, f"{100 * queue:.0f} %", verdict(queue >= 0.5)])
    unfair = []
    for protocol in ("reno", "sack", "xcp"):
        runs = in_parallel(dumbbell, [(SPREAD, protocol, {"seed": seed}) for seed in SEEDS])
        goodputs = [done.flows["goodput_bps"].to_list() for done in runs]
        short, long = (fmean(sum(goodput[of]) for goodput in goodputs) for of in (slice(10), slice(20, None)))
        unfair.append([protocol, f"{fmean(done.jain() for done in runs):.3f}", f"{short / long:.2f}"])
    teeth = [(b, p) for b in (0.1, 0.25, 0.5, 0.75) for p in ("newreno", "sack")]
    cases = [(Network(10, (80, 80), 1), p, {
        "topology.bottleneck.queue.limit": f"{b}bdp", "duration": "240s", "warmup": "60s", **processing,
    }) for processing in (EXACT, {}) for b, p in teeth]  # fmt: skip
    used = [link(done, BOTTLENECK, "utilisation") for done in in_parallel(dumbbell, cases)]
    shares = []
    for (b, protocol), got, default in zip(teeth, used[: len(teeth)], used[len(teeth) :], strict=True):
        expected = 0.75 * (1 + b) ** 2 / (1 + b + b * b)
        shares.append([
            b, protocol, f"{expected:.4f}", f"{got:.4f}", percent(got, expected), close(got, expected, 0.015),
            percent(default, expected),
        ])  # fmt: skip
    return f"""## TCP: a full buffer, an advantage of short round trips, the sawtooth's utilisation

The same dumbbells over drop-tail. Expected: on average at least half of the buffer is full, whatever its size. Hosts of
one or two flows take no processing time: their sawtooth is longer than the run, and this one begins with it.

{table(["link and flows", "protocol", "mean queue / buffer", "holds"], rows)}

Unequal round trips, {SPREAD.text}, mean of {len(SEEDS)} seeds. Expected: a Jain index of at most 0.9 for TCP; XCP is
the comparison. The last column divides the goodput of the ten flows with the shortest round trips by that of the ten
flows with the longest.

{table(["protocol", "Jain index", "shortest / longest"], unfair)}

The window of a single flow over a buffer of b BDP moves between (1 + b) / 2 and 1 + b BDP. Integrated over one
sawtooth, its utilisation is 3/4 (1 + b)^2 / (1 + b + b^2), if no timeout occurs. 10 Mbit/s, 80 ms, without processing
time. Expected within 1.5 %. The last column has the difference with processing times, the default. Packets then
sometimes arrive in pairs, so a short buffer is full earlier.

{table(["b", "protocol", "expected", "measured", "difference", "holds", "with processing times"], shares)}

    cargo test -p explicate-sim --test runs -- --nocapture tcp_targets --skip xtcp
"""
