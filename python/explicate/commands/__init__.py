"""The subcommands of ``explicate``, one module each.

A module has `EXAMPLES`, `arguments(parser)`, which declares its options, and `execute(args)`, which returns the exit
status or None for 0. Only the module of the command that runs is imported, and `execute` imports what it uses.
"""

from __future__ import annotations

import importlib
from types import ModuleType

SUMMARIES = {
    "run": "simulate a scenario",
    "compare": "simulate a scenario once per protocol, under the same conditions",
    "compare-lab": "simulate a scenario and run it on real sockets and queues, side by side (needs root)",
    "sweep": "simulate many points and seeds: every combination of some settings, or a Latin hypercube",
    "reproduce": "reproduce experiments of the five papers and judge their claims",
    "study": "put one question to many protocols on many networks, with a verdict in words for each",
    "report": "make one self-contained HTML page from a result directory",
    "plot": "draw one figure of a result directory for a paper: PDF, SVG or PNG",
    "diff": "compare two result directories: every measure, with the interval of the difference",
    "export": "write results or links for other tools: mahimahi, qlog, TCP captures, tc netem",
    "check": "check a scenario and print it with all defaults",
    "explain": "show what the stack of each group of flows sets, and what wins over it",
    "new": "print a scenario to start from",
    "protocols": "list protocols, recoveries, queue disciplines, channels and their parameters",
    "columns": "list the columns of the result tables with units",
    "schema": "print the JSON Schema of scenario files",
    "curves": "print the loss statistics of a channel, in closed form and by Monte Carlo",
    "bench": "benchmark the engine on this machine",
    "demo": "compare XCP, NewReno and CUBIC on a long fat pipe, and write a report",
    "doctor": "check the installation and list what is missing",
    "completion": "print a completion script for a shell",
}
"""All commands, in the order of ``explicate --help``."""

OLD_NAMES = {"compare-worlds": "compare-lab"}
"""Old names of commands, which work for one more release."""


def module(name: str) -> ModuleType:
    """Return the module of a command."""
    return importlib.import_module(f"explicate.commands.{name.replace('-', '_')}")
