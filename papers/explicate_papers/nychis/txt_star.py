"""N-txt-star: several flows through one node, and a narrow reverse path (section VI). Set-up: `base.py`.

Four stations send two flows each through a relay to a fifth; the same over a wire with the relay's capacity. A wire of
10 Mbit/s has a reverse path of a fifth of that to a hundredth; every packet is acknowledged. XCP's results over that
wire are reported with TCP's; there is no claim on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, above, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-star")

SYSTEMS = {base.XCP: "XCP", base.TCP: "TCP"}
OTHER = {base.XCP: base.TCP, base.TCP: base.XCP}
FLOWS = 8
RELAYED_MBPS = 12.0
"""The capacity of two hops."""
FORWARD_MBPS = 10.0
BACK = (5, 10, 20, 40, 60, 100)
"""The forward rate over that of the way back."""
ACK_SHARE = 1500 / 52
"""Where acknowledgements of every packet fill the way back."""


def star(effort: Effort, system: str) -> Case:
    """Return eight flows through the relay."""
    links = [name for i in range(1, 6) for name in (f"n{i}->n0", f"n0->n{i}")]
    return base.over_air(
        base.empty("paper-N-star", effort.seconds),
        base.air(effort, "star", 5, base.TUNED),
        base.kernel(effort, links),
        [base.flows(effort, system, ([f"n{i}" for i in range(1, 5)], "n5"), count=FLOWS)],
    )


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Stars, their wires, and asymmetric wires."""
    runs: dict[object, Case] = {}
    for system in SYSTEMS:
        runs["star", system] = star(effort, system)
        runs["wire", system] = base.wired(effort, system, rate=RELAYED_MBPS, count=FLOWS, rtt_ms=22)
        for back in BACK:
            runs["back", system, back] = base.wired(
                effort, system, rate=FORWARD_MBPS, back_rate=FORWARD_MBPS / back, rtt_ms=40, params={"ack_every": 1}
            )
    return runs


def jain(results: Results) -> float:
    """Return Jain's index of all flows."""
    return metrics.jain(results)


@study.predicate("N-txt-star-a")
def xcp_is_fairer(data: Data) -> Check:
    """The fairness controller should help."""
    xcp, tcp = (data.measure(("star", system), jain) for system in (base.XCP, base.TCP))
    return exceeds("Jain's index: XCP over TCP", xcp, tcp)


@study.predicate("N-txt-star-b")
def the_air_limits_it(data: Data) -> Check:
    """Over a wire XCP is fairer."""
    air, wire = (data.measure((where, base.XCP), jain) for where in ("star", "wire"))
    return base.not_below("XCP's Jain's index over a wire and over the air", wire, air)


@study.predicate("N-txt-star-c")
def narrow_back(data: Data) -> Iterator[Check]:
    """Below the share of acknowledgements the forward direction is under-used."""
    wide, narrow = ([back for back in BACK if (back > ACK_SHARE) == below] for below in (False, True))
    tcp, xcp = (
        {back: data.measure(("back", system, back), base.wire_use) for back in BACK} for system in (base.TCP, base.XCP)
    )
    for back in narrow:
        what = f"use by TCP, 1/{wide[-1]} over 1/{back} back (XCP: {xcp[wide[-1]]}, {xcp[back]})"
        yield above(what, tcp[wide[-1]], tcp[back])


study.control(
    "TCP for XCP",
    Place("exchange", lambda label: ("star", OTHER[label[1]]) if label[0] == "star" else label),
    ["N-txt-star-a"],
    "If XCP's fairness controller makes the difference, TCP in its place is the less fair.",
)
study.control(
    "wire for air",
    exchange("star", "wire"),
    ["N-txt-star-b"],
    "If 802.11 limits what XCP can add, the wire is the fairer.",
)
study.control(
    "ways back of 1/20 and 1/40 exchanged",
    exchange(20, 40),
    ["N-txt-star-c"],
    "The way back that holds all acknowledgements cannot be the one that slows the forward direction.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Rates over the star, and use against the way back."""
    numbers = list(range(1, FLOWS + 1))
    shares = [
        Line(name, numbers, (data.runs(("star", system))[0].flows["throughput_bps"] / 8e3).to_list(), points=True)
        for system, name in SYSTEMS.items()
    ]
    used = [
        Line.of(name, list(BACK), [data.measure(("back", system, back), base.wire_use) for back in BACK])
        for system, name in SYSTEMS.items()
    ]
    return [
        Panel(f"Star, seed {base.seed(data, ('star', base.XCP))}", "flow", "throughput (KB/s)", shares),
        Panel("Narrow way back", "forward rate over that back", "use", used, log="x"),
    ]
