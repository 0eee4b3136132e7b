"""D-fig10: sums of throughput over time at 5 % loss, the XTCP family (figure 10). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.de_vleeschouwer.fig2a import panel
from explicate.papers.statistics import Check, above, close
from explicate.papers.study import Case, Data, Effort, Panel, Study
from explicate.results import Results

study = Study("D-fig10")

MONITOR, FRIEND = "LR-LMXTCP", "LR-LMXTCP_TCPfriend"
LOSS = 5.0


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The panels that are named in the text, and the same on other seeds for the comparison with figure 8."""
    return {system: base.case(effort, system, LOSS) for system in (MONITOR, FRIEND)}


def clean_unrest(results: Results) -> float:
    """Return the standard deviation of the loss-free sum, Mbit/s."""
    return base.unrest(results, base.CLEAN)


@study.predicate("D-fig10-a")
def friend_fluctuates_more(data: Data) -> Iterator[Check]:
    """The artificial back-off shakes the throughput."""
    for name, metric in (("lossy", base.unrest), ("loss-free", clean_unrest)):
        friend, monitor = (data.measure(system, metric) for system in (FRIEND, MONITOR))
        yield above(f"deviation of the {name} sum in 1 s, Mbit/s: TCPfriend over LR-LMXTCP", friend, monitor)


def early(results: Results) -> float:
    """Return F from the first half of the measured time."""
    return _ratio(results, late=False)


def late(results: Results) -> float:
    """Return F from the second half of the measured time."""
    return _ratio(results, late=True)


def _ratio(results: Results, *, late: bool) -> float:
    sums = []
    for link in (base.LOSSY, base.CLEAN):
        frame = base.over_time(results, link)
        middle = (metrics.end_s(results) + base.WARMUP_S) / 2
        kept = frame.filter((frame["time_s"] > middle) == late, frame["time_s"] > base.WARMUP_S)
        sums.append(float(kept["value"].sum()))
    return sums[0] / sums[1]


@study.predicate("D-fig10-b", difference=0.07)
def means_agree(data: Data, difference: float) -> Iterator[Check]:
    """The time means are those of figure 8: any part of the time gives the same F as the whole."""
    for system in (MONITOR, FRIEND):
        whole = data.measure(system, base.ratio)
        for name, metric in (("first", early), ("second", late)):
            yield close(f"F of {system}: {name} half and whole", data.measure(system, metric), whole, difference)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, system, system) for system in (MONITOR, FRIEND)]
