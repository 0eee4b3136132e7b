"""Known properties of XCP and TCP on six dumbbells."""

from __future__ import annotations

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
    return f"""## TCP: a full buffer, an advantage of short round trips, the sawtooth's utilisation

The same dumbbells over drop-tail. Expected: on average at least half of the buffer is full, whatever its size.

{table(["link and flows", "protocol", "mean queue / buffer", "holds"], rows)}

Unequal round trips, {SPREAD.text}. Expected: a Jain index of at most 0.9 for TCP; XCP is the
comparison. The last column divides the goodput of the ten flows with the shortest round trips by that of the ten
flows with the longest.

{table(["protocol", "Jain index", "shortest / longest"], unfair)}

The window of a single flow over a buffer of b BDP moves between (1 + b) / 2 and 1 + b BDP. Integrated over one
sawtooth, its utilisation is 3/4 (1 + b)^2 / (1 + b + b^2), if no timeout occurs. 10 Mbit/s, 80 ms. Expected within
1.5 %.

{table(["b", "protocol", "expected", "measured", "difference", "holds"], shares)}

    cargo test -p explicate-sim --test runs -- --nocapture tcp_targets --skip xtcp
"""
