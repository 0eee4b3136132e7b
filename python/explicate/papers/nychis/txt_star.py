"""N-txt-star: several flows through one node, and a narrow way back (section VI). Set-up: `base.py`.

Four stations send two flows each through a relay to a fifth; the same over a wire of what the relay carries. A wire of
10 Mbit/s whose way back has from a fifth of that to a hundredth; every packet is acknowledged. Whether XCP or TCP is
the fairer through the relay is chance: Jain's index of XCP less TCP's is 0.002 with ten seeds, -0.006 with twenty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate.papers import metrics
from explicate.papers.nychis import base
from explicate.papers.statistics import Check, above, at_least
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("N-txt-star")

SYSTEMS = {base.XCP: "XCP", base.TCP: "TCP"}
FLOWS = 8
RELAYED_MBPS = 12.0
"""What two hops carry."""
FORWARD_MBPS = 10.0
BACK = (5, 10, 20, 40, 60, 100)
"""The forward rate over that of the way back."""
ACK_SHARE = 1500 / 52
"""Where acknowledgements of every packet fill the way back."""


def star(effort: Effort, system: str) -> Case:
    """Return eight flows through the relay."""
    layout = f'{{ kind = "star", stations = 5, spacing = "{base.SPACING_M:.1f}m" }}'
    links = [name for i in range(1, 6) for name in (f"n{i}->n0", f"n0->n{i}")]
    parts = [
        base.air(effort, layout, base.TUNED),
        base.kernel(effort, links),
        base.flows(effort, system, ([f"n{i}" for i in range(1, 5)], "n5"), count=FLOWS),
    ]
    return Case(base.scenario("paper-N-star", effort.seconds, parts))


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
    return Check("Jain's index of XCP and TCP", f"{xcp}, {tcp}", "XCP's not less", xcp.mean >= tcp.mean)


@study.predicate("N-txt-star-b")
def the_air_limits_it(data: Data) -> Check:
    """Over a wire XCP is fairer."""
    air, wire = (data.measure((where, base.XCP), jain) for where in ("star", "wire"))
    return Check("Jain's index over the air and a wire", f"{air}, {wire}", "the air's not more", air.mean <= wire.mean)


@study.predicate("N-txt-star-c")
def narrow_back(data: Data) -> Iterator[Check]:
    """Below the share of acknowledgements the forward direction is under-used."""
    wide, narrow = ([back for back in BACK if (back > ACK_SHARE) == below] for below in (False, True))
    tcp = {back: data.measure(("back", base.TCP, back), base.wire_use) for back in BACK}
    for back in narrow:
        yield above(f"use by TCP, 1/{wide[-1]} over 1/{back} back", tcp[wide[-1]], tcp[back])
    for back in BACK:
        yield at_least(f"use by XCP, 1/{back} back", data.measure(("back", base.XCP, back), base.wire_use), 0.0)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Rates over the star, and use against the way back."""
    numbers = list(range(1, FLOWS + 1))
    shares = [
        Line(name, numbers, (data.runs(("star", system))[0].flows["throughput_bps"] / 8e3).to_list())
        for system, name in SYSTEMS.items()
    ]
    used = [
        Line.of(name, list(BACK), [data.measure(("back", system, back), base.wire_use) for back in BACK])
        for system, name in SYSTEMS.items()
    ]
    return [
        Panel("Star", "flow", "throughput (KB/s)", shares),
        Panel("Narrow way back", "forward rate over that back", "use", used, log="x"),
    ]
