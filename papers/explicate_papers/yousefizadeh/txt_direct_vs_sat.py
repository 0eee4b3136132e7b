"""Y-txt-direct-vs-sat: which protocol where (abstract and conclusion). Set-up: `base.py`.

On the way from the direct link to the satellite's the rate falls as the delay grows, and a run has as many round trips.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.statistics import Check, Sample, above, at_most, exceeds
from explicate_papers.study import Case, Data, Effort, Panel, Study
from explicate_papers.yousefizadeh import base, fig7
from explicate_papers.yousefizadeh.base import CLEAR_DB, SYSTEMS, TCP, VCP, XCP, packets

study = Study("Y-txt-direct-vs-sat")

COVERED_DB = 9.5
"""A decibel behind the ratio at which one coded block in a thousand is lost, with 1x2 antennas."""
FIRST, LAST = (54.0, 100.0), (2.0, 2000.0)
"""Rates in Mbit/s and round-trip times in ms of the two ends."""
Key = tuple[str, str, float]


def steps(effort: Effort) -> list[tuple[float, float]]:
    """Return rates and round-trip times from one end to the other, by equal factors."""
    count = effort.pick((9,), (5,))[0]
    return [
        (FIRST[0] * (LAST[0] / FIRST[0]) ** share, FIRST[1] * (LAST[1] / FIRST[1]) ** share)
        for share in (i / (count - 1) for i in range(count))
    ]


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """The clear direct link, the satellites, codes and no codes; the way between."""
    made: dict[Key, Case] = {}
    for system in SYSTEMS:
        made[system, "direct", 0] = base.case(effort, system, CLEAR_DB, antennas="1x2", beta=base.BETA_12)
        made[system, "satellite", 0] = base.satellite(effort, system)
        for name, fec in (("coded", (0.9, 0.5)), ("uncoded", (1.0, 1.0))):
            made[system, name, 0] = base.case(effort, system, COVERED_DB, antennas="1x2", beta=base.BETA_12, fec=fec)
    for system in (XCP, VCP):
        for mbps, rtt_ms in steps(effort):
            longer = replace(effort, seconds=min(effort.seconds * rtt_ms / FIRST[1], base.MEASURED_S))
            made[system, "between", mbps] = base.case(
                longer, system, CLEAR_DB, antennas="2x2", fec=(fig7.SHARE, 0.5), mbps=mbps,
                delay_ms=rtt_ms / 2 - base.WIRES_MS, two_way=False, sampling=("throughput",),
            )  # fmt: skip
    return made


@study.predicate("Y-txt-direct-vs-sat-a")
def direct(data: Data) -> Iterator[Check]:
    """XCP, VCP, TCP."""
    xcp, vcp, tcp = (packets(data, system, "direct", 0) for system in SYSTEMS)
    yield base.at_least_as_high("direct link, million packets: XCP and VCP", xcp, vcp)
    yield above(f"direct link, million packets: VCP over {TCP}", vcp, tcp)


@study.predicate("Y-txt-direct-vs-sat-b")
def satellite(data: Data) -> Iterator[Check]:
    """VCP, XCP, TCP."""
    xcp, vcp, tcp = (fig7.mean(data, (system, "satellite", 0)) for system in SYSTEMS)
    yield exceeds("satellites, mean utilisation: VCP over XCP", vcp, xcp)
    for name, one in ((XCP, xcp), (VCP, vcp)):
        yield exceeds(f"satellites, mean utilisation: {name} over {TCP}", one, tcp)


@study.predicate("Y-txt-direct-vs-sat-c", share=0.5)
def without_codes(data: Data, share: float) -> Iterator[Check]:
    """All suffer."""
    for system in SYSTEMS:
        left = packets(data, system, "uncoded", 0) / packets(data, system, "coded", 0)
        yield at_most(f"{system} at {COVERED_DB:g} dB: delivered without codes over with", left, share)


def used(data: Data, system: str, mbps: float) -> Sample:
    """Return the share of the line that is in use in the last three quarters of a run."""
    frames = base.used(data, (system, "between", mbps), fig7.SHARE, mbps)
    return Sample.of(metrics.mean(base.after(frame, frame["time_s"][-1] / 4)) for frame in frames)


def lead(data: Data, mbps: float) -> Sample:
    """Return how much more XCP uses than VCP."""
    return used(data, XCP, mbps) - used(data, VCP, mbps)


@study.predicate("Y-txt-direct-vs-sat-d")
def ends_have_their_leaders(data: Data) -> Iterator[Check]:
    """XCP leads where the product comes from bandwidth, VCP where it comes from delay."""
    grid = steps(data.effort)
    told = ", ".join(f"{mbps:.3g} Mbit/s {lead(data, mbps).mean:+.3f}" for mbps, _ in grid)
    (wide, _), *_, (long, _) = grid
    name = "mean utilisation at"
    yield exceeds(f"{name} {wide:g} Mbit/s: XCP over VCP", used(data, XCP, wide), used(data, VCP, wide))
    yield exceeds(f"{name} {long:g} Mbit/s: VCP over XCP ({told})", used(data, VCP, long), used(data, XCP, long))


def vcp_for_xcp(label: Key) -> Key:
    """Return the label with VCP in XCP's place."""
    return VCP if label[0] == XCP else label[0], *label[1:]


def coded(label: Key) -> Key:
    """Return the label of the run with codes for the one without."""
    system, name, value = label
    return (system, "coded", value) if name == "uncoded" else label


study.control(
    "XCP and VCP exchanged", exchange(XCP, VCP), ["Y-txt-direct-vs-sat-a", "Y-txt-direct-vs-sat-b"],
    "Each is said to lead where the other does not.",
)  # fmt: skip
study.control(
    "codes and no codes exchanged", exchange("coded", "uncoded"), ["Y-txt-direct-vs-sat-c"],
    "With codes nothing is halved.",
)  # fmt: skip
study.control(
    "codes for all", Place("flat", coded), ["Y-txt-direct-vs-sat-c"],
    "With codes nothing is halved: none delivers half of what it delivers.",
)  # fmt: skip
study.control(
    "VCP in XCP's place", Place("protocol", vcp_for_xcp), ["Y-txt-direct-vs-sat-d"],
    "One protocol has no lead over itself, so that no sign changes.",
)  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Both on the way between, and all systems at its ends."""
    way = steps(data.effort)
    lines = [
        base.line(system, [rtt_ms for _, rtt_ms in way], [used(data, system, mbps) for mbps, _ in way])
        for system in (XCP, VCP)
    ]
    places = ("coded", "uncoded", "direct")
    direct = [
        base.line(system, [1.0, 2.0, 3.0], [packets(data, system, place, 0) for place in places]) for system in SYSTEMS
    ]
    far = [base.line(system, [1.0], [fig7.mean(data, (system, "satellite", 0))]) for system in SYSTEMS]
    return [
        Panel("From rate to delay", "round-trip time (ms)", "utilisation", lines, log="x"),
        Panel(
            "Direct link", "signal and code", "delivered packets (million in 990 s)", direct,
            names=(f"{COVERED_DB:g} dB, code", f"{COVERED_DB:g} dB, no code", "30 dB"),
        ),
        Panel("Satellites", "", "mean utilisation", far, names=("satellites",)),
    ]  # fmt: skip
