"""D-txt-beyond: expectations and proposals of the paper (sections 5.1, 8.1). Set-up: `base.py`.

(a) SACK instead of packet numbers, with the same monitor and timers. (b) A path without XTCP: the receiver refuses it,
and the flow continues as TCP.
(c) Video over UDP that follows the routers' flags, and file transfers over XTCP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import edit
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, at_least, between, close, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-beyond")

LOSSES = (0.0, 1.0, 5.0, 10.0)
SACK, MONITOR, XTCP, TCP = "LR-SACK-XCP", "LR-LMXCP", "LR-LMXTCP", "TCP SACK"
REFUSED, VIDEO = "LR-LMXTCP, refused", "video"


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Three comparisons."""
    made = {}
    for loss in LOSSES:
        made[MONITOR, loss] = base.case(effort, MONITOR, loss)
        params = {"on_loss": "keep", "recount": effort.choices["D-P22"]}
        made[SACK, loss] = base.case(effort, "xcp/sack_monitor", loss, params=params)
    for loss in (0.0, 1.0):
        made[TCP, loss] = base.case(effort, "sack", loss)
        made[REFUSED, loss] = base.case(effort, XTCP, loss, params={"refuse_explicit": True})
    made[VIDEO, 0.0] = base.case(effort, VIDEO + "_xtcp", 0.0, clean=XTCP)
    return made


@study.predicate("D-txt-beyond-a", most=0.07, up_to_percent=10)
def sack_does_as_well(data: Data, most: float, up_to_percent: float) -> Iterator[Check]:
    """Both reports inform the sender of the packets that arrived."""
    for loss in LOSSES:
        if loss <= up_to_percent:
            sack, monitor = (base.fairness(data, system, loss) for system in (SACK, MONITOR))
            yield close(f"F at {loss:g} %: {SACK} and {MONITOR}", sack, monitor, most)


def told(results: Results) -> float:
    """Return the counters of the bottleneck's router for XTCP packets: flags, drops counted or not."""
    names = ("congestion_flags", "congestion_counter", "uncounted_drops")
    return sum(metrics.largest(metrics.series(results, base.BOTTLENECK, name)) for name in names)


@study.predicate("D-txt-beyond-b")
def reverts_to_tcp(data: Data) -> Iterator[Check]:
    """The router drops packets and counts none of them as XTCP's."""
    for loss in (0.0, 1.0):
        yield at_least(f"drops at {loss:g} %", data.measure((REFUSED, loss), base.refused), 1)
        yield equal(f"flags and drops of XTCP's at {loss:g} %", data.measure((REFUSED, loss), told), 0)


@study.predicate("D-txt-beyond-c", low=0.7, high=1.4)
def video_shares(data: Data, low: float, high: float) -> Check:
    """Flags control both in the same way."""
    return between("video over files", base.fairness(data, VIDEO, 0.0), low, high)


def accepts(content: dict[str, Any]) -> None:
    """Let the flows' ends accept XTCP."""
    for group in content["flows"]:
        if "refuse_explicit" in group["params"]:
            group["params"]["refuse_explicit"] = False


study.control(
    "Reno's recovery in SACK's place",
    base.instead_of("xcp/sack_monitor", "XCP_dumb", drop="on_loss"),
    ["D-txt-beyond-a"],
    "a sender that halves its window at each loss starves",
)
study.control(
    "the path does not refuse",
    edit("off", accepts),
    ["D-txt-beyond-b"],
    "then the senders speak XTCP, and routers flag their packets",
)
study.control(
    "UDP that obeys no flags in the video's place",
    base.instead_of(VIDEO + "_xtcp", "greedy"),
    ["D-txt-beyond-c"],
    "a source that does not slow down leaves the others what it does not take",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """F against the loss rate."""
    lines = [
        Line.of(system, LOSSES, [base.fairness(data, system, loss) for loss in LOSSES]) for system in (SACK, MONITOR)
    ]
    return [Panel("Fairness ratio", "loss rate (%)", "lossy / loss-free throughput", lines)]
