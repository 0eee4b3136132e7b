"""Common set-up of paper D's experiments: ten flows over a bottleneck, half of which continue over a lossy link.

    s0 ... s9 --- n0 ---> n1 --- n2 (clean)
                           `---- n3 (lossy)

Every link has 5 Mbit/s and 20 ms. Sums of throughput count bytes that left the bottleneck, as in the text: they enter
the two links behind it, including bytes lost there. ``choices.toml`` has the parameters that the text leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import polars as pl

from explicate.results import Results
from explicate.scenario import Scenario
from explicate_papers import metrics
from explicate_papers.controls import Rewrite, Where, edit, everywhere
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
"""For runs whose packet records are analysed: a packet leaves at the instant at which it may be sent."""


def case(
    effort: Effort,
    protocol: str,
    loss_percent: float,
    *,
    clean: str | None = None,
    params: Mapping[str, Any] | None = None,
    clean_params: Mapping[str, Any] | None = None,
    burst: int = 1,
    queue: Mapping[str, Any] | None = None,
    delay_ms: float = 20,
    seconds: float | None = None,
    trace: str | None = None,
) -> Case:
    """Return the paper's network with `protocol` for the lossy half, `clean` (by default the same) for the other.

    `delay_ms` is the delay of the links that D-P18 names; a case with a `trace` has no processing times.
    """
    choices = effort.choices
    halves = {
        "clean": (SOURCES[:5], "n2", clean or protocol, params if clean_params is None else clean_params),
        "lossy": (SOURCES[5:], "n3", protocol, params),
    }
    start = choices["D-P8"]
    made = Scenario("paper-D", duration=f"{seconds or effort.seconds:g}s", warmup=choices["D-P3"])
    made = made.sampling("1s", ["throughput", "queue", "router", "flow"])
    made = _network(made, choices, queue or discipline(choices, protocol), delay_ms)
    for link, channel in _losses(choices, loss_percent, burst).items():
        made = made.link(name=link, channel=[channel])
    for name, (sources, sink, spoken, more) in halves.items():
        made = made.flows(
            name, spoken, count=5, packet="1000B", from_=sources, to=[sink],
            params={
                "receiver_window": int(choices["D-P6"]), **timer(choices["D-P7"]), **_readings(choices, spoken),
                **(more or {}),
            },
            start=start if start == "0s" else {"uniform": start},
            processing=NO_PROCESSING if trace else choices["D-P21"],
        )  # fmt: skip
    return Case(made.to_toml(), trace=trace)


def discipline(choices: Mapping[str, str], protocol: str) -> dict[str, Any]:
    """Return the queue of every link: RED under XCP's routers (D-P11), drop-tail under all else."""
    limit = f"{choices['D-P2']}pkt"
    if not uses_xcp(protocol) or choices["D-P11"] == "droptail":
        return {"kind": "droptail", "limit": limit}
    low, high = map(int, choices["D-P11"].removeprefix("red ").split("/"))
    raised = PERSISTENT if "XCPQ" in protocol else 0
    return {
        "kind": "red", "limit": limit, "min_th": f"{low + raised}pkt", "max_th": f"{high + raised}pkt",
        "weight": 0.002, "max_p": 0.1, "gentle": True,
    }  # fmt: skip


PERSISTENT = 10
"""The packets of the persistent queue of section 7.2, by which RED's thresholds are raised."""
SAMPLE_WEIGHTS = {"queue interval": 0.1, "control interval": 0.0513}
"""The weight of a sample of the router, one each queue interval, that gives section 7.2's 0.1 each of these (D-P13).

A control interval has two: 1 - 0.9 ** (1 / 2).
"""


def keeps_a_queue(effort: Effort) -> dict[str, dict[str, Any]]:
    """Return the settings with which the bottleneck's router keeps the persistent queue of section 7.2."""
    weight = SAMPLE_WEIGHTS[effort.choices["D-P13"]]
    router = {"kind": "xcp", "target_queue": f"{1000 * PERSISTENT}B", "queue_weight": weight}
    return {f"link.{BOTTLENECK}.router": router}


def uses_xcp(protocol: str) -> bool:
    """Return whether a protocol's routers are XCP's."""
    return "xcp" in protocol.lower()


def _network(made: Scenario, choices: Mapping[str, str], queue: Mapping[str, Any], delay_ms: float) -> Scenario:
    """Return the scenario with its links; with two hops (D-P1) those of the sources are next to nothing."""
    for node in (*SOURCES, "n0", "n1", "n2", "n3"):
        made = made.node(node)
    others_ms = delay_ms if choices["D-P18"] == "all" else 20
    like_others = (RATE_MBPS, others_ms, queue)
    access = like_others if choices["D-P1"] == "3" else (1000, 0, "unlimited")
    links = {
        **{(source, "n0"): access for source in SOURCES},
        ("n0", "n1"): (RATE_MBPS, delay_ms, queue),
        ("n1", "n2"): like_others,
        ("n1", "n3"): like_others,
    }
    for (a, b), (mbps, ms, kept) in links.items():
        made = made.link(a, b, duplex=True, rate=f"{mbps:g}Mbit/s", delay=f"{ms:g}ms", queue=kept)
    return made


def _losses(choices: Mapping[str, str], loss_percent: float, burst: int) -> dict[str, dict[str, Any]]:
    """Return the channels of the links that lose packets (D-P4), by name."""
    if not loss_percent:
        return {}
    channel: dict[str, Any] = {"kind": "random_loss", "rate": f"{loss_percent:g}%"}
    if burst > 1:
        channel |= {"kind": "burst_loss", "length": burst, "per_flow": choices["D-P15"] == "flow"}
    return dict.fromkeys((LOSSY, "n3->n1") if choices["D-P4"] == "both" else (LOSSY,), channel)


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
    """Return the throughput from the bottleneck to the clean link, Mbit/s."""
    return RATE_MBPS * metrics.link(results, CLEAN, "utilisation")


def lossy_mbps(results: Results) -> float:
    """Return the throughput from the bottleneck to the lossy link, Mbit/s."""
    return RATE_MBPS * metrics.link(results, LOSSY, "utilisation")


def clean_goodput_mbps(results: Results) -> float:
    """Return the goodput of the loss-free half, Mbit/s."""
    return metrics.total(results, "goodput_bps", "clean") / 1e6


def lossy_goodput_mbps(results: Results) -> float:
    """Return the goodput of the lossy half, Mbit/s."""
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


def losses_off(content: dict[str, Any]) -> None:
    """Let no link lose anything."""
    for link in content["link"]:
        for channel in link.get("channel", ()):
            channel["rate"] = "0%"


LOSSES_OFF = edit("off", losses_off)


def instead_of(
    system: str, other: str, where: Where = everywhere, drop: str = "", halves: Collection[str] = ("clean", "lossy")
) -> Rewrite:
    """Return the mutation: `other` runs where a case that `where` chooses names `system`, on the same network.

    Parameters that only `system` has are left out: those of the readings, and `drop`.
    """
    own = {"recount", "grow_on_duplicates", drop}

    def change(content: dict[str, Any]) -> None:
        for group in content["flows"]:
            if group["protocol"] == system and group["name"] in halves:
                group["protocol"] = other
                group["params"] = {key: value for key, value in group["params"].items() if key not in own}

    return edit("protocol", change, where)
