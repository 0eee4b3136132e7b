"""Y-txt-ack: the benefit of a code for acknowledgements, and the cost of their loss (section III). See `base.py`.

The budget of the last claim is the line's time for a data packet and its acknowledgement in figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from explicate_papers.controls import Place, edit
from explicate_papers.statistics import Check, Sample, at_least, average, exceeds, near, total
from explicate_papers.study import Case, Data, Effort, Panel, Study
from explicate_papers.yousefizadeh import base
from explicate_papers.yousefizadeh.base import CLEAR_DB, PACKET, SYSTEMS, TCP, VCP, XCP, packets
from explicate_papers.yousefizadeh.radio import told

study = Study("Y-txt-ack")

ANTENNAS, DATA_RATE = "1x2", 0.9
AROUND = (8.0, 9.0, 10.0)
"""Ratios behind the transition of data, dB."""
FORCED = (1.0, 5.0, 10.0, 20.0)
"""Acknowledgements lost, percent."""
BLOCKS = {(40, 0.9): 4.3e-2, (1040, 0.9): 7.8e-12, (40, 1.0): 0.47, (1040, 1.0): 1.0}
"""The register's losses of blocks at 10 dB, by bytes and code rate."""
ACK_RATES = (1.0, 0.9, 0.7, 0.5, 0.4, 0.3)
Key = tuple[str, str, float, float]


def ack_bytes(system: str) -> int:
    """Return the length of an acknowledgement."""
    return 72 if system == XCP else 52


def within_budget(system: str, ack_rate: float) -> float:
    """Return the code rate of data that leaves acknowledgements this one."""
    ack = ack_bytes(system)
    return PACKET / (PACKET / DATA_RATE + ack / 0.5 - ack / ack_rate)


def rates(effort: Effort) -> Sequence[float]:
    """Return the code rates of acknowledgements that are compared at the same cost."""
    return effort.pick(ACK_RATES, (0.9, 0.7, 0.5, 0.4))


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """Weak and strong codes around the transition; losses forced where the radio has none; codes of the same cost."""
    made: dict[Key, Case] = {}
    for system in SYSTEMS:
        for rate in effort.pick((1.0, 0.9, 0.7, 0.5), (1.0, 0.5)):
            for snr in AROUND:
                made[system, "code", rate, snr] = base.case(
                    effort, system, snr, antennas=ANTENNAS, fec=(DATA_RATE, rate)
                )
        for percent in (0.0, *FORCED):
            lost = {"kind": "random_loss", "rate": f"{percent:g}%", "of": "acks"}
            made[system, "forced", 0.5, percent] = base.case(
                effort, system, CLEAR_DB, antennas=ANTENNAS, losses=[lost] if percent else ()
            )
    for system in (XCP, VCP):
        for rate in rates(effort):
            for snr in AROUND:
                fec = (within_budget(system, rate), rate)
                made[system, "budget", rate, snr] = base.case(effort, system, snr, antennas=ANTENNAS, fec=fec)
    return made


@study.predicate("Y-txt-ack-a", times=1.5)
def strong_code_helps(data: Data, times: float) -> Iterator[Check]:
    """Near the transition of data."""
    for system in (XCP, VCP):
        gain = {
            snr: packets(data, system, "code", 0.5, snr) / packets(data, system, "code", 1.0, snr) for snr in AROUND
        }
        best = max(gain, key=lambda snr: gain[snr].mean)
        yield at_least(f"{system} at {best:g} dB: delivered with rate 0.5 over rate 1", gain[best], times)


def drop(data: Data, system: str, percent: float) -> Sample:
    """Return the share of the packets that lost acknowledgements cost."""
    return 1 - packets(data, system, "forced", 0.5, percent) / packets(data, system, "forced", 0.5, 0.0)


@study.predicate("Y-txt-ack-b")
def who_minds(data: Data) -> Iterator[Check]:
    """XCP, VCP, TCP."""
    costs = {system: average([drop(data, system, percent) for percent in FORCED]) for system in SYSTEMS}
    for more, less in pairwise(SYSTEMS):
        yield exceeds(f"share that lost acknowledgements cost, mean: {more} over {less}", costs[more], costs[less])


@study.predicate("Y-txt-ack-c", deterministic=True, percent=5)
def short_blocks_are_weak(_: Data, percent: float) -> Iterator[Check]:
    """With a code of the same rate the short one is lost more, without a code the long one."""
    for (length, rate), value in BLOCKS.items():
        loss = told(length, snr=10, antennas=ANTENNAS, fec_data=rate)["packet_loss"]
        yield near(f"loss of {length} bytes, rate {rate:g}", Sample.of([loss]), value, percent / 100 * value)


@study.predicate("Y-txt-ack-d", least=0.9)
def parity_belongs_to_acknowledgements(data: Data, least: float) -> Iterator[Check]:
    """Of pairs of codes that cost the same, none with a weaker code for acknowledgements delivers clearly more."""
    for system in (XCP, VCP):
        sums = {
            rate: total(packets(data, system, "budget", rate, snr) for snr in AROUND) for rate in rates(data.effort)
        }
        told = ", ".join(
            f"{within_budget(system, rate):.3f} and {rate:g}: {one * (1 / 3)}" for rate, one in sums.items()
        )
        strong, weak = (
            max((one for rate, one in sums.items() if (rate < within_budget(system, rate)) == lower), key=_mean)
            for lower in (True, False)
        )
        what = f"{system}: most with the lower rate for acknowledgements, less {least:g} times most without ({told})"
        yield at_least(what, strong - least * weak, 0)


def _mean(sample: Sample) -> float:
    return sample.mean


def other_ack_code(label: Key) -> Key:
    """Return the label with the weak code for acknowledgements for the strong one, and vice versa."""
    system, kind, rate, value = label
    return (system, kind, {0.5: 1.0, 1.0: 0.5}.get(rate, rate), value) if kind == "code" else label


def strong_ack_code(label: Key) -> Key:
    """Return the label with the strong code for acknowledgements for the weak one."""
    system, kind, _, value = label
    return (system, kind, 0.5, value) if kind == "code" else label


def other_end(label: Key) -> Key:
    """Return the label with TCP for XCP, and vice versa, where losses are forced."""
    system, kind, rate, value = label
    return ({XCP: TCP, TCP: XCP}.get(system, system), kind, rate, value) if kind == "forced" else label


def other_code(content: dict[str, Any]) -> None:
    """Exchange the codes of data and of acknowledgements."""
    radio = base.radio(content)
    radio["fec_data"], radio["fec_ack"] = radio["fec_ack"], radio["fec_data"]


study.control(
    "strong and weak code of acknowledgements exchanged", Place("exchange", other_ack_code), ["Y-txt-ack-a"],
    "If the strong code brings half as much again, the weak one in its place does not.",
)  # fmt: skip
study.control(
    "the strong code for all acknowledgements", Place("flat", strong_ack_code), ["Y-txt-ack-a"],
    "One code brings no more than itself.",
)  # fmt: skip
study.control(
    "XCP and TCP exchanged", Place("exchange", other_end), ["Y-txt-ack-b"],
    "If lost acknowledgements cost XCP most and TCP least, the order is broken in each other's place.",
)  # fmt: skip
study.control(
    "codes of data and acknowledgements exchanged",
    edit("exchange", other_code, lambda label: label[1] == "budget"), ["Y-txt-ack-d"],
    "The parity of the short packets goes into the long ones, where it takes most of the line.",
)  # fmt: skip
study.cannot_fail("Y-txt-ack-c", "No network is run: four values of a formula stand beside the register's.")


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The cost of lost acknowledgements, and the benefit of a code."""
    cost = [base.line(one, FORCED, [drop(data, one, percent) * 100 for percent in FORCED]) for one in SYSTEMS]
    worth = [
        base.line(f"{system}, rate {rate:g}", AROUND, [packets(data, system, "code", rate, snr) for snr in AROUND])
        for system in SYSTEMS
        for rate in (0.5, 1.0)
    ]
    return [
        Panel("Lost acknowledgements", "acknowledgements lost (%)", "fewer packets delivered (%)", cost),
        Panel("Coded acknowledgements", "SNR of the good state (dB)", "delivered packets (million in 990 s)", worth),
    ]
