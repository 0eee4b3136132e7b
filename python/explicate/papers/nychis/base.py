"""What paper N's experiments share: a chain of 802.11a radios, RTS and CTS for every frame, losses in the kernels.

    n1 --- n2 --- n3 --- n4        flows n1 -> n2, n1 -> n3, n1 -> n4, one at a time

Packets have 1500 bytes, receivers acknowledge every other one, all clocks tick. KB are 1000 bytes of IP at the
receiver. What the text leaves out is in ``choices.toml``. XCP without SACK has Reno's recovery: with NewReno's it
carries 97 % at 0.1 % loss, where the study that wrote the implementation saw it fall. The radios stand so that the
level between neighbours is 3 dB above what 54 Mbit/s need, and change from run to run and over time (N-P9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from explicate.papers import metrics
from explicate.papers.statistics import Sample
from explicate.papers.study import Case, Data, Effort, Label
from explicate.results import Results
from explicate.source import value_text

TCP, XCP, XCP_NO_SACK = "sack", "xcp", "xcp/reno"
TOLD, TUNED = 54.0, 24.0
"""What XCP's routers are told to have, Mbit/s: the default and the setting that was tuned by hand."""
MARGIN_DB = 3.0
SPACING_M = 250 * 10 ** (-(17 + MARGIN_DB) / 40)
"""54 Mbit/s need 17 dB more than what 250 m leave; the level falls with the fourth power of the distance."""
INTERFERER = '[[medium.interferer]]\nat = ["40m", "150m"]\non = "10ms"\noff = "1s"\nrandom = true\n'
"""Somebody else's radio, too far to be sensed: what it meets is lost, so that no hop is quite without loss."""
LINK = "link"
"""The label of the link test: TCP alone on the first hop, no injected loss."""


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    every = [float(word) for word in effort.choices["N-P5"].split()]
    return effort.pick(every, [loss for loss in every if loss not in {0.025, 0.05}])


def air(effort: Effort, layout: str, capacity: float = TOLD, more: str = "", *, steady: bool = False) -> str:
    """Return the medium: radios in a `layout`, whose routers believe in `capacity`, Mbit/s; `steady` without noise."""
    choices = effort.choices
    noise = f"""errors = "snr"
shadowing = "{choices["N-P9"]}"
drift = "{choices["N-P9"]}"
coherence = "{choices["N-P10"]}"
"""
    return (
        '[[medium]]\nname = "air"\nrate = "54Mbit/s"\nrts_threshold = "0B"\n'
        f'burst = "{choices["N-P3"]}"\nadaptation = "{choices["N-P12"]}"\narf_down = 3\n{"" if steady else noise}'
        f'queue = {{ kind = "droptail", limit = "{choices["N-P7"]}pkt" }}\n'
        f'capacity = "{capacity:g}Mbit/s"\nclock_tick = "{choices["N-P11"]}"\nlayout = {layout}\n'
        f"{more}{'' if steady else INTERFERER}"
    )


def kernel(effort: Effort, names: Sequence[str], loss: float = 0.0, model: str = "") -> str:
    """Return what kernels do to the packets of some links: they keep them a while and lose `loss` percent of them."""
    mean = effort.choices["N-P2"]
    delay = [f'{{ kind = "jitter", mean = "{mean}", spread = 0, keep_order = true }}'] if mean != "0ms" else []
    uniform = f'{{ kind = "random_loss", rate = "{loss:g}%", place = "kernel", of = "{effort.choices["N-P6"]}" }}'
    lost = [model or uniform] if loss or model else []
    return "\n".join(f'[[link]]\nname = "{name}"\nchannel = [{", ".join([*lost, *delay])}]' for name in names)


def flows(
    effort: Effort,
    protocol: str,
    ends: tuple[Sequence[str], str],
    *,
    name: str = "bulk",
    count: int = 1,
    params: Mapping[str, Any] | None = None,
) -> str:
    """Return bulk flows from the first ends to the second."""
    choices = effort.choices
    values: dict[str, Any] = {
        "receiver_window": int(choices["N-P8"]),
        "clock_tick": choices["N-P11"],
        "ack_every": 2,
        "quick_acks": int(choices["N-P20"]),
    }
    if protocol.startswith(XCP):
        values["on_loss"] = choices["N-P4"]
    if protocol != XCP_NO_SACK:
        values["lost_retransmission"] = choices["N-P19"]
    start = f'{{ uniform = "{choices["N-P13"]}" }}' if count > 1 and choices["N-P13"] != "0s" else '"0s"'
    return (
        f'[[flows]]\nname = "{name}"\ncount = {count}\nprotocol = "{protocol}"\npacket = "1500B"\n'
        f"from = {value_text(list(ends[0]))}\nto = {value_text([ends[1]])}\n"
        f"params = {value_text({**values, **(params or {})})}\nstart = {start}"
    )


def scenario(name: str, seconds: float, parts: Sequence[str], *, every: str = "", warmup: float = 0.0) -> str:
    """Return the whole scenario; `every` so often everything is sampled, throughput alone once a second."""
    head = f'name = "{name}"\nduration = "{seconds:g}s"\nwarmup = "{warmup:g}s"'
    what = '["throughput", "queue", "cwnd"]' if every else '["throughput"]'
    sampling = f'[sampling]\nevery = "{every or "1s"}"\nof = {what}'
    return "\n\n".join([head, sampling, *parts]) + "\n"


def chain(
    effort: Effort,
    protocol: str,
    loss: float = 0.0,
    *,
    capacity: float = TOLD,
    ends: tuple[int, int] = (1, 2),
    seconds: float | None = None,
    every: str = "",
    seeds: int | None = None,
    model: str = "",
    params: Mapping[str, Any] | None = None,
) -> Case:
    """Return one flow along the chain; `loss` in percent on every link."""
    first, last = ends
    links = [f"n{a}->n{b}" for i in range(first, last) for a, b in ((i, i + 1), (i + 1, i))]
    layout = f'{{ kind = "chain", stations = {last}, spacing = "{SPACING_M:.1f}m" }}'
    parts = [
        air(effort, layout, capacity),
        kernel(effort, links, loss, model),
        flows(effort, protocol, ([f"n{first}"], f"n{last}"), params=params),
    ]
    return Case(scenario("paper-N", seconds or effort.seconds, parts, every=every), seeds=seeds)


def link_test(effort: Effort, seeds: int | None = None, hop: int = 1) -> Case:
    """Return the test of one hop that the paper makes before everything else."""
    return chain(effort, TCP, ends=(hop, hop + 1), seeds=seeds)


def wired(
    effort: Effort,
    protocol: str,
    *,
    rate: float = 24.0,
    believed: float | None = None,
    rtt_ms: float = 12.0,
    queue: int | None = None,
    channel: str = "",
    back: str = "",
    back_rate: float | None = None,
    count: int = 1,
    seconds: float | None = None,
    every: str = "",
    seeds: int | None = None,
    params: Mapping[str, Any] | None = None,
    tick: str | None = None,
) -> Case:
    """Return flows over one full-duplex wire of `rate` Mbit/s, whose router believes in `believed`."""
    tick = effort.choices["N-P11"] if tick is None else tick
    limit = effort.choices["N-P7"] if queue is None else queue
    tail = f'queue = {{ kind = "droptail", limit = "{limit}pkt" }}\nclock_tick = "{tick}"\n'

    def wire(a: str, b: str, mbps: float, delay_ms: float, more: str = "") -> str:
        return f'[[link]]\nfrom = "{a}"\nto = "{b}"\nrate = "{mbps:g}Mbit/s"\ndelay = "{delay_ms:g}ms"\n{more}'

    def lossy(what: str) -> str:
        return f"channel = [{what}]\n" if what else ""

    told = f'capacity = "{believed:g}Mbit/s"\n' if believed is not None else ""
    parts = [
        *(f'[[node]]\nname = "{node}"' for node in ("s", "r", "d")),
        wire("s", "r", 1000, 0.1),
        wire("r", "s", 1000, 0.1),
        wire("r", "d", rate, rtt_ms / 2 - 0.1, told + tail + lossy(channel)),
        wire("d", "r", rate if back_rate is None else back_rate, rtt_ms / 2 - 0.1, tail + lossy(back)),
        flows(effort, protocol, (["s"], "d"), count=count, params={"clock_tick": tick, **(params or {})}),
    ]
    return Case(scenario("paper-N-wired", seconds or effort.seconds, parts, every=every), seeds=seeds)


WIRE, BACK = "r->d", "d->r"

# ------------------------------------------------------------------------------------------------ measures


def kilobytes(results: Results) -> float:
    """Return what the receivers got, KB/s."""
    return metrics.total(results, "throughput_bps") / 8e3


def goodput(results: Results) -> float:
    """Return what the receivers got without retransmissions, KB/s."""
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


def rate(data: Data, *label: Label) -> Sample:
    """Return the throughput of a case, KB/s."""
    return data.measure(label, kilobytes)


def hop_capacity(data: Data) -> float:
    """Return what the link test carries, KB/s, mean over its runs."""
    return data.measure(LINK, kilobytes).mean


def spread(values: Sequence[float]) -> float:
    """Return (high - low) / mean of three runs, averaged over all neighbouring triples of `values`."""
    count = len(values)
    triples = [[values[i], values[(i + 1) % count], values[(i + 2) % count]] for i in range(count)]
    return fmean((max(three) - min(three)) / fmean(three) for three in triples)
