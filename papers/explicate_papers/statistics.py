"""Measured values over seeds, and checks on them.

A `Sample` has one value per seed, always in the same order, so that the difference of two samples is paired. A `Check`
compares a sample with a bound; a bound on a number applies to the mean, an ordering to the mean and to most seeds, or
(`exceeds`) to the mean alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist, fmean, stdev

from explicate.summary import t_95

SHARE = 0.8
"""An ordering holds if it holds for the mean and for this share of the seeds."""


@dataclass(frozen=True)
class Sample:
    """One value per seed."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Sample:
        """Return the sample of `values`; None counts as not a number."""
        return cls(tuple(math.nan if value is None else float(value) for value in values))

    @property
    def mean(self) -> float:
        """The mean; not a number if a value is none."""
        return fmean(self.values) if self.values else math.nan

    @property
    def margin(self) -> float:
        """Half the width of the 95 % confidence interval of the mean; not a number for a single seed."""
        count = len(self.values)
        if count < 2 or not all(map(math.isfinite, self.values)):
            return math.nan
        return t_95(count - 1) * stdev(self.values) / math.sqrt(count)

    def share(self, holds: Callable[[float], bool]) -> float:
        """Return the share of the seeds for which `holds`."""
        return sum(map(holds, self.values)) / len(self.values) if self.values else 0.0

    def map(self, change: Callable[[float], float]) -> Sample:
        """Return the sample with each value changed."""
        return Sample.of(map(change, self.values))

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def __str__(self) -> str:
        mean = number(self.mean)
        return mean if math.isnan(self.margin) else f"{mean} ± {number(self.margin)}"

    def __neg__(self) -> Sample:
        return Sample(tuple(-value for value in self.values))

    def __add__(self, other: Sample | float) -> Sample:
        return _paired(self, other, lambda a, b: a + b)

    def __sub__(self, other: Sample | float) -> Sample:
        return _paired(self, other, lambda a, b: a - b)

    def __rsub__(self, other: float) -> Sample:
        return _paired(self, other, lambda a, b: b - a)

    def __mul__(self, other: Sample | float) -> Sample:
        return _paired(self, other, lambda a, b: a * b)

    def __truediv__(self, other: Sample | float) -> Sample:
        return _paired(self, other, lambda a, b: a / b if b else math.nan)

    __radd__ = __add__
    __rmul__ = __mul__


def _paired(one: Sample, other: Sample | float, work: Callable[[float, float], float]) -> Sample:
    if not isinstance(other, Sample):
        return Sample(tuple(work(value, other) for value in one.values))
    if len(one.values) != len(other.values):
        raise ValueError(f"samples of {len(one.values)} and {len(other.values)} seeds cannot be paired")
    return Sample(tuple(map(work, one.values, other.values)))


def total(samples: Iterable[Sample]) -> Sample:
    """Return the sum of `samples`, seed by seed."""
    first, *rest = samples
    for sample in rest:
        first += sample
    return first


def average(samples: Sequence[Sample]) -> Sample:
    """Return the mean of `samples`, seed by seed."""
    return total(samples) * (1 / len(samples))


def standard_errors(checks: int, chance: float = 0.01) -> float:
    """Return the bound, in standard errors, that the worst of `checks` normal errors exceeds by `chance` alone.

    One error exceeds three standard errors in 0.27 % of cases, one of 84 in a fifth (Šidák 1967, J. Am. Stat. Assoc.
    62:626-633, for independent errors; it is wider than needed for others).
    """
    alone = 1 - (1 - chance) ** (1 / checks)
    return NormalDist().inv_cdf(1 - alone / 2)


def number(value: float) -> str:
    """Return `value` as a table shows it: four significant digits."""
    if math.isnan(value):
        return "none"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


@dataclass(frozen=True)
class Check:
    """A comparison: its text with the bound, and whether it holds.

    `sample` has the values whose mean was compared with `bounds`, if a mean was compared. The values of a `proportion`
    are 1 and 0.
    """

    what: str
    measured: str
    wanted: str
    holds: bool
    sample: Sample | None = None
    bounds: tuple[float, ...] = ()
    proportion: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.measured} (wanted {self.wanted})"


def at_least(what: str, sample: Sample, bound: float) -> Check:
    """Check that the mean is `bound` or more."""
    return Check(what, str(sample), f"≥ {number(bound)}", sample.mean >= bound, sample, (bound,))


def at_most(what: str, sample: Sample, bound: float) -> Check:
    """Check that the mean is `bound` or less."""
    return Check(what, str(sample), f"≤ {number(bound)}", sample.mean <= bound, sample, (bound,))


def between(what: str, sample: Sample, low: float, high: float) -> Check:
    """Check that the mean lies from `low` to `high`."""
    wanted = f"in [{number(low)}, {number(high)}]"
    return Check(what, str(sample), wanted, low <= sample.mean <= high, sample, (low, high))


def near(what: str, sample: Sample, value: float, tolerance: float) -> Check:
    """Check that the mean is `value` within `tolerance`, absolute."""
    wanted = f"{number(value)} ± {number(tolerance)}"
    holds = abs(sample.mean - value) <= tolerance
    return Check(what, str(sample), wanted, holds, sample, (value - tolerance, value + tolerance))


def close(what: str, one: Sample, other: Sample, tolerance: float) -> Check:
    """Check that the means differ by at most `tolerance`, absolute."""
    measured, wanted = f"{one} against {other}", f"within {number(tolerance)}"
    difference = one - other
    return Check(what, measured, wanted, abs(difference.mean) <= tolerance, difference, (-tolerance, tolerance))


def equal(what: str, sample: Sample, value: float) -> Check:
    """Check that every seed gives exactly `value`."""
    return Check(what, str(sample), f"= {number(value)}", all(one == value for one in sample))


def above(what: str, high: Sample, low: Sample, slack: float = 0.0) -> Check:
    """Check that `high` exceeds `low` (by more than -`slack`), for the mean and for most seeds."""
    difference = high - low
    share = difference.share(lambda value: value > -slack)
    measured = f"{high} against {low}, in {share:.0%} of the seeds"
    wanted = "more" if slack == 0 else f"more, or less by at most {number(slack)}"
    return Check(what, measured, wanted, difference.mean > -slack and share >= SHARE, difference, (-slack,))


def exceeds(what: str, high: Sample, low: Sample) -> Check:
    """Check that the mean of `high` exceeds that of `low`: for sentences that compare averages."""
    difference = high - low
    return Check(what, f"{high} against {low}", "more on average", difference.mean > 0, difference, (0.0,))


def in_most(what: str, sample: Sample, share: float = SHARE) -> Check:
    """Check that values, 1 if a statement holds and 0 otherwise, are 1 in `share` of the seeds."""
    got = sample.share(bool)
    return Check(what, f"in {got:.0%} of the seeds", f"in {share:.0%}", got >= share, sample, (share,), proportion=True)


def falling(what: str, samples: Sequence[Sample], slack: float = 0.0, *, relative: bool = False) -> Check:
    """Check that the means do not rise from one sample to the next by more than `slack`.

    `slack` is absolute or, if `relative`, a share of the smaller of the two in size.
    """
    steps = [(_allowed(before, after, slack, relative=relative), after - before) for before, after in pairwise(samples)]
    worst = max(steps, key=lambda step: step[1].mean - step[0], default=(slack, Sample(())))
    share = f"{number(100 * slack)} %" if relative else number(slack)
    wanted = f"never up by more than {share}" if slack else "never up"
    measured = " → ".join(number(sample.mean) for sample in samples)
    holds = all(step.mean <= allowed for allowed, step in steps)
    return Check(what, measured, wanted, holds, worst[1], (worst[0],))


def rising(what: str, samples: Sequence[Sample], slack: float = 0.0, *, relative: bool = False) -> Check:
    """Check that the means do not fall from one sample to the next by more than `slack`; see `falling`."""
    made = falling(what, [-sample for sample in samples], slack, relative=relative)
    measured = " → ".join(number(sample.mean) for sample in samples)
    return replace(made, measured=measured, wanted=made.wanted.replace("up", "down"))


def _allowed(before: Sample, after: Sample, slack: float, *, relative: bool) -> float:
    return slack * min(abs(before.mean), abs(after.mean)) if relative else slack


def fact(what: str, *, holds: bool, measured: str, wanted: str = "holds") -> Check:
    """Return the check of a quantity that no seed changes."""
    return Check(what, measured, wanted, holds)
