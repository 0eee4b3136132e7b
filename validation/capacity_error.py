"""XCP on a link that carries more or less than its router is configured with."""

from __future__ import annotations

import polars as pl
from shared import (
    ALPHA,
    BETA,
    BOTTLENECK,
    LARGE,
    Settings,
    close,
    drops,
    dumbbell,
    in_parallel,
    link,
    percent,
    table,
    verdict,
)

import explicate


def with_error(error: float, buffer: str, more: Settings | None = None) -> explicate.Results:
    """Run the large dumbbell with a router that is configured with (1 + error) C."""
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
    """Return the section on routers that are configured with a wrong capacity."""
    known = [(0.02, 0.037), (0.05, 0.097), (0.1, 0.215), (0.2, 0.55), (0.3, 1.13)]
    rows = []
    for (e, expected), done in zip(known, in_parallel(with_error, [(e, "20.0bdp") for e, _ in known]), strict=True):
        queue = persistent(done, 30)
        waiting = link(done, BOTTLENECK, "queue_mean_bytes") / LARGE.bdp
        closed = ALPHA / BETA * e / (1 - ALPHA / BETA * e)
        rows.append([
            f"{100 * e:g} %", expected, f"{closed:.4f}", f"{queue:.4f}", percent(queue, expected),
            close(queue, expected, 0.05), f"{waiting:.4f}",
        ])  # fmt: skip
    under = []
    for e, done in zip((-0.05, -0.2), in_parallel(with_error, [(-0.05, "1.0bdp"), (-0.2, "1.0bdp")]), strict=True):
        used = link(done, BOTTLENECK, "utilisation")
        under.append(
            [f"{100 * e:g} %", f"{1 + e:.2f}", f"{used:.4f}", close(used, 1 + e, 0.01), f"{persistent(done, 30):.4f}"]
        )
    long: Settings = {"duration": "200s", "warmup": "100s"}
    beyond: Settings = {**long, "link.r1->r2.router": '{ kind = "xcp", max_interval = "100s" }'}
    gross = [(e, buffer, beyond) for e, buffer in
             ((0.6, "1.0bdp"), (0.6, "4.0bdp"), (0.6, "16.0bdp"), (1.25, "32.0bdp"), (1.25, "64.0bdp"))]  # fmt: skip
    overflow = []
    for (e, buffer, _), done in zip(gross, in_parallel(with_error, gross), strict=True):
        overflow.append([f"{100 * e:g} %", buffer, drops(done), verdict(drops(done) > 0)])
    bound, settled = ALPHA / BETA * 0.6 / 0.08, persistent(with_error(0.6, "32.0bdp", long), 150)
    return f"""## XCP: the standing queue of a wrong capacity

If a router is configured with (1 + e) C on a link of C, its fixed point has a queue Q. There
alpha e C = beta Q / d with d = d0 + Q / C. In bandwidth-delay products C d0 the queue is
Q* = (alpha / beta) e / (1 - (alpha / beta) e). {LARGE.text}, buffer 20 BDP, second half of 60 s.
The queue is the persistent queue that the router measures, without the packet in service. The last column has the
mean queue. Expected: within 5 % of the rounded values in the second column.

{table(["e", "expected", "closed form", "persistent queue / BDP", "difference", "holds", "mean queue / BDP"], rows)}

A configured capacity that is too small lowers the utilisation; the queue stays empty:

{table(["e", "expected utilisation", "measured", "holds", "persistent queue / BDP"], under)}

If e is beta / alpha = 56.5 % or more, there is no fixed point, and any buffer overflows. An e of 125 % is a
configured capacity of 54 Mbit/s on a link that carries 24. Just above the bound the queue grows slowly, so runs take
200 s. This table excludes the draft's MAX_INTERVAL (set to 100 s here):

{table(["e", "buffer", "drops", "overflows"], overflow)}

With the draft's MAX_INTERVAL of 1 s the statement does **not** hold for buffers of more than a second. An RTT
counts as at most 1 s, so the mean RTT stops growing, but the queue's term in the feedback still grows. The queue then
converges to (alpha / beta) e C times 1 s. At e = 60 %: expected {bound:.2f} BDP, measured {settled:.2f}
({percent(settled, bound)}), no drop with a buffer of 32 BDP.

    cargo test -p explicate-sim --test runs -- --nocapture capacity_error
"""
