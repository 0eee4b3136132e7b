"""Explicit congestion control, from paper to packets.

>>> import explicate
>>> results = explicate.run("scenarios/dumbbell.toml", seed=1)   # doctest: +SKIP
>>> results.summary()                                            # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explicate.curves import channel_curves
    from explicate.difference import diff
    from explicate.engine import (
        Ack,
        Header,
        Loss,
        Packet,
        PortView,
        ScenarioError,
        Sent,
        Undo,
        columns,
        registry,
        schema,
        template,
    )
    from explicate.lab import compare, run
    from explicate.notebook import show
    from explicate.protocols import Allowance, Param, Receiver, Router, RouterInit, Sender, SenderInit, register
    from explicate.report import write_report
    from explicate.results import Results
    from explicate.scenario import Scenario
    from explicate.summary import jain_index
    from explicate.sweeps.api import sweep

    __version__: str

# Where each public name is defined. Modules are imported when a name of theirs is first used: Polars takes most of the
# time of an import, and `explicate --help` does not use it.
_HOMES = {
    "Ack": "engine",
    "Allowance": "protocols",
    "Header": "engine",
    "Loss": "engine",
    "Packet": "engine",
    "Param": "protocols",
    "PortView": "engine",
    "Receiver": "protocols",
    "Results": "results",
    "Router": "protocols",
    "RouterInit": "protocols",
    "Scenario": "scenario",
    "ScenarioError": "engine",
    "Sender": "protocols",
    "SenderInit": "protocols",
    "Sent": "engine",
    "Undo": "engine",
    "channel_curves": "curves",
    "columns": "engine",
    "compare": "lab",
    "diff": "difference",
    "jain_index": "summary",
    "register": "protocols",
    "registry": "engine",
    "run": "lab",
    "schema": "engine",
    "show": "notebook",
    "sweep": "sweeps.api",
    "template": "engine",
    "write_report": "report",
}

__all__ = [
    "Ack",
    "Allowance",
    "Header",
    "Loss",
    "Packet",
    "Param",
    "PortView",
    "Receiver",
    "Results",
    "Router",
    "RouterInit",
    "Scenario",
    "ScenarioError",
    "Sender",
    "SenderInit",
    "Sent",
    "Undo",
    "__version__",
    "channel_curves",
    "columns",
    "compare",
    "diff",
    "jain_index",
    "register",
    "registry",
    "run",
    "schema",
    "show",
    "sweep",
    "template",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name == "__version__":
        value = importlib.import_module("explicate.engine").version()
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"explicate.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'explicate' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
