"""D-fig2a: sums of throughput over time, 5 % loss, XCP with Reno's recovery (figure 2a).

Set-up: `base.py`; five flows cross a link that loses 5 % of the packets. One duplicate ACK makes a retransmission.
"""

from __future__ import annotations

from collections.abc import Sequence

from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-fig2a")

SYSTEM = "XCP_dumb"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The one system of the panel."""
    return {SYSTEM: base.case(effort, SYSTEM, 5.0, params={"dupackthreshold": 1})}


@study.predicate("D-fig2a-a", most=0.5)
def lossy_flows_starve(data: Data, most: float) -> Check:
    """Their share is small after 20 s."""
    return at_most("F", base.fairness(data, SYSTEM), most)


@study.predicate("D-fig2a-b", least=0.65)
def others_take_over(data: Data, least: float) -> Check:
    """The loss-free flows use the capacity that the lossy ones leave."""
    clean, _ = base.sums(data, SYSTEM)
    return at_least("Mbit/s of the loss-free flows", clean, least * base.RATE_MBPS)


study.control(
    "the loss monitor in its place",
    base.instead_of(SYSTEM, "LR-LMXCP"),
    ["D-fig2a-a", "D-fig2a-b"],
    "a sender that repairs its losses within a round trip keeps its share, so nothing is left for the others",
)


SHOWN_S, BIN_S = 100, 1


def panel(data: Data, system: str, title: str) -> Panel:
    """Return both sums of one system's first seed and their total over time, the first seconds in bins."""
    results = data.runs(system)[0]
    clean, lossy = (base.in_bins(base.over_time(results, link), BIN_S, SHOWN_S) for link in (base.CLEAN, base.LOSSY))
    total = clean.with_columns(value=clean["value"] + lossy["value"])
    frames = {"loss-free": clean, "lossy": lossy, "total": total}
    lines = [
        *(Line.series(name, frame, 1e6) for name, frame in frames.items()),
        Line("bottleneck", [0, SHOWN_S], [base.RATE_MBPS] * 2),
    ]
    label = f"throughput in {BIN_S} s (Mbit/s)"
    return Panel(f"{title}, first seed", "time (s)", label, lines, compared=True)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, SYSTEM, "(a) XCP_dumb")]
