"""Y-txt-symsize: larger symbols of the code need a stronger one (end of section III), at 1x2, 8 dB and 1040 bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from explicate_papers.statistics import Check, Sample, fact, near
from explicate_papers.study import Data, Line, Panel, Study
from explicate_papers.yousefizadeh.radio import parity

study = Study("Y-txt-symsize")

RATES = {4: 0.944, 8: 0.893, 12: 0.846, 16: 0.800}
"""The register's code rates, by bits of a symbol."""


def rate(bits: int) -> float:
    """Return the highest code rate at which no more than one packet in a thousand is lost."""
    data, more = parity(1040, 1e-3, bits, snr=8, antennas="1x2")
    return data / (data + more)


@study.predicate("Y-txt-symsize-a", deterministic=True)
def lower_rate(_: Data) -> Iterator[Check]:
    """A burst spoils a large symbol as it does a small one."""
    found = [rate(bits) for bits in RATES]
    falls = all(a > b for a, b in pairwise(found))
    measured = ", ".join(f"{one:.3f}" for one in found)
    yield fact("code rates", holds=falls, measured=measured, wanted="each below the one before")
    for bits, value in RATES.items():
        yield near(f"code rate for symbols of {bits} bits", Sample.of([rate(bits)]), value, 0.001)


for predicate in study.experiment.predicates:
    study.cannot_fail(
        predicate.id, "No network is run: the engine's formulas stand beside the paper's and the register's numbers."
    )


@study.plot
def plot(_: Data) -> Sequence[Panel]:
    """The rate against the size of a symbol."""
    line = Line("k/b", list(RATES), [rate(bits) for bits in RATES])
    return [Panel("Code rate for one packet lost in a thousand", "symbol (bits)", "data of all symbols", [line])]
