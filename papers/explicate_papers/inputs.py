"""The inputs of an experiment's runs: the effort of a plan, and a case, which is a scenario with settings on top."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from explicate.engine import Override
from explicate.scenario import Scenario
from explicate.source import overrides_of

Label = Hashable
T = TypeVar("T")

STACK = "ns2"
"""The hosts' TCP in all papers: that of simulators. Paper N's hosts had Linux 2.4, which no stack has."""


@dataclass(frozen=True)
class Effort:
    """The size of runs: the name of the plan, the seeds of each case, simulated seconds, and the paper's choices.

    `choices` has the value of each parameter that the paper leaves out (``D-P1``).
    """

    name: str
    seeds: int
    seconds: float
    choices: Mapping[str, str]

    @property
    def quick(self) -> bool:
        """Whether a sweep may leave out points that no predicate needs."""
        return self.name == "quick"

    def table(self, parameter: str) -> dict[str, Any]:
        """Return a choice that is written like keys of a scenario, as a dict: ``interval = "2ms", phi = 1.001``."""
        text = self.choices[parameter]
        made: dict[str, Any] = tomllib.loads(f"it = {text if text.startswith('{') else f'{{ {text} }}'}")["it"]
        return made

    def pick(self, every: Sequence[T], quick: Sequence[T]) -> Sequence[T]:
        """Return the points of a sweep: `every`, or only those of `quick`."""
        return quick if self.quick else every


@dataclass(frozen=True)
class Case:
    """A scenario with settings on top; `seeds` overrides the plan's number, `trace` records packets."""

    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    trace: str | None = None

    def changed(self, change: Callable[[dict[str, Any]], None]) -> Case:
        """Return the case with its scenario changed; `change` receives the content as a dict that it may change."""
        content = tomllib.loads(self.text)
        change(content)
        return replace(self, text=Scenario.of(content).to_toml())

    def overrides(self) -> list[Override]:
        """Return the settings as overrides. Flows are the papers': hosts have `STACK`, and no flow is guarded.

        Of round trips the controllers' estimate takes every sample, in the ticks that a case writes, otherwise exactly:
        ns-2's XCP, too, has an estimate apart from the timer's.
        """
        own: dict[str, Any] = {"stack": STACK}
        for place, group in enumerate(tomllib.loads(self.text).get("flows", [])):
            params = group.get("params", {})
            own[f"flows.{place}.params.guard"] = "off"
            own[f"flows.{place}.params.rtt_resolution"] = params.get("rtt_resolution", params.get("clock_tick", "0s"))
        return overrides_of(own | dict(self.settings))
