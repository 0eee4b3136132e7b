"""How the numbers of ``published.toml`` are measured in our runs."""

from __future__ import annotations

from explicate_papers.de_vleeschouwer import base, fig4
from explicate_papers.study import Data, Label


def ratio(data: Data, system: str) -> float:
    """Return the throughput of the system's half over that of the other."""
    return base.fairness(data, system).mean


def used(data: Data, *label: Label) -> float:
    """Return the share of the bottleneck that is used."""
    return data.measure(label[0] if len(label) == 1 else label, base.utilisation).mean


def queue(data: Data) -> float:
    """Return the router's mean queue without losses, packets."""
    return data.measure((fig4.WITH, 0.0), fig4.smooth_queue).mean
