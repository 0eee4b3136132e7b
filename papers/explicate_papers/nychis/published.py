"""How the numbers of ``published.toml`` are measured in our runs."""

from __future__ import annotations

from statistics import fmean

from explicate_papers.nychis import base, fig1, fig3, fig7
from explicate_papers.study import Data, Label


def kilobytes(data: Data, label: Label) -> float:
    """Return the throughput of a case, KB/s."""
    return data.measure(label, base.kilobytes).mean


def best_of_three(data: Data, *label: Label) -> float:
    """Return the largest of three runs, KB/s, mean over disjoint triples of seeds."""
    values = data.measure(label, base.kilobytes).values
    return fmean(max(values[i : i + fig3.RUNS]) for i in range(0, len(values) - fig3.RUNS + 1, fig3.RUNS))


def over_tcp(data: Data, loss: float) -> float:
    """Return XCP's throughput over TCP's at a loss rate, percent."""
    xcp, tcp = (data.measure((system, loss), base.kilobytes).mean for system in (base.XCP, base.TCP))
    return xcp / tcp


def again(data: Data) -> float:
    """Return TCP's largest throughput after the first loss, over the capacity."""
    return fig1.peaks(data, later=True).mean


def share(data: Data) -> float:
    """Return the share of the runs that belong to figure 7."""
    return fmean(not stands for stands in fig7.standing(data))


def kilobytes_of_class(data: Data, stands: bool) -> float:
    """Return the throughput of the runs with a standing queue, or of the others, KB/s."""
    return fig7.of_class(data, fig7.throughput, fig7.WHOLE, stands=stands).mean
