"""How the numbers of ``published.toml`` are measured in our runs."""

from __future__ import annotations

from explicate_papers.ikeda import base, fig7
from explicate_papers.study import Data


def clearest(data: Data) -> float:
    """Return the packet error rate at which WLTE gains most goodput."""
    gains = {
        loss: (fig7.goodput(data, base.PROPOSED, loss) - fig7.goodput(data, base.BISE, loss)).mean
        for loss in fig7.losses(data.effort)
    }
    return max(gains, key=lambda loss: gains[loss])
