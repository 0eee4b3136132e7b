"""Y-txt-pktsize: longer packets need a stronger code (end of section III): parity for a loss of 1e-3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from explicate_papers.statistics import Check, Sample, fact, near, rising
from explicate_papers.study import Data, Line, Panel, Study
from explicate_papers.yousefizadeh.radio import parity

study = Study("Y-txt-pktsize")

CORRECTED = {260: 22, 520: 37, 1040: 62, 1500: 84, 4160: 200}
"""The register's symbols to be corrected, by bytes of the packet."""
RATES = (0.855, 0.875, 0.893, 0.899, 0.912)
LOSS = 1e-3


def needs(length: int) -> tuple[int, float]:
    """Return the symbols to be corrected and the code rate that 1x2 at 8 dB needs."""
    data, more = parity(length, LOSS, snr=8, antennas="1x2")
    return more // 2, data / (data + more)


@study.predicate("Y-txt-pktsize-a", deterministic=True)
def more_parity(_: Data) -> Iterator[Check]:
    """In symbols."""
    found = [needs(length)[0] for length in CORRECTED]
    grows = all(a < b for a, b in pairwise(found))
    yield fact(
        "corrected symbols", holds=grows, measured=", ".join(map(str, found)), wanted="each more than the one before"
    )
    for length, value in CORRECTED.items():
        yield near(f"corrected symbols for {length} bytes", Sample.of([needs(length)[0]]), value, 0)


@study.predicate("Y-txt-pktsize-b", deterministic=True)
def but_a_higher_rate(_: Data) -> Iterator[Check]:
    """In proportion to the packet the code may be weaker."""
    yield rising("code rates", [Sample.of([needs(length)[1]]) for length in CORRECTED])
    for length, rate in zip(CORRECTED, RATES, strict=True):
        yield near(f"code rate for {length} bytes", Sample.of([needs(length)[1]]), rate, 0.001)


for predicate in study.experiment.predicates:
    study.cannot_fail(
        predicate.id, "No network is run: the engine's formulas stand beside the paper's and the register's numbers."
    )


@study.plot
def plot(_: Data) -> Sequence[Panel]:
    """The required level against the length."""
    grid = list(CORRECTED)
    return [
        Panel("Symbols to correct", "packet (bytes)", "symbols", [Line("t_C", grid, [needs(x)[0] for x in grid])]),
        Panel("Code rate", "packet (bytes)", "data of all symbols", [Line("k/b", grid, [needs(x)[1] for x in grid])]),
    ]
