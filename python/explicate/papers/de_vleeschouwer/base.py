"""What paper D's experiments share: ten flows over a narrow link, half of them go on over a lossy one.

    s0 ... s9 --- n0 ---> n1 --- n2 (clean)
                           `---- n3 (lossy)

Every link has 5 Mbit/s and 20 ms. Sums of throughput are of bytes that left the bottleneck, as in the text: the bytes
that enter the two links behind it, whatever is lost on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from explicate.papers import metrics
from explicate.papers.statistics import Sample
from explicate.papers.study import Case, Data, Effort, Label
from explicate.results import Results
from explicate.source import value_text

RATE_MBPS = 5.0
WARMUP_S = 20.0
GRID = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 8.0, 10.0, 15.0, 20.0)
"""Loss rates, percent."""
PROCESSING = '{ kind = "jitter", mean = "0.8ms", keep_order = true, of = "data" }'
"""Random processing time of the hosts, up to one packet time of the bottleneck.

All rates are the same: without it packets arrive exactly when others leave, and one flow always finds room (the phase
effects of Floyd and Jacobson 1992, and their remedy). The paper does not say what its simulations did about that.
"""
QUICK_GRID = (0.0, 1.0, 2.0, 5.0, 10.0)
BOTTLENECK, CLEAN, LOSSY = "n0->n1", "n1->n2", "n1->n3"


def case(
    effort: Effort,
    protocol: str,
    loss_percent: float,
    *,
    clean: str | None = None,
    params: Mapping[str, Any] | None = None,
    burst: int = 1,
    queue: str | None = None,
    delay_ms: float = 20,
    seconds: float | None = None,
    trace: str | None = None,
) -> Case:
    """Return the paper's network with `protocol` for the lossy half, `clean` (by default the same) for the other."""
    choices = effort.choices
    limit = f'{{ kind = "droptail", limit = "{choices["D-P2"]}pkt" }}'
    text = [
        f'name = "paper-D"\nduration = "{seconds or effort.seconds:g}s"\nwarmup = "{WARMUP_S:g}s"',
        '[sampling]\nevery = "1s"\nof = ["throughput", "queue", "router", "flow"]',
        *(f'[[node]]\nname = "{node}"' for node in _nodes(choices)),
        *_links(choices, queue or limit, delay_ms),
        _refined(choices, loss_percent, burst),
        _flows(choices, "clean", clean or protocol, "n2", params),
        _flows(choices, "lossy", protocol, "n3", params),
    ]
    return Case("\n\n".join(text) + "\n", trace=trace)


def _sources(choices: Mapping[str, str]) -> list[str]:
    return [f"s{i}" for i in range(10)] if choices["D-P1"] == "3" else []


def _nodes(choices: Mapping[str, str]) -> list[str]:
    return [*_sources(choices), "n0", "n1", "n2", "n3"]


def _links(choices: Mapping[str, str], queue: str, delay_ms: float) -> list[str]:
    ends = [(source, "n0") for source in _sources(choices)] + [("n0", "n1"), ("n1", "n2"), ("n1", "n3")]
    made = []
    for a, b in ends:
        channel = f"\nchannel = [{PROCESSING}]" if a.startswith("s") else ""
        made.append(
            f'[[link]]\nfrom = "{a}"\nto = "{b}"\nduplex = true\nrate = "{RATE_MBPS:g}Mbit/s"\n'
            f'delay = "{delay_ms:g}ms"\nqueue = {queue}{channel}'
        )
    return made


def _refined(choices: Mapping[str, str], loss_percent: float, burst: int) -> str:
    if not loss_percent:
        return ""
    if burst == 1:
        channel = f'{{ kind = "random_loss", rate = "{loss_percent:g}%" }}'
    else:
        per_flow = value_text(choices["D-P15"] == "flow")
        channel = f'{{ kind = "burst_loss", rate = "{loss_percent:g}%", length = {burst}, per_flow = {per_flow} }}'
    made = f'[[link]]\nname = "{LOSSY}"\nchannel = [{channel}]'
    if choices["D-P4"] == "both":
        made += f'\n\n[[link]]\nname = "n3->n1"\nchannel = [{channel}]'
    return made


def _flows(choices: Mapping[str, str], name: str, protocol: str, sink: str, params: Mapping[str, Any] | None) -> str:
    sources = _sources(choices) or ["n0"]
    mine = sources[:5] if name == "clean" else sources[5:] or sources
    values = {"receiver_window": int(choices["D-P6"]), "min_rto": choices["D-P7"], **(params or {})}
    start = choices["D-P8"]
    start = '"0s"' if start == "0s" else f'{{ uniform = "{start}" }}'
    return (
        f'[[flows]]\nname = "{name}"\ncount = 5\nprotocol = "{protocol}"\npacket = "1000B"\n'
        f"from = {value_text(mine)}\nto = {value_text([sink])}\nparams = {value_text(values)}\nstart = {start}"
    )


def tcp(effort: Effort) -> str:
    """Return the paper's TCP."""
    return effort.choices["D-P16"]


# ------------------------------------------------------------------------------------------------ measures


def clean_mbps(results: Results) -> float:
    """Return what left the bottleneck for the clean link, Mbit/s."""
    return RATE_MBPS * metrics.link(results, CLEAN, "utilisation")


def lossy_mbps(results: Results) -> float:
    """Return what left the bottleneck for the lossy link, Mbit/s."""
    return RATE_MBPS * metrics.link(results, LOSSY, "utilisation")


def ratio(results: Results) -> float:
    """Return the fairness ratio F: the sum of the lossy flows' throughput over that of the loss-free ones."""
    return lossy_mbps(results) / clean_mbps(results)


def utilisation(results: Results) -> float:
    """Return the share of the bottleneck that is used."""
    return metrics.link(results, BOTTLENECK, "utilisation")


def queue(results: Results) -> float:
    """Return the mean queue of the bottleneck, packets."""
    return metrics.link(results, BOTTLENECK, "queue_mean_packets")


def retransmissions(results: Results) -> float:
    """Return the packets that the lossy flows sent again."""
    return metrics.total(results, "retransmissions", "lossy")


def timeouts(results: Results) -> float:
    """Return the timeouts of the lossy flows."""
    return metrics.total(results, "timeouts", "lossy")


def over_time(results: Results, link: str) -> pl.DataFrame:
    """Return a link's throughput in bit/s, second by second."""
    return metrics.series(results, link, "throughput_bps")


def unrest(results: Results, link: str = LOSSY) -> float:
    """Return the standard deviation of a link's throughput, Mbit/s, in bins of 1 s after the warm-up."""
    return metrics.deviation(metrics.series(results, link, "throughput_bps", WARMUP_S)) / 1e6


def fairness(data: Data, *label: Label) -> Sample:
    """Return F of a case."""
    return data.measure(label, ratio)
