"""Figure 2 of paper I: a plain bottleneck among XCP routers."""

from __future__ import annotations

from shared import HEADERS, SCENARIOS, drops, flows, in_parallel, table, verdict

import explicate

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
    """Return the section on figure 2 of paper I."""
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
    timers = {"flows.bulk.params.min_rto": "1s"}
    patient = delivered("c", explicate.run(SCENARIOS / "paper-001-fig2-c.toml", set=timers))
    return f"""## Paper I, figure 2: a plain bottleneck among XCP routers

One bulk flow runs for 60 s; the bottleneck has 30 Mbit/s, the other links 80. The paper gives no delays, buffers,
packet size or TCP variant. These are chosen once for a, b and c: 10 ms per link (80 ms round trip), buffers of one
BDP, packets of 1000 bytes (ns-2's default). Case a uses TCP NewReno (TCP of that time, without SACK). In b and c, XCP
uses Reno's recovery, as in ns-2's agent. MB count whole packets that arrived in order, as in ns-2; the link can carry
{LINK_MB}.

{table(["scenario", "paper, MB", "of the link", "measured, MB", "of the link", "drops", "timeouts"], rows)}

Expected: b > a > c ({verdict(holds[0])}), c at most half of a ({verdict(holds[1])}: {mb["c"] / mb["a"]:.2f};
the paper has {PAPER["c"] / PAPER["a"]:.2f}). The result of c depends on the retransmission timeout, which determines
how long the sender is idle after the loss of a window. The runs above have a minimum timeout of 0.2 s; with the 1 s
of RFC 6298, c delivers {patient:.1f} MB.

The next table varies the delay of a link (rows) and the buffer in BDP (columns); cells are MB of a / b / c. Of
{len(DELAYS) * len(BUFFERS)} choices, b > a > c holds in {order} and c <= a / 2 in {half}; *(no)* marks a cell where
one of them fails. Where b fails, XCP's start overflows a small buffer, and Reno's recovery waits for timeouts. With a
larger buffer a plain bottleneck drops less, so c delivers more. Over long paths TCP too does not fill the link within
a minute.

{table(["", *(f"{b:g} BDP" for b in BUFFERS)], cells)}

    cargo test -p explicate-sim --test runs -- --nocapture paper_001_fig2
    explicate run scenarios/paper-001-fig2-c.toml
"""
