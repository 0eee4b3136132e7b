"""Exports of a small scenario whose bottleneck has other settings, by the engine's own schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explicate import engine
from explicate.export.exported import Exported
from explicate.export.netem import commands
from explicate.source import Source

TRACE = "some.trace"
SCENARIO: dict[str, Any] = {
    "duration": "10s",
    "topology": {"pairs": 1, "bottleneck": {"rate": "8Mbit/s", "delay": "20ms", "queue": {"limit": "20pkt"}}},
    "flows": [{"name": "f", "protocol": "newreno"}],
}
ACTIVE: Mapping[str, dict[str, Any]] = {
    "random_loss": {"rate": 0.02},
    "burst_loss": {"rate": 0.02},
    "corruption": {"rate": 0.02},
    "duplication": {"rate": 0.02},
    "reordering": {"rate": 0.02},
    "rate_steps": {"steps": [{"at": "0s", "rate": "6Mbit/s"}, {"at": "1s", "rate": "7Mbit/s"}]},
    "trace": {"file": TRACE},
}
"""What gives a channel an effect that its defaults do not have."""


def kinds(definition: str) -> dict[str, dict[str, Any]]:
    """The tables of a definition by their kinds, with the present names of their keys."""
    tables = [one for one in engine.schema()["$defs"][definition]["anyOf"] if "properties" in one]
    return {
        one["properties"]["kind"]["const"]: {
            key: form for key, form in one["properties"].items() if key != "kind" and not form.get("deprecated")
        }
        for one in tables
    }


def scenario_of(bottleneck: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    middle = {**SCENARIO["topology"]["bottleneck"], **bottleneck}
    return {**SCENARIO, **more, "topology": {**SCENARIO["topology"], "bottleneck": middle}}


def exported(bottleneck: Mapping[str, Any], **more: Any) -> Exported:
    return commands(Source.of(scenario_of(bottleneck, **more)), "r1->r2")


def write_trace(folder: Path) -> None:
    """Write the file that an active `trace` reads."""
    (folder / TRACE).write_text("1\n2\n3\n")
