"""Another TCP for the hosts of the papers' experiments: ``explicate reproduce --stack linux``.

Everything that a stack sets is replaced, values that a scenario writes too: the rule of the timer with its parameters,
the recovery of TCP flows, their start and acknowledgements, the hosts' queue. Explicit protocols take only what stacks
give them. What the engine's stacks set is asked of the engine; ``stacks.toml`` has the rest, and the claims that are
not meaningful then. Windows of receivers, buffers, packets and start times stay.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from explicate import engine
from explicate.engine import Explained
from explicate.errors import BadInputError
from explicate.scenario import Scenario
from explicate.source import Source
from explicate_papers.inputs import STACK, Case

FILE = "stacks.toml"
RECOVERY = "recovery"
START = "initial_window"
"""A parameter that stacks set for flows alone whose protocol works end to end."""
OF_FLOW = re.compile(r"flows\.([^.]+)\.params\.([^.]+)")
"""A setting that is a parameter of a group of flows, which has a name or a place."""
EXACT = "rtt_resolution"
"""What `Case.overrides` gives every flow: here it is the stack's."""
NONE = "–"


@dataclass(frozen=True)
class Replaced:
    """A setting of the flows of one protocol that has another value with the stack.

    `written` is whether the scenario gave the value `before`; otherwise it was that of the papers' stack.
    """

    protocol: str
    setting: str
    before: str
    after: str
    written: bool

    def __str__(self) -> str:
        return f"{self.setting} {self.before} → {self.after}"


@cache
def names() -> tuple[str, ...]:
    """Return the names of the engine's stacks."""
    return tuple(entry["name"] for entry in engine.registry() if entry["kind"] == "stack")


def known(name: str) -> str:
    """Return the name of a stack; raise BadInputError for a name that no stack has."""
    if name not in names():
        raise BadInputError(f"--stack {name}: no such stack; there are {', '.join(names())}")
    return name


@cache
def data() -> Mapping[str, Any]:
    """Return the content of ``stacks.toml``."""
    return tomllib.loads(resources.files("explicate_papers").joinpath(FILE).read_text(encoding="utf-8"))


@cache
def meaningless(stack: str) -> Mapping[str, str]:
    """Return the claims that are not meaningful with a stack, each with the reason."""
    return {row["claim"]: row["reason"] for row in data()["meaningless"] if stack in row["stacks"]}


# ------------------------------------------------------------------------------------------------ replacing


def with_stack(case: Case, stack: str) -> Case:
    """Return the case with the hosts of `stack`; raise ScenarioError if a protocol is unknown."""
    content = tomllib.loads(case.text)
    content.pop("stack", None)
    gone: list[tuple[set[str], set[str]]] = []
    for place, group in enumerate(content.get("flows", [])):
        group.pop("stack", None)
        leaves = _replaced_names(group["protocol"], stack)
        group["protocol"] = protocol_with(group["protocol"], stack)
        if "params" in group:
            group["params"] = {key: value for key, value in group["params"].items() if key not in leaves}
        gone.append(({str(place), group["name"]}, leaves))

    def stays(key: str) -> bool:
        found = OF_FLOW.fullmatch(key)
        return key != "stack" and not (found and any(found[1] in which and found[2] in what for which, what in gone))

    settings = {key: value for key, value in case.settings.items() if stays(key)}
    settings |= {f"flows.{place}.params.{EXACT}": "auto" for place in range(len(gone))}
    return replace(case, text=Scenario.of(content).to_toml(), settings={**settings, "stack": stack})


def protocol_with(key: str, stack: str) -> str:
    """Return a flow's protocol key with the stack's recovery in the place of another TCP's."""
    explained = _explained(key, stack)
    own = next((one for one in explained["settings"] if one["name"] == RECOVERY), None)
    if own is None or own["instead_of"] is None or explained["recovery"] not in data()["tcp"]:
        return key  # the stack has none, its own is in force already, or the protocol has one that is no TCP's
    if "/" not in key and not end_to_end(key):
        return key  # the name of an explicit protocol stands for its recovery
    return f"{explained['protocol']}/{own['instead_of']}"


def end_to_end(key: str) -> bool:
    """Whether a protocol key is that of flows for which stacks set the start and the acknowledgements."""
    return START in _set_by_stacks(key)


def _replaced_names(key: str, stack: str) -> set[str]:
    """Return the parameters that a flow of this protocol loses."""
    sets = _set_by_stacks(key)
    follow = {name for one, names in data()["follow"].items() if one in sets for name in names}
    before, after = (_recovery_params(_explained(one, name)["recovery"]) for one, name in _both(key, stack))
    return set(sets) | follow | (before - after)


def _both(key: str, stack: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (key, STACK), (protocol_with(key, stack), stack)


@cache
def _recovery_params(name: str) -> frozenset[str]:
    found = (entry for entry in engine.registry() if (entry["kind"], entry["name"]) == ("recovery", name))
    return frozenset(param["name"] for entry in found for param in entry["parameters"])


@cache
def _set_by_stacks(key: str) -> frozenset[str]:
    """Return the parameters that any stack sets for flows of this protocol."""
    found = {one["name"] for stack in names() for one in _explained(key, stack)["settings"]}
    return frozenset(name for name in found if name is not None and name != RECOVERY)


@cache
def _explained(key: str, stack: str) -> Explained:
    """Return what a stack sets for a flow of this protocol which writes nothing."""
    text = _scenario(key, {}).to_toml()
    (group,) = engine.stacks(text, "<flow>", ".", [("stack", stack)])
    return group


def _scenario(key: str, params: Mapping[str, Any]) -> Scenario:
    """Return the smallest network with a flow of this protocol, and these parameters."""
    made = Scenario("flow").link("a", "b", rate="10Gbit/s", delay="1ms", duplex=True)
    return made.flows("flow", key, from_="a", to="b", params=dict(params) or None)


# ------------------------------------------------------------------------------------------------- listing


def replaced(before: Iterable[Case], after: Iterable[Case]) -> list[Replaced]:
    """Return what the flows of cases lost and have instead: for each protocol and value once, in order.

    `after` are the same cases as `before`, with a stack.
    """
    found: dict[Replaced, None] = {}
    for one, other in zip(before, after, strict=True):
        for old, new in zip(_flows(one), _flows(other), strict=True):
            found |= dict.fromkeys(_differences(*old, *new))
    order = list(dict.fromkeys(one.protocol for one in found))
    return sorted(found, key=lambda one: order.index(one.protocol))


def _flows(case: Case) -> Iterator[tuple[str, str, str]]:
    """Yield for each group of a case its protocol, its parameters, and its stack."""
    settings = dict(case.overrides())
    for place, group in enumerate(tomllib.loads(case.text).get("flows", [])):
        params = dict(group.get("params", {}))
        params[EXACT] = settings[f"flows.{place}.params.{EXACT}"]
        yield group["protocol"], json.dumps(params, sort_keys=True), settings["stack"]


@cache
def _differences(
    key: str, params: str, stack: str, other_key: str, other_params: str, other_stack: str
) -> tuple[Replaced, ...]:
    old, new = _in_force(key, params, stack), _in_force(other_key, other_params, other_stack)
    written = set(json.loads(params)) | ({RECOVERY} if "/" in key else set())
    return tuple(
        Replaced(key, name, old.get(name, NONE), new.get(name, NONE), name in written)
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    )


@cache
def _in_force(key: str, params: str, stack: str) -> dict[str, str]:
    """Return the recovery and the parameters of a flow, defaults included."""
    made = _scenario(key, json.loads(params))
    (group,) = tomllib.loads(Source.of(made).check([("stack", stack)])["resolved"])["flows"]
    shown = {name: _shown(value) for name, value in group["params"].items()}
    return {RECOVERY: _explained(key, stack)["recovery"], **shown}


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def lines(found: Sequence[Replaced]) -> Iterator[str]:
    """Yield a line for each protocol: all that was replaced in its flows."""
    for protocol in dict.fromkeys(one.protocol for one in found):
        yield f"{protocol}: {', '.join(str(one) for one in found if one.protocol == protocol)}"


def rows(found: Iterable[Replaced]) -> list[dict[str, Any]]:
    """Return the replacements as a file has them."""
    return [asdict(one) for one in found]


def as_html(stack: str, found: Sequence[Replaced]) -> str:
    """Return the table of what a stack replaced on the page of an experiment; empty if there is no stack."""
    if not stack:
        return ""
    body = "".join(
        f'<tr><th scope="row">{escape(one.protocol)}</th><td>{escape(one.setting)}</td><td>{escape(one.before)}'
        f"{' (written)' if one.written else ''}</td><td>{escape(one.after)}</td></tr>"
        for one in found
    )
    head = "<thead><tr><th>Protocol</th><th>Setting</th><th>In the reproduction</th><th>Here</th></tr></thead>"
    what = f'<div class="scroll"><table>{head}<tbody>{body}</tbody></table></div>' if found else "<p>Nothing.</p>"
    return f'<section class="wrap"><h2>Replaced by stack {escape(stack)}</h2>{what}</section>'
