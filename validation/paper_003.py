"""Compute the section of docs/validation.md on paper 003: loss-resilient XCP and XTCP on the paper's own topology.

    python validation/paper_003.py

Figures 3, 4, 7 and 8, the ablation of the switches, and what the paper says in passing, each against the register's
criterion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import make
import polars as pl
from make import in_parallel, table, verdict

import explicate

SCENARIO = Path(__file__).resolve().parent.parent / "scenarios" / "paper-003-fig3.toml"
SEEDS = range(1, 11)
SECONDS = 300
LOSSES = (0, 1, 2, 5, 10, 20)
"""Percent."""

XCP = ("XCP_dumb", "XCP", "XCP_PA", "LR-XCP", "LR-XCP_PA", "LR-LMXCP")
XTCP = ("LR-XTCP", "LR-XTCP_PA", "LR-LMXTCP", "LR-LMXTCP_TCPfriend")
TCP = ("reno", "newreno", "sack")

Params = Mapping[str, object]


@dataclass(frozen=True)
class Outcome:
    """One run; "lossy" and "free" are the two halves of the flows."""

    ratio: float
    """Bytes of lossy over bytes of loss-free flows, as they leave the bottleneck: the paper's fairness ratio."""
    goodput: float
    """The same of what arrived in order."""
    utilisation: float
    queue: float
    """Packets, mean."""
    timeouts: float
    """Resets of lossy flows, per flow and minute."""
    resent: float
    """Share of the lossy flows' packets that were sent again."""


def one(protocols: tuple[str, str], loss: float, params: Params, more: Params, seed: int) -> Outcome:
    """Run the scenario once: protocols of the loss-free and of the lossy flows, loss in percent."""
    settings: dict[str, object] = {
        "duration": f"{SECONDS}s", "link.n1->n3.channel.0.rate": f"{loss}%", "sampling": "{}",
        "flows.0.protocol": protocols[0], "flows.1.protocol": protocols[1], **more,
    }  # fmt: skip
    for group in (0, 1):
        settings |= {f"flows.{group}.params.{name}": value for name, value in params.items()}
    done = explicate.run(SCENARIO, seed=seed, set=settings)
    used = {name: make.link(done, name, "utilisation") for name in ("n0->n1", "n1->n2", "n1->n3")}
    goodput = {group: sum(make.flows(done, group, "goodput_bps")) for group in ("free", "lossy")}
    lossy = done.flows.filter(pl.col("group") == "lossy")
    minutes = len(lossy) * (SECONDS - 20) / 60
    return Outcome(
        ratio=used["n1->n3"] / used["n1->n2"],
        goodput=goodput["lossy"] / goodput["free"],
        utilisation=used["n0->n1"],
        queue=make.link(done, "n0->n1", "queue_mean_packets"),
        timeouts=float(lossy["timeouts"].sum()) / minutes,
        resent=float(lossy["retransmissions"].sum() / lossy["sent_packets"].sum()),
    )


@dataclass(frozen=True)
class Case:
    """What is run with every seed."""

    protocol: str
    loss: float = 5
    params: tuple[tuple[str, object], ...] = ()
    more: tuple[tuple[str, object], ...] = ()
    other: str = ""
    """The protocol of the lossy half, if not the same."""


class Runs:
    """The outcomes of all cases asked for, each computed once."""

    def __init__(self, cases: Sequence[Case]) -> None:
        """Carry out all cases with every seed."""
        every = [(c, seed) for c in dict.fromkeys(cases) for seed in SEEDS]
        done = in_parallel(
            lambda c, seed: one((c.protocol, c.other or c.protocol), c.loss, dict(c.params), dict(c.more), seed), every
        )
        self._of: dict[Case, list[Outcome]] = {}
        for (case, _), outcome in zip(every, done, strict=True):
            self._of.setdefault(case, []).append(outcome)

    def values(self, case: Case, what: str) -> list[float]:
        """Return a quantity of a case, one value for each seed."""
        return [getattr(outcome, what) for outcome in self._of[case]]

    def mean(self, case: Case, what: str = "ratio") -> float:
        """Return the mean over the seeds."""
        return fmean(self.values(case, what))

    def text(self, case: Case, what: str = "ratio") -> str:
        """Return mean and standard deviation over the seeds."""
        values = self.values(case, what)
        return f"{fmean(values):.3f} ({stdev(values):.3f})"


SWITCHES = ("partial_deflation", "partial_ack", "restart_on_any", "retransmission_timer")


def switched(law: str, on: Sequence[str], loss: float = 5) -> Case:
    """Return a law over `loss_resilient` with these switches on and the others off."""
    params: list[tuple[str, object]] = [(name, name in on) for name in SWITCHES]
    return Case(f"{law}/loss_resilient", loss, tuple(params + ([("on_loss", "keep")] if law == "xcp" else [])))


D, P, R, T = SWITCHES
ABLATION = ((), (D,), (R,), (R, T), (D, R), (D, T), (D, R, T), (P, R, T), (D, P), (D, P, R, T))


def d1(protocol: str, loss: float) -> Case:
    """Return a case with a single duplicate as threshold."""
    return Case(protocol, loss, (("dupackthreshold", 1),))


def factor(protocol: str, loss: float, times: float) -> Case:
    """Return a case with another retransmission timeout."""
    return Case(protocol, loss, (("retransmission_factor", times),))


BESIDE = tuple(Case("reno", 0, other=other) for other in ("reno", "LR-LMXTCP", "LR-LMXTCP_TCPfriend"))
NEW_ONLY = tuple(Case("LR-LMXTCP", loss, (("grow_on_duplicates", False),)) for loss in LOSSES)
GRID = [Case(p, loss) for p in (*XCP, "LR-XCPQ_PA", *XTCP, *TCP) for loss in LOSSES]
FACTORS = [factor(p, loss, x) for p in ("LR-XCP", "LR-XCP_PA", "LR-XTCP") for loss in (1, 5, 10) for x in (1.5, 3)]
CASES = [
    *GRID, *BESIDE, *NEW_ONLY, *FACTORS,
    *(switched("xcp", on) for on in ABLATION), *(switched("reno", on) for on in ((), (D,), (R,), (D, R, T))),
    *(d1(p, loss) for p in ("XCP_dumb", "LR-XCP", "LR-XCP_PA", "LR-LMXCP") for loss in (1, 5, 10)),
]  # fmt: skip


def ratios(runs: Runs, protocols: Sequence[str]) -> str:
    """Return the fairness ratios of some protocols over the losses."""
    rows = [[p, *(runs.text(Case(p, loss)) for loss in LOSSES)] for p in protocols]
    return table(["", *(f"{loss} %" for loss in LOSSES)], rows)


def utilisations(runs: Runs) -> str:
    """Return how full the bottleneck is, and its queue."""
    rows = []
    for p in ("XCP_dumb", "LR-XCP_PA", "LR-LMXCP", "LR-XCPQ_PA"):
        cells = [
            f"{runs.mean(Case(p, loss), 'utilisation'):.4f} / {runs.mean(Case(p, loss), 'queue'):.1f}"
            for loss in LOSSES
        ]
        rows.append([p, *cells])
    return table(["", *(f"{loss} %" for loss in LOSSES)], rows)


def ablation(runs: Runs) -> str:
    """Return what each switch does, under a law that keeps its window on losses."""
    rows = []
    for on in ABLATION:
        case = switched("xcp", on)
        marks = ["yes" if name in on else "" for name in SWITCHES]
        rows.append([*marks, runs.text(case), runs.text(case, "goodput"), f"{runs.mean(case, 'timeouts'):.2f}"])
    heads = [f"`{name}`" for name in SWITCHES]
    return table([*heads, "ratio", "ratio of goodput", "resets a minute"], rows)


def thresholds(runs: Runs) -> str:
    """Return fairness with one and with three duplicates."""
    rows = []
    for p in ("XCP_dumb", "LR-XCP", "LR-XCP_PA", "LR-LMXCP"):
        for threshold in (1, 3):
            cases = [d1(p, loss) if threshold == 1 else Case(p, loss) for loss in (1, 5, 10)]
            rows.append([p, threshold, *(runs.text(case) for case in cases)])
    return table(["", "threshold", "1 %", "5 %", "10 %"], rows)


def beside_tcp(runs: Runs) -> str:
    """Return what XTCP leaves to TCP in one queue, no losses but the queue's."""
    rows = []
    for case in BESIDE:
        utilisation = f"{runs.mean(case, 'utilisation'):.4f}"
        rows.append([case.other, runs.text(case), f"{runs.mean(case, 'timeouts'):.2f}", utilisation])
    return table(["five flows beside five of `reno`", "their bytes over TCP's", "resets a minute", "utilisation"], rows)


def predicates(runs: Runs) -> str:
    """Return the register's criteria with what was measured."""

    def f(protocol: str, loss: float) -> float:
        return runs.mean(Case(protocol, loss))

    def util(protocol: str, loss: float) -> float:
        return runs.mean(Case(protocol, loss), "utilisation")

    rows: list[Sequence[object]] = []

    def add(name: str, statement: str, measured: str, holds: bool) -> None:
        rows.append([name, statement, measured, verdict(holds)])

    def several(values: Sequence[float]) -> str:
        return ", ".join(f"{v:.3f}" for v in values)

    positive = [loss for loss in LOSSES if loss >= 1]
    high = [loss for loss in LOSSES if loss >= 5]
    lead = [f("LR-LMXCP", p) - max(f(x, p) for x in XCP if x != "LR-LMXCP") for p in positive]
    trail = [min(f(x, p) for x in XCP if x != "XCP_dumb") - f("XCP_dumb", p) for p in positive]
    add("D-fig3-a", "LR-LMXCP is the fairest, XCP_dumb the worst, from 1 % on: lead over the next",
        f"{several(lead)}; {several(trail)}", min(lead + trail) >= 0)  # fmt: skip
    gain = [f("LR-XCP_PA", p) - f("XCP_PA", p) for p in high]
    add("D-fig3-b", "LR-XCP_PA - XCP_PA >= 0.05 from 5 % on", several(gain), min(gain) >= 0.05)
    gain = [f("LR-XCP_PA", p) - f("LR-XCP", p) for p in (1, *high)]
    add("D-fig3-c", "LR-XCP_PA - LR-XCP <= 0.05 at 1 %, larger from 5 % on", several(gain),
        gain[0] <= 0.05 and min(gain[1:]) > gain[0])  # fmt: skip
    even = [f(p, 0) for p in XCP]
    add("D-fig3-d", "0.95 .. 1.05 without loss", several(even), all(0.95 <= r <= 1.05 for r in even))
    rise = max(f(p, b) - f(p, a) for p in XCP for a, b in zip(LOSSES, LOSSES[1:], strict=False))
    add("D-fig3-e", "falls with loss (slack 0.03): greatest rise", f"{rise:.3f}", rise <= 0.03)
    lm = [f("LR-LMXCP", 5), f("LR-LMXCP", 10)]
    add("D-fig3-f", "LR-LMXCP >= 0.85 at 5 %, >= 0.7 at 10 %", several(lm), lm[0] >= 0.85 and lm[1] >= 0.7)
    gaps = [runs.mean(d1("LR-LMXCP", p)) - runs.mean(d1("LR-XCP", p)) for p in (10, 1)]
    gaps.insert(1, f("LR-LMXCP", 10) - f("LR-XCP", 10))
    add("D-txt-dup-a", "LM - LR is greatest with threshold 1 at 10 %: there; threshold 3; 1 %", several(gaps),
        gaps[0] > max(gaps[1:]))  # fmt: skip
    u = [util("LR-XCP_PA", p) for p in LOSSES]
    add("D-txt-util-a", "LR-XCP_PA's utilisation falls with loss, < 0.98 at 5 %", several(u),
        u == sorted(u, reverse=True) and util("LR-XCP_PA", 5) < 0.98)  # fmt: skip
    q = [util("LR-XCPQ_PA", p) for p in (0, 1, 2, 5, 10, 20)]
    add("D-fig4-a", "LR-XCPQ_PA: >= 0.97 to 10 %, >= 0.95 at 20 %", several(q), min(q[:-1]) >= 0.97 and q[-1] >= 0.95)
    gain = [util("LR-XCPQ_PA", p) - util("LR-XCP_PA", p) for p in high]
    add("D-fig4-b", "gains >= 0.02 from 5 % on, and more and more", several(gain),
        min(gain) >= 0.02 and gain == sorted(gain))  # fmt: skip
    queue = runs.mean(Case("LR-XCPQ_PA", 0), "queue")
    add("D-fig4-c", "mean queue 7 .. 13 packets without loss", f"{queue:.2f}", 7 <= queue <= 13)
    none, d, r, dr = (runs.mean(switched("xcp", on)) for on in ((), (D,), (R, T), (D, R, T)))
    steps = [f("XCP_dumb", 5), f("XCP", 5), f("LR-XCP", 5)]
    add("D-txt-abl-a", "XCP_dumb < XCP < LR-XCP at 5 %", several(steps), steps == sorted(steps))
    add("D-txt-abl-c", "the timers pay more with partial deflation than without",
        f"{dr - d:.3f} with, {r - none:.3f} without", dr - d > r - none)  # fmt: skip
    add("D-txt-abl-c, as registered", "(timers + deflation) - timers > deflation - none",
        f"{dr - r:.3f}, {d - none:.3f}", dr - r > d - none)  # fmt: skip
    plain, deflated, patient, timed = (runs.mean(switched("reno", on)) for on in ((), (D,), (R,), (D, R, T)))
    add("D-txt-abl-d", "TCP: partial deflation changes <= 0.05; with all three no better than with the restart alone",
        f"{deflated - plain:+.3f}; {timed - patient:+.3f}",
        abs(deflated - plain) <= 0.05 and timed - patient <= 0.05)  # fmt: skip
    off = [abs(runs.mean(c) - f(c.protocol, c.loss)) for c in FACTORS]
    worst = max(FACTORS, key=lambda c: abs(runs.mean(c) - f(c.protocol, c.loss)))
    add("D-txt-rtx-a", "timeout factor 1.5 or 3 for 2: ratio changes <= 0.05",
        f"at most {max(off):.3f} ({worst.protocol}, {worst.loss} %, {dict(worst.params)['retransmission_factor']})",
        max(off) <= 0.05)  # fmt: skip
    tcp = [f("reno", 1), f("reno", 5)]
    others = [min(f(p, loss) for p in XTCP) - f("reno", loss) for loss in positive]
    add("D-fig8-a", "TCP <= 0.5 at 1 %, <= 0.2 at 5 %, the worst of all", f"{several(tcp)}; lead of the others {several(others)}",
        tcp[0] <= 0.5 and tcp[1] <= 0.2 and min(others) > 0)  # fmt: skip
    gain = [f("LR-XTCP_PA", p) - f("LR-XTCP", p) for p in positive]
    add("D-fig8-b", "LR-XTCP_PA - LR-XTCP <= 0.03 at 1 %, >= 0.05 somewhere from 5 % on", several(gain),
        gain[0] <= 0.03 and max(gain[2:]) >= 0.05)  # fmt: skip
    gain = [f("LR-LMXTCP", p) - f("LR-XTCP", p) for p in high]
    add("D-fig8-c", "LR-LMXTCP - LR-XTCP >= 0.1 from 5 % on", several(gain), min(gain) >= 0.1)
    gain = [f("LR-LMXTCP_TCPfriend", p) - f("LR-LMXTCP", p) for p in positive if p >= 2]
    add("D-fig8-d", "TCPfriend >= LR-LMXTCP from 2 % on", several(gain), min(gain) >= 0)
    add("D-fig8-e", "LR-LMXTCP >= 0.8 at 5 %", f"{f('LR-LMXTCP', 5):.3f}", f("LR-LMXTCP", 5) >= 0.8)
    gain = [f("LR-XTCP", p) - f("LR-XCP", p) for p in positive]
    add("D-fig8-f", "LR-XTCP below LR-XCP from 2 % on, within 0.07 at 1 %", several(gain),
        max(gain[1:]) < 0 and abs(gain[0]) <= 0.07)  # fmt: skip
    gain = [f("LR-LMXTCP", p) - f("LR-LMXCP", p) for p in (1, 2, 5, 10)]
    add("D-fig8-g", "LR-LMXTCP within 0.1 of LR-LMXCP to 10 %", several(gain), max(map(abs, gain)) <= 0.1)
    tcp = [f("newreno", 5), f("sack", 5)]
    add("D-txt-tcpvar-a", "NewReno, SACK <= 0.35 at 5 %, below LR-XTCP", several(tcp),
        max(tcp) <= 0.35 and max(tcp) < f("LR-XTCP", 5))  # fmt: skip
    seven = [runs.mean(case) for case in BESIDE[1:]]
    add("D-fig7a-a", "LR-LMXTCP beside TCP: 2.3 .. 5 times as much", f"{seven[0]:.2f}", 2.3 <= seven[0] <= 5)
    add("D-fig7b-a", "LR-LMXTCP_TCPfriend beside TCP: 0.7 .. 1.4", f"{seven[1]:.2f}", 0.7 <= seven[1] <= 1.4)
    return table(["register", "criterion", "measured", "holds"], rows)


def main() -> None:
    """Write the section."""
    runs = Runs(CASES)
    text = f"""Ten flows over a bottleneck of 5 Mbit/s, 120 ms, 1000-byte packets; behind it five of them cross a
lossy link of the same speed (`scenarios/paper-003-fig3.toml`, which says what the paper leaves open). {SECONDS} s, of which 20 s are
left out; means of {len(SEEDS)} seeds, in brackets the standard deviation. The fairness ratio is what lossy flows send
through the bottleneck over what the others send; 1 is fair.

Figure 3, three duplicates:

{ratios(runs, XCP)}

Figure 8:

{ratios(runs, (*TCP, *XTCP))}

What figure 8 needs XTCP to do with duplicates: section 3.2 lets each acknowledgement without a flag grow the window,
section 4.4 says that duplicates leave it. If only new acknowledgements grow it, LR-LMXTCP gets:

{table(["", *(f"{loss} %" for loss in LOSSES)], [["LR-LMXTCP", *map(runs.text, NEW_ONLY)]])}

One duplicate instead of three:

{thresholds(runs)}

Each switch by itself at 5 %, over XCP that keeps its window on losses. Where nothing resends what was lost twice, the
window runs to the receiver's 1000 segments; the reset sends them all again, which the ratio counts and the goodput
does not.

{ablation(runs)}

Utilisation and mean queue (packets) of the bottleneck, figure 4:

{utilisations(runs)}

One queue for XTCP and TCP, nothing lost but by the queue, figure 7:

{beside_tcp(runs)}

The register's criteria:

{predicates(runs)}
{REMARKS}
    cargo test -p explicate-sim --test paper_003 -- --nocapture
    python validation/paper_003.py
"""
    make.place("paper_003", "Paper 003: loss-resilient XCP and XTCP", text)


REMARKS = ""


if __name__ == "__main__":
    main()
