"""The verdict of the study: which law is better than which on a network, and what its bits buy.

The rule, which was written before the first run. On a network one law is better than another in a measure if in each of
two blocks of seeds its mean is better by at least a tenth of the larger one, and by at least the measure's own floor,
and the two 95 % intervals (Student's t over the seeds of the block) do not overlap. The bits of a law

- buy something if, against each law with fewer bits, it is better in a measure and worse in none;
- trade if it is better than each of these in a measure, and worse than one of them in another;
- buy nothing if a law with fewer bits is at least as good in every measure.

The bits of several laws that carry as many buy what the best of them buys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean, stdev

from explicate.summary import t_95

SHARE = 0.1
"""The least difference that counts, as a share of the larger mean."""

Blocks = Sequence[Sequence[float]]
"""The values of a measure: one for each seed of each block."""
Values = Mapping[str, Mapping[str, Blocks]]
"""What was measured on a network, by law and measure."""


@dataclass(frozen=True)
class Measure:
    """What is compared: its name in tables and in sentences, its unit, and the least difference that counts.

    `floor` is absolute; None is the network's own, for delays.
    """

    head: str
    words: str
    unit: str
    high: bool
    floor: float | None


MEASURES = {
    "use": Measure("use", "use", "", True, 0.02),
    "p50": Measure("delay p50", "median delay", "ms", False, None),
    "p99": Measure("delay p99", "p99 delay", "ms", False, None),
    "jain": Measure("Jain", "fairness", "", True, 0.05),
    "loss": Measure("drops", "drops", "%", False, 0.1),
    "short": Measure("≤ 15 kB", "median slowdown up to 15 kB", "", False, 0.1),
    "short99": Measure("≤ 15 kB, p99", "p99 slowdown up to 15 kB", "", False, 0.1),
    "middle": Measure("to 150 kB", "slowdown from 15 to 150 kB", "", False, 0.1),
    "large": Measure("> 150 kB", "slowdown beyond 150 kB", "", False, 0.1),
    "burst": Measure("burst", "slowdown of the burst", "", False, 0.1),
}
"""All measures: `use` of the capacity by payload, delay in queues, Jain's index of the long flows' shares, data packets
that queues drop, and slowdowns of transfers by size (the median up to 15 kB, means beyond, the last of a burst)."""


class Word(Enum):
    """What the bits of a law buy on a network; the best comes first."""

    BUYS = "buys"
    TRADES = "trades"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Against:
    """A law beside a rival with fewer bits: the measures in which it is better, and those in which it is worse."""

    rival: str
    better: tuple[str, ...]
    worse: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """What the bits of a law buy, with the comparisons that say so."""

    law: str
    word: Word
    against: tuple[Against, ...]


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and both ends of its 95 % interval; the ends are not numbers where there is no interval."""
    mean = fmean(values)
    if len(values) < 2 or not math.isfinite(mean):
        return mean, math.nan, math.nan
    margin = t_95(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return mean, mean - margin, mean + margin


def compared(measure: str, one: Blocks, other: Blocks, floor: float) -> int:
    """Return 1 if `one` is better, -1 if `other` is, and 0 if the blocks do not say.

    A value that is not a number, or a block of one seed, says nothing.
    """
    signs = set()
    for mine, theirs in zip(one, other, strict=True):
        (mean, low, high), (rival, least, most) = interval(mine), interval(theirs)
        apart = low > most or high < least
        if not (apart and abs(mean - rival) >= max(SHARE * max(abs(mean), abs(rival)), floor)):
            return 0
        signs.add(1 if (mean > rival) is MEASURES[measure].high else -1)
    return signs.pop() if len(signs) == 1 else 0


def against(values: Values, law: str, rival: str, floors: Mapping[str, float]) -> Against:
    """Compare a law with a rival in all measures of `floors`."""
    signs = {name: compared(name, values[law][name], values[rival][name], floors[name]) for name in floors}
    return Against(
        rival,
        tuple(name for name, sign in signs.items() if sign > 0),
        tuple(name for name, sign in signs.items() if sign < 0),
    )


def judge(values: Values, bits: Mapping[str, int], floors: Mapping[str, float]) -> dict[str, Finding]:
    """Return the findings of all laws in `values` that have rivals with fewer bits there."""
    found = {}
    for law in values:
        rivals = [one for one in values if bits[one] < bits[law]]
        if rivals:
            made = tuple(against(values, law, rival, floors) for rival in rivals)
            found[law] = Finding(law, word(made), made)
    return found


def word(made: Sequence[Against]) -> Word:
    """Return what comparisons with all rivals amount to."""
    if not all(one.better for one in made):
        return Word.NOTHING
    return Word.TRADES if any(one.worse for one in made) else Word.BUYS


def rungs(findings: Mapping[str, Finding], bits: Mapping[str, int]) -> dict[int, list[Finding]]:
    """Return by number of bits the findings with the best word, in order of the bits."""
    found: dict[int, list[Finding]] = {}
    order = list(Word)
    for count in sorted({bits[law] for law in findings}):
        mine = [one for law, one in findings.items() if bits[law] == count]
        best = min((one.word for one in mine), key=order.index)
        found[count] = [one for one in mine if one.word is best]
    return found


def sentence(count: int, best: Sequence[Finding], labels: Mapping[str, str], bits: Mapping[str, int]) -> str:
    """Return the verdict on `count` bits in words, from its best findings."""
    bought = bits_of(count)
    one = min(best, key=lambda finding: sum(len(each.worse) for each in finding.against))
    if one.word is Word.NOTHING:
        return f"{bought} {_s('buy', count)} nothing: {'; '.join(_needless(each, labels, bits) for each in best)}."
    gains = _by_rival(one, labels, worse=False)
    if one.word is Word.TRADES:
        losses = _by_rival(one, labels, worse=True)
        return f"{bought} {_s('trade', count)}: {labels[one.law]} is better than {gains}, but worse than {losses}."
    more = [labels[other.law] for other in best if other is not one]
    also = f" So {'do' if len(more) > 1 else 'does'} {_listed(more)}." if more else ""
    said = f"{labels[one.law]} is better than {gains}, and in nothing worse"
    return f"{bought} {_s('buy', count)} something: {said}.{also}"


def bits_of(count: int) -> str:
    """Return a number of bits in words."""
    return f"{count} bit" if count == 1 else f"{count} bits"


def _s(verb: str, count: int) -> str:
    return f"{verb}s" if count == 1 else verb


def _needless(finding: Finding, labels: Mapping[str, str], bits: Mapping[str, int]) -> str:
    """Return why the bits of a law buy nothing: a rival that is as good, the one with most advantages."""
    rival = max((one for one in finding.against if not one.better), key=lambda one: (len(one.worse), -bits[one.rival]))
    ahead = f", and better in {_listed([MEASURES[name].words for name in rival.worse])}" if rival.worse else ""
    name = f"{labels[rival.rival]} ({bits_of(bits[rival.rival])})"
    return f"{name} is as good as {labels[finding.law]} in every measure{ahead}"


def _by_rival(finding: Finding, labels: Mapping[str, str], *, worse: bool) -> str:
    """Return the rivals with what tells them apart, those with the same measures together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in finding.against:
        if names := one.worse if worse else one.better:
            groups.setdefault(names, []).append(labels[one.rival])
    return ", ".join(
        f"{_listed(rivals)} in {_listed([MEASURES[name].words for name in names])}" for names, rivals in groups.items()
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
