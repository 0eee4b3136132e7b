"""What paper D's experiments share: ten flows over a narrow link, half of them go on over a lossy one.

    s0 ... s9 --- n0 ---> n1 --- n2 (clean)
                           `---- n3 (lossy)

Every link has 5 Mbit/s and 20 ms. Sums of throughput are of bytes that left the bottleneck, as in the text: the bytes
that enter the two links behind it, whatever is lost on them. What the text leaves out stands in ``choices.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from explicate.results import Results
from explicate.source import value_text
from explicate_papers import metrics
from explicate_papers.controls import Rewrite, Where, everywhere
from explicate_papers.statistics import Sample
from explicate_papers.study import Case, Data, Effort, Label

RATE_MBPS = 5.0
SOURCES = [f"s{i}" for i in range(10)]
QUICK_LOSSES = (0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
"""Of the loss rates (D-P10), percent, those that a quick sweep keeps."""
BOTTLENECK, CLEAN, LOSSY = "n0->n1", "n1->n2", "n1->n3"
NOTHING = 1e-9
"""The slack of an ordering that equality fulfils."""
NO_PROCESSING = "none"
"""For runs whose packets' lives are read again: a packet leaves at the very instant that lets it go."""


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
    """Return the paper's network with `protocol` for the lossy half, `clean` (by default the same) for the other.

    `delay_ms` is the delay of the links that D-P18 names; a case with a `trace` has no processing times.
    """
    choices = effort.choices
    taken = NO_PROCESSING if trace else choices["D-P21"]
    text = [
        f'name = "paper-D"\nduration = "{seconds or effort.seconds:g}s"\nwarmup = "{choices["D-P3"]}"',
        '[sampling]\nevery = "1s"\nof = ["throughput", "queue", "router", "flow"]',
        *(f'[[node]]\nname = "{node}"' for node in (*SOURCES, "n0", "n1", "n2", "n3")),
        *_links(choices, queue or discipline(choices, protocol), delay_ms),
        _refined(choices, loss_percent, burst),
        _flows(choices, "clean", clean or protocol, "n2", params if clean_params is None else clean_params, taken),
        _flows(choices, "lossy", protocol, "n3", params, taken),
    ]
    return Case("\n\n".join(text) + "\n", trace=trace)


def discipline(choices: Mapping[str, str], protocol: str) -> str:
    """Return the queue of every link: RED under XCP's routers (D-P11), drop-tail under all else."""
    limit = f'limit = "{choices["D-P2"]}pkt"'
    if not uses_xcp(protocol) or choices["D-P11"] == "droptail":
        return f'{{ kind = "droptail", {limit} }}'
    low, high = map(int, choices["D-P11"].removeprefix("red ").split("/"))
    raised = PERSISTENT if "XCPQ" in protocol else 0
    thresholds = f'min_th = "{low + raised}pkt", max_th = "{high + raised}pkt"'
    return f'{{ kind = "red", {limit}, {thresholds}, weight = 0.002, max_p = 0.1, gentle = true }}'


PERSISTENT = 10
"""The packets of the persistent queue of section 7.2, by which RED's thresholds are raised."""
SAMPLE_WEIGHTS = {"queue interval": 0.1, "control interval": 0.0513}
"""The weight of a sample of the router, one each queue interval, that gives section 7.2's 0.1 each of these (D-P13).

A control interval has two: 1 - 0.9 ** (1 / 2).
"""


def keeps_a_queue(effort: Effort) -> str:
    """Return the router that keeps the persistent queue of section 7.2."""
    weight = SAMPLE_WEIGHTS[effort.choices["D-P13"]]
    return f'{{ kind = "xcp", target_queue = "{1000 * PERSISTENT}B", queue_weight = {weight:g} }}'


def uses_xcp(protocol: str) -> bool:
    """Return whether a protocol's routers are XCP's."""
    return "xcp" in protocol.lower()


def _links(choices: Mapping[str, str], queue: str, delay_ms: float) -> list[str]:
    others_ms = delay_ms if choices["D-P18"] == "all" else 20
    made = [_link(source, "n0", *_access(choices, queue, others_ms)) for source in SOURCES]
    made.append(_link("n0", "n1", RATE_MBPS, delay_ms, queue))
    return made + [_link("n1", end, RATE_MBPS, others_ms, queue) for end in ("n2", "n3")]


def _access(choices: Mapping[str, str], queue: str, delay_ms: float) -> tuple[float, float, str]:
    """Return what joins a source to the bottleneck: a link like the others, or with two hops (next to) nothing."""
    return (RATE_MBPS, delay_ms, queue) if choices["D-P1"] == "3" else (1000, 0, '"unlimited"')


def _link(a: str, b: str, mbps: float, delay_ms: float, queue: str) -> str:
    return (
        f'[[link]]\nfrom = "{a}"\nto = "{b}"\nduplex = true\nrate = "{mbps:g}Mbit/s"\ndelay = "{delay_ms:g}ms"\n'
        f"queue = {queue}"
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


def _flows(
    choices: Mapping[str, str], name: str, protocol: str, sink: str, params: Mapping[str, Any] | None, taken: str
) -> str:
    mine = SOURCES[:5] if name == "clean" else SOURCES[5:]
    values = {
        "receiver_window": int(choices["D-P6"]),
        **timer(choices["D-P7"]),
        **_readings(choices, protocol),
        **(params or {}),
    }
    start = choices["D-P8"]
    start = '"0s"' if start == "0s" else f'{{ uniform = "{start}" }}'
    return (
        f'[[flows]]\nname = "{name}"\ncount = 5\nprotocol = "{protocol}"\npacket = "1000B"\n'
        f"from = {value_text(mine)}\nto = {value_text([sink])}\nparams = {value_text(values)}\nstart = {start}"
        f"{processing(taken)}"
    )


def processing(taken: str) -> str:
    """Return the line of a group of flows that says how long a host takes for a packet (D-P21)."""
    return f'\nprocessing = "{taken}"'


def _readings(choices: Mapping[str, str], protocol: str) -> dict[str, Any]:
    """Return how the paper's ambiguous sentences are read, for the senders that they are about."""
    made: dict[str, Any] = {}
    if "LM" in protocol:
        made["recount"] = choices["D-P22"]
    if "XTCP" in protocol:
        made["grow_on_duplicates"] = choices["D-P23"] == "true"
    return made


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


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates of a sweep, percent (D-P10)."""
    every = points(effort, "D-P10")
    return effort.pick(every, [loss for loss in every if loss in QUICK_LOSSES])


def points(effort: Effort, parameter: str) -> list[float]:
    """Return the points of a sweep that a choice lists."""
    return [float(point) for point in effort.choices[parameter].split()]


def warmup_s(results: Results) -> float:
    """Return when the measured time of a run began."""
    found = re.search(r'^warmup = "([0-9.]+)s"', results.scenario, re.MULTILINE)
    return float(found[1]) if found else 0.0


def clean_mbps(results: Results) -> float:
    """Return what left the bottleneck for the clean link, Mbit/s."""
    return RATE_MBPS * metrics.link(results, CLEAN, "utilisation")


def lossy_mbps(results: Results) -> float:
    """Return what left the bottleneck for the lossy link, Mbit/s."""
    return RATE_MBPS * metrics.link(results, LOSSY, "utilisation")


def clean_goodput_mbps(results: Results) -> float:
    """Return what the receivers of the loss-free half got in order, Mbit/s."""
    return metrics.total(results, "goodput_bps", "clean") / 1e6


def lossy_goodput_mbps(results: Results) -> float:
    """Return what the receivers of the lossy half got in order, Mbit/s."""
    return metrics.total(results, "goodput_bps", "lossy") / 1e6


SUMS: Mapping[str, tuple[Callable[[Results], float], Callable[[Results], float]]] = {
    "bottleneck": (clean_mbps, lossy_mbps),
    "goodput": (clean_goodput_mbps, lossy_goodput_mbps),
}
"""The sums of both halves' throughput by its definition (D-P5)."""


def sums(data: Data, *label: Label) -> tuple[Sample, Sample]:
    """Return the sums of throughput of the loss-free and of the lossy half in a case, Mbit/s."""
    key = label[0] if len(label) == 1 else label
    clean, lossy = SUMS[data.effort.choices["D-P5"]]
    return data.measure(key, clean), data.measure(key, lossy)


def fairness(data: Data, *label: Label) -> Sample:
    """Return the fairness ratio F of a case: the sum of the lossy flows' throughput over that of the loss-free ones."""
    clean, lossy = sums(data, *label)
    return lossy / clean


def utilisation(results: Results) -> float:
    """Return the share of the bottleneck that is used."""
    return metrics.link(results, BOTTLENECK, "utilisation")


def queue(results: Results) -> float:
    """Return the mean queue of the bottleneck, packets."""
    return metrics.link(results, BOTTLENECK, "queue_mean_packets")


def timeouts(results: Results) -> float:
    """Return the timeouts of the lossy flows."""
    return metrics.total(results, "timeouts", "lossy")


def over_time(results: Results, link: str) -> pl.DataFrame:
    """Return a link's throughput in bit/s, second by second."""
    return metrics.series(results, link, "throughput_bps")


def in_bins(frame: pl.DataFrame, bin_s: float, until_s: float) -> pl.DataFrame:
    """Return the first seconds of a series as means over bins. A sample's time is the end of its period."""
    end = ((pl.col("time_s") / bin_s - 1e-9).floor() + 1) * bin_s
    kept = frame.filter(pl.col("time_s") <= until_s)
    return kept.group_by(end.alias("time_s")).agg(pl.col("value").mean()).sort("time_s")


def unrest(results: Results, link: str = LOSSY) -> float:
    """Return the standard deviation of a link's throughput, Mbit/s, in bins of 1 s after the warm-up."""
    return metrics.deviation(metrics.series(results, link, "throughput_bps", warmup_s(results))) / 1e6


def refused(results: Results) -> float:
    """Return the packets that the bottleneck's queue dropped."""
    return sum(metrics.link(results, BOTTLENECK, f"drops_{cause}") for cause in ("overflow", "early"))


# ------------------------------------------------------------------------------------------------ controls

LOSSES_OFF = Rewrite("off", lambda _, one: replace(one, text=re.sub(r'(_loss", rate = )"[^"]*"', r'\1"0%"', one.text)))
"""The lossy link loses nothing."""


def instead_of(system: str, other: str, where: Where = everywhere, drop: str = "") -> Rewrite:
    """Return the mutation: `other` runs where a case that `where` chooses names `system`, on the same network.

    Parameters that only `system` has are left out: those of the readings, and what the pattern `drop` names.
    """
    own = "|".join(filter(None, ("recount", "grow_on_duplicates", drop)))

    def change(_: Label, one: Case) -> Case:
        groups = one.text.split("[[flows]]")
        changed = [
            re.sub(rf',? "(?:{own})" = (?:"[^"]*"|[^,}} ]+)', "", group).replace(f'"{system}"', f'"{other}"')
            if f'protocol = "{system}"' in group
            else group
            for group in groups
        ]
        return replace(one, text="[[flows]]".join(changed))

    return Rewrite("protocol", change, where)
