"""N-txt-lossmodel: other loss generators, and losses that the radio sees (sections IV, VI). Set-up: `base.py`; 1 %.

The emulator's normal and Pareto distributions are those of the gaps between losses here (``random_loss``). Losses in
the medium hit single attempts. The card repeats a frame up to four times and changes to slower rates, so a loss of
31.6 % of the attempts becomes 1 %. The injected losses change the times at which the flow sends, so its frames meet
other bursts of the interferer and other states of the channel. Events are therefore compared over all seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.nychis import base
from explicate_papers.statistics import Check, at_least, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-lossmodel")

KERNEL, NONE, HARDWARE = "uniform", "none", "hardware"
RESIDUAL = 0.01


def models(effort: Effort) -> Mapping[str, base.Table]:
    """Return the channels by name."""
    return {
        KERNEL: base.lost(effort, 1),
        "correlated": base.lost(effort, 1, correlation=0.25),
        "normal": base.lost(effort, 1, law="normal"),
        "Pareto": base.lost(effort, 1, law="pareto", shape=float(effort.choices["N-P18"])),
        "bursts of 4": base.lost(effort, 1, kind="burst_loss", length=4, per_flow=False),
        HARDWARE: {"kind": "random_loss", "rate": f"{100 * RESIDUAL**0.25:.1f}%", "place": "air"},
    }


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems with every model, and XCP without loss."""
    watched: Mapping[str, object] = {"sampling.of": ["throughput", "queue", "cwnd", "router"]}
    runs: dict[object, Case] = {}
    for name, model in {**models(effort), NONE: None}.items():
        for system in (base.XCP, base.TCP) if model else (base.XCP,):
            runs[system, name] = replace(base.chain(effort, system, model=model, every="100ms"), settings=watched)
    return runs


def rate_changes(results: Results) -> float:
    """Return how often the card changed the rate of its data frames."""
    return metrics.largest(metrics.series(results, "n1->n2", "air_rate_changes"))


@study.predicate("N-txt-lossmodel-a", within=5)
def the_card_sees_nothing(data: Data, within: float) -> Iterator[Check]:
    """Losses in the kernel do not make the card adapt its rate."""
    lossy, none = (data.measure((base.XCP, name), rate_changes) for name in (KERNEL, NONE))
    span = (1 - within / 100, 1 + within / 100)
    yield from base.ratio_between("changes of the card's rate: kernel loss over none", lossy, none, *span)


@study.predicate("N-txt-lossmodel-b")
def hardware_is_worse(data: Data) -> Check:
    """Rate adaptation shakes XCP."""
    kernel, hardware = (data.measure((base.XCP, name), base.unrest) for name in (KERNEL, HARDWARE))
    return exceeds("variation of the window: losses on the air over losses in the kernel", hardware, kernel)


@study.predicate("N-txt-lossmodel-c")
def advantage(data: Data) -> Iterator[Check]:
    """The model's effect on XCP's lead; no sign is claimed."""
    for name in models(data.effort):
        xcp, tcp = (base.rate(data, system, name) for system in (base.XCP, base.TCP))
        yield at_least(f"XCP over TCP, {name}", xcp / tcp, 0.0)


study.control(
    "losses on the air",
    Place("exchange", lambda label: (base.XCP, HARDWARE) if label == (base.XCP, KERNEL) else label),
    ["N-txt-lossmodel-a"],
    "The card adapts its rate to losses that it sees.",
)
study.control(
    "kernel for hardware",
    exchange(KERNEL, HARDWARE),
    ["N-txt-lossmodel-b"],
    "If rate adaptation shakes the window, losses that the card does not see shake it less.",
)
study.cannot_fail("N-txt-lossmodel-c", "The criterion asks for a report of the ratios and claims no sign.")


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput with every model, how much XCP's window varies, and how often the card changes its rate."""
    names = list(models(data.effort))
    places = range(1, len(names) + 1)
    lines = [
        Line.of(name, places, [base.rate(data, system, model) for model in names])
        for system, name in ((base.XCP, "XCP"), (base.TCP, "TCP"))
    ]

    def xcp(metric: Callable[[Results], float]) -> list[Line]:
        return [Line.of("XCP", places, [data.measure((base.XCP, model), metric) for model in names])]

    return [
        Panel("1 % loss", "model", "throughput (KB/s)", lines, names=names),
        Panel("Its window", "model", "coefficient of variation", xcp(base.unrest), names=names),
        Panel("Its card", "model", "changes of the rate in a run", xcp(rate_changes), names=names),
    ]
