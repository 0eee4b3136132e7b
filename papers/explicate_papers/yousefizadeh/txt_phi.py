"""Y-txt-phi: the equations of the channel (equations 1 to 5): the paper's recursion and the engine's values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import comb, sqrt

from explicate_papers.statistics import Check, Sample, at_most, fact, near
from explicate_papers.study import Data, Line, Panel, Study
from explicate_papers.yousefizadeh.base import ANTENNAS, BETA_8, BETA_12
from explicate_papers.yousefizadeh.radio import bisect, phi, told

study = Study("Y-txt-phi")

STATIONARY = {BETA_8: (0.990099, 0.009901), BETA_12: (0.985221, 0.014779)}
AT_10_DB = {"1x1": (0.02327, 1e-5), "1x2": (1.60e-3, 1e-5), "2x1": (5.53e-3, 1e-5), "2x2": (1.13e-4, 1e-6)}
"""The register's symbol error rates, and their last digit."""
SHIFT_DB = 3.01
BRANCHES = {"1x1": (1.0, 1), "2x1": (0.5, 2), "1x2": (1.0, 2), "2x2": (0.5, 4)}
"""Share of the signal for each antenna that sends, and signals that are combined."""


def symbol_error(snr: float, antennas: str) -> float:
    """Return the engine's rate of wrong symbols in the good state."""
    return float(told(snr=snr, antennas=antennas)["symbol_error_good"])


def rayleigh(snr_db: float, antennas: str) -> float:
    """Return the closed form for BPSK over Rayleigh fading with combining."""
    share, branches = BRANCHES[antennas]
    s = share * 10 ** (snr_db / 10)
    series = sum(comb(2 * j, j) / (4 * (1 + s)) ** j for j in range(branches))
    return 0.5 * (1 - sqrt(s / (1 + s)) * series)


@study.predicate("Y-txt-phi-a", deterministic=True, precision=1e-12, bits=64)
def sums_to_one(_: Data, precision: float, bits: float) -> Iterator[Check]:
    """The recursion is a probability distribution, and yields the engine's byte errors."""
    for snr in (0, 10, 20):
        row = told(snr=snr)
        errors = row["symbol_error_good"], row["symbol_error_bad"]
        worst = max(abs(sum(phi(t, *errors)) - 1) for t in range(1, int(bits) + 1))
        yield at_most(f"sums at {snr} dB, worst distance from 1", Sample.of([worst]), precision)
        off = abs(1 - phi(8, *errors)[8] - row["code_symbol_error"])
        yield at_most(f"1 - phi(8, 8) at {snr} dB, distance from the engine's", Sample.of([off]), precision)


@study.predicate("Y-txt-phi-b", deterministic=True, precision=1e-6)
def starts_stationary(_: Data, precision: float) -> Iterator[Check]:
    """If half of the bits are wrong in the bad state only, the loss of bits is half of that state's probability."""
    for beta, (good, bad) in STATIONARY.items():
        lost = told(snr=10, beta=beta, symbol_bits=1, good="clear", bad="blocked")["code_symbol_error"]
        yield near(f"bad share, beta {beta:g}", Sample.of([2 * lost]), bad, precision)
        yield near(f"good share, beta {beta:g}", Sample.of([1 - 2 * lost]), good, precision)


@study.predicate("Y-txt-phi-c", deterministic=True, precision=1e-12)
def equation_5_for_two_points(_: Data, precision: float) -> Iterator[Check]:
    """BPSK over Rayleigh fading has a closed form."""
    for antennas, (value, digit) in AT_10_DB.items():
        off = max(abs(symbol_error(snr, antennas) - rayleigh(snr, antennas)) for snr in range(-5, 41, 5))
        yield at_most(f"{antennas}: largest distance from the closed form", Sample.of([off]), precision)
        yield near(f"{antennas} at 10 dB", Sample.of([symbol_error(10, antennas)]), value, digit)


@study.predicate("Y-txt-phi-d", deterministic=True, low=-5, high=40)
def antennas_in_order(_: Data, low: float, high: float) -> Iterator[Check]:
    """More antennas, fewer errors."""
    grid = range(int(low), int(high) + 1)
    for worse, better in pairwise(ANTENNAS):
        least = min(symbol_error(snr, worse) / symbol_error(snr, better) for snr in grid)
        yield fact(
            f"errors of {worse} over {better}, least of all SNR", holds=least > 1, measured=f"{least:.4g}", wanted="> 1"
        )


@study.predicate("Y-txt-phi-e", deterministic=True, error_db=0.02)
def half_the_power_each(_: Data, error_db: float) -> Iterator[Check]:
    """Two transmitting antennas share the power of one."""
    for snr in (0.0, 10.0, 20.0, 30.0):
        goal = symbol_error(snr, "1x2")
        there = bisect(snr, snr + 6, lambda x, goal=goal: symbol_error(x, "2x1") > goal, 1e-4)  # type: ignore[misc]
        yield near(f"2x1 right of 1x2 at {snr:g} dB, dB", Sample.of([there - snr]), SHIFT_DB, error_db)


for predicate in study.experiment.predicates:
    study.cannot_fail(
        predicate.id, "No network is run: the engine's formulas stand beside the paper's and the register's numbers."
    )


@study.plot
def plot(_: Data) -> Sequence[Panel]:
    """Equation 5 for the four sets of antennas."""
    grid = list(range(-5, 41))
    lines = [Line(antennas, grid, [symbol_error(snr, antennas) for snr in grid]) for antennas in ANTENNAS]
    return [Panel("Symbol error rate, BPSK", "SNR (dB)", "symbol error rate", lines, log="y")]
