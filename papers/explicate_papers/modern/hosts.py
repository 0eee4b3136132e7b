"""Other hosts and queues for a paper's case: what of it stays, and what a law of today brings.

What stays: nodes, links, delays, rates, channels, media and their configured capacities, lengths of queues, packets,
numbers of flows, their paths, starts, sizes and sessions. A law of today brings the flows' protocol and the queue and
router of every port at which the paper's protocol has a router; plain routers stay plain, whatever their queue is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from string import Template
from typing import Any

from explicate.studies.tables import Law
from explicate_papers import stacks
from explicate_papers.inputs import Case

TODAY = "linux"
"""The stack of today's hosts."""
OF_HOSTS = ("protocol", "params", "stack")
"""Keys of a group of flows that another law replaces."""
WINDOW = "receiver_window"
SAMPLING = "sampling."
PLAIN, UNLIMITED = "none", "unlimited"
Table = dict[str, Any]


def timed(case: Case, duration: float, warmup: float, every: float) -> Case:
    """Return the case with this length and warm-up, s, whose queues alone are sampled, every so many ms."""

    def change(content: Table) -> None:
        content["duration"], content["warmup"] = f"{duration:g}s", f"{warmup:g}s"
        content["sampling"] = {"every": f"{every:g}ms", "of": ["queue"]}

    kept = {key: value for key, value in case.settings.items() if not key.startswith(SAMPLING)}
    return replace(case.changed(change), settings=kept, trace=None)


def of_today(case: Case) -> Case:
    """Return the case with today's hosts under the paper's own protocol; their receive windows limit nothing."""

    def change(content: Table) -> None:
        for group in content["flows"]:
            group.get("params", {}).pop(WINDOW, None)

    return stacks.with_stack(case, TODAY).changed(change)


def with_law(case: Case, law: Law, constants: Mapping[str, str]) -> Case:
    """Return the case with a law of today, its stack included; `constants` are for the $ in its queue and router.

    A drop-tail queue keeps the length of the paper's. Raise ValueError if the case has settings that would be lost.
    """
    if lost := [key for key in case.settings if not key.endswith(".router") and not key.startswith(SAMPLING)]:
        raise ValueError(f"no law of today takes over {', '.join(lost)}")
    queue, router = filled(law.queue, constants), filled(law.router, constants)

    def change(content: Table) -> None:
        content["stack"] = TODAY
        for port in ports(content):
            if port.get("router") == PLAIN:
                continue
            port["router"] = deepcopy(router)
            if port.get("queue", UNLIMITED) != UNLIMITED:
                length = {"limit": port["queue"]["limit"]} if queue["kind"] == "droptail" else {}
                port["queue"] = {**queue, **length}
        for group in content["flows"]:
            for key in OF_HOSTS:
                group.pop(key, None)
            group.update(deepcopy(dict(law.flows)))

    return replace(case.changed(change), settings={})


def over_plain_routers(case: Case, protocol: str) -> Case:
    """Return the case with this protocol of the paper's hosts on all flows, and no router that speaks."""

    def change(content: Table) -> None:
        for port in ports(content):
            port["router"] = PLAIN
        for group in content["flows"]:
            group.pop("params", None)
            group["protocol"] = protocol

    return case.changed(change)


def ports(content: Table) -> Iterator[Table]:
    """Yield the tables of a scenario that declare ports: of generated topologies, of links, and of media."""
    yield from (part for part in content.get("topology", {}).values() if isinstance(part, dict))
    yield from (link for link in content.get("link", ()) if "from" in link)
    yield from content.get("medium", ())


def filled(value: Any, constants: Mapping[str, str]) -> Any:
    """Return a queue or a router with the constants in it."""
    if isinstance(value, str):
        return Template(value).substitute(constants)
    return {key: filled(inner, constants) if isinstance(inner, str) else inner for key, inner in value.items()}
