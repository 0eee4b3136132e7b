"""Common set-up of paper N's experiments: a chain of 802.11a radios, RTS and CTS for every frame, kernel losses.

    n1 --- n2 --- n3 --- n4        flows n1 -> n2, n1 -> n3, n1 -> n4, one at a time

Packets have 1500 bytes, receivers acknowledge every other one, all clocks tick. KB are 1000 bytes of IP at the
receiver. ``choices.toml`` has the parameters that the text leaves out, such as the distance of the radios (N-P22), the
change of the level from run to run and over time (N-P9), and an interferer (N-P23).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from explicate.results import Results
from explicate.scenario import Scenario
from explicate_papers import metrics
from explicate_papers.statistics import SHARE, Check, Sample, number
from explicate_papers.study import Case, Data, Effort, Label

TCP, XCP, XCP_NO_SACK = "sack", "xcp", "xcp without sack"
KERNEL, RATE_HALVING = "xcp_linux24", {"rate halving": "kept", "rate halving, cut": "cut"}
"""XCP's sender of Linux 2.4, and the values of N-P4 with which it is used: feedback of less than a packet in it."""
TOLD, TUNED = 54.0, 24.0
"""Configured capacities of XCP's routers, Mbit/s: the default and the setting that was tuned by hand."""
NO_LOSS_AT = 0.003
"""The place of a loss rate of 0 on a logarithmic axis in percent."""
LINK = "link"
"""The label of the link test: TCP alone on the first hop, no injected loss."""
Table = dict[str, Any]
"""A table of a scenario: a medium, a link's channel, a group of flows."""


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    every = [float(word) for word in effort.choices["N-P5"].split()]
    return effort.pick(every, [loss for loss in every if loss not in {0.025, 0.05}])


def spacing(effort: Effort) -> str:
    """Return the distance of neighbours: a level N-P22 above that of 54 Mbit/s, which is 17 dB above that at 250 m."""
    margin_db = float(effort.choices["N-P22"].removesuffix("dB"))
    return f"{250 * 10 ** (-(17 + margin_db) / 40):.1f}m"


def interferer(effort: Effort) -> list[Table]:
    """Return the radio of another network (N-P23), too far to be sensed: frames during its bursts are lost."""
    if effort.choices["N-P23"] == "none":
        return []
    on, off, x, y = effort.choices["N-P23"].split()
    return [{"at": [x, y], "on": on, "off": off, "random": True}]


def air(
    effort: Effort,
    layout: str,
    stations: int,
    capacity: float = TOLD,
    *,
    overrides: Sequence[Table] = (),
    steady: bool = False,
) -> Table:
    """Return the medium: radios in a `layout`, `capacity` of their routers, Mbit/s; `steady` without noise.

    `overrides` are tables of stations with separate settings.
    """
    choices = effort.choices
    arf_up, arf_down = map(int, choices["N-P24"].split())
    level = choices["N-P9"]
    noise = {"errors": "snr", "shadowing": level, "drift": level, "coherence": choices["N-P10"]}
    others = {} if steady else {"interferer": interferer(effort)}
    return {
        "name": "air", "rate": "54Mbit/s", "rts_threshold": "0B", "burst": choices["N-P3"],
        "adaptation": choices["N-P12"], "arf_up": arf_up, "arf_down": arf_down, **({} if steady else noise),
        "queue": _queue(choices["N-P7"]), "capacity": f"{capacity:g}Mbit/s", "clock_tick": choices["N-P11"],
        "layout": {"kind": layout, "stations": stations, "spacing": spacing(effort)},
        **{key: entries for key, entries in {"station": overrides, **others}.items() if entries},
    }  # fmt: skip


def _queue(limit: float | str) -> Table:
    return {"kind": "droptail", "limit": f"{limit}pkt"}


def lost(effort: Effort, percent: float, **keys: Any) -> Table:
    """Return the channel that loses packets (N-P6) in the kernel, one by one by default; `keys` change that."""
    return {"kind": "random_loss", "rate": f"{percent:g}%", "place": "kernel", "of": effort.choices["N-P6"], **keys}


def kernel(effort: Effort, names: Sequence[str], loss: float = 0.0, model: Table | None = None) -> list[Table]:
    """Return the channels of kernels on some links: they delay packets and lose `loss` percent of them."""
    mean, uniform = effort.choices["N-P2"], lost(effort, loss)
    channel = [model or uniform] if loss or model else []
    if mean != "0ms":
        channel.append({"kind": "jitter", "mean": mean, "spread": 0, "keep_order": True})
    return [{"name": name, "channel": channel} for name in names]


def flows(
    effort: Effort,
    protocol: str,
    ends: tuple[Sequence[str], str],
    *,
    name: str = "bulk",
    count: int = 1,
    params: Mapping[str, Any] | None = None,
) -> Table:
    """Return bulk flows from the first ends to the second; N-P26 has the processing time of hosts."""
    choices = effort.choices
    values: dict[str, Any] = {
        "receiver_window": int(choices["N-P8"]),
        "clock_tick": choices["N-P11"],
        "ack_every": 2,
        "quick_acks": int(choices["N-P20"]),
    }
    without_sack, sender = protocol == XCP_NO_SACK, XCP
    if protocol.startswith(XCP):
        if fractions := RATE_HALVING.get(choices["N-P4"]):
            sender, values["fractions"] = KERNEL, fractions
        else:
            values["on_loss"] = choices["N-P4"]
        protocol = sender
    if without_sack:
        protocol = f"{sender}/{choices['N-P29']}"
    else:
        values["lost_retransmission"] = choices["N-P19"]
    return {
        "name": name, "count": count, "protocol": protocol, "packet": "1500B", "from": ends[0], "to": [ends[1]],
        "params": {**values, **(params or {})}, "processing": choices["N-P26"],
        "start": {"uniform": choices["N-P13"]} if count > 1 and choices["N-P13"] != "0s" else "0s",
    }  # fmt: skip


def empty(name: str, seconds: float, every: str = "") -> Scenario:
    """Return a scenario without a network; `every` so often everything is sampled, throughput alone once a second."""
    made = Scenario(name, duration=f"{seconds:g}s", warmup="0s")
    return made.sampling(every or "1s", ["throughput", "queue", "cwnd"] if every else ["throughput"])


def over_air(
    made: Scenario, medium: Table, links: Sequence[Table], groups: Sequence[Table], trace: str | None = None
) -> Case:
    """Return the scenario with a medium, the kernels' channels on its links, and groups of flows."""
    made = made.add("medium", **medium)
    for link in links:
        made = made.link(**link)
    for group in groups:
        made = made.add("flows", **group)
    return Case(made.to_toml(), trace=trace)


def chain(
    effort: Effort,
    protocol: str,
    loss: float = 0.0,
    *,
    capacity: float = TOLD,
    ends: tuple[int, int] = (1, 2),
    seconds: float | None = None,
    every: str = "",
    model: Table | None = None,
    params: Mapping[str, Any] | None = None,
    trace: str | None = None,
    more: Sequence[Table] = (),
) -> Case:
    """Return one flow along the chain; `loss` in percent on every link; `more` are further groups of flows."""
    first, last = ends
    links = [f"n{a}->n{b}" for i in range(first, last) for a, b in ((i, i + 1), (i + 1, i))]
    return over_air(
        empty("paper-N", seconds or effort.seconds, every),
        air(effort, "chain", last, capacity),
        kernel(effort, links, loss, model),
        [flows(effort, protocol, ([f"n{first}"], f"n{last}"), params=params), *more],
        trace,
    )


def link_test(effort: Effort, hop: int = 1) -> Case:
    """Return the test of one hop that the paper makes before everything else."""
    return chain(effort, TCP, ends=(hop, hop + 1))


def wired(
    effort: Effort,
    protocol: str,
    *,
    rate: float = 24.0,
    believed: float | None = None,
    rtt_ms: float = 12.0,
    queue: int | None = None,
    channel: Sequence[Table] = (),
    back: Sequence[Table] = (),
    back_rate: float | None = None,
    count: int = 1,
    seconds: float | None = None,
    every: str = "",
    params: Mapping[str, Any] | None = None,
    tick: str | None = None,
) -> Case:
    """Return flows over one full-duplex wire of `rate` Mbit/s, whose router is configured with `believed`."""
    tick = effort.choices["N-P11"] if tick is None else tick
    fast: Table = {"rate": "1000Mbit/s", "delay": "0.1ms"}
    slow: Table = {
        "delay": f"{rtt_ms / 2 - 0.1:g}ms", "queue": _queue(effort.choices["N-P7"] if queue is None else queue),
        "clock_tick": tick,
    }  # fmt: skip
    made = (
        empty("paper-N-wired", seconds or effort.seconds, every)
        .link("s", "r", **fast)
        .link("r", "s", **fast)
        .link(
            "r", "d", rate=f"{rate:g}Mbit/s", **slow, channel=channel or None,
            capacity=None if believed is None else f"{believed:g}Mbit/s",
        )
        .link("d", "r", rate=f"{rate if back_rate is None else back_rate:g}Mbit/s", **slow, channel=back or None)
    )  # fmt: skip
    group = flows(effort, protocol, (["s"], "d"), count=count, params={"clock_tick": tick, **(params or {})})
    return Case(made.add("flows", **group).to_toml())


WIRE, BACK = "r->d", "d->r"


def calm(content: dict[str, Any]) -> None:
    """Let the channel of the air never change, without an interferer: a control."""
    (medium,) = content["medium"]
    for key in ("errors", "shadowing", "drift", "coherence", "interferer"):
        medium.pop(key, None)


def lossless(label: Any) -> Any:
    """Return the label of the same system without loss: the sweep of figures 3 to 5 kept flat, a control."""
    return (label[0], 0.0, *label[2:]) if isinstance(label, tuple) else label


# ------------------------------------------------------------------------------------------------ measures


def kilobytes(results: Results) -> float:
    """Return the throughput at the receivers, KB/s."""
    return metrics.total(results, "throughput_bps") / 8e3


def goodput(results: Results) -> float:
    """Return the goodput at the receivers, without retransmissions, KB/s."""
    return metrics.total(results, "goodput_bps") / 8e3


def drops(results: Results) -> float:
    """Return the packets that queues refused."""
    return float(results.links["drops_overflow"].sum())


def queue(results: Results) -> float:
    """Return the mean queue of the first radio, packets."""
    return metrics.link(results, "n1->n2", "queue_mean_packets")


def wire_use(results: Results) -> float:
    """Return the share of the wire that is used."""
    return metrics.link(results, WIRE, "utilisation")


def wire_queue(results: Results) -> float:
    """Return the mean queue of the wire, packets."""
    return metrics.link(results, WIRE, "queue_mean_packets")


def window(results: Results, start_s: float = 0.0, flow: str = "bulk.0") -> pl.DataFrame:
    """Return a flow's window over time, packets."""
    return metrics.series(results, flow, "cwnd", start_s)


def unrest(results: Results) -> float:
    """Return the coefficient of variation of the window, the first second left out."""
    return metrics.variation(window(results, 1.0))


def kilobytes_of_bulk(results: Results) -> float:
    """Return the throughput of the judged flow at its receiver, KB/s."""
    return metrics.total(results, "throughput_bps", "bulk") / 8e3


def rate(data: Data, *label: Label) -> Sample:
    """Return the throughput of a case, KB/s."""
    return data.measure(label, kilobytes)


def hop_capacity(data: Data) -> float:
    """Return the throughput of the link test, KB/s, mean over its runs."""
    return data.measure(LINK, kilobytes).mean


def spread(rates: Sample) -> Sample:
    """Return (high - low) / mean of three runs, for each three that follow each other."""
    values = rates.values
    triples = [values[i : i + 3] for i in range(0, len(values) - 2, 3)]
    return Sample.of((max(three) - min(three)) / fmean(three) for three in triples)


def seed(data: Data, label: Label, run: int = 0) -> int:
    """Return the seed of a run that is drawn."""
    return data.runs(label)[run].seed


# ------------------------------------------------------------------------------------------------ checks


def ratio_at_least(what: str, part: Sample, whole: Sample, least: float) -> Check:
    """Check that the mean of `part` is `least` times that of `whole` or more; the sample is the excess above that."""
    over = part - whole * least
    return Check(what, _ratio(part, whole), f"≥ {number(least)}", over.mean >= 0, over, (0.0,))


def ratio_at_most(what: str, part: Sample, whole: Sample, most: float) -> Check:
    """Check that the mean of `part` is `most` times that of `whole` or less."""
    over = part - whole * most
    return Check(what, _ratio(part, whole), f"≤ {number(most)}", over.mean <= 0, over, (0.0,))


def ratio_between(what: str, part: Sample, whole: Sample, low: float, high: float) -> tuple[Check, Check]:
    """Check that the mean of `part` over that of `whole` lies from `low` to `high`."""
    return ratio_at_least(what, part, whole, low), ratio_at_most(what, part, whole, high)


def not_below(what: str, high: Sample, low: Sample, factor: float = 1.0) -> Check:
    """Check that `high` is `factor` times `low` or more, for the means and for most seeds."""
    difference = high - low * factor
    share = difference.share(lambda value: value >= 0)
    measured = f"{high} against {low}, in {share:.0%} of the seeds"
    wanted = "as much or more" if factor == 1 else f"× {number(factor)} or more"
    return Check(what, measured, wanted, difference.mean >= 0 and share >= SHARE, difference, (0.0,))


def _ratio(part: Sample, whole: Sample) -> str:
    over = part.mean / whole.mean if whole.mean else float("nan")
    return f"{number(over)} ({part} over {whole})"
