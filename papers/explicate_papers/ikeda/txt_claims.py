"""K-txt-claims: statements of sections I to III on VCP, TCP and XCP, on the paper's path. Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place
from explicate_papers.ikeda import base, fig4
from explicate_papers.statistics import Check, Sample, above, between, near
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-txt-claims")

XCP = "xcp/newreno"
LONG_S = 300.0
STEADY = "150s"
"""When ten flows have settled."""
DIGITS = {"vcp": 0.0005, "tcp": 0.05}
"""Half of the last digit that the criterion gives."""


@study.cases
def cases(effort: Effort) -> dict[tuple[str, str], Case]:
    """One flow that starts, ten flows for 300 s, one flow for 300 s with losses, and cuts with fine sampling."""
    seconds = base.vcp_watched_s(effort, effort.choices["K-P3"])
    made = {
        ("start", base.VCP): base.case(effort, base.VCP, seconds=seconds),
        ("start", base.TCP): base.case(effort, base.TCP, seconds=fig4.SHOWN_S),
        ("cut", base.VCP): base.case(effort, base.VCP, mbps=10, seconds=60, every="1ms", of=("cwnd",)),
        ("cut", base.TCP): base.case(effort, base.TCP, mbps=10, loss=1e-3, seconds=60, every="1ms", of=("cwnd",)),
    }
    for system in (base.VCP, XCP):
        made["ten", system] = base.case(
            effort, system, flows=10, seconds=LONG_S, warmup=STEADY, of=("throughput",), every="500ms"
        )
    for system in (base.VCP, base.TCP):
        made["lossy", system] = base.case(effort, system, loss=1e-6, seconds=LONG_S, of=("cwnd",), every="500ms")
    return {label: replace(case, seeds=base.few(effort)) for label, case in made.items()}


filled = partial(base.window_reaches, base.MBPS)


@study.predicate("K-txt-claims-a")
def slower_than_slow_start(data: Data) -> Check:
    """TCP's slow start fills the pipe first."""
    vcp, tcp = (data.measure(("start", system), filled) for system in (base.VCP, base.TCP))
    return above("s to 80 % of the pipe: VCP over NewReno", vcp, tcp)


def converged(results: Results) -> float:
    """Return when the link is first used by 80 %, s."""
    rate = metrics.series(results, base.BOTTLENECK, "throughput_bps")
    return metrics.first_time(rate, 0.8e6 * base.MBPS)


@study.predicate("K-txt-claims-b", low=0.02, high=0.1)
def slightly_below_xcp(data: Data, low: float, high: float) -> Iterator[Check]:
    """XCP uses a little more of the link, and earlier."""
    xcp, vcp = (data.measure(("ten", system), base.utilisation) for system in (XCP, base.VCP))
    yield between(f"utilisation: XCP ({xcp}) less VCP ({vcp})", xcp - vcp, -low, high)
    late, early = (data.measure(("ten", system), converged) for system in (base.VCP, XCP))
    yield above("s until the link is used by 80 %: VCP over XCP", late, early)


@study.predicate("K-txt-claims-c", loss=1e-6)
def keeps_throughput(data: Data, loss: float) -> Check:
    """Over 300 s with rare losses VCP uses more than TCP."""
    vcp, tcp = (data.measure(("lossy", system), base.utilisation) for system in (base.VCP, base.TCP))
    return above(f"utilisation with loss {loss:g}: VCP over NewReno", vcp, tcp)


def overload_cut(results: Results) -> float:
    """Return the ratio of VCP's window after and before the first overload."""
    return _first_fall(results)


def recovery_cut(results: Results) -> float:
    """Return the ratio of TCP's window after and before the first fast retransmit that follows slow start."""
    return _first_fall(results)


def _first_fall(results: Results) -> float:
    steps = base.steps(base.cwnd(results))
    return float(steps.filter((steps < 1) & (steps > 0.4))[0])


@study.predicate("K-txt-claims-d", vcp=0.875, tcp=0.5)
def cuts_less(data: Data, vcp: float, tcp: float) -> Iterator[Check]:
    """0.875 against half of the data in flight, which slightly exceeds the window, to the last digit."""
    mine, other = data.measure(("cut", base.VCP), overload_cut), data.measure(("cut", base.TCP), recovery_cut)
    yield near("what a cut leaves of VCP's window", mine, vcp, DIGITS["vcp"])
    yield near("what a cut leaves of NewReno's window", other, tcp, DIGITS["tcp"])
    yield above("VCP keeps more", mine, Sample.of([other.mean] * len(mine.values)))


def swapped(label: tuple[str, str]) -> tuple[str, str]:
    """Return the label of VCP for one of TCP, and the other way round."""
    return label if label[0] == "ten" else (label[0], {base.VCP: base.TCP}.get(label[1], base.VCP))


study.control(
    "VCP and TCP exchanged",
    Place("exchange", swapped),
    ["K-txt-claims-a", "K-txt-claims-c", "K-txt-claims-d"],
    "each claim orders the two",
)
study.control(
    "VCP and XCP exchanged",
    Place("exchange", lambda label: ("ten", {base.VCP: XCP}.get(label[1], base.VCP)) if label[0] == "ten" else label),
    ["K-txt-claims-b"],
    "XCP's start is the faster one",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The link under ten flows, the window under losses."""
    links = [
        Line.series(name, metrics.series(data.runs(("ten", system))[0], base.BOTTLENECK, "throughput_bps"), 1e6)
        for name, system in (("VCP", base.VCP), ("XCP", XCP))
    ]
    windows = [Line.series(system, base.cwnd(data.runs(("lossy", system))[0])) for system in (base.VCP, base.TCP)]
    return [
        Panel("Ten flows", "time (s)", "throughput (Mbit/s)", links),
        Panel("One flow, loss 1e-6", "time (s)", "window (packets)", windows),
    ]
