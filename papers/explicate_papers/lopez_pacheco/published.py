"""How the numbers of ``published.toml`` are measured in our runs."""

from __future__ import annotations

from statistics import fmean

from explicate_papers.lopez_pacheco import base, fig14a, losses
from explicate_papers.study import Data, Label


def megabytes(data: Data, label: Label, group: str) -> float:
    """Return the data that a group delivered, MB."""
    return data.measure(label, base.megabytes(group)).mean


def rate(data: Data, label: Label, group: str) -> float:
    """Return the rate of a group, Mbit/s."""
    return data.measure(label, base.rate(group)).mean


def bursts(data: Data, label: Label, sender: str) -> float:
    """Return the number of bursts of drops on the way of a sender."""
    gap_s = losses.gap_s(data.effort)
    return fmean(len(losses.bursts(results, sender, gap_s)) for results in data.runs(label))


def load(data: Data) -> float:
    """Return the largest load of the shared link in a round trip, Mbit/s."""
    return data.measure(fig14a.TWO, fig14a.load).mean
