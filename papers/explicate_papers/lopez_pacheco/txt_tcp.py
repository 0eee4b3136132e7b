"""I-txt-tcp: XCP-i and TCP over one link of 30 Mbit/s, inside a cloud or of an XCP-i router (section V-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate.results import Results
from explicate_papers.controls import Rewrite, Settings
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, at_least, at_most, between
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("I-txt-tcp")

CAPACITY = 30.0
CLOUD, ROUTER = "in a cloud", "at an XCP-i router"
MIXES = ((1, 1), (1, 5), (5, 1))
"""Flows of XCP-i and of TCP."""
APART = "apart"
LINKS = [
    ("x", "e", 80.0),
    ("t", "e", 80.0),
    ("e", "c", 80.0),
    ("c", "r", CAPACITY),
    ("r", "dx", 80.0),
    ("r", "dt", 80.0),
]
SECONDS = 120


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int, int], Case]:
    """Every mix in both places, TCP alone, and one of each with a separate queue for XCP-i's packets."""

    def case(place: str, ours: int, tcp: int) -> Case:
        network = base.Network(LINKS, {"c"} if place == CLOUD else ())
        flows = [base.flow(effort, "tcp", effort.choices["I-P4"], ("t", "dt"), count=tcp)]
        if ours:
            flows.append(base.flow(effort, "ours", base.XCPI, ("x", "dx"), count=ours))
        text = base.scenario(effort, f"I-txt-tcp-{ours}-{tcp}", network, flows, seconds=SECONDS)
        half = f'queue = {{ kind = "droptail", limit = "{effort.choices["I-P3"]}" }}, weight = 1'
        both = f'[{{ match = "explicit", {half} }}, {{ match = "other", {half} }}]'
        return Case(text, {"link.c->r.classes": both} if place == APART else {})

    mixed = {(place, ours, tcp): case(place, ours, tcp) for place in (CLOUD, ROUTER) for ours, tcp in MIXES}
    alone = {(CLOUD, 0, tcp): case(CLOUD, 0, tcp) for tcp in (1, 5)}
    return mixed | alone | {(APART, 1, 1): case(APART, 1, 1)}


ours, tcp = base.rate("ours"), base.rate("tcp")


@study.predicate("I-txt-tcp-a", least=0.9)
def takes_what_is_left(data: Data, least: float) -> Iterator[Check]:
    """TCP keeps what it takes alone."""
    for place in (CLOUD, ROUTER):
        for n, m in MIXES:
            mixed, alone = data.measure((place, n, m), tcp), data.measure((CLOUD, 0, m), tcp)
            what = f"Mbit/s of {m} of TCP beside {n} of XCP-i {place} ({mixed}) less {least:g} times alone ({alone})"
            yield at_least(what, mixed - least * alone, 0)


@study.predicate("I-txt-tcp-b", slack=1.1)
def drops_nothing(data: Data, slack: float) -> Iterator[Check]:
    """TCP causes its losses itself."""
    for place in (CLOUD, ROUTER):
        for n, m in MIXES:
            mixed, alone = data.measure((place, n, m), base.drops), data.measure((CLOUD, 0, m), base.drops)
            what = f"drops of {n} of XCP-i and {m} of TCP {place} ({mixed}) less {slack:g} times TCP's alone ({alone})"
            yield at_most(what, mixed - slack * alone, 0)


@study.predicate("I-txt-tcp-c", low=0.8, high=1.25)
def queues_of_their_own(data: Data, low: float, high: float) -> Check:
    """The XCP-i router serves both kinds in turn."""
    label = (APART, 1, 1)
    return between("XCP-i over TCP", data.measure(label, ours) / data.measure(label, tcp), low, high)


def shares(results: Results) -> list[Line]:
    """Return both throughputs over time."""
    return [Line.series(one, base.over_time(results, one), 1e6) for one in ("ours", "tcp")]


study.control(
    "TCP's receivers allow little",
    Settings("off", {"flows.tcp.params": {"receiver_window": 20}}, lambda label: label[1] > 0),
    ["I-txt-tcp-a"],
    "TCP then leaves most of the link, and XCP-i takes more than its fair share",
)
study.control(
    "TCP runs in the place of XCP-i",
    Settings("protocol", {"flows.ours.protocol": "newreno"}, lambda label: label[1] > 0),
    ["I-txt-tcp-b"],
    "each flow of TCP more takes its rate by losses",
)
study.control(
    "one queue for both kinds",
    Rewrite("off", lambda _, case: replace(case, settings={}), lambda label: label[0] == APART),
    ["I-txt-tcp-c"],
    "in one queue XCP-i has only what TCP leaves",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput over time, one flow of each kind, and the drops of each mix beside those of its TCP alone."""
    over_time = [
        Panel(
            f"{place}, first seed", "time (s)", "throughput (Mbit/s)", shares(data.runs((place, 1, 1))[0]),
            compared=True,
        )
        for place in (CLOUD, ROUTER, APART)
    ]  # fmt: skip
    labels = {
        **{place: [(place, n, m) for n, m in MIXES] for place in (CLOUD, ROUTER)},
        "TCP alone": [(CLOUD, 0, m) for _, m in MIXES],
    }
    dropped = [
        Line.of(name, [1.0, 2.0, 3.0], [data.measure(label, base.drops) for label in mixes])
        for name, mixes in labels.items()
    ]
    names = [f"{n} and {m}" for n, m in MIXES]
    return [*over_time, Panel("Drops", "flows of XCP-i and of TCP", "drops in a run", dropped, names=names)]
