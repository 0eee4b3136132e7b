"""D-fig2a: sums of throughput over time, 5 % loss, XCP with Reno's recovery (figure 2a).

Set-up: `base.py`; five flows cross a link that loses 5 % of the packets. One duplicate ACK makes a retransmission.
"""

from __future__ import annotations

from collections.abc import Sequence

from explicate.papers.de_vleeschouwer import base
from explicate.papers.statistics import Check, at_least, at_most
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig2a")

SYSTEM = "XCP_dumb"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The one system of the panel."""
    return {SYSTEM: base.case(effort, SYSTEM, 5.0, params={"dupackthreshold": 1})}


@study.predicate("D-fig2a-a", most=0.3)
def lossy_flows_starve(data: Data, most: float) -> Check:
    """Their share is small after 20 s."""
    return at_most("F", data.measure(SYSTEM, base.ratio), most)


@study.predicate("D-fig2a-b", least=0.65)
def others_take_over(data: Data, least: float) -> Check:
    """The loss-free flows take what is freed."""
    return at_least("Mbit/s of the loss-free flows", data.measure(SYSTEM, base.clean_mbps), least * base.RATE_MBPS)


def panel(data: Data, system: str, title: str) -> Panel:
    """Return the sums over time of one system's first seed."""
    results = data.runs(system)[0]
    return Panel(
        title, "time (s)", "throughput (Mbit/s)",
        [
            Line.series("loss-free", base.over_time(results, base.CLEAN), 1e6),
            Line.series("lossy", base.over_time(results, base.LOSSY), 1e6),
        ],
    )  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, SYSTEM, "(a) XCP_dumb")]
