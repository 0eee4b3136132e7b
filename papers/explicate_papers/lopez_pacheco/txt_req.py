"""I-txt-req: requests for an estimate, and the table of upstream routers (section III-A.3).

Set-up: a cloud of 30 Mbit/s behind the upstream edge e and before r. Where the way back is silent, it stops after the
connection is set up, so that requests of r find no answer, and the sender's timer sends a packet now and then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place, Rewrite
from explicate_papers.lopez_pacheco import base, fig12
from explicate_papers.statistics import Check, Sample, at_least, at_most, equal, near
from explicate_papers.study import Case, Data, Effort, EmptyClassError, Line, Panel, Study

study = Study("I-txt-req")

NETWORK = base.Network([("s", "e", 80), ("e", "c", 80), ("c", "r", 30), ("r", "d", 80)], {"c"})
SILENT, FORK, LEAVES, MERGE = "silent", "fork", "leaves", "merge"
EVERY_S, FINE_S = 0.05, 0.005
"""Between samples; the second where the end of an entry is measured to a round trip."""
SILENT_S, STOP_S = 30, 5
COUNTS = (1, 10, 100, 1000)


@study.cases
def cases(effort: Effort) -> dict[str | int, Case]:
    """A way back that is silent; 1 to 1000 flows; two clouds; the fork; a flow that ends."""

    def case(
        name: str,
        network: base.Network,
        flows: Sequence[base.Flows],
        seconds: float,
        every_s: float = EVERY_S,
        **more: object,
    ) -> Case:
        text = base.scenario(
            effort, f"I-txt-req-{name}", network, flows, seconds=seconds, every=f"{every_s:g}s",
            sampled=["agent", "throughput"],
        )  # fmt: skip
        return Case(text, seeds=2, **more)  # type: ignore[arg-type]

    def bulk(**keys: Any) -> base.Flows:
        return base.flow(effort, "bulk", base.XCPI, ("s", "d"), **keys)

    silence = {
        "link.c->e.channel": '[{ kind = "outages", up = "105ms", down = "100s" }]',
        "link.c->e.queue": '{ kind = "droptail", limit = "1pkt" }',
    }
    idle_s = float(effort.choices["I-P9"].removesuffix("s"))
    pair = base.pair(effort, base.XCPI)
    return {
        SILENT: case(SILENT, NETWORK, [bulk()], SILENT_S, settings=silence, trace="flow=0"),
        **{count: case(f"{count}-flows", NETWORK, [bulk(count=count)], 3) for count in COUNTS},
        MERGE: case(MERGE, base.merge(), pair, 3),
        FORK: case(FORK, fig12.network(effort), pair, 3),
        LEAVES: case(LEAVES, NETWORK, [bulk(stop=f"{STOP_S}s")], STOP_S + idle_s + 3, FINE_S),
    }


def timeout_s(effort: Effort) -> float:
    """Return how long a request waits for its acknowledgement, s."""
    text = effort.choices["I-P7"]
    return float(text.removesuffix("ms")) / 1000 if text.endswith("ms") else float(text.removesuffix("s"))


def asked(results: Results) -> list[float]:
    """Return when r sent requests, s, to the end of a sample's period."""
    counts = metrics.series(results, "r", "requests")
    more = counts.filter(counts["value"].diff().fill_null(counts["value"][0]) > 0)
    return [float(time_s) for time_s in more["time_s"]]


def rows(results: Results, wait_s: float) -> list[list[float]]:
    """Return the requests of the silent cloud, those that follow each other within a timeout together."""
    made: list[list[float]] = []
    for time_s in asked(results):
        if made and time_s - made[-1][-1] < wait_s + 2 * EVERY_S:
            made[-1].append(time_s)
        else:
            made.append([time_s])
    return made


def whole(results: Results, wait_s: float) -> list[list[float]]:
    """Return the rows that end before the run does."""
    found = [one for one in rows(results, wait_s) if one[0] + 3 * wait_s < SILENT_S]
    if not found:
        raise EmptyClassError("no row of requests ends before the run does")
    return found


def timeouts(row: Sequence[float], wait_s: float) -> int:
    """Count the requests of a row that come one timeout after the one before, to 1.5 samples."""
    return sum(abs(after - before - wait_s) <= 1.5 * EVERY_S for before, after in pairwise(row))


@study.predicate(
    "I-txt-req-a",
    tries=3,
    instead="rows of requests that find no answer, and that no answered one is repeated after the timeout, because an "
    "answered request is sent again at once with the cookie of its challenge, and with the mean RTT when that is known",
)
def asks_again(data: Data, tries: float) -> Iterator[Check]:
    """A request is repeated when its time is over; an answered one is not."""
    wait_s = timeout_s(data.effort)
    counted = [whole(results, wait_s) for results in data.runs(SILENT)]
    wrong = [sum(len(row) != 1 + timeouts(row, wait_s) for row in found) for found in counted]
    yield equal("rows without an answer of another number than 1 + timeouts", Sample.of(wrong), 0)
    yield at_most("most requests in a row", Sample.of(max(map(len, found)) for found in counted), tries)

    def repeated(results: Results) -> float:
        return float(timeouts([time_s for time_s in asked(results) if time_s < STOP_S / 2], wait_s))

    yield equal("answered requests that are repeated after the timeout", data.measure(LEAVES, repeated), 0)


ARRIVAL = re.compile(r"([\d.]+)\s+r->d\s+enqueue\s+\S+ data ")


def unprompted(results: Results, wait_s: float) -> float:
    """Count the rows that no packet from the cloud began."""
    arrivals = [float(time) for time in ARRIVAL.findall(results.trace)]
    begun = [row[0] for row in rows(results, wait_s)]
    return float(sum(not any(begin - 1.5 * EVERY_S <= time <= begin for time in arrivals) for begin in begun))


@study.predicate("I-txt-req-b", tries=3)
def then_waits_for_a_packet(data: Data, tries: float) -> Iterator[Check]:
    """A new request is sent for a broken path when a packet arrives from it."""
    wait_s, runs = timeout_s(data.effort), data.runs(SILENT)
    counted = [whole(results, wait_s) for results in runs]
    for what, pick in (("fewest", min), ("most", max)):
        yield equal(f"{what} requests in a row", Sample.of(pick(map(len, found)) for found in counted), tries)
    yield at_least("rows of requests", Sample.of(len(rows(results, wait_s)) for results in runs), 2)
    yield equal("rows that no packet began", Sample.of(unprompted(results, wait_s) for results in runs), 0)
    yield equal("broken paths", Sample.of(base.most_known(results, "r", "broken") for results in runs), 1)


def entries(results: Results, node: str) -> float:
    """Return the maximum number of entries of a node."""
    return base.most_known(results, node, "virtual_routers")


@study.predicate("I-txt-req-c")
def one_entry_per_neighbour(data: Data) -> Iterator[Check]:
    """However many flows there are."""
    for count in COUNTS:
        yield equal(f"entries of r, {count} flows", data.measure(count, lambda results: entries(results, "r")), 1)
    yield equal("entries behind two clouds", data.measure(MERGE, lambda results: entries(results, "r1")), 2)


def lifetime(results: Results) -> float:
    """Return how long the entry stays after the last packet, s."""
    load = metrics.series(results, "r->d", "throughput_bps")
    last = load.filter(load["value"] > 0)["time_s"].max()
    table = metrics.series(results, "r", "virtual_routers")
    return float(table.filter(table["value"] > 0)["time_s"].max()) - float(last)  # type: ignore[arg-type]


def estimates(results: Results) -> float:
    """Count the changes of r's state of the cloud while the flow lasts."""
    left = metrics.series(results, "r/e", "cloud_available_bps")
    return float((left.filter(left["time_s"] < STOP_S)["value"].diff().drop_nulls() != 0).sum())


@study.predicate("I-txt-req-d")
def the_table_shrinks(data: Data) -> Iterator[Check]:
    """The entry ends when nothing has come for so long, to one period: a round trip of four links; so do estimates."""
    rtt_s = 2 * len(NETWORK.links) * base.link_s(data.effort)
    idle_s = float(data.effort.choices["I-P9"].removesuffix("s"))
    known = data.measure(LEAVES, estimates)
    yield near(f"s that the entry stays ({known} estimates before)", data.measure(LEAVES, lifetime), idle_s, rtt_s)

    def sessions(results: Results) -> float:
        return float(metrics.series(results, "e", "sessions")["value"][-1])

    yield equal("estimations at the end", data.measure(LEAVES, sessions), 0)


@study.predicate("I-txt-req-e")
def downstream_edges_know(data: Data) -> Iterator[Check]:
    """Behind the fork both edges have an entry for the same neighbour, which measures for both."""
    for node in ("r1", "r2"):
        states = [base.most_known(results, f"{node}/e", "cloud_state") for results in data.runs(FORK)]
        yield equal(f"state of the entry for e of {node} (2: measured)", Sample.of(states), 2)

    def sessions(results: Results) -> float:
        return metrics.largest(metrics.series(results, "e", "sessions"))

    yield equal("estimations of e", data.measure(FORK, sessions), 2)


def second_edge_is_plain(_: object, case: Case) -> Case:
    """Return the fork with no control on the ports of r2."""
    return base.plain_at(case, lambda node: node == "r2")


study.control(
    "the way back is open",
    Rewrite("off", lambda _, case: replace(case, settings={}), lambda label: label == SILENT),
    ["I-txt-req-a", "I-txt-req-b"],
    "answered requests are not repeated, and no path is broken",
)
study.control(
    "the fork in the place of the merge",
    Place("exchange", lambda label: FORK if label == MERGE else label),
    ["I-txt-req-c"],
    "behind the fork r1 has one upstream neighbour, and so one entry",
)
study.control(
    "entries are kept",
    base.other_routers(LEAVES, idle="1000s"),
    ["I-txt-req-d"],
    "without the inactivity period the entry outlives the flow for good",
)
study.control(
    "the second edge behind the fork is plain",
    Rewrite("off", second_edge_is_plain, lambda label: label == FORK),
    ["I-txt-req-e"],
    "a plain router keeps no entry",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Requests over time without an answer; the table's size around the end of a flow."""
    silent, leaves = data.runs(SILENT)[0], data.runs(LEAVES)[0]
    return [
        Panel(
            "No answer, first seed", "time (s)", "requests so far",
            [Line.series("requests", metrics.series(silent, "r", "requests"))],
        ),
        Panel(
            f"A flow that ends after {STOP_S} s, first seed", "time (s)", "entries",
            [Line.series("entries", metrics.series(leaves, "r", "virtual_routers"))],
        ),
    ]  # fmt: skip
