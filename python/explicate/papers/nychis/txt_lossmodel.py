"""N-txt-lossmodel: other loss generators, and losses that the radio sees (sections IV, VI). Set-up: `base.py`; 1 %.

The emulator's normal and Pareto laws shape the runs between losses here (``random_loss``). Losses on the air hit
attempts, so the card sends again up to four times and falls back to slower rates: 31.6 % of the attempts leave 1 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from explicate.papers import metrics
from explicate.papers.nychis import base
from explicate.papers.statistics import Check, Sample, above, at_least, near
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("N-txt-lossmodel")

KERNEL, NONE, HARDWARE = "uniform", "none", "hardware"
RESIDUAL = 0.01


def models(effort: Effort) -> Mapping[str, str]:
    """Return the channels by name."""
    lost = f'kind = "random_loss", rate = "1%", place = "kernel", of = "{effort.choices["N-P6"]}"'
    shape = effort.choices["N-P18"]
    return {
        KERNEL: f"{{ {lost} }}",
        "correlated": f"{{ {lost}, correlation = 0.25 }}",
        "normal": f'{{ {lost}, law = "normal" }}',
        "Pareto": f'{{ {lost}, law = "pareto", shape = {shape} }}',
        "bursts of 4": f"{{ {lost.replace('random_loss', 'burst_loss')}, length = 4, per_flow = false }}",
        HARDWARE: f'{{ kind = "random_loss", rate = "{100 * RESIDUAL**0.25:.1f}%", place = "air" }}',
    }


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems with every model, and XCP without loss."""
    watched: Mapping[str, object] = {"sampling.of": ["throughput", "queue", "cwnd", "router"]}
    runs: dict[object, Case] = {}
    for name, model in {**models(effort), NONE: ""}.items():
        for system in (base.XCP, base.TCP) if model else (base.XCP,):
            runs[system, name] = replace(base.chain(effort, system, model=model, every="100ms"), settings=watched)
    return runs


def unanswered(results: Results) -> float:
    """Return the share of the card's attempts that were not answered."""
    last = results.samples.filter(
        pl.col("object").cast(pl.String) == "n1->n2", pl.col("time_s") > metrics.end_s(results) - 0.05
    )
    counts = {
        name: float(last.filter(pl.col("variable") == name)["value"][0]) for name in ("air_attempts", "air_unanswered")
    }
    return counts["air_unanswered"] / counts["air_attempts"]


def air_rate(results: Results) -> float:
    """Return the mean rate of the card's data frames, Mbit/s."""
    return metrics.mean(metrics.series(results, "n1->n2", "air_rate_bps")) / 1e6


@study.predicate("N-txt-lossmodel-a", within=5)
def the_card_sees_nothing(data: Data, within: float) -> Iterator[Check]:
    """Losses in the kernel change neither the card's retries nor its rate."""
    for what, metric in (("attempts without an answer", unanswered), ("mean rate of the card", air_rate)):
        ratio = data.measure((base.XCP, KERNEL), metric).mean / data.measure((base.XCP, NONE), metric).mean
        yield near(f"{what}: kernel loss over none", Sample.of([ratio]), 1.0, within / 100)


@study.predicate("N-txt-lossmodel-b")
def hardware_is_worse(data: Data) -> Check:
    """Rate adaptation shakes XCP."""
    kernel, hardware = (data.measure((base.XCP, name), base.unrest) for name in (KERNEL, HARDWARE))
    return above("variation of the window: losses on the air over losses in the kernel", hardware, kernel)


@study.predicate("N-txt-lossmodel-c")
def advantage(data: Data) -> Iterator[Check]:
    """What the model does to XCP's lead; no sign is claimed."""
    for name in models(data.effort):
        xcp, tcp = (base.rate(data, system, name) for system in (base.XCP, base.TCP))
        yield at_least(f"XCP over TCP, {name}", xcp / tcp, 0.0)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput with every model."""
    names = list(models(data.effort))
    lines = [
        Line.of(name, list(range(1, len(names) + 1)), [base.rate(data, system, model) for model in names])
        for system, name in ((base.XCP, "XCP"), (base.TCP, "TCP"))
    ]
    return [Panel("1 % loss", "model", "throughput (KB/s)", lines, names=names)]
