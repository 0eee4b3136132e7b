"""Common set-up of paper Y's experiments: two platforms, ten flows each way, and a radio link between their gateways.

    a0 ... a9 --- A ~~~ radio ~~~ B --- b0 ... b9             one link of 54 Mbit/s and 80 ms
    a0 ... a9 --- A ~~~ satellite ~~~ B --- b0 ... b9         two links of 2 Mbit/s and 0.5 s in series

A wire has twice the radio's rate and 8 ms. `choices.toml` has the parameters that the text leaves open: the recovery of
losses under XCP and VCP, sessions and their starts, and the place and capacity of controllers. An acknowledgement has
40 bytes in the paper; here it has 52, with a congestion header 72.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl

from explicate.results import Results
from explicate.scenario import Scenario
from explicate_papers import metrics
from explicate_papers.statistics import SHARE, Check, Sample
from explicate_papers.study import Case, Data, Effort, Label, Line

XCP, VCP, TCP, DROPTAIL = "XCP", "VCP", "TCP+REM", "TCP"
SYSTEMS = (XCP, VCP, TCP)
ANTENNAS = ("1x1", "2x1", "1x2", "2x2")
BETA_8, BETA_12 = 0.875, 0.91667
"""Bad bursts of 8 and of 12 bits."""
CLEAR_DB = 30.0
"""No coded packet is lost here, whatever the antennas."""
PACKET = 1040
MBPS, DELAY_MS = 54.0, 80.0
SAT_MBPS, SAT_MS, SAT_HOPS = 2.0, 500.0, 2
WIRES_MS = 16.0
WARMUP_S, MEASURED_S = 10.0, 990.0
"""The time that the paper excludes from its statistics, and its unit."""
FORTH, BACK = "r1->r2", "r2->r1"
EVERY_PORT, LINE_RATE, WITH_DROPS = "every port", "the line's rate", "lost by the radio or dropped by queues"
"""Values of Y-P22, Y-P21 and Y-P12 other than the ones in use."""
Flows = dict[str, Any]
"""A group of flows, as a scenario has it."""


def case(
    effort: Effort,
    system: str,
    snr: float,
    *,
    antennas: str = "1x1",
    beta: float = BETA_8,
    fec: tuple[float, float] = (0.9, 0.5),
    mbps: float = MBPS,
    delay_ms: float = DELAY_MS,
    hops: int = 1,
    two_way: bool = True,
    session: bool = True,
    sampling: Sequence[str] = (),
    losses: Sequence[Mapping[str, Any]] = (),
    more: Sequence[Flows] = (),
) -> Case:
    """Return the network with `system` on every flow.

    `fec` are the code rates of data and of acknowledgements, `sampling` are the variables recorded each second,
    `losses` are channels behind the fading one, `more` are further flows. Without `session` flows start within a second
    and do not stop.
    """
    choices = effort.choices
    rtt_ms = 2 * (hops * delay_ms + WIRES_MS)
    router = _router(choices, system, rtt_ms)
    fading = {
        "kind": "fading", "snr": f"{snr:g}dB", "antennas": antennas, "beta": beta, "code": choices["Y-P7"],
        "fec_data": _six_digits(fec[0]), "fec_ack": _six_digits(fec[1]),
    }  # fmt: skip
    made = (
        Scenario("paper-Y", duration=f"{effort.seconds:g}s", warmup=f"{WARMUP_S:g}s")
        .topology(
            "chain",
            hops=hops,
            pairs=20 if two_way else 10,
            access={
                "rate": f"{2 * mbps:g}Mbit/s", "delay": f"{WIRES_MS / 2:g}ms", "queue": "unlimited",
                "router": router if choices["Y-P22"] == EVERY_PORT else "none",
            },
            link={
                "rate": f"{mbps:g}Mbit/s", "delay": f"{delay_ms:g}ms",
                "capacity": f"{mbps * _told(choices, system, fec, two_way):.6g}Mbit/s",
                "queue": _queue(effort, system, mbps * rtt_ms), "router": router, "channel": [fading, *losses],
            },
        )
    )  # fmt: skip
    if sampling:
        made = made.sampling("1s", sampling)
    within = effort.seconds * float(choices["Y-P20"]) if session else 1
    bulk: Flows = {"count": 10, "start": {"uniform": f"{within:g}s"}}
    if session:
        bulk["session"] = effort.table("Y-P5")
    both = [group(effort, system, path, path, rtt_ms, **bulk) for path in ("long", "back")]
    for flows in (*both[: 1 + two_way], *more):
        made = made.add("flows", **flows)
    return Case(made.to_toml())


def satellite(effort: Effort, system: str, **changes: Any) -> Case:
    """Return figure 7's network over its 1000 s, with some `changes`."""
    effort = replace(effort, seconds=WARMUP_S + MEASURED_S)
    values = {"antennas": "2x2", "fec": (0.93, 0.5), "two_way": False, "sampling": ("throughput",), **changes}
    return case(effort, system, 30, mbps=SAT_MBPS, delay_ms=SAT_MS, hops=SAT_HOPS, **values)


def share(system: str, fec: tuple[float, float], two_way: bool) -> float:
    """Return the IP bytes in a byte of the line; `two_way` adds an acknowledgement for every data packet."""
    ack = (72 if system == XCP else 52) if two_way else 0
    return (PACKET + ack) / (PACKET / fec[0] + ack / fec[1])


def _told(choices: Mapping[str, str], system: str, fec: tuple[float, float], two_way: bool) -> float:
    """Return the configured capacity of controllers as a share of the line's rate."""
    return 1.0 if choices["Y-P21"] == LINE_RATE else share(system, fec, two_way)


def _six_digits(rate: float) -> float:
    return float(f"{rate:.6g}")


def _queue(effort: Effort, system: str, kilobits: float) -> dict[str, Any]:
    limit = round(float(effort.choices["Y-P4"].removesuffix("bdp")) * kilobits * 1000 / 8 / PACKET)
    rem = effort.table("Y-P8") if system == TCP else {}
    return {"kind": "rem" if rem else "droptail", "limit": f"{limit}pkt", **rem}


def _router(choices: Mapping[str, str], system: str, rtt_ms: float) -> str | dict[str, str]:
    if system == XCP:
        return {"kind": "xcp", "max_interval": choices["Y-P13"]}
    if system == VCP:
        return {"kind": "vcp", "t_rho": f"{_t_rho_ms(choices, rtt_ms):g}ms"}
    return "none"


def _t_rho_ms(choices: Mapping[str, str], rtt_ms: float) -> float:
    """Return VCP's control interval: its authors' value, or a round trip if that is longer."""
    return 200 if choices["Y-P14"].startswith("200ms") else max(200, math.ceil(rtt_ms))


def group(
    effort: Effort, system: str, name: str, path: str, rtt_ms: float = 2 * (DELAY_MS + WIRES_MS), **keys: Any
) -> Flows:
    """Return a group of a system's flows, with further `keys`. The text names Reno for TCP alone."""
    choices, recovery = effort.choices, effort.choices["Y-P18"]
    params: dict[str, Any] = {"initial_rto": choices["Y-P15"], **effort.table("Y-P23")}
    if system == VCP:
        scale = "t_d" if choices["Y-P14"].endswith("t_d") else "t_rho"
        params |= {**effort.table("Y-P9"), "t_rho": f"{_t_rho_ms(choices, rtt_ms):g}ms", "ai_scale": scale}
    if system == TCP:
        params["ecn"] = True
    return {
        "name": name, "protocol": {XCP: f"xcp/{recovery}", VCP: f"vcp/{recovery}"}.get(system, "reno/reno"),
        "packet": f"{PACKET}B", "path": path, "params": params, "processing": choices["Y-P19"], **keys,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------ measures


def delivered(results: Results) -> float:
    """Return the packets of data that came to their receivers both ways, in millions, in the time of the paper."""
    return metrics.total(results, "throughput_bps") / 8 / PACKET * MEASURED_S / 1e6


def radio_loss(results: Results) -> float:
    """Return the share of the data packets that the radios sent and lost; see `_lost_of_sent`."""
    return _lost_of_sent(results, "drops_channel_data")


def any_loss(results: Results) -> float:
    """Return the share of the data packets that the radios lost or their queues dropped; see `_lost_of_sent`."""
    return _lost_of_sent(results, "drops_channel_data", "drops_queue_data")


def congestion_loss(results: Results) -> float:
    """Return the share of the data packets that the radios' queues dropped; not a number without data packets."""
    dropped = _both(results, "drops_queue_data")
    sent = dropped + _both(results, "drops_channel_data") + _came(results)
    return dropped / sent if sent else math.nan


def _lost_of_sent(results: Results, *causes: str) -> float:
    """Return the data packets that were lost for these causes, of those and the ones that came to receivers.

    Where no connection is set up there are no data packets: 1 if the radios lost all that was sent.
    """
    lost = sum(_both(results, cause) for cause in causes)
    sent = lost + _came(results)
    if sent:
        return lost / sent
    return 1.0 if _both(results, "drops_channel") else math.nan


def _came(results: Results) -> float:
    """Return the data packets that came to receivers."""
    found = re.search(r'^duration = "([0-9.]+)s"', results.scenario, re.MULTILINE)
    if found is None:
        raise ValueError("the scenario has no duration in seconds")
    return metrics.total(results, "throughput_bps") / 8 / PACKET * (float(found[1]) - WARMUP_S)


def error_rate(data: Data, *label: Label) -> Sample:
    """Return the packet error rate of a case, as the choice Y-P12 has it."""
    return data.measure(label, any_loss if data.effort.choices["Y-P12"] == WITH_DROPS else radio_loss)


def drops(results: Results) -> float:
    """Return the packets that the radios' queues dropped."""
    return _both(results, "drops_overflow") + _both(results, "drops_early")


def queue(results: Results) -> float:
    """Return the mean queue of the two radios, packets."""
    return _both(results, "queue_mean_packets") / 2


def utilisation(results: Results) -> float:
    """Return the share of the direct link that IP bytes take, mean of both ways."""
    return _both(results, "utilisation") / 2


def _both(results: Results, column: str) -> float:
    return metrics.link(results, FORTH, column) + metrics.link(results, BACK, column)


def timeouts(results: Results) -> float:
    """Return the expired retransmission timers."""
    return metrics.total(results, "timeouts")


def radio(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fading channel of a scenario."""
    channel: dict[str, Any] = content["topology"]["link"]["channel"][0]
    return channel


def used(data: Data, label: Label, share: float, mbps: float = SAT_MBPS) -> list[pl.DataFrame]:
    """Return for each seed the share of the link there that is in use over time, in the bins of Y-P16.

    `share` is that of IP bytes on the line.
    """
    bin_s = float(data.effort.choices["Y-P16"].removesuffix("s"))
    end = ((pl.col("time_s") / bin_s - 1e-9).floor() + 1) * bin_s
    frames = [metrics.series(results, FORTH, "throughput_bps") for results in data.runs(label)]
    return [
        frame.group_by(end.alias("time_s"))
        .agg(pl.col("value").mean())
        .sort("time_s")
        .with_columns(pl.col("value") / (mbps * 1e6 * share))
        for frame in frames
    ]


def after(frame: pl.DataFrame, from_s: float) -> pl.DataFrame:
    """Return the part after a time."""
    return frame.filter(pl.col("time_s") > from_s)


def at_least_as_high(what: str, high: Sample, low: Sample) -> Check:
    """Check that `high` is not below `low`, for the mean and for most seeds."""
    difference = high - low
    share = difference.share(lambda value: value >= 0)
    measured = f"{high} against {low}, in {share:.0%} of the seeds"
    return Check(what, measured, "as much or more", difference.mean >= 0 and share >= SHARE, difference, (0.0,))


def crossing(x: Sequence[float], samples: Sequence[Sample], level: Sample | float) -> Sample:
    """Return for each seed where the values first come to `level`, rising, or falling if they begin above it."""
    levels = level.values if isinstance(level, Sample) else [level] * len(samples[0].values)
    return Sample.of(
        _crossing(x, [sample.values[seed] for sample in samples], goal) for seed, goal in enumerate(levels)
    )


def _crossing(x: Sequence[float], y: Sequence[float], goal: float) -> float:
    for (x0, y0), (x1, y1) in pairwise(zip(x, y, strict=True)):
        if (y0 < goal) != (y1 < goal):
            return x0 + (x1 - x0) * (goal - y0) / (y1 - y0)
    return math.nan


def packets(data: Data, *label: Label) -> Sample:
    """Return the delivered packets of a case."""
    return data.measure(label, delivered)


def line(name: str, x: Sequence[float], samples: Sequence[Sample]) -> Line:
    """Return the curve of the means, with a band if there are enough seeds for one."""
    if all(len(sample.values) >= 3 for sample in samples):
        return Line.of(name, x, samples)
    return Line(name, list(x), [sample.mean for sample in samples])
