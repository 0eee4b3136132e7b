"""K-fig2: how the load grows under BISE by the paper's analysis, for several k (equations 10 to 12, figure 2).

Nothing is simulated. The checks are that the closed form solves the routers' equations (equation 11 and the growth of
equation 9), and that it has the properties that the text derives from it. Figure 5 compares it with simulations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from explicate_papers.ikeda import base
from explicate_papers.statistics import Check, Sample, fact, near, number
from explicate_papers.study import Data, Effort, Line, Panel, Study

study = Study("K-fig2")

FULL = 1.0
"""rho_inf."""
STEPS = range(1, 31)
DIGIT = 0.05
"""Half of the last digit that the criterion gives."""


def values_of_k(effort: Effort) -> list[float]:
    """Return the curves."""
    return [float(k) for k in effort.choices["K-P1"].split()]


def analysis(k: float, n: int) -> float:
    """Return the load of interval n, from 1 (equation 12)."""
    return FULL * (1 - (1 - k) ** (n - 1))


def intervals(k: float, load: float = 0.8) -> float:
    """Return after how many intervals equation 12 has reached a load."""
    return math.log(1 - load / FULL) / math.log(1 - k)


def recursion(k: float) -> list[float]:
    """Return the loads of equation 10 from an empty link on."""
    loads = [0.0]
    for _ in STEPS[1:]:
        loads.append(loads[-1] + k * (FULL - loads[-1]))
    return loads


def controlled(k: float, mbps: float, packets: float) -> list[float]:
    """Return the loads where so many packets are sent in the first round trip, by equations 9 and 11, r not cut."""
    full = mbps * 1e6 * base.RTT_S / (8 * base.PACKET)
    loads = [packets / full]
    for _ in STEPS[1:]:
        mixing = k * (FULL - loads[-1]) / ((base.GROWTH - 1) * loads[-1])
        loads.append(loads[-1] * (1 + (base.GROWTH - 1) * mixing))
    return loads


@study.predicate("K-fig2-a", deterministic=True, tolerance=1e-12)
def closed_form(data: Data, tolerance: float) -> Iterator[Check]:
    """Equation 12 solves equation 10."""
    for k in values_of_k(data.effort):
        worst = max(abs(a - analysis(k, n)) for n, a in zip(STEPS, recursion(k), strict=True))
        yield fact(f"k = {k:g}: largest difference", holds=worst <= tolerance, measured=number(worst), wanted="≤ 1e-12")


@study.predicate("K-fig2-b", deterministic=True)
def never_above(data: Data) -> Iterator[Check]:
    """The load rises, and stays below full."""
    for k in values_of_k(data.effort):
        loads = recursion(k)
        rises = all(a < b or b > FULL - 1e-9 for a, b in pairwise(loads))
        holds = rises and max(loads) <= FULL
        yield fact(f"k = {k:g}", holds=holds, measured=f"rising to {max(loads):.4f}", wanted="rising, never above 1")


@study.predicate("K-fig2-c", deterministic=True, k01=15.3, k02=7.2, k033=4.02, k05=2.3, k07=1.3, k09=0.70)
def larger_is_faster(data: Data, **expected: float) -> Iterator[Check]:
    """Intervals until 80 %."""
    values = values_of_k(data.effort)
    measured = [intervals(k) for k in values]
    holds = all(a > b for a, b in pairwise(measured))
    yield fact("intervals to 80 %", holds=holds, measured=" → ".join(map(number, measured)), wanted="falling")
    for k, one in zip(values, measured, strict=True):
        wanted = expected.get("k" + f"{k:g}".replace(".", ""))
        if wanted is not None:
            yield near(f"k = {k:g}: intervals to 80 %", Sample.of([one]), wanted, DIGIT)


@study.predicate("K-fig2-d", deterministic=True)
def whatever_the_rate(data: Data) -> Iterator[Check]:
    """The same share of any link: 1 % of it at first."""
    for k in values_of_k(data.effort):
        curves = [controlled(k, mbps, 0.01 * mbps * 1e6 * base.RTT_S / (8 * base.PACKET)) for mbps in (10, 100, 1000)]
        worst = max(max(loads) - min(loads) for loads in zip(*curves, strict=True))
        yield fact(
            f"k = {k:g}: loads at 10, 100 and 1000 Mbit/s differ by", holds=worst < 1e-12, measured=number(worst),
            wanted="0",
        )  # fmt: skip


for one in "abcd":
    study.cannot_fail(f"K-fig2-{one}", "arithmetic on the paper's equations: nothing that is simulated enters it")


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The load after each interval."""
    values = values_of_k(data.effort)
    lines = [Line(f"k = {k:g}", [n - 1 for n in STEPS[:21]], recursion(k)[:21]) for k in values]
    return [Panel("Load under BISE, analysis", "intervals", "load factor", lines)]
