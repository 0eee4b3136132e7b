"""K-txt-table: codes, load and windows of VCP and BISE (tables I to III, equations 1 to 6). Set-up: `unit.py`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate.scenario import Scenario
from explicate_papers import metrics
from explicate_papers.agents import tcp_for
from explicate_papers.controls import Place, Settings, exchange
from explicate_papers.ikeda import base, unit
from explicate_papers.statistics import Check, Sample, above, at_most, fact, near, number
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-txt-table")

LOADS = {0.5: 1, 0.795: 1, 0.805: 2, 0.995: 2, 1.005: 3}
"""Constant loads, and their codes in table I."""
ROUTERS = ("vcp", "vcp-bise")
CODES = {1: "01", 2: "10", 3: "11"}
KAPPA = 0.5
SURPLUS = 1.03
"""A load that fills the queue."""
SHORT, LONG = "short", "long"
MD, DIGIT = 0.875, 0.0005
"""The share that remains after a cut, and half of the last digit of the criterion."""
SPREAD = 0.2
"""No sample of 10 ms may have more of a round trip's increase than this."""


@study.cases
def cases(effort: Effort) -> dict[object, Case]:
    """Constant loads, a load beyond the capacity, one flow through all three regions, and two of unlike round trips."""
    made: dict[object, Case] = {}
    for kind in ROUTERS:
        for load in LOADS:
            mixes = {"k": 1, "eps_r": 2} if kind == "vcp-bise" else {}
            router = {"kind": kind, "t_rho": f"{base.T_RHO_S:g}s", **mixes}
            # A little less, for the flow itself comes too.
            flow = {"initial_window": 50, "receiver_window": 50}
            made[kind, load] = unit.case(effort, load - 0.001, router, kind, flow, seconds=14, seeds=3)
    made["queue"] = unit.case(effort, SURPLUS, {"kind": "vcp", "t_rho": f"{base.T_RHO_S:g}s"}, "vcp", seeds=3)
    for name, every, of in (("one", "10ms", ("cwnd", "router")), ("cuts", "1ms", ("cwnd",))):
        made[name] = base.case(
            effort, base.VCP, mbps=10, seconds=60, every=every, of=of, params={"paced": False}, seeds=1
        )
    made["two"] = Case(two(effort), seeds=3)
    return made


def two(effort: Effort) -> str:
    """Return two flows whose round trips are 50 and 500 ms, on a link with room for both."""
    made = (
        Scenario("paper-K-two", duration="8s")
        .topology(
            "dumbbell",
            pairs=2,
            access={"rate": "1Gbit/s", "delay": "5ms", "router": "none"},
            bottleneck={"rate": "500Mbit/s", "delay": "10ms", "router": {"kind": "vcp"}},
        )
        .link(name="s1->r1", delay="455ms")
        .sampling("50ms", ["cwnd", "router"])
    )
    for place, name in enumerate((SHORT, LONG)):
        made = made.flows(
            name, "vcp", packet=f"{unit.SMALL}B", from_=f"s{place}", to=f"d{place}",
            processing=effort.choices["K-P20"], params={"initial_window": 400},
        )  # fmt: skip
    return made.to_toml()


def wrong_codes(results: Results) -> float:
    """Count the samples at which a router's code is not that of table I for its load factor."""
    codes = metrics.series(results, base.BOTTLENECK, "code")["value"]
    loads = base.load(results)["value"]
    expected = 1 + (loads >= 0.8).cast(int) + (loads >= 1.0).cast(int)
    return float((codes != expected).sum())


def code(results: Results) -> float:
    """Return the router's code at the end."""
    return float(metrics.series(results, base.BOTTLENECK, "code")["value"][-1])


@study.predicate("K-txt-table-a", low=0.8, high=1.0)
def regions(data: Data, low: float, high: float) -> Iterator[Check]:
    """01 below 0.8, 10 from there to 1, 11 from 1 on."""
    for load, expected in LOADS.items():
        wanted = 1 + (load >= low) + (load >= high)
        assert wanted == expected
        yield near(f"code at a load of {load:g}", data.measure(("vcp", load), code), wanted, 0.0)
    labels = [(kind, load) for kind in ROUTERS for load in LOADS] + ["queue", "one"]
    wrong = sum(data.measure(label, wrong_codes).mean for label in labels)
    yield fact("samples with another code than their load's", holds=wrong == 0, measured=number(wrong), wanted="0")


def misfit(results: Results) -> float:
    """Return the largest error of a load factor against equation 1 with the measured load and standing queue."""
    rate = SURPLUS * base.FULL * base.MBPS * 1e6 / 8
    full = base.FULL * base.MBPS * 1e6 / 8 * base.T_RHO_S
    loads = base.load(results)
    queues = metrics.series(results, base.BOTTLENECK, "persistent_queue_bytes")
    steady = (loads["time_s"] > 4.0) & (loads["time_s"] < unit.JOINS_S)
    expected = (rate * base.T_RHO_S + KAPPA * queues["value"]) / full
    return float((loads["value"] - expected).abs().filter(steady).max())  # type: ignore[arg-type]


@study.predicate("K-txt-table-b")
def equation_1(data: Data) -> Iterator[Check]:
    """The arrivals plus half of the queue, divided by 98 % of the capacity."""
    packet = base.PACKET * 8 / (base.FULL * base.MBPS * 1e6 * base.T_RHO_S)
    yield at_most("largest error of the load factor (one packet in an interval)", data.measure("queue", misfit), packet)
    waits = f"load factor with a queue less the load, for which kappa = {KAPPA:g} counts"
    with_queue = data.measure("queue", unit.load_factor)
    yield above(waits, with_queue, Sample.of([SURPLUS] * len(with_queue.values)))


def cuts(results: Results) -> list[float]:
    """Return the factors of the window's decreases."""
    steps = base.steps(base.cwnd(results))
    return [float(step) for step in steps.filter(steps < 1)]


def largest_share(results: Results) -> float:
    """Return the largest part of a round trip's increase that came in one sample, for windows from 200 packets on."""
    window = base.cwnd(results)["value"]
    round_trip = round(base.RTT_S / 0.01)
    rises = window.diff()
    whole = window.shift(-round_trip // 2) - window.shift(round_trip // 2)
    falls_near = (rises < 0).cast(int).rolling_max(2 * round_trip, center=True) > 0
    kept = (window >= 200) & (rises > 0) & (whole > 0) & ~falls_near
    return float((rises / whole).filter(kept).max())  # type: ignore[arg-type]


@study.predicate("K-txt-table-c")
def cut_at_once_grow_slowly(data: Data) -> Iterator[Check]:
    """A cut happens in an instant, an increase over a round trip."""
    found = [cut for results in data.runs("cuts") for cut in cuts(results)]
    exact = len(found) >= 1 and all(abs(cut - MD) <= DIGIT for cut in found)
    measured = f"{len(found)} cuts, each to {min(found):.5f}..{max(found):.5f}" if found else "none"
    yield fact("falls of the window within 1 ms", holds=exact, measured=measured, wanted=f"all to {MD:g} ± {DIGIT:g}")
    yield at_most("largest share of a round trip's increase in 10 ms", data.measure("one", largest_share), SPREAD)


def growth(flow: str, results: Results) -> float:
    """Return by what the window of a flow is multiplied in a second."""
    frame = base.cwnd(results, flow)
    first, last = (float(frame.filter(frame["time_s"] >= at - 1e-6)["value"][0]) for at in (2.0, 7.0))
    return math.pow(last / first, 1 / 5.0)


def growth_short(results: Results) -> float:
    """Return the growth of the flow with a round trip of 50 ms."""
    return growth("short.0", results)


def growth_long(results: Results) -> float:
    """Return the growth of the flow with a round trip of 500 ms."""
    return growth("long.0", results)


@study.predicate("K-txt-table-d", percent=2)
def round_trips_do_not_matter(data: Data, percent: float) -> Check:
    """Flows multiply alike, whatever their round trips."""
    short, long = data.measure("two", growth_short), data.measure("two", growth_long)
    name = f"growth in a second, 50 ms ({short}) over 500 ms ({long})"
    return near(name, short / long, 1.0, percent / 100)


def echoed(results: Results) -> set[int]:
    """Return the codes that the flow's acknowledgements carried, once the flow is under way."""
    frame = metrics.series(results, base.FLOW, "code", unit.JOINS_S + 3 * base.RTT_S)
    return {int(value) for value in frame["value"].unique()}


@study.predicate("K-txt-table-e")
def only_low_load_differs(data: Data) -> Iterator[Check]:
    """Table II: 01 and 10 are mixed at low load, all else is VCP's."""
    for load, own in LOADS.items():
        for kind in ROUTERS:
            wanted = {1, 2} if kind == "vcp-bise" and own == 1 else {own}
            got = set().union(*(echoed(results) for results in data.runs((kind, load))))
            names = [" and ".join(CODES.get(one, str(one)) for one in sorted(some)) for some in (got, wanted)]
            name = f"codes at a load of {load:g}, {kind}"
            yield fact(name, holds=got == wanted, measured=names[0], wanted=names[1])


study.control(
    "low load and overload exchanged",
    exchange(0.5, 1.005),
    ["K-txt-table-a", "K-txt-table-e"],
    "each load then has the other's code",
)
study.control(
    "low load in the place of a queue",
    Place("exchange", lambda label: ("vcp", 0.5) if label == "queue" else label),
    ["K-txt-table-b"],
    "the load factor is not that of the load that fills the queue",
)
study.control(
    "TCP runs in the place of VCP",
    Settings(
        "protocol",
        {"flows.bulk.protocol": "newreno", "flows.bulk.params": {"receiver_window": 1_000_000}},
        lambda label: label in ("one", "cuts"),
    ),
    ["K-txt-table-c"],
    "TCP's recovery halves the window",
)
study.control(
    "TCP runs in the place of both flows of VCP",
    tcp_for(["short", "long"], lambda label: label == "two"),
    ["K-txt-table-d"],
    "TCP adds a packet in a round trip, so the short one grows faster",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One VCP flow through multiplying, adding and cutting."""
    run = data.runs("one")[0]
    return [
        Panel("VCP, 10 Mbit/s", "time (s)", "window (packets)", [Line.series("cwnd", base.cwnd(run))]),
        Panel("VCP, 10 Mbit/s", "time (s)", "load factor", [Line.series("load factor", base.load(run))]),
    ]
