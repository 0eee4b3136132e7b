"""What decides a claim, and what would turn it, in words: for the pages.

A quantity is what one check compares, over the seeds of all blocks: it has one interval, that of the pooled mean, as
the rule of `verdicts` has it. Numbers that differ between the blocks stand side by side, with a bar between them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from explicate_papers.plan import choices
from explicate_papers.register import PAPERS
from explicate_papers.statistics import Check, Sample, number
from explicate_papers.verdicts import Block, Word, contains_a_bound, corresponding, interval, wilson

NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
MARGIN = re.compile(r" ± -?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|none)")
NAMED = 3
"""How many open checks a sentence names."""
MET_SHOWN = 8
"""How many checks that are met a page lists; those that are not met it lists all."""
CAUSES = {
    "paper": "the paper",
    "parameter": "a parameter that the paper leaves out",
    "ours": "ours",
    "register": "our reading of the paper",
    "seeds": "chance, with the seeds of the plan",
    "open": "not found; the claim holds with no setting that was tried",
}
"""The causes of explanations, in words."""


@dataclass(frozen=True)
class Quantity:
    """What one check compares, over all blocks: the text, and whether it is met in each block that has it.

    `distance` is that of the pooled mean from its nearest bound, in half widths of its interval: not a number if no
    mean is compared, infinite if the interval is a point. `seeds` is the number of values.
    """

    text: str
    holds: tuple[bool, ...]
    distance: float = math.nan
    seeds: int = 0
    is_open: bool = False

    @property
    def met(self) -> bool:
        """Whether it is met in all blocks."""
        return all(self.holds)

    def more_seeds(self) -> int:
        """Return about how many seeds would move the bound out of the interval, if the mean stays; 0 if none would."""
        if not self.is_open or not self.distance:
            return 0
        return math.ceil(self.seeds / self.distance**2)


def quantities(blocks: Sequence[Block]) -> list[Quantity]:
    """Return what was compared, in the judge's order, except that what is not met comes first."""
    made = [_quantity(blocks, row) for row in corresponding([block.checks for block in blocks])]
    made += [
        Quantity(f"seeds from {block.first_seed}: {block.note}", (False,))
        for block in blocks
        if block.holds is False and not block.checks
    ]
    return sorted(made, key=lambda one: one.met)


def decides(word: Word, made: Sequence[Quantity]) -> str:
    """Return in words what decides a claim; empty if nothing was compared."""
    said = _decides(word, made)
    # One check that surely fails is enough for a claim to fail; to hold it needs all of them.
    failing = [one.more_seeds() for one in made if not one.met and one.is_open]
    seeds = min(failing) if failing else max((one.more_seeds() for one in made), default=0)
    if word in (Word.UNDECIDED, Word.DEPENDS) and seeds:
        said += f". About {seeds} seeds in all would end the doubt if the means stay"
    return said


def _decides(word: Word, made: Sequence[Quantity]) -> str:
    failing = [one for one in made if not one.met]
    if failing:
        alone = "the one check is" if len(made) == 1 else f"{len(failing)} of {len(made)} checks are"
        return f"{alone} not met{' on both blocks of seeds' if word is Word.DEPENDS else ''}, marked ✗"
    open_ = [one for one in made if one.is_open]
    if open_:
        named = "; ".join(one.text for one in open_[:NAMED])
        return f"the interval contains the bound of {len(open_)} of {len(made)} checks: {named}"
    known = [one for one in made if math.isfinite(one.distance)]
    if not known:
        return "all checks are met, and none compares a mean that varies" if made else ""
    first = min(known, key=lambda one: one.distance)
    by = f"{first.distance:.2g} half widths of its interval"
    return f"all checks are met; nearest to its bound, by {by}: {first.text}"


def _quantity(blocks: Sequence[Block], row: Mapping[int, Check]) -> Quantity:
    checks = list(row.values())
    alone = len(row) == 1 and len(blocks) > 1
    where = f"seeds from {blocks[next(iter(row))].first_seed}: " if alone else ""
    text = where + merged([check.what for check in checks])
    wanted = merged([check.wanted for check in checks])
    text += f": {_measured(checks)} (wanted {wanted})"
    holds = tuple(check.holds for check in checks)
    if len(set(holds)) > 1:
        said = (
            f"{'met' if check.holds else 'not met'} on seeds from {blocks[place].first_seed}"
            for place, check in row.items()
        )
        text += f"; {', '.join(said)}"
    seeds = sum(len(check.sample.values) for check in checks if check.sample)
    return Quantity(text, holds, _distance(checks), seeds, contains_a_bound(checks))


def _measured(checks: Sequence[Check]) -> str:
    samples = [check.sample for check in checks if check.sample]
    if len(samples) < len(checks):
        return merged([check.measured for check in checks])
    values = [value for sample in samples for value in sample.values]
    if checks[0].proportion:
        low, high = wilson([bool(value) for value in values])
        return f"in {sum(map(bool, values)) / len(values):.0%} of {len(values)} seeds ({low:.0%} to {high:.0%})"
    if all(check.measured == str(sample) for check, sample in zip(checks, samples, strict=True)):
        return str(Sample(tuple(values)))
    shown = merged([check.measured for check in checks])
    above = _over_bounds(checks, 0)
    bounds = [merged([number(check.bounds[place] + 0.0) for check in checks]) for place in range(len(checks[0].bounds))]
    if len({check.bounds for check in checks}) == 1:
        return f"{shown}; what is judged: {Sample(tuple(values))}, bound {' and '.join(bounds)}"
    return f"{shown}; what is judged, above its bound: {Sample(tuple(above))}"


def _over_bounds(checks: Sequence[Check], place: int) -> list[float]:
    """Return the values of all blocks, less the bound of their block."""
    return [value - check.bounds[place] for check in checks if check.sample for value in check.sample.values]


def _distance(checks: Sequence[Check]) -> float:
    if not all(check.sample and check.sample.values and check.bounds for check in checks):
        return math.nan
    found = []
    for place in range(len(checks[0].bounds)):
        if checks[0].proportion:
            hits = [bool(value) for check in checks if check.sample for value in check.sample.values]
            (low, high), middle = wilson(hits), sum(hits) / len(hits)
            away, half = abs(middle - checks[0].bounds[place]), (high - low) / 2
        else:
            over = _over_bounds(checks, place)
            low, high = interval(over)
            away, half = abs(sum(over) / len(over)), (high - low) / 2
        found.append(away / half if half else math.inf)
    return min(found)


def merged(texts: Sequence[str]) -> str:
    """Return texts of several blocks as one: without their intervals, and numbers that differ with a bar between them.

    Texts that differ in more than numbers stand side by side.
    """
    plain = [MARGIN.sub("", text) for text in texts]
    if len(set(plain)) == 1:
        return plain[0]
    parts = [NUMBER.split(text) for text in plain]
    if len({tuple(one[::2]) for one in parts}) > 1:
        return " | ".join(plain)
    return "".join(same[0] if len(set(same)) == 1 else " | ".join(same) for same in zip(*parts, strict=True))


def listed(made: Iterable[tuple[str, bool]]) -> list[str]:
    """Return what a page lists of checks, each with whether it is met: all that are not, marked, and some that are."""
    checks = list(made)
    failing, met = ([text for text, one in checks if one is which] for which in (False, True))
    more = len(met) - MET_SHOWN
    rest = [f"… and {more} more that are met"] if more > 0 else []
    return [*(f"✗ {text}" for text in failing), *met[:MET_SHOWN], *rest]


def turns(claim: str, word: str, first: str, universe: Mapping[str, Any], broken_by: Sequence[str]) -> Iterator[str]:
    """Yield what would turn a claim of the class `word`, as far as it is on record.

    `first` is the answer of the first block of seeds, with which that of other choices is compared if the class is
    ``undecided`` or ``depends on seeds``: they have one block. `universe` is the record of the paper's other choices
    (those in use today are left out), `broken_by` names the controls under which the claim fails.
    """
    used = {f"{name}={one.used}" for name, one in choices(PAPERS[claim[0]]).items()}
    tried = {name: one for name, one in universe.get("alternatives", {}).items() if name not in used}
    now = first if word in (Word.UNDECIDED, Word.DEPENDS) else word
    differing = {name: entry["differs"].get(claim, now) for name, entry in tried.items()}
    found = [f"{name} ({other})" for name, other in differing.items() if other != now]
    if found:
        yield f"one other choice alone, first block of seeds: {', '.join(found)}"
    elif tried:
        yield f"none of {len(tried)} other choices alone"
    if broken_by:
        yield f"the control{'s' * (len(broken_by) > 1)} {', '.join(f'“{name}”' for name in broken_by)}"
