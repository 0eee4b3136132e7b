"""Common checks of figures 4 and 5: one system with one set of antennas at several code rates of data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from explicate_papers.controls import Rewrite, Where, edit, everywhere
from explicate_papers.statistics import Check, Sample, above, at_least, at_most
from explicate_papers.study import Case, Data, Effort, Panel
from explicate_papers.yousefizadeh import base
from explicate_papers.yousefizadeh.base import CLEAR_DB, at_least_as_high, packets

RATES = (1.0, 0.9, 0.8, 0.7)
LOSS = 1e-3
"""The register's marks are the ratios at which this part of the blocks of data is lost."""
Key = tuple[str, str, float, float]


def recode(rate: float, where: Where = everywhere) -> Rewrite:
    """Return the mutation that gives all data this code rate; the capacity of controllers follows from it.

    It changes the cases that `where` chooses.
    """

    def change(label: Key, case: Case) -> Case:
        mbps = base.MBPS * base.share(label[0], (rate, 0.5), two_way=True)

        def recoded(content: dict[str, Any]) -> None:
            base.radio(content)["fec_data"] = rate
            link = content["topology"]["link"]
            if link["capacity"] != link["rate"]:
                link["capacity"] = f"{mbps:.6g}Mbit/s"

        return case.changed(recoded)

    return Rewrite("flat", change, where)


def with_antennas(antennas: str) -> Rewrite:
    """Return the mutation that gives all radios these antennas."""
    return edit("flat", lambda content: base.radio(content).update(antennas=antennas))


@dataclass(frozen=True)
class Curves:
    """A system's curves: `marks` has for each rate the ratio at which one block of data in a thousand is lost, dB."""

    system: str
    antennas: str
    beta: float
    marks: Mapping[float, float]

    def clear(self, rate: float) -> float:
        """Return a ratio at which nothing is lost, dB."""
        return self.marks[rate] + 15.0 if rate == 1 else CLEAR_DB

    def grid(self, effort: Effort, rate: float) -> list[float]:
        """Return the ratios, dB, from below the transition to far above."""
        points = self._around(effort, rate) | {self.clear(rate)}
        return sorted(points | set(self.below_uncoded(effort)) if rate in (1.0, 0.9) else points)

    def _around(self, effort: Effort, rate: float) -> set[float]:
        mark = self.marks[rate]
        steps = effort.pick((-4, -3, -2, -1.5, -1, -0.5, 0, 1, 2, 4), (-3, -2, -1, 0, 1))
        if rate == 1:
            # Without a code the transition is as wide as the fading.
            steps = effort.pick((-40, -30, -25, -20, -15, -10, -7, -5, -3, 0, 3, 6), (-20, -10, -5, 0))
        return {round(mark + step, 1) for step in steps if mark + step >= 0}

    def below_uncoded(self, effort: Effort) -> list[float]:
        """Return the ratios below the plateau of uncoded packets at which these are compared with coded ones, dB."""
        coded, plain = self.marks[0.9], self.marks[1.0]
        step = effort.pick((4.0,), (10.0,))[0]
        between = {round(coded + 1 + i * step, 1) for i in range(20)}
        return sorted(snr for snr in self._around(effort, 0.9) | between if snr < plain)

    def cases(self, effort: Effort) -> dict[Key, Case]:
        """Return the runs."""
        return {self.key(rate, snr): self.case(effort, rate, snr) for rate in RATES for snr in self.grid(effort, rate)}

    def key(self, rate: float, snr: float) -> Key:
        """Return the label of a run."""
        return self.system, self.antennas, rate, snr

    def case(self, effort: Effort, rate: float, snr: float) -> Case:
        """Return a run."""
        return base.case(effort, self.system, snr, antennas=self.antennas, beta=self.beta, fec=(rate, 0.5))

    def curve(self, data: Data, rate: float) -> list[Sample]:
        """Return the deliveries over the grid."""
        return [self.at(data, rate, snr) for snr in self.grid(data.effort, rate)]

    def at(self, data: Data, rate: float, snr: float) -> Sample:
        """Return the deliveries, million packets."""
        return packets(data, *self.key(rate, snr))

    def plateau(self, data: Data, rate: float) -> Sample:
        """Return the deliveries without losses."""
        return self.at(data, rate, self.clear(rate))

    def half(self, data: Data, rate: float) -> Sample:
        """Return the signal at which half of that is delivered, dB."""
        return base.crossing(self.grid(data.effort, rate), self.curve(data, rate), 0.5 * self.plateau(data, rate))

    def __str__(self) -> str:
        return f"{self.system}, {self.antennas}"

    # -------------------------------------------------------------------------------------------- claims

    def a_little_helps_a_lot(self, data: Data, times: float) -> Iterator[Check]:
        """Check that a rate of 0.9 doubles the deliveries somewhere, and reduces them nowhere below the plateau."""
        points = {snr: (self.at(data, 0.9, snr), self.at(data, 1.0, snr)) for snr in self.below_uncoded(data.effort)}
        best = max(points, key=lambda snr: points[snr][0].mean - times * points[snr][1].mean)
        coded, plain = points[best]
        # More, and not as much: where nothing arrives, twice nothing does.
        yield above(
            f"{self}, {best:g} dB: million packets at rate 0.9 and {times:g} times uncoded", coded, times * plain
        )
        for snr, (coded, plain) in points.items():
            yield at_least_as_high(f"{self}, {snr:g} dB: million packets at rate 0.9 and uncoded", coded, plain)

    def less_rate_less_signal(self, data: Data) -> Iterator[Check]:
        """Check that the transition moves left."""
        for weak, strong in pairwise(RATES):
            what = f"{self}: half at rate {weak:g} right of {strong:g}, dB"
            yield above(what, self.half(data, weak), self.half(data, strong))

    def waterfalls(self, data: Data, around_db: float) -> Iterator[Check]:
        """Check that the radio loses one packet in a thousand at the mark, by runs on both sides of it."""
        for rate in RATES[1:]:
            mark = self.marks[rate]
            before, after = (
                data.measure(self.key(rate, snr), base.radio_loss) for snr in (mark - around_db, mark + around_db)
            )
            yield at_least(f"{self}, rate {rate:g}: loss at {mark - around_db:g} dB", before, LOSS)
            yield at_most(f"{self}, rate {rate:g}: loss at {mark + around_db:g} dB", after, LOSS)

    def panel(self, data: Data) -> Panel:
        """Return the curves."""
        return Panel(
            str(self), "SNR of the good state (dB)", "delivered packets (million in 990 s)",
            [base.line(f"rate {rate:g}", self.grid(data.effort, rate), self.curve(data, rate)) for rate in RATES],
        )  # fmt: skip
