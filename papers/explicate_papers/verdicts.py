"""The class of a claim that was judged on two disjoint blocks of seeds: one of six.

`classify` is the whole rule. It uses the result of each block, whether sampling error could change that, and whether a
control is known to make the claim fail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest

from explicate_papers.statistics import Check, Sample


class Word(StrEnum):
    """The class of a claim. Every claim has exactly one."""

    HOLDS = "holds"
    DEPENDS = "depends on seeds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    CANNOT_FAIL = "cannot fail"
    NOT_JUDGED = "not judged"


MEANING = {
    Word.HOLDS: "the criterion is met as written on both blocks of seeds",
    Word.DEPENDS: "it is met on one block of seeds and not on the other",
    Word.FAILS: "it is met on neither block",
    Word.UNDECIDED: "both blocks agree, but the 95 % interval of a decisive mean contains its bound",
    Word.CANNOT_FAIL: "it is met, but under no control, a change that should break it, does it fail",
    Word.NOT_JUDGED: "there is no verdict on the criterion as written; a note gives the reason",
}
"""The meaning of each class, for the pages."""


COUNTED = {
    **{word: word.value for word in Word},
    Word.HOLDS: "hold",
    Word.DEPENDS: "depend on seeds",
    Word.FAILS: "fail",
}
"""The words after the number of claims of a class."""


@dataclass(frozen=True)
class Block:
    """The result of one block of seeds for a claim.

    `holds` is None if it was not judged; `note` has the reason, or the empty class of runs if there is no check.
    """

    first_seed: int
    holds: bool | None
    checks: tuple[Check, ...] = ()
    runs: int = 0
    note: str = ""

    @property
    def measured(self) -> str:
        """The measurements, all checks in one line."""
        return "; ".join(map(str, self.checks)) or self.note


def classify(blocks: Sequence[Block], *, instead: bool = False, unfailing: bool = False) -> Word:
    """Return the class of a claim from its blocks: two, or one if it is deterministic.

    `instead`: the blocks were not judged by the criterion. `unfailing`: no control makes the claim fail.
    """
    answers = [block.holds for block in blocks]
    if not answers or None in answers:
        return Word.NOT_JUDGED
    if unfailing and all(answers):
        return Word.CANNOT_FAIL
    if instead:
        return Word.NOT_JUDGED
    if len(set(answers)) > 1:
        return Word.DEPENDS
    if is_open(blocks):
        return Word.UNDECIDED
    return Word.HOLDS if answers[0] else Word.FAILS


def is_open(blocks: Sequence[Block]) -> bool:
    """Whether more seeds could change the verdict of blocks that agree.

    A check is open if the interval of its mean, over the seeds of all blocks, contains a bound. A claim that holds
    does so by all of its checks, so one open check is enough; a claim that fails stays failed by any check that is not
    open.
    """
    doubts = open_checks([block.checks for block in blocks])
    for block, open_ in zip(blocks, doubts, strict=True):
        if block.holds and any(open_):
            return True
        failing = [doubt for check, doubt in zip(block.checks, open_, strict=True) if not check.holds]
        if not block.holds and failing and all(failing):
            return True
    return False


def open_checks(blocks: Sequence[Sequence[Check]]) -> list[list[bool]]:
    """Return for each check of each block whether it is open.

    Checks of the blocks correspond if they have the same position and compare the same quantity; their values are then
    pooled. A check that only one block has is judged by its values.
    """
    made: list[list[bool]] = [[] for _ in blocks]
    for row in corresponding(blocks):
        open_ = contains_a_bound(list(row.values()))
        for place in row:
            made[place].append(open_)
    return made


def corresponding(blocks: Sequence[Sequence[Check]]) -> Iterator[dict[int, Check]]:
    """Yield checks that compare the same quantity, by the place of their block; a check alone if no other does."""
    for row in zip_longest(*blocks):
        there = {place: check for place, check in enumerate(row) if check is not None}
        if len(there) == len(row) and len({(_name(check), len(check.bounds)) for check in there.values()}) == 1:
            yield there
        else:
            yield from ({place: check} for place, check in there.items())


def _name(check: Check) -> str:
    """Return the compared quantity, without the measured numbers in its text."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?|none|inf|nan|±", "", check.what).replace(" ", "")


def contains_a_bound(checks: Sequence[Check]) -> bool:
    """Whether the 95 % interval of the mean of the checks' values, pooled, contains one of the bounds."""
    values = [check.sample.values if check.sample else () for check in checks]
    if not all(values):
        return False
    for place in range(len(checks[0].bounds)):
        bounds = [check.bounds[place] for check in checks]
        if checks[0].proportion:
            low, high = wilson([bool(value) for one in values for value in one])
            contained = any(low <= bound <= high for bound in bounds)
        else:
            # Bounds may differ between blocks, if a bound is a share of a measurement.
            low, high = interval([value - bound for one, bound in zip(values, bounds, strict=True) for value in one])
            # More seeds do not change equal values on a bound, such as counts at a hard limit.
            contained = low <= 0.0 <= high and low < high
        if contained:
            return True
    return False


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean; of equal values a point, of one value alone too.

    It is not a number if a value is not finite.
    """
    sample = Sample(tuple(values))
    if not all(map(math.isfinite, values)):
        return math.nan, math.nan
    margin = 0.0 if len(set(values)) == 1 else sample.margin
    return sample.mean - margin, sample.mean + margin


def wilson(hits: Sequence[bool]) -> tuple[float, float]:
    """Return the 95 % interval of a proportion (Wilson 1927, J. Am. Stat. Assoc. 22:209-212, without correction)."""
    count, z = len(hits), 1.959964
    share = sum(hits) / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return middle - half, middle + half
