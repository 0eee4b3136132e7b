"""Compute the section of docs/validation.md on paper 003: loss-resilient XCP and XTCP on the paper's own topology.

    python validation/paper_003.py

Figures 3, 4, 7 and 8, the ablation of the switches, and what the paper says in passing, each against the register's
criterion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
NEW_ONLY = {p: [Case(p, loss, (("grow_on_duplicates", False),)) for loss in LOSSES] for p in XTCP[2:]}
IN_STEP = Case("reno", 0, more=tuple((f"link.s{i}->n0.channel.0.mean", "0s") for i in range(10)))
"""TCP without loss and without the jitter of its sources."""
GRID = [Case(p, loss) for p in (*XCP, "LR-XCPQ_PA", *XTCP, *TCP) for loss in LOSSES]
FACTORS = [factor(p, loss, x) for p in ("LR-XCP", "LR-XCP_PA", "LR-XTCP") for loss in (1, 5, 10) for x in (1.5, 3)]
CASES = [
    *GRID, *BESIDE, *(c for cases in NEW_ONLY.values() for c in cases), IN_STEP, *FACTORS,
    *(switched("xcp", on) for on in ABLATION), *(switched("reno", on) for on in ((), (D,), (D, R, T))),
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


def several(values: Sequence[float]) -> str:
    """Return some numbers in a cell."""
    return ", ".join(f"{v:.3f}" for v in values)


POSITIVE = LOSSES[1:]
HIGH = LOSSES[3:]


def criterion(name: str, statement: str, measured: str, holds: bool) -> Sequence[object]:
    """Return a row of the table of criteria."""
    return [name, statement, measured, verdict(holds)]


def fairness_of_xcp(runs: Runs) -> list[Sequence[object]]:
    """Return the register's criteria for figure 3, with what was measured."""

    def f(protocol: str, loss: float) -> float:
        return runs.mean(Case(protocol, loss))

    lead = [f("LR-LMXCP", p) - max(f(x, p) for x in XCP if x != "LR-LMXCP") for p in POSITIVE]
    trail = [min(f(x, p) for x in XCP if x != "XCP_dumb") - f("XCP_dumb", p) for p in POSITIVE]
    timer = [f("LR-XCP_PA", p) - f("XCP_PA", p) for p in HIGH]
    partial = [f("LR-XCP_PA", p) - f("LR-XCP", p) for p in (1, *HIGH)]
    even = [f(p, 0) for p in XCP]
    rise = max(f(p, b) - f(p, a) for p in XCP for a, b in pairwise(LOSSES))
    lm = [f("LR-LMXCP", 5), f("LR-LMXCP", 10)]
    gaps = [
        runs.mean(d1("LR-LMXCP", 10)) - runs.mean(d1("LR-XCP", 10)),
        f("LR-LMXCP", 10) - f("LR-XCP", 10),
        runs.mean(d1("LR-LMXCP", 1)) - runs.mean(d1("LR-XCP", 1)),
    ]
    return [
        criterion("D-fig3-a", "LR-LMXCP is the fairest, XCP_dumb the worst, from 1 % on: distance to the next",
                  f"{several(lead)}; {several(trail)}", min(lead + trail) >= 0),
        criterion("D-fig3-b", "LR-XCP_PA - XCP_PA >= 0.05 from 5 % on", several(timer), min(timer) >= 0.05),
        criterion("D-fig3-c", "LR-XCP_PA - LR-XCP <= 0.05 at 1 %, larger from 5 % on", several(partial),
                  partial[0] <= 0.05 and min(partial[1:]) > partial[0]),
        criterion("D-fig3-d", "0.95 .. 1.05 without loss", several(even), all(0.95 <= r <= 1.05 for r in even)),
        criterion("D-fig3-e", "falls with loss (slack 0.03): greatest rise", f"{rise:.3f}", rise <= 0.03),
        criterion("D-fig3-f", "LR-LMXCP >= 0.85 at 5 %, >= 0.7 at 10 %", several(lm), lm[0] >= 0.85 and lm[1] >= 0.7),
        criterion("D-txt-dup-a", "LM - LR is greatest with threshold 1 at 10 %: there; threshold 3; 1 %",
                  several(gaps), gaps[0] > max(gaps[1:])),
    ]  # fmt: skip


def the_rest_of_xcp(runs: Runs) -> list[Sequence[object]]:
    """Return the criteria for figure 4, the ablation and the timers."""

    def util(protocol: str) -> list[float]:
        return [runs.mean(Case(protocol, p), "utilisation") for p in LOSSES]

    plain, kept = util("LR-XCP_PA"), util("LR-XCPQ_PA")
    gain = [k - p for k, p in zip(kept[3:], plain[3:], strict=True)]
    queue = runs.mean(Case("LR-XCPQ_PA", 0), "queue")
    none, d, r, dr = (runs.mean(switched("xcp", on)) for on in ((), (D,), (R, T), (D, R, T)))
    steps = [runs.mean(Case(p, 5)) for p in ("XCP_dumb", "XCP", "LR-XCP")]
    tcp, deflated, timed = (runs.mean(switched("reno", on)) for on in ((), (D,), (D, R, T)))
    off = {c: abs(runs.mean(c) - runs.mean(Case(c.protocol, c.loss))) for c in FACTORS}
    worst = max(FACTORS, key=off.__getitem__)
    modest = max(change for c, change in off.items() if c.loss <= 5)
    return [
        criterion("D-txt-util-a", "LR-XCP_PA's utilisation falls with loss, < 0.98 at 5 %", several(plain),
                  plain == sorted(plain, reverse=True) and plain[3] < 0.98),
        criterion("D-fig4-a", "LR-XCPQ_PA: >= 0.97 to 10 %, >= 0.95 at 20 %", several(kept),
                  min(kept[:-1]) >= 0.97 and kept[-1] >= 0.95),
        criterion("D-fig4-b", "gains >= 0.02 from 5 % on, and more and more", several(gain),
                  min(gain) >= 0.02 and gain == sorted(gain)),
        criterion("D-fig4-c", "mean queue 7 .. 13 packets without loss", f"{queue:.2f}", 7 <= queue <= 13),
        criterion("D-txt-abl-a", "XCP_dumb < XCP < LR-XCP at 5 %", several(steps), steps == sorted(steps)),
        criterion("D-txt-abl-c", "(timers + deflation) - timers > deflation - none",
                  f"{dr - r:.3f}, {d - none:.3f}", dr - r > d - none),
        criterion("D-txt-abl-d", "TCP: partial deflation changes <= 0.05; the timers with it gain <= 0.05 more",
                  f"{deflated - tcp:+.3f}; {timed - deflated:+.3f}",
                  abs(deflated - tcp) <= 0.05 and timed - deflated <= 0.05),
        criterion("D-txt-rtx-a", "timeout factor 1.5 or 3 for 2: ratio changes <= 0.05 (LR-XCP, LR-XCP_PA, LR-XTCP)",
                  f"at most {modest:.3f} at 1 and 5 %, {off[worst]:.3f} at 10 % ({worst.protocol})",
                  off[worst] <= 0.05),
    ]  # fmt: skip


def fairness_of_xtcp(runs: Runs) -> list[Sequence[object]]:
    """Return the criteria for figures 7 and 8."""

    def f(protocol: str, loss: float) -> float:
        return runs.mean(Case(protocol, loss))

    def more(one: str, other: str, losses: Sequence[int]) -> list[float]:
        return [f(one, p) - f(other, p) for p in losses]

    tcp = [f("reno", 1), f("reno", 5)]
    lead = [min(f(p, loss) for p in XTCP) - f("reno", loss) for loss in POSITIVE]
    partial = more("LR-XTCP_PA", "LR-XTCP", POSITIVE)
    lm = more("LR-LMXTCP", "LR-XTCP", HIGH)
    friend = more("LR-LMXTCP_TCPfriend", "LR-LMXTCP", POSITIVE[1:])
    coarse = more("LR-XTCP", "LR-XCP", POSITIVE)
    alike = more("LR-LMXTCP", "LR-LMXCP", POSITIVE[:-1])
    others = [f("newreno", 5), f("sack", 5)]
    seven = [runs.mean(case) for case in BESIDE[1:]]
    return [
        criterion("D-fig8-a", "TCP <= 0.5 at 1 %, <= 0.2 at 5 %; the worst of all: distance to the next",
                  f"{several(tcp)}; {several(lead)}", tcp[0] <= 0.5 and tcp[1] <= 0.2 and min(lead) > 0),
        criterion("D-fig8-b", "LR-XTCP_PA - LR-XTCP <= 0.03 at 1 %, >= 0.05 somewhere from 5 % on", several(partial),
                  partial[0] <= 0.03 and max(partial[2:]) >= 0.05),
        criterion("D-fig8-c", "LR-LMXTCP - LR-XTCP >= 0.1 from 5 % on", several(lm), min(lm) >= 0.1),
        criterion("D-fig8-d", "TCPfriend >= LR-LMXTCP from 2 % on: more by", several(friend), min(friend) >= 0),
        criterion("D-fig8-e", "LR-LMXTCP >= 0.8 at 5 %", several([f("LR-LMXTCP", 5)]), f("LR-LMXTCP", 5) >= 0.8),
        criterion("D-fig8-f", "LR-XTCP below LR-XCP from 2 % on, within 0.07 at 1 %: more by", several(coarse),
                  max(coarse[1:]) < 0 and abs(coarse[0]) <= 0.07),
        criterion("D-fig8-g", "LR-LMXTCP within 0.1 of LR-LMXCP to 10 %", several(alike),
                  max(map(abs, alike)) <= 0.1),
        criterion("D-txt-tcpvar-a", "NewReno, SACK <= 0.35 at 5 %, below LR-XTCP", several(others),
                  max(others) <= 0.35 and max(others) < f("LR-XTCP", 5)),
        criterion("D-fig7a-a", "LR-LMXTCP beside TCP: 2.3 .. 5 times as much", f"{seven[0]:.2f}",
                  2.3 <= seven[0] <= 5),
        criterion("D-fig7b-a", "LR-LMXTCP_TCPfriend beside TCP: 0.7 .. 1.4", f"{seven[1]:.2f}",
                  0.7 <= seven[1] <= 1.4),
    ]  # fmt: skip


REMARKS = """
What does not hold, and why as far as known:

- *D-txt-dup-a*: at 7.5 packets of window the third duplicate of a loss comes late or never, and then LR waits for
  its timer: the higher threshold costs LR more than LM. With four flows and windows of 19 packets LR is limited
  to one repair a round trip whatever the threshold, and the two gaps are alike.
- *D-txt-util-a, D-fig4-b*: the direction is the paper's, the size is not. XCP's routers hand the rate that
  stalled flows leave unused to the others within a round trip, and no loss-resilient flow is reset at 5 %; the
  paper blames resets.
- *D-txt-rtx-a*: a longer timeout costs LR-XCP_PA at 10 %, where segments are often lost twice. The monitor finds
  such losses without the timer.
- *D-fig8-a*: the register's two numbers are estimates from a lost figure; TCP starves, and is the worst.
- *D-fig8-d*: both are within two standard deviations of each other below 20 %. If only new acknowledgements grow
  the window, the friendly one leads everywhere, at a much lower level (second table below figure 8).
- *D-fig8-f*: at 20 % both are reset all the time, and XTCP's slow start comes back faster than XCP's feedback.
- *D-fig7a-a*: the paper's TCP does worse. Slower timers (1 s at least, clock of 100 ms) raise the figure to 1.9 only,
  other queues and NewReno change less.
"""


def main() -> None:
    """Write the section."""
    runs = Runs(CASES)
    rows = [*fairness_of_xcp(runs), *the_rest_of_xcp(runs), *fairness_of_xtcp(runs)]
    new_only = [[p, *map(runs.text, cases)] for p, cases in NEW_ONLY.items()]
    text = f"""Ten flows over a bottleneck of 5 Mbit/s, 120 ms, 1000-byte packets; behind it five of them cross a
lossy link of the same speed (`scenarios/paper-003-fig3.toml`, which says what the paper leaves open).
{SECONDS} s, of which 20 s are left out; means of {len(SEEDS)} seeds, in brackets the standard deviation. The fairness
ratio is what lossy flows send through the bottleneck over what the others send; 1 is fair. Sources hold packets
back for up to 1.6 ms, at random: where all links are equal packets arrive in step, and without that TCP's ratio is
{runs.text(IN_STEP)} even without loss.

Figure 3, three duplicates:

{ratios(runs, XCP)}

Figure 8:

{ratios(runs, (*TCP, *XTCP))}

What figure 8 needs XTCP to do with duplicates: section 3.2 lets each acknowledgement without a flag grow the window,
section 4.4 says that duplicates leave it. If only new acknowledgements grow it:

{table(["", *(f"{loss} %" for loss in LOSSES)], new_only)}

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

{table(["register", "criterion", "measured", "holds"], rows)}
{REMARKS}
    cargo test -p explicate-sim --test paper_003 -- --nocapture
    python validation/paper_003.py
"""
    make.place("paper_003", "Paper 003: loss-resilient XCP and XTCP", text)


if __name__ == "__main__":
    main()
