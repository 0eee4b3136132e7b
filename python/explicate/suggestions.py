"""What a user may have meant by a name that does not exist: by a list of other tools' words, then by spelling."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

OPTIONS: Mapping[str, Sequence[str]] = {
    "--runs": ("seeds", "repeat", "repeats", "repetitions", "replications", "replicas", "iterations", "reps", "n"),
    "--output": ("out", "outdir", "out-dir", "output-dir", "dir", "directory", "folder", "save", "write"),
    "--protocols": ("proto", "protos", "protocol", "cc", "algorithm", "algorithms"),
    "--jobs": ("threads", "workers", "parallel", "processes", "procs", "cores", "cpus", "j"),
    "--set": ("param", "params", "parameter", "override", "option", "config"),
    "--vary": ("axis", "axes", "grid", "over"),
    "--measure": ("metric", "metrics", "measures"),
    "--load": ("import", "module", "plugin"),
    "--force": ("overwrite", "replace", "f"),
    "--pcap": ("pcapng", "capture"),
    "--quiet": ("silent",),
    "--verbose": ("debug",),
}
"""Words for options, without dashes."""

KEYS: Mapping[str, Sequence[str]] = {
    "--set flows.0.protocol=NAME": ("proto", "protocol", "cc", "algorithm"),
    "--set flows.0.count=N": ("flows", "count", "nflows", "senders"),
    "--set duration=20s": ("duration", "time", "seconds", "t"),
    "--set topology.bottleneck.rate=10Mbit/s": ("rate", "bandwidth", "capacity", "bw"),
    "--set topology.bottleneck.delay=20ms": ("delay", "latency", "rtt"),
}
"""Words for keys of a scenario, where a command has ``--set``."""

UNITS: Mapping[str, tuple[str, float, float]] = {
    "duration": ("s", 0.0, 1e8),
    "rate": ("bit/s", 1e3, 1e15),
    "delay": ("s", 0.0, 10.0),
}
"""By the key's last word: the unit that tc and iperf give a number without one, and its likely range."""

COMMANDS: Mapping[str, Sequence[str]] = {
    "run": ("simulate", "sim", "start", "exec", "execute"),
    "sweep": ("scan", "grid", "campaign", "experiment", "batch"),
    "report": ("html", "view", "show", "open", "page"),
    "plot": ("figure", "draw", "graph", "chart"),
    "new": ("init", "create", "template", "templates", "example", "examples"),
    "check": ("validate", "lint", "verify"),
    "protocols": ("list", "ls", "protocol"),
    "export": ("convert",),
    "bench": ("benchmark",),
    "--version": ("version",),
    "--help": ("help",),
}
"""Words for commands."""


def option(word: str, known: Collection[str], value: str = "") -> str | None:
    """Return the option that an unknown `word` such as ``--seeds`` stands for, of those `known` to the command.

    A key of a scenario comes with the given `value`, and with its unit.
    """
    name = word.lstrip("-").replace("_", "-")
    synonyms = {**OPTIONS, **KEYS}
    meant = [one for one in synonyms if name in synonyms[one] and one.split()[0] in known]
    return _with_value(meant[0], value) if meant else nearest(word, known)


def _with_value(example: str, value: str) -> str:
    """Return ``--set key=example`` with this value instead, if it can be meant."""
    key, assigned, _ = example.partition("=")
    if not assigned or not value:
        return example
    try:
        number = float(value)
    except ValueError:
        return f"{key}={value}"
    unit, least, most = UNITS.get(key.rpartition(".")[2].rpartition(" ")[2], ("", -math.inf, math.inf))
    return f"{key}={value}{unit}" if least <= number <= most else example


def command(word: str, known: Collection[str]) -> str | None:
    """Return the command that an unknown `word` stands for."""
    meant = [one for one, words in COMMANDS.items() if word in words]
    return meant[0] if meant else nearest(word, known)


def instead(word: str, known: Collection[str], shown: Collection[str] = ()) -> str:
    """Return a hint: the name that is spelled nearly as `word`, or else all names, or those to be `shown`."""
    near = nearest(word, known)
    return f"did you mean `{near}`?" if near else f"there are {', '.join(shown or known)}"


def nearest(word: str, known: Collection[str]) -> str | None:
    """Return the name that is spelled nearly as `word`, if there is one."""
    import difflib  # noqa: PLC0415 (not needed for `--help`)

    return next(iter(difflib.get_close_matches(word, list(known), 1)), None)
