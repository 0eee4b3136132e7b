"""K-fig1: the effect of mixed codes on a window in one round trip (figure 1, equations 7 to 9). Set-up: `unit.py`.

Half of the link is loaded, and epsilon in the routers' equation 11 is 1: so k is the mixing ratio r. A flow of a
thousand packets sends its window once; the window a round trip later is compared with equation 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from explicate.results import Results
from explicate_papers.controls import edit
from explicate_papers.ikeda import base, unit
from explicate_papers.statistics import Check, Sample, fact, near, number
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-fig1")

SHARES = tuple(tenths / 10 for tenths in range(11))
WINDOW = 1000
SHARE_S = base.RTT_S / base.T_RHO_S
EPSILON_S: float = base.GROWTH**SHARE_S - 1
"""Equation 6."""
ALPHA_S = SHARE_S**2
"""Equation 5."""
BISE = {"xi": base.GROWTH - 1, "t_rho": f"{base.T_RHO_S:g}s"}
"""Parameters of VCP's senders in the paper."""


@study.cases
def cases(effort: Effort) -> dict[object, Case]:
    """Every mixing ratio; some once more with the senders of VCP."""

    def made(r: float, protocol: str, params: Mapping[str, Any], window: int = WINDOW) -> Case:
        router = {"kind": "vcp-bise", "k": r, "eps_r": 1}
        return unit.case(effort, 0.5, router, protocol, {"initial_window": window, **params})

    cases: dict[object, Case] = {r: made(r, "vcp-bise", {}) for r in SHARES}
    cases.update({("VCP's sender", r): made(r, "vcp", BISE) for r in (0.0, 0.3, 1.0)})
    return cases


def before(results: Results) -> float:
    """Return the window before its first acknowledgement."""
    return unit.window(results, unit.JOINS_S + 1.5 * base.RTT_S)


def after(results: Results) -> float:
    """Return the window when all of the first round trip has been acknowledged, and nothing else."""
    return unit.window(results, unit.JOINS_S + 2.5 * base.RTT_S)


def equation_8(results: Results) -> float:
    """Return the expected window after a round trip, for the router's mixing ratio."""
    r, window = unit.mixing_ratio(results), before(results)
    return (1 + EPSILON_S * r) * window + (1 - r) * ALPHA_S


def grown(results: Results) -> float:
    """Return the window over that of equation 8."""
    return after(results) / equation_8(results)


def added(results: Results) -> float:
    """Return the growth in a round trip, packets."""
    return after(results) - before(results)


@study.predicate("K-fig1-a", percent=3)
def mixed(data: Data, percent: float) -> Iterator[Check]:
    """A round trip turns cwnd into (1 + eps_s r) cwnd + (1 - r) alpha_s."""
    for r in SHARES:
        ratio = data.measure(r, unit.mixing_ratio)
        name = f"r = {number(ratio.mean)}: window after a round trip over equation 8"
        yield near(name, data.measure(r, grown), 1.0, percent / 100)


@study.predicate("K-fig1-b")
def ends(data: Data) -> Iterator[Check]:
    """Without 01 the increase is additive, with 01 alone multiplicative; up to the rounding of a growing window."""
    yield near("r = 0: packets added", data.measure(0.0, added), ALPHA_S, 1e-3 * ALPHA_S)
    multiplied = data.measure(1.0, after) / data.measure(1.0, before)
    yield near("r = 1: factor", multiplied, 1 + EPSILON_S, 1e-3)


@study.predicate("K-fig1-c")
def same_sender(data: Data) -> Iterator[Check]:
    """VCP's sender with BISE's constants has BISE's window at every sample."""
    for r in (0.0, 0.3, 1.0):
        same = all(
            base.cwnd(one).equals(base.cwnd(other))
            for one, other in zip(data.runs(r), data.runs(("VCP's sender", r)), strict=True)
        )
        yield fact(f"r = {r:g}: windows", holds=same, measured="equal" if same else "different", wanted="equal")


def vcp_sender(content: dict[str, Any]) -> None:
    """Use a VCP sender with VCP's constants."""
    _, bulk, _ = content["flows"]
    bulk["protocol"] = "vcp"


study.control(
    "VCP's sender with its own constants",
    edit("protocol", vcp_sender, lambda label: label in SHARES),
    ["K-fig1-a", "K-fig1-b", "K-fig1-c"],
    "it multiplies by 1.0625 in 0.2 s where BISE's multiplies by ten in 1.25 s",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The factor of one round trip against the mixing ratio."""
    factors: list[Sample] = [data.measure(r, after) / data.measure(r, before) for r in SHARES]
    expected = [1 + EPSILON_S * r for r in SHARES]
    lines = [Line.of("simulated", SHARES, factors), Line("equation 9", SHARES, expected)]
    return [Panel("Growth of the window in a round trip", "mixing ratio r", "factor", lines)]
