"""Y-fig4: VCP with four code rates of data, one and four antennas (figure 4). See `base.py`, `coding.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from explicate_papers.statistics import Check, above, at_most, near
from explicate_papers.study import Case, Data, Effort, Panel, Study
from explicate_papers.yousefizadeh.base import BETA_8, CLEAR_DB, VCP
from explicate_papers.yousefizadeh.coding import RATES, Curves, Key, recode, with_antennas

study = Study("Y-fig4")

ONE = Curves(VCP, "1x1", BETA_8, {1.0: 63.5, 0.9: 18.0, 0.8: 14.2, 0.7: 11.9})
FOUR = Curves(VCP, "2x2", BETA_8, {1.0: 22.8, 0.9: 5.4, 0.8: 3.5, 0.7: 2.4})
UNCODED_DB = 30.0


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """Both sets of antennas at every rate; and one antenna without a code at 30 dB."""
    return {**ONE.cases(effort), **FOUR.cases(effort), ONE.key(1.0, UNCODED_DB): ONE.case(effort, 1.0, UNCODED_DB)}


@study.predicate("Y-fig4-a", times=2)
def a_little_helps_a_lot(data: Data, times: float) -> Iterator[Check]:
    """A weak code for data and a strong one for acknowledgements."""
    for curves in (ONE, FOUR):
        yield from curves.a_little_helps_a_lot(data, times)


@study.predicate("Y-fig4-b")
def less_rate_less_signal(data: Data) -> Iterator[Check]:
    """The transition moves left."""
    for curves in (ONE, FOUR):
        yield from curves.less_rate_less_signal(data)


@study.predicate("Y-fig4-c", percent=5)
def protection_has_a_price(data: Data, percent: float) -> Iterator[Check]:
    """Parity occupies its part of the line."""
    for curves in (ONE, FOUR):
        for weak, strong in pairwise(RATES[1:]):
            more, less = curves.plateau(data, weak), curves.plateau(data, strong)
            yield above(f"{curves}: plateau at rate {weak:g} over {strong:g}, million packets", more, less)
            ratio = strong / weak
            what = f"{curves}: plateau at rate {strong:g} over that at {weak:g}"
            yield near(what, less / more, ratio, percent / 100 * ratio)


@study.predicate("Y-fig4-d")
def antennas_help_at_every_rate(data: Data) -> Iterator[Check]:
    """2x2 lies left of 1x1."""
    for rate in RATES:
        yield above(f"half at rate {rate:g}: 1x1 right of 2x2, dB", ONE.half(data, rate), FOUR.half(data, rate))


@study.predicate("Y-fig4-e", share=0.05)
def no_code_no_traffic(data: Data, share: float) -> Check:
    """One antenna loses nine packets of ten at 30 dB."""
    got = ONE.at(data, 1.0, UNCODED_DB) / ONE.plateau(data, 1.0)
    return at_most(f"uncoded, 1x1 at {UNCODED_DB:g} dB, of its plateau", got, share)


@study.predicate("Y-fig4-f", around_db=1)
def waterfalls(data: Data, around_db: float) -> Iterator[Check]:
    """One packet in a thousand."""
    for curves in (ONE, FOUR):
        yield from curves.waterfalls(data, around_db)


study.control(
    "one code", recode(0.9), ["Y-fig4-a", "Y-fig4-b", "Y-fig4-c", "Y-fig4-e", "Y-fig4-f"],
    "Data have the rate 0.9 everywhere: no rate is better, further left or cheaper than another, and the runs that "
    "should be uncoded deliver at 30 dB.",
)  # fmt: skip
study.control(
    "one antenna", with_antennas("1x1"), ["Y-fig4-d"],
    "All radios have one antenna: what stands for 2x2 has no gain, and its transition lies where that of 1x1 does.",
)  # fmt: skip
study.control(
    "a code in place of none", recode(0.9, lambda label: label[2] == 1.0), ["Y-fig4-a", "Y-fig4-b", "Y-fig4-e"],
    "The runs that should be uncoded have the code of 0.9, which is no better than itself, nor further left; and one "
    "antenna delivers at 30 dB.",
)  # fmt: skip
study.control(
    "one code where nothing is lost", recode(0.9, lambda label: label[3] == CLEAR_DB), ["Y-fig4-c"],
    "All plateaus with a code have the parity of 0.9: none is lower than another.",
)  # fmt: skip
study.control(
    "a code for one antenna alone", recode(0.9, lambda label: label[1] == "1x1" and label[2] == 1.0), ["Y-fig4-d"],
    "Four antennas lie left of one at the same rate; against one with a code, four without do not.",
)  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a set of antennas."""
    return [replace(curves.panel(data), compared=True) for curves in (ONE, FOUR)]
