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
SOURCES = [f"s{i}" for i in range(10)]
QUICK_GRID = (0.0, 1.0, 2.0, 5.0, 10.0)
BOTTLENECK, CLEAN, LOSSY = "n0->n1", "n1->n2", "n1->n3"


def case(
    effort: Effort,
    protocol: str,
    loss_percent: float,
    *,
    clean: str | None = None,
    params: Mapping[str, Any] | None = None,
    clean_params: Mapping[str, Any] | None = None,
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
        *(f'[[node]]\nname = "{node}"' for node in (*SOURCES, "n0", "n1", "n2", "n3")),
        *_links(choices, queue or limit, delay_ms),
        _refined(choices, loss_percent, burst),
        _flows(choices, "clean", clean or protocol, "n2", params if clean_params is None else clean_params),
        _flows(choices, "lossy", protocol, "n3", params),
    ]
    return Case("\n\n".join(text) + "\n", trace=trace)


def _links(choices: Mapping[str, str], queue: str, delay_ms: float) -> list[str]:
    made = [_link(source, "n0", *_access(choices, queue, delay_ms), processing(choices["D-P21"])) for source in SOURCES]
    return made + [_link(a, b, RATE_MBPS, delay_ms, queue) for a, b in (("n0", "n1"), ("n1", "n2"), ("n1", "n3"))]


def processing(mean: str) -> str:
    """Return the time that a host takes for a packet, random and at most twice `mean`.

    All rates are the same, so without any packets arrive exactly when others leave, and one flow always finds room (the
    phase effects of Floyd and Jacobson 1992). ns-2's hosts take none, but its clock, in floating point, rounds: which
    of two events of the same instant comes first is left to chance, as it is with a few nanoseconds here.
    """
    return f'{{ kind = "jitter", mean = "{mean}", keep_order = true, of = "data" }}'


def _access(choices: Mapping[str, str], queue: str, delay_ms: float) -> tuple[float, float, str]:
    """Return what joins a source to the bottleneck: a link like the others, or with two hops (next to) nothing."""
    return (RATE_MBPS, delay_ms, queue) if choices["D-P1"] == "3" else (1000, 0, '"unlimited"')


def _link(a: str, b: str, mbps: float, delay_ms: float, queue: str, channel: str = "") -> str:
    return (
        f'[[link]]\nfrom = "{a}"\nto = "{b}"\nduplex = true\nrate = "{mbps:g}Mbit/s"\ndelay = "{delay_ms:g}ms"\n'
        f"queue = {queue}\nchannel = [{channel}]"
    )


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
    mine = SOURCES[:5] if name == "clean" else SOURCES[5:]
    values = {"receiver_window": int(choices["D-P6"]), **timer(choices["D-P7"]), **(params or {})}
    start = choices["D-P8"]
    start = '"0s"' if start == "0s" else f'{{ uniform = "{start}" }}'
    return (
        f'[[flows]]\nname = "{name}"\ncount = 5\nprotocol = "{protocol}"\npacket = "1000B"\n'
        f"from = {value_text(mine)}\nto = {value_text([sink])}\nparams = {value_text(values)}\nstart = {start}"
    )


def silent(effort: Effort) -> dict[str, int]:
    """Return the duplicates that make a retransmission where the paper is silent about them."""
    return {"dupackthreshold": int(effort.choices["D-P12"])}


def timer(choice: str) -> dict[str, str]:
    """Return the recovery timer's parameters: its least length, and the clock's tick after a stroke."""
    least, *tick = choice.split("/")
    return {"min_rto": least, "clock_tick": tick[0] if tick else "0ms"}


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


def refused(results: Results) -> float:
    """Return the packets that the bottleneck's queue dropped."""
    return sum(metrics.link(results, BOTTLENECK, f"drops_{cause}") for cause in ("overflow", "early"))
