"""Y-txt-los: links in sight (section II-A): no errors while nothing is in the way, Rician fading, interference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate_papers.statistics import Check, Sample, at_most, falling, near
from explicate_papers.study import Data, Line, Panel, Study
from explicate_papers.yousefizadeh.radio import phi, told

study = Study("Y-txt-los")

SAME = 1e-9
"""Values of the same formula are equal to this share of them."""
K = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Power of the direct path over that of all others."""


@study.predicate("Y-txt-los-a", deterministic=True)
def only_bad_bursts(_: Data) -> Iterator[Check]:
    """Byte errors are those of the bad state alone, by the paper's recursion."""
    for snr in (5, 10, 20):
        row = told(snr=snr, good="clear")
        bad = row["symbol_error_bad"]
        yield near(f"errors of good bits at {snr} dB", Sample.of([row["symbol_error_good"]]), 0, 0)
        value = 1 - phi(8, 0.0, bad)[8]
        yield near(f"wrong bytes of a byte at {snr} dB", Sample.of([row["code_symbol_error"]]), value, 1e-12)


def error(snr: float, k: float) -> float:
    """Return the rate of wrong symbols in a good state with a direct path."""
    return float(told(snr=snr, rician_good=k)["symbol_error_good"])


@study.predicate("Y-txt-los-b", deterministic=True)
def direct_path_helps(_: Data) -> Iterator[Check]:
    """K = 0 is Rayleigh's fading; more is better."""
    for snr in (5, 10, 15):
        rayleigh = told(snr=snr)["symbol_error_good"]
        yield near(f"K = 0 at {snr} dB", Sample.of([error(snr, 0.0)]), rayleigh, 1e-12)
        yield falling(f"symbol errors over K at {snr} dB", [Sample.of([error(snr, k)]) for k in K])


@study.predicate("Y-txt-los-c", deterministic=True)
def interference_is_noise(_: Data) -> Iterator[Check]:
    """Interference as strong as the noise costs as much as half of the signal."""
    for snr in (5.0, 10.0, 20.0):
        for interference, loss_db in ((1.0, 3.010299956639812), (9.0, 10.0)):
            one, other = told(snr=snr + loss_db, interference=interference), told(snr=snr)
            keys = ("symbol_error_good", "symbol_error_bad", "packet_loss")
            off = max(abs(one[key] / other[key] - 1) for key in keys)
            what = f"{interference:g} times the noise at {snr + loss_db:.2f} dB as none at {snr:g} dB"
            yield at_most(f"{what}, apart by a share of", Sample.of([off]), SAME)


for predicate in study.experiment.predicates:
    study.cannot_fail(
        predicate.id, "No network is run: the engine's formulas stand beside the paper's and the register's numbers."
    )


@study.plot
def plot(_: Data) -> Sequence[Panel]:
    """Symbol errors with a direct path."""
    grid = list(range(31))
    lines = [Line(f"K = {k:g}", grid, [error(snr, k) for snr in grid]) for k in K]
    return [Panel("Symbol error rate, Rician fading", "SNR (dB)", "symbol error rate", lines, log="y")]
