"""K-fig7: goodput in the first 30 s against the packet error rate (figure 7). Set-up: `base.py`; one flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, exchange
from explicate_papers.ikeda import base
from explicate_papers.statistics import Check, Sample, at_least, at_most, between, exceeds, fact, falling, number
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-fig7")

SYSTEMS = (base.PROPOSED, base.BISE, base.VCP, base.TCP)
QUICK_LOSSES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def losses(effort: Effort) -> Sequence[float]:
    """Return the packet error rates."""
    return effort.pick([float(rate) for rate in effort.choices["K-P16"].split()], QUICK_LOSSES)


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Every system at every error rate, and one again with twice the seeds, whose few losses are counted."""
    of = ("router",)
    made = {
        (system, loss): base.case(effort, system, loss=loss, of=of, every="250ms")
        for system in SYSTEMS
        for loss in losses(effort)
    }
    made["counted", 1e-5] = replace(made[base.PROPOSED, 1e-5], seeds=2 * effort.seeds)
    return made


def goodput(data: Data, system: str, loss: float) -> Sample:
    """Return the goodput, Mbit/s."""
    return data.measure((system, loss), base.goodput_mbps)


@study.predicate("K-fig7-a", usable=1e-5, harsh=1e-4)
def above_the_others(data: Data, usable: float, harsh: float) -> Iterator[Check]:
    """Both proposed schemes above VCP and TCP, as long as errors are not too frequent."""
    for loss in losses(data.effort):
        if loss <= usable:
            pairs = [(mine, other) for mine in (base.PROPOSED, base.BISE) for other in (base.VCP, base.TCP)]
        elif loss == harsh:
            pairs = [(base.PROPOSED, other) for other in SYSTEMS[1:]]
        else:
            continue
        for mine, other in pairs:
            name = f"Mbit/s at {loss:g}: {mine} over {other}"
            yield exceeds(name, goodput(data, mine, loss), goodput(data, other, loss))


@study.predicate("K-fig7-b", share=0.98)
def never_hurts(data: Data, share: float) -> Iterator[Check]:
    """With WLTE the goodput is at no error rate lower than without."""
    for loss in losses(data.effort):
        with_it, without = goodput(data, base.PROPOSED, loss), goodput(data, base.BISE, loss)
        name = f"Mbit/s at {loss:g}: with WLTE ({with_it}) less {share:g} times those without ({without})"
        yield at_least(name, with_it - share * without, 0)


@study.predicate("K-fig7-c", low=3e-6, high=1e-4, clearest=1e-5, percent=5, relative=10)
def gain_is_clearest(
    data: Data, low: float, high: float, clearest: float, percent: float, relative: float
) -> Iterator[Check]:
    """WLTE gains most in the middle of the range, and much at 1e-5."""
    gains = {loss: goodput(data, base.PROPOSED, loss) - goodput(data, base.BISE, loss) for loss in losses(data.effort)}
    most = max(gains, key=lambda loss: gains[loss].mean)
    measured = f"{number(gains[most].mean)} Mbit/s at {most:g}"
    yield fact("largest gain", holds=low <= most <= high, measured=measured, wanted=f"from {low:g} to {high:g}")
    gain, without = 100 * gains[clearest], goodput(data, base.BISE, clearest)
    of_capacity = at_least(f"gain at {clearest:g}, % of the capacity", gain / base.MBPS, percent)
    of_goodput = at_least(f"gain at {clearest:g}, % of the goodput without", gain / without.mean, relative)
    # Either will do.
    yield of_capacity if of_capacity.holds else of_goodput


@study.predicate("K-fig7-d", percent=3)
def falls(data: Data, percent: float) -> Iterator[Check]:
    """More errors, less goodput; the slack is of the goodput of each step."""
    for system in SYSTEMS:
        samples = [goodput(data, system, loss) for loss in losses(data.effort)]
        yield falling(f"Mbit/s of {system}", samples, percent / 100, relative=True)


@study.predicate("K-fig7-e", high=1e-3, share=0.05, times=2)
def collapse(data: Data, high: float, share: float, times: float) -> Iterator[Check]:
    """At too high an error rate timeouts reduce the goodput of all."""
    for system in SYSTEMS:
        yield at_most(f"{system}: Mbit/s at {high:g}", goodput(data, system, high), share * base.MBPS)
        yield at_least(f"{system}: timeouts of a run at {high:g}", data.measure((system, high), base.timeouts), times)


def lost(results: Results) -> float:
    """Return the packets that the bottleneck lost."""
    return metrics.link(results, base.BOTTLENECK, "drops_channel")


def sent(results: Results) -> float:
    """Return the packets sent."""
    return metrics.total(results, "sent_packets")


@study.predicate(
    "K-fig7-f",
    tolerance=20,
    instead="at 1e-7 the losses that the packets sent make likely, because to count 3 % of runs to a fifth takes "
    "thousands of runs; at 1e-5 losses are counted",
)
def as_many_as_expected(data: Data, tolerance: float) -> Iterator[Check]:
    """About 3 % of the runs see a loss at 1e-7, and 2 to 4 packets are lost in a run at 1e-5."""
    share = tolerance / 100
    rare = 1e-7 * data.measure((base.PROPOSED, 1e-7), sent)
    yield between("losses expected in a run at 1e-7, %", 100 * rare, 3 * (1 - share), 3 * (1 + share))
    count = data.measure(("counted", 1e-5), lost)
    yield between("losses in a run at 1e-5", count, 2 * (1 - share), 4 * (1 + share))
    expected = 1e-5 * data.measure(("counted", 1e-5), sent).mean
    yield between("losses over those expected at 1e-5", count / expected, 1 - share, 1 + share)


study.control(
    "TCP in the place of the proposed schemes",
    Place("protocol", lambda label: (base.TCP, label[1]) if label[0] in SYSTEMS[:2] and label[1] <= 1e-5 else label),
    ["K-fig7-a"],
    "TCP is not above itself",
)
study.control(
    "with WLTE and without exchanged",
    exchange(base.PROPOSED, base.BISE),
    ["K-fig7-b", "K-fig7-c"],
    "halving at every loss then stands where the window is kept",
)
study.control(
    "error rates of 1e-6 and 1e-4 exchanged",
    exchange(1e-6, 1e-4),
    ["K-fig7-d"],
    "goodput then rises from the one label to the other",
)
study.control(
    "the least error rate for all",
    Place("flat", lambda label: label if label[0] == "counted" else (label[0], min(QUICK_LOSSES))),
    ["K-fig7-e"],
    "nothing collapses where hardly a packet is lost",
)
study.control(
    "ten times the errors where they are counted",
    Place("exchange", lambda label: (base.PROPOSED, 1e-4) if label[0] == "counted" else label),
    ["K-fig7-f"],
    "losses are as many as errors",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Goodput against the error rate."""
    grid = losses(data.effort)
    lines = [Line.of(system, grid, [goodput(data, system, loss) for loss in grid]) for system in SYSTEMS]
    return [Panel("Goodput in the first 30 s", "packet error rate", "goodput (Mbit/s)", lines, log="x")]
