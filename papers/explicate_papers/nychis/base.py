"""What paper N's experiments share: a chain of 802.11a radios, RTS and CTS for every frame, losses in the kernels.

    n1 --- n2 --- n3 --- n4        flows n1 -> n2, n1 -> n3, n1 -> n4, one at a time

Packets have 1500 bytes, receivers acknowledge every other one, all clocks tick. KB are 1000 bytes of IP at the
receiver. What the text leaves out is in ``choices.toml``: also how far the radios stand apart (N-P22), how the level
changes from run to run and over time (N-P9), and an interferer (N-P23).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import polars as pl

from explicate.results import Results
from explicate.source import value_text
from explicate_papers import metrics
from explicate_papers.statistics import SHARE, Check, Sample, number
from explicate_papers.study import Case, Data, Effort, Label

TCP, XCP, XCP_NO_SACK = "sack", "xcp", "xcp without sack"
TOLD, TUNED = 54.0, 24.0
"""What XCP's routers are told to have, Mbit/s: the default and the setting that was tuned by hand."""
LINK = "link"
"""The label of the link test: TCP alone on the first hop, no injected loss."""


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    every = [float(word) for word in effort.choices["N-P5"].split()]
    return effort.pick(every, [loss for loss in every if loss not in {0.025, 0.05}])


def spacing(effort: Effort) -> str:
    """Return how far neighbours stand apart: N-P22 above what 54 Mbit/s need, 17 dB more than what 250 m leave."""
    margin_db = float(effort.choices["N-P22"].removesuffix("dB"))
    return f"{250 * 10 ** (-(17 + margin_db) / 40):.1f}m"


def interferer(effort: Effort) -> str:
    """Return the radio of another network (N-P23), too far to be sensed: what it meets is lost."""
    if effort.choices["N-P23"] == "none":
        return ""
    on, off, x, y = effort.choices["N-P23"].split()
    return f'[[medium.interferer]]\nat = ["{x}", "{y}"]\non = "{on}"\noff = "{off}"\nrandom = true\n'


def processing(effort: Effort) -> str:
    """Return the line of a group of flows that says how long hosts take for a packet (N-P26)."""
    return f'processing = "{effort.choices["N-P26"]}"\n'


def air(effort: Effort, layout: str, capacity: float = TOLD, more: str = "", *, steady: bool = False) -> str:
    """Return the medium: radios in a `layout`, whose routers believe in `capacity`, Mbit/s; `steady` without noise."""
    choices = effort.choices
    arf_up, arf_down = choices["N-P24"].split()
    noise = f"""errors = "snr"
shadowing = "{choices["N-P9"]}"
drift = "{choices["N-P9"]}"
coherence = "{choices["N-P10"]}"
"""
    return (
        '[[medium]]\nname = "air"\nrate = "54Mbit/s"\nrts_threshold = "0B"\n'
        f'burst = "{choices["N-P3"]}"\nadaptation = "{choices["N-P12"]}"\n'
        f"arf_up = {arf_up}\narf_down = {arf_down}\n{'' if steady else noise}"
        f'queue = {{ kind = "droptail", limit = "{choices["N-P7"]}pkt" }}\n'
        f'capacity = "{capacity:g}Mbit/s"\nclock_tick = "{choices["N-P11"]}"\nlayout = {layout}\n'
        f"{more}{'' if steady else interferer(effort)}"
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
    if protocol == XCP_NO_SACK:
        protocol = f"xcp/{choices['N-P29']}"
    else:
        values["lost_retransmission"] = choices["N-P19"]
    start = f'{{ uniform = "{choices["N-P13"]}" }}' if count > 1 and choices["N-P13"] != "0s" else '"0s"'
    return (
        f'[[flows]]\nname = "{name}"\ncount = {count}\nprotocol = "{protocol}"\npacket = "1500B"\n'
        f"from = {value_text(list(ends[0]))}\nto = {value_text([ends[1]])}\n"
        f"params = {value_text({**values, **(params or {})})}\n{processing(effort)}start = {start}"
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
    model: str = "",
    params: Mapping[str, Any] | None = None,
    trace: str | None = None,
    more: Sequence[str] = (),
) -> Case:
    """Return one flow along the chain; `loss` in percent on every link; `more` are further parts of the scenario."""
    first, last = ends
    links = [f"n{a}->n{b}" for i in range(first, last) for a, b in ((i, i + 1), (i + 1, i))]
    layout = f'{{ kind = "chain", stations = {last}, spacing = "{spacing(effort)}" }}'
    parts = [
        air(effort, layout, capacity),
        kernel(effort, links, loss, model),
        flows(effort, protocol, ([f"n{first}"], f"n{last}"), params=params),
        *more,
    ]
    return Case(scenario("paper-N", seconds or effort.seconds, parts, every=every), trace=trace)


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
    channel: str = "",
    back: str = "",
    back_rate: float | None = None,
    count: int = 1,
    seconds: float | None = None,
    every: str = "",
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
    return Case(scenario("paper-N-wired", seconds or effort.seconds, parts, every=every))


WIRE, BACK = "r->d", "d->r"


def calm(_: Label, case: Case) -> Case:
    """Return a case over the air with a channel that never changes and no interferer: a control."""
    text = re.sub(r"^(errors|shadowing|drift|coherence) = .*\n", "", case.text, flags=re.MULTILINE)
    return replace(case, text=re.sub(r"^\[\[medium\.interferer\]\]\n(.+\n)*", "", text, flags=re.MULTILINE))


def lossless(label: Any) -> Any:
    """Return the label of the same system without loss: the sweep of figures 3 to 5 kept flat, a control."""
    return (label[0], 0.0, *label[2:]) if isinstance(label, tuple) else label


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


def kilobytes_of_bulk(results: Results) -> float:
    """Return what the receiver got of the flow that is watched, KB/s."""
    return metrics.total(results, "throughput_bps", "bulk") / 8e3


def rate(data: Data, *label: Label) -> Sample:
    """Return the throughput of a case, KB/s."""
    return data.measure(label, kilobytes)


def hop_capacity(data: Data) -> float:
    """Return what the link test carries, KB/s, mean over its runs."""
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
    """Check that the mean of `part` is `least` times that of `whole` or more; the sample is what it has above that."""
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
