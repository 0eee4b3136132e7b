"""I-txt-req: requests for an estimate, and the table of who was asked (section III-A.3).

Set-up: a cloud of 30 Mbit/s behind the upstream edge e and before r. Where the way back is silent, it stops after the
connection is set up, so that requests of r find no answer, and the sender's timer sends a packet now and then.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from explicate.papers import metrics
from explicate.papers.lopez_pacheco import base, fig12
from explicate.papers.statistics import Check, Sample, at_least, at_most, equal, near
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("I-txt-req")

NETWORK = base.Network([("s", "e", 80), ("e", "c", 80), ("c", "r", 30), ("r", "d", 80)], {"c"})
SILENT, FORK, LEAVES, MERGE = "silent", "fork", "leaves", "merge"
EVERY_S, TIMEOUT_S = 0.05, 1.0
SILENT_S, STOP_S = 30, 5
COUNTS = (1, 10, 100, 1000)


@study.cases
def cases(effort: Effort) -> dict[str | int, Case]:
    """A way back that is silent; 1 to 1000 flows; two clouds; the fork; a flow that ends."""

    def case(name: str, network: base.Network, flows: Sequence[str], seconds: float, **more: object) -> Case:
        text = base.scenario(
            effort, f"I-txt-req-{name}", network, flows, seconds=seconds, every=f"{EVERY_S:g}s",
            sampled=["agent", "throughput"], router={"request_timeout": f"{TIMEOUT_S:g}s"},
        )  # fmt: skip
        return Case(text, seeds=2, **more)  # type: ignore[arg-type]

    def bulk(count: int = 1) -> str:
        return base.flow(effort, "bulk", base.XCPI, ("s", "d"), count=count)

    silence = {
        "link.c->e.channel": '[{ kind = "outages", up = "105ms", down = "100s" }]',
        "link.c->e.queue": '{ kind = "droptail", limit = "1pkt" }',
    }
    idle_s = float(effort.choices["I-P9"].removesuffix("s"))
    ending = bulk().replace("start", f'stop = "{STOP_S}s"\nstart')
    pair = base.pair(effort, base.XCPI)
    return {
        SILENT: case(SILENT, NETWORK, [bulk()], SILENT_S, settings=silence, trace="flow=0"),
        **{count: case(f"{count}-flows", NETWORK, [bulk(count)], 3) for count in COUNTS},
        MERGE: case(MERGE, base.merge(), pair, 3),
        FORK: case(FORK, fig12.network(effort), pair, 3),
        LEAVES: case(LEAVES, NETWORK, [ending], STOP_S + idle_s + 3),
    }


def asked(results: Results) -> list[float]:
    """Return when r sent requests, s, to the end of a sample's period."""
    counts = metrics.series(results, "r", "requests")
    more = counts.filter(counts["value"].diff().fill_null(counts["value"][0]) > 0)
    return [float(time_s) for time_s in more["time_s"]]


def episodes(results: Results) -> list[list[float]]:
    """Return the requests of the silent cloud, those that wait for each other together."""
    made: list[list[float]] = []
    for time_s in asked(results):
        if made and time_s - made[-1][-1] < TIMEOUT_S + 2 * EVERY_S:
            made[-1].append(time_s)
        else:
            made.append([time_s])
    return made


def whole(results: Results) -> list[list[float]]:
    """Return the episodes that end before the run does."""
    return [one for one in episodes(results) if one[0] + 3 * TIMEOUT_S < SILENT_S]


def per_episode(results: Results) -> float:
    """Return the most requests in a row without an answer."""
    return float(max(map(len, whole(results))))


def fewest(results: Results) -> float:
    """Return the fewest."""
    return float(min(map(len, whole(results))))


def gaps(results: Results) -> float:
    """Return the greatest difference of the time between them from the timeout, s."""
    return max(abs(b - a - TIMEOUT_S) for one in whole(results) for a, b in itertools.pairwise(one))


@study.predicate("I-txt-req-a", tries=3)
def asks_again(data: Data, tries: float) -> Iterator[Check]:
    """A request is repeated when its time is over; an answered one is not (ours asks twice, see the challenge)."""
    yield equal("requests without an answer", data.measure(SILENT, per_episode), tries)
    yield at_most("s by which they are not one timeout apart", data.measure(SILENT, gaps), 1.5 * EVERY_S)

    def early(results: Results) -> float:
        return float(sum(time_s < STOP_S / 2 for time_s in asked(results)))

    yield at_most("times at which requests are sent that are answered", data.measure(LEAVES, early), 2)


ARRIVAL = re.compile(r"([\d.]+)\s+r->d\s+enqueue\s+\S+ data ")


def unprompted(results: Results) -> float:
    """Count the episodes that no packet from the cloud began."""
    arrivals = [float(time) for time in ARRIVAL.findall(results.trace)]
    return float(
        sum(not any(one[0] - 1.5 * EVERY_S <= time <= one[0] for time in arrivals) for one in episodes(results))
    )


@study.predicate("I-txt-req-b", tries=3)
def then_waits_for_a_packet(data: Data, tries: float) -> Iterator[Check]:
    """A broken path is asked for again when something comes from it."""
    yield equal("fewest requests in a row", data.measure(SILENT, fewest), tries)
    yield at_least("rows of requests", data.measure(SILENT, lambda results: len(episodes(results))), 2)
    yield equal("rows that no packet began", data.measure(SILENT, unprompted), 0)

    def broken(results: Results) -> float:
        return metrics.largest(metrics.series(results, "r", "broken"))

    yield equal("broken paths", data.measure(SILENT, broken), 1)


def entries(results: Results, node: str) -> float:
    """Return the most entries that a node has at a time."""
    return metrics.largest(metrics.series(results, node, "virtual_routers"))


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
    """Count the changes of what r knows of the cloud while the flow lasts."""
    left = metrics.series(results, "r/e", "cloud_available_bps")
    return float((left.filter(left["time_s"] < STOP_S)["value"].diff().drop_nulls() != 0).sum())


@study.predicate("I-txt-req-d")
def the_table_shrinks(data: Data) -> Iterator[Check]:
    """Estimates come once per round trip, and end, with the entry, when nothing comes for so long."""
    rtt_s = 0.08
    yield at_least("estimates per round trip", data.measure(LEAVES, estimates) * (rtt_s / STOP_S), 0.5)
    idle_s = float(data.effort.choices["I-P9"].removesuffix("s"))
    yield near("s that the entry stays", data.measure(LEAVES, lifetime), idle_s, rtt_s + 2 * EVERY_S)

    def sessions(results: Results) -> float:
        return float(metrics.series(results, "e", "sessions")["value"][-1])

    yield equal("estimations at the end", data.measure(LEAVES, sessions), 0)


@study.predicate("I-txt-req-e")
def downstream_edges_know(data: Data) -> Iterator[Check]:
    """Behind the fork both edges have an entry for the same neighbour, which measures for both."""
    for node in ("r1", "r2"):
        states = [metrics.largest(metrics.series(results, f"{node}/e", "cloud_state")) for results in data.runs(FORK)]
        yield equal(f"state of the entry for e of {node} (2: measured)", Sample.of(states), 2)

    def sessions(results: Results) -> float:
        return metrics.largest(metrics.series(results, "e", "sessions"))

    yield equal("estimations of e", data.measure(FORK, sessions), 2)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Requests over time without an answer; the table's size around the end of a flow."""
    silent, leaves = data.runs(SILENT)[0], data.runs(LEAVES)[0]
    return [
        Panel(
            "No answer", "time (s)", "requests so far",
            [Line.series("requests", metrics.series(silent, "r", "requests"))],
        ),
        Panel(
            f"A flow that ends after {STOP_S} s", "time (s)", "entries",
            [Line.series("entries", metrics.series(leaves, "r", "virtual_routers"))],
        ),
    ]  # fmt: skip
