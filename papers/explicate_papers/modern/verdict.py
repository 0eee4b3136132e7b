"""The rule of the modern verdict, which says whether a paper's protocol is ahead of what is used today.

The rule, which was written before the first run. Whether one of two is better in a measure is decided as in the study
of bits (`explicate.studies.verdict.compared`): in each of two blocks of seeds its mean is better by at least a tenth of
the larger one and by the measure's floor, and the 95 % intervals do not overlap. Beside one rival, the paper's protocol
over today's hosts is

- ahead if it is better in a measure and worse in none;
- behind if it is worse in a measure and better in none;
- mixed if it is better in one and worse in another;
- the same if it is neither better nor worse in any.

On a topology it is

- ahead if it is ahead of every rival;
- behind if it is behind a rival;
- mixed if it is behind none, and mixed beside one;
- the same otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from explicate.studies.verdict import MEASURES, Against, Values, against

THEN, PAPER, OWN = "then", "paper", "own"
"""Rows of every topology: the paper's baseline and its protocol, both with its hosts; the protocol with today's."""


class Word(Enum):
    """How the paper's protocol stands beside a rival, or on a topology."""

    AHEAD = "ahead"
    SAME = "same"
    MIXED = "mixed"
    BEHIND = "behind"


@dataclass(frozen=True)
class Finding:
    """What came out on a topology.

    `beside` are the comparisons of the paper's protocol over today's hosts with each law of today; `then` is that of
    the protocol with the baseline, both with the paper's hosts.
    """

    word: Word
    beside: Mapping[str, Against]
    then: Against | None


def judge(values: Values, rivals: Sequence[str], floors: Mapping[str, float]) -> Finding | None:
    """Return what the rule says of a topology's values; nothing if the protocol or all rivals are missing."""
    beside = {one: against(values, OWN, one, floors) for one in rivals if OWN in values and one in values}
    if not beside:
        return None
    then = against(values, PAPER, THEN, floors) if PAPER in values and THEN in values else None
    return Finding(on_topology([word(one) for one in beside.values()]), beside, then)


def word(one: Against) -> Word:
    """Return how the protocol stands beside one rival."""
    if one.better:
        return Word.MIXED if one.worse else Word.AHEAD
    return Word.BEHIND if one.worse else Word.SAME


def on_topology(words: Collection[Word]) -> Word:
    """Return how the protocol stands on a topology, from its words beside all rivals."""
    if all(one is Word.AHEAD for one in words):
        return Word.AHEAD
    for one in (Word.BEHIND, Word.MIXED):
        if one in words:
            return one
    return Word.SAME


def sentences(finding: Finding, names: Mapping[str, str]) -> list[str]:
    """Return a topology's verdict in words: today's first, then that of the paper's own comparison.

    `names` has those of the rows.
    """
    own, groups = names[OWN], dict[tuple[Word, tuple[str, ...], tuple[str, ...]], list[str]]()
    for rival, one in finding.beside.items():
        groups.setdefault((word(one), one.better, one.worse), []).append(names[rival])
    parts = [
        _stands(said, _listed(rivals), better, worse)
        for (said, better, worse), rivals in sorted(groups.items(), key=lambda item: list(Word).index(item[0][0]))
    ]
    made = [f"Today {own} is {'; '.join(parts)}."]
    if finding.then is not None:
        then = _stands(word(finding.then), names[THEN], finding.then.better, finding.then.worse)
        made.append(f"With the paper's hosts, and beside the baseline, it is {then}.")
    return made


def _stands(said: Word, rivals: str, better: Sequence[str], worse: Sequence[str]) -> str:
    gains, losses = (_listed([MEASURES[name].words for name in names]) if names else "" for names in (better, worse))
    return {
        Word.AHEAD: f"ahead of {rivals} ({gains})",
        Word.SAME: f"the same as {rivals}",
        Word.MIXED: f"better than {rivals} in {gains} and worse in {losses}",
        Word.BEHIND: f"behind {rivals} ({losses})",
    }[said]


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
