"""The agents of ns-2 as choices: what senders and routers of its authors do where a paper that ran ns-2 says nothing.

A choice has one place here, for all experiments of a paper. One value leaves their cases as they are written; another
changes the flows or the routers of the cases that it is about. Only experiments with such cases read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from explicate_papers.controls import Rewrite, Where, edit
from explicate_papers.inputs import Case, Effort

Content = dict[str, Any]
Make = Callable[[Effort], Mapping[Any, Case]]
PROTOCOL = re.compile(r'\bprotocol = "([^"/]+)')
QUEUE = {"target_queue": "10000B", "queue_weight": 0.1}
"""The router of the preset ``LR-XCPQ_PA``: links without a router have those of their flows' presets."""


def xcp(protocol: str) -> bool:
    """Return whether a protocol is of XCP's family."""
    return "xcp" in protocol.lower()


def vcp(protocol: str) -> bool:
    """Return whether a protocol is of VCP's family."""
    return protocol.startswith("vcp")


def bise(protocol: str) -> bool:
    """Return whether a protocol's routers mix codes."""
    return protocol.startswith("vcp-bise")


@dataclass(frozen=True)
class Rule:
    """A choice: the value with which cases stay as they are written, the protocols that it is about, and the change."""

    kept: str
    about: Callable[[str], bool]
    change: Callable[[Content, str], None]


def new_alone(content: Content, _: str) -> None:
    """Let senders follow the feedback of new acknowledgements alone."""
    for group in content["flows"]:
        if xcp(group["protocol"]) or vcp(group["protocol"]):
            group["params"] = {**group.get("params", {}), "follow_duplicates": False}


def tcp_for(groups: Collection[str], where: Where) -> Rewrite:
    """Return the mutation by which NewReno runs in the place of groups of flows, without what only theirs has."""

    def change(content: Content) -> None:
        for group in content["flows"]:
            if group["name"] in groups:
                group["protocol"] = "newreno"
                group.get("params", {}).pop("follow_duplicates", None)

    return edit("protocol", change, where)


def authors_pacing(content: Content, _: str) -> None:
    """Let VCP's flows divide a round trip as the sender of its author where they pace small windows."""
    for group in content["flows"]:
        if vcp(group["protocol"]):
            group["params"] = {**group.get("params", {}), "pace_parts": "power_of_two"}


def idle_rtt(content: Content, value: str) -> None:
    """Set the mean round trip that XCP's routers have after an interval without data; raise ValueError if unclear."""
    named = {group["protocol"].partition("/")[0] for group in content["flows"]}
    automatic: Content = {"kind": "xcp", **(QUEUE if any("XCPQ" in name for name in named) else {})}
    bridges = {node["name"] for node in content.get("node", []) if node.get("kind") == "bridge"}
    for link in _links(content):
        router = link.get("router", "none" if _adds_to_another(link) or link.get("from") in bridges else "auto")
        if router == "auto":
            if any(name in {"xtcp", "xcp_i"} or "XTCP" in name for name in named):
                raise ValueError("the routers of several protocols are automatic")
            router = automatic
        if isinstance(router, dict) and xcp(router["kind"]):
            link["router"] = {**router, "idle_rtt": value}


def carried(content: Content, value: str) -> None:
    """Set how many draws BISE's routers carry over."""
    for link in _links(content):
        router = link.get("router")
        if isinstance(router, dict) and router["kind"] == "vcp-bise":
            link["router"] = {**router, "carried": int(value)}


def _links(content: Content) -> Iterator[Content]:
    yield from (part for part in content.get("topology", {}).values() if isinstance(part, dict))
    yield from content.get("link", [])


def _adds_to_another(link: Content) -> bool:
    """Whether this table of a link has settings for one that is declared elsewhere."""
    return "from" not in link and "name" in link


FOLLOWED = Rule("all", lambda protocol: xcp(protocol) or vcp(protocol), new_alone)
IDLE = Rule("last", xcp, idle_rtt)
PACING = Rule("ours", vcp, authors_pacing)

RULES: Mapping[str, Rule] = {
    "I-P26": FOLLOWED,
    "I-P27": IDLE,
    "Y-P25": FOLLOWED,
    "Y-P26": IDLE,
    "Y-P27": PACING,
    "D-P24": IDLE,
    "K-P25": FOLLOWED,
    "K-P26": PACING,
    "K-P27": Rule("2", bise, carried),
}


def chosen(letter: str, make: Make) -> Make:
    """Return the function that makes a paper's cases with its choices about agents."""
    rules = {key: rule for key, rule in RULES.items() if key.startswith(f"{letter}-")}
    if not rules:
        return make

    @wraps(make)
    def made(effort: Effort) -> Mapping[Any, Case]:
        return {label: _with(case, rules, effort.choices) for label, case in make(effort).items()}

    return made


def _with(case: Case, rules: Mapping[str, Rule], choices: Mapping[str, str]) -> Case:
    protocols = set(PROTOCOL.findall(case.text))
    for key, rule in rules.items():
        if any(map(rule.about, protocols)) and (value := choices[key]) != rule.kept:
            case = _changed(case, rule, value)
    return case


def _changed(case: Case, rule: Rule, value: str) -> Case:
    """Return the case with its scenario changed, and the routers that its settings put in the place of others."""
    made = case.changed(lambda content: rule.change(content, value))
    if rule is not IDLE:
        return made
    routers = {
        key: {**router, "idle_rtt": value}
        for key, router in case.settings.items()
        if key.endswith(".router") and isinstance(router, dict) and xcp(router["kind"])
    }
    return replace(made, settings={**case.settings, **routers})
