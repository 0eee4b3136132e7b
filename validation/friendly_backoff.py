"""Timeouts of TCP that the artificial back-off of paper D (section 8.1) misses, and their causes.

    python validation/friendly_backoff.py [--seconds 60] [--seeds 5] [--system LR-LMXTCP_TCPfriend]

Figure 7b: five TCP flows and five flows of LR-LMXTCP_TCPfriend. The back-off should occur where TCP would time out:
upon a flag while the window is below dupackthreshold, or upon two flags within a round trip. For each TCP flow's
timeout this script examines the XTCP flow of the same number, from TCP's first loss to the timeout: did it back off,
was its window only halved, or did no flag arrive? Timeouts are classified by TCP's losses in a span of three timeouts
before: one packet of a window too small for three duplicates, two or more packets, one packet of a larger window, or
none. The last line counts all timeouts and all back-offs of all flows.
"""

from __future__ import annotations

import argparse
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from shared import table

import explicate
from explicate_papers import metrics, plan
from explicate_papers.de_vleeschouwer.fig7a import beside_tcp
from explicate_papers.register import experiments

STEP_S = 0.01
"""Sampling interval of windows."""
SPAN = 3
"""Losses of a timeout are searched in a span of so many timeouts before it."""
LEAST_WINDOW = 4
"""A loss in a smaller window leaves fewer than three packets to cause duplicates."""
DROP = re.compile(r" *(\d+\.\d+)  \S+ +drop:\S+ +(clean|lossy)\.(\d) data ")
OUTCOMES = ("backed off", "halved", "no flag")


@dataclass(frozen=True)
class Timeout:
    """A timeout of TCP: the losses before it, and the reaction of the XTCP flow beside it."""

    at_s: float
    flow: int
    lost: int
    window: float
    beside: str

    @property
    def cause(self) -> str:
        """Why duplicates could not repair the loss."""
        if self.lost == 0:
            return "none lost lately"
        if self.lost > 1:
            return "two or more packets lost"
        return "one lost, window below 4" if self.window < LEAST_WINDOW else "one lost, window of 4 or more"


def timeouts(results: explicate.Results) -> list[Timeout]:
    """Return the timeouts of the TCP flows, except those that follow another without an acknowledgement."""
    drops: dict[int, list[float]] = {flow: [] for flow in range(5)}
    for line in results.trace.splitlines():
        found = DROP.match(line)
        if found and found[2] == "clean":
            drops[int(found[3])].append(float(found[1]))
    found_all = []
    for flow, lost in drops.items():
        window, rto = (metrics.series(results, f"clean.{flow}", name) for name in ("cwnd", "rto_ms"))
        times, cwnd = window["time_s"].to_list(), window["value"].to_list()
        for i in range(1, len(cwnd)):
            if cwnd[i] == 1.0 < cwnd[i - 1]:
                # A loss shows after a round trip; the timer runs from then on, or from a retransmission that was lost.
                since = times[i] - SPAN * rto["value"][i - 1] / 1000
                mine = lost[bisect_left(lost, since) : bisect_left(lost, times[i])]
                start = mine[0] if mine else since
                before = cwnd[max(0, bisect_left(times, start) - 1)]
                beside = beside_it(results, flow, start, times[i])
                found_all.append(Timeout(times[i], flow, len(mine), before, beside))
    return found_all


def back_offs(results: explicate.Results) -> int:
    """Return the artificial back-offs of all XTCP flows: each moves the segment that ends it."""
    ends = (metrics.series(results, f"lossy.{flow}", "recphase_segment")["value"] for flow in range(5))
    return sum(int((end.diff() != 0).sum()) for end in ends)


def beside_it(results: explicate.Results, flow: int, start_s: float, end_s: float) -> str:
    """Return the reaction of the XTCP flow of this number from `start_s` to `end_s`."""

    def values(name: str) -> Sequence[float]:
        series = metrics.series(results, f"lossy.{flow}", name, start_s - STEP_S)
        return series.filter(series["time_s"] <= end_s)["value"].to_list()

    window, until = values("cwnd"), values("recphase_segment")
    if any(after != before for before, after in pairwise(until)):
        return OUTCOMES[0]
    fell = any(after < before for before, after in pairwise(window))
    return OUTCOMES[1] if fell else OUTCOMES[2]


def main() -> None:
    """Print how many timeouts of each kind the back-off answered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="simulated seconds")
    parser.add_argument("--seeds", type=int, default=5, help="runs")
    parser.add_argument("--system", default="LR-LMXTCP_TCPfriend", help="the protocol beside TCP")
    args = parser.parse_args()
    effort = replace(plan.effort(experiments()["D-fig7b"], "quick"), seconds=args.seconds)
    case = beside_tcp(effort, args.system)
    often = {"sampling.every": f"{STEP_S * 1000:g}ms", "sampling.of": '["flow"]'}
    seen: Counter[tuple[str, str]] = Counter()
    made = 0
    for seed in range(1, args.seeds + 1):
        results = explicate.run(case.text, set={**case.settings, **often}, seed=seed, trace="all")
        seen.update((one.cause, one.beside) for one in timeouts(results))
        made += back_offs(results)
    causes = sorted({cause for cause, _ in seen})
    rows = [[cause, *(seen[cause, outcome] for outcome in OUTCOMES)] for cause in causes]
    rows.append(["all", *(sum(seen[cause, outcome] for cause in causes) for outcome in OUTCOMES)])
    print(table(["timeouts of TCP", *(f"XTCP beside: {outcome}" for outcome in OUTCOMES)], rows))
    print(f"\n{seen.total()} timeouts of TCP, {made} back-offs of XTCP")


if __name__ == "__main__":
    main()
