"""I-txt-detect: which routers find clouds, and the router that they name before it (section III-A.1, III-A.2).

Set-up: for every length a chain of routers in each pattern of XCP-i and plain ones, all in one run, and one packet
through each. A node's name gives its place: ``r0110x3`` is the third router of pattern 0110, 1 being a plain one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import polars as pl

from explicate.results import Results
from explicate_papers.controls import Rewrite
from explicate_papers.lopez_pacheco import base
from explicate_papers.statistics import Check, Sample, equal
from explicate_papers.study import Case, Data, Effort, Label, Line, Panel, Study

study = Study("I-txt-detect")

LONGEST, LONGEST_QUICK = 8, 5
BRIDGE = "bridge"
PACKET_PAYLOAD = "900B"


def lengths(effort: Effort) -> range:
    """Return the numbers of routers."""
    return range(1, (LONGEST_QUICK if effort.quick else LONGEST) + 1)


def patterns(length: int) -> list[str]:
    """Return all patterns."""
    return ["".join(bits) for bits in product("01", repeat=length)]


def chain(pattern: str) -> list[str]:
    """Return the nodes of a chain: source, routers, sink."""
    return [f"s{pattern}", *(f"r{pattern}x{place}" for place in range(1, len(pattern) + 1)), f"d{pattern}"]


@study.cases
def cases(effort: Effort) -> dict[Label, Case]:
    """All chains of a length together; and one whose plain routers do not count the TTL down."""

    def case(name: str, shapes: Sequence[str], *, bridge: bool = False) -> Case:
        chains = {shape: chain(shape) for shape in shapes}
        plain = {chains[shape][place] for shape in shapes for place, bit in enumerate(shape, 1) if bit == "1"}
        links = [(a, b, 80.0) for nodes in chains.values() for a, b in pairwise(nodes)]
        flows = [
            base.flow(effort, shape, base.XCPI, (nodes[0], nodes[-1]), size=PACKET_PAYLOAD)
            for shape, nodes in chains.items()
        ]
        network = base.Network(links, plain, bridges=plain if bridge else ())
        text = base.scenario(
            effort, f"I-txt-detect-{name}", network, flows, seconds=1, every="500ms", sampled=["agent"]
        )
        return Case(text, seeds=1)

    made: dict[Label, Case] = {length: case(str(length), patterns(length)) for length in lengths(effort)}
    made[BRIDGE] = case(BRIDGE, ["0110"], bridge=True)
    return made


def expected(pattern: str) -> set[tuple[str, str]]:
    """Return the nodes that must find a cloud, each with the XCP-i node before it."""
    nodes, kinds = chain(pattern), "0" + pattern + "0"
    found, upstream = set(), nodes[0]
    for place in range(1, len(nodes)):
        if kinds[place] == "0":
            if kinds[place - 1] == "1":
                found.add((nodes[place], upstream))
            upstream = nodes[place]
    return found


def finders(results: Results) -> dict[str, float]:
    """Return how often each node met a cloud."""
    rows = results.samples.filter(pl.col("variable") == "clouds_met")
    last = rows.group_by("object").agg(pl.col("value").last())
    return {str(node): met for node, met in last.iter_rows() if met > 0}


def edges(results: Results) -> set[tuple[str, str]]:
    """Return all pairs of a node and the neighbour under whose name it found a cloud."""
    rows = results.samples.filter(pl.col("variable") == "cloud_plain_routers")
    return {(a, b) for a, _, b in (str(pair).partition("/") for pair in rows["object"].unique())}


def _compare(data: Data, wanted_patterns: str) -> Iterator[tuple[int, list[str], Results]]:
    for length in lengths(data.effort):
        kept = [one for one in patterns(length) if wanted_patterns == "all" or set(one) == {"0"}]
        yield length, kept, data.runs(length)[0]


@study.predicate("I-txt-detect-a", deterministic=True)
def no_false_alarm(data: Data) -> Iterator[Check]:
    """In a chain of XCP-i routers no cloud is found."""
    for length, kept, results in _compare(data, "xcp"):
        nodes = {node for one in kept for node in chain(one)}
        yield equal(f"clouds met, {length} XCP-i routers", _sample(len(nodes & finders(results).keys())), 0)


@study.predicate("I-txt-detect-b", deterministic=True)
def the_first_after_it_finds_it(data: Data) -> Iterator[Check]:
    """One detection for each cloud, by the XCP-i element behind it."""
    for length, kept, results in _compare(data, "all"):
        wanted = {node for one in kept for node, _ in expected(one)}
        met = finders(results)
        what = f"{len(kept)} patterns of {length} routers"
        yield equal(f"{what}: wrong finders", _sample(len(wanted ^ met.keys())), 0)
        yield equal(f"{what}: detections for {len(wanted)} clouds", _sample(sum(met.values())), len(wanted))


@study.predicate("I-txt-detect-c", deterministic=True)
def two_clouds_are_two(data: Data) -> Iterator[Check]:
    """The TTL is copied, so that a second cloud is found for itself."""
    for length, kept, results in _compare(data, "all"):
        met = finders(results)
        double = [one for one in kept if len(expected(one)) == 2]
        wrong = [one for one in double if {node for node, _ in expected(one)} != {n for n in chain(one) if n in met}]
        if double:
            yield equal(f"{len(double)} chains of {length} routers with two clouds: wrong", _sample(len(wrong)), 0)


@study.predicate("I-txt-detect-d", deterministic=True)
def the_right_name(data: Data) -> Iterator[Check]:
    """The field names the router before the cloud."""
    for length, kept, results in _compare(data, "all"):
        wanted = set().union(*map(expected, kept))
        yield equal(
            f"wrong pairs of edges of {len(wanted)}, {length} routers", _sample(len(wanted ^ edges(results))), 0
        )


@study.predicate("I-txt-detect-e", deterministic=True)
def a_tunnel_is_not_seen(data: Data) -> Check:
    """Routers that do not count the TTL down are no cloud."""
    return equal("clouds met behind a tunnel", _sample(len(finders(data.runs(BRIDGE)[0]))), 0)


def _sample(value: float) -> Sample:
    return Sample.of([value])


def first_is_plain(_: Label, case: Case) -> Case:
    """Return the case with plain routers in the place of the chains' first XCP-i routers."""
    return base.plain_at(case, lambda node: re.fullmatch(r"r0\d*x1", node) is not None)


def not_bridged(_: Label, case: Case) -> Case:
    """Return the case with routers in the place of bridges."""

    def change(content: dict[str, Any]) -> None:
        for node in content["node"]:
            node.pop("kind", None)

    return case.changed(change)


study.control(
    "the first router of each chain is plain",
    Rewrite("off", first_is_plain, lambda label: label != BRIDGE),
    ["I-txt-detect-a", "I-txt-detect-b", "I-txt-detect-c", "I-txt-detect-d"],
    "a cloud is then before the second node, also where the pattern has none",
)
study.control(
    "the routers of the tunnel count the TTL down",
    Rewrite("off", not_bridged, lambda label: label == BRIDGE),
    ["I-txt-detect-e"],
    "the cloud is then seen",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Clouds and detections against the length of the chains."""
    grid = list(lengths(data.effort))
    clouds = [float(sum(len(expected(one)) for one in patterns(length))) for length in grid]
    met = [sum(finders(data.runs(length)[0]).values()) for length in grid]
    lines = [Line("clouds", grid, clouds), Line("detections", grid, met)]
    return [Panel("All patterns", "routers", "number", lines)]
