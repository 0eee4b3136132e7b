"""Scenarios written in Python instead of TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Scenario:
    """A scenario, built step by step. Each step returns a new scenario and leaves this one as it is.

    >>> scenario = (
    ...     Scenario("two hops", duration="20s", warmup="5s")
    ...     .link("a", "r", rate="100Mbit/s", delay="1ms", duplex=True)
    ...     .link("r", "b", rate="10Mbit/s", delay="20ms", duplex=True)
    ...     .flows("bulk", "xcp", count=3, from_="a", to="b")
    ... )

    Keys and values are those of a scenario file (docs/scenarios.md): quantities are texts with a unit, tables dicts.
    A key that Python reserves gets an underscore (``from_``); a key with the value None is left out. The engine checks
    keys and quantities when the scenario is run. Values that TOML cannot hold raise TypeError at once. `stack` is the
    TCP of all hosts, such as ``linux``; a group of flows can have another one.
    """

    def __init__(self, name: str | None = None, *, stack: str | None = None, **keys: Any) -> None:
        self._content = _table({"name": name, "stack": stack, **keys}, "")

    @classmethod
    def of(cls, scenario: ScenarioLike) -> Scenario:
        """Return a scenario from a dict, a file, or a TOML text of more than one line.

        Raise OSError if the file cannot be read, ValueError if it is not TOML.
        """
        if isinstance(scenario, Scenario):
            return scenario
        if isinstance(scenario, str | Path):
            is_text = isinstance(scenario, str) and "\n" in scenario
            text = str(scenario) if is_text else Path(scenario).read_text(encoding="utf-8")
            scenario = tomllib.loads(text)
        made = cls()
        made._content = {key: _plain(value, key) for key, value in scenario.items()}
        return made

    def replace(self, **keys: Any) -> Scenario:
        """Return the scenario with other top-level keys, such as ``duration``; None removes a key."""
        kept = {key: value for key, value in self._content.items() if key not in {_key(name) for name in keys}}
        return self._with({**kept, **_table(keys, "")})

    def topology(self, kind: str, **keys: Any) -> Scenario:
        """Return the scenario with a generated network: ``dumbbell``, ``chain``, ``parking_lot`` or ``star``."""
        return self.replace(topology=_table({"kind": kind, **keys}, "topology"))

    def sampling(self, every: str, of: Sequence[str]) -> Scenario:
        """Return the scenario with samples of the series `of`, with the period `every`."""
        return self.replace(sampling={"every": every, "of": of})

    def node(self, name: str, **keys: Any) -> Scenario:
        """Return the scenario with one more node."""
        return self.add("node", name=name, **keys)

    def link(
        self, from_: str | None = None, to: str | None = None, *, name: str | None = None, **keys: Any
    ) -> Scenario:
        """Return the scenario with one more link between two nodes, or with keys for the link that has this `name`.

        Nodes that are not there yet are added, unless `topology` generates the network.
        """
        if (from_ is None) != (to is None) or (from_ is None and name is None):
            raise ValueError('link() takes two nodes, or the name of a link of the topology: link(name="r1->r2")')
        made = self
        if "topology" not in self._content:
            known = {node.get("name") for node in self._content.get("node", [])}
            for end in dict.fromkeys(end for end in (from_, to) if end is not None and end not in known):
                made = made.node(end)
        return made.add("link", name=name, from_=from_, to=to, **keys)

    def flows(self, name: str, protocol: str, *, stack: str | None = None, **keys: Any) -> Scenario:
        """Return the scenario with one more group of flows, such as ``flows("bulk", "xcp", count=3)``.

        `stack` is the TCP of its hosts, by default the scenario's.
        """
        return self.add("flows", name=name, protocol=protocol, stack=stack, **keys)

    def add(self, table: str, **keys: Any) -> Scenario:
        """Return the scenario with one more entry of a list of tables, such as ``medium`` or ``reroute``."""
        before = self._content.get(table, [])
        return self._with({**self._content, table: [*before, _table(keys, f"{table}.{len(before)}.")]})

    def to_dict(self) -> dict[str, Any]:
        """Return the content as a TOML parser would; changing it does not change the scenario."""
        return {key: _plain(value, key) for key, value in self._content.items()}

    def to_toml(self) -> str:
        """Return the text of the scenario file."""
        return "\n".join(_lines(self._content))

    def _with(self, content: dict[str, Any]) -> Scenario:
        made = Scenario()
        made._content = content
        return made

    def __str__(self) -> str:
        return self.to_toml()

    def __repr__(self) -> str:
        return f"Scenario.of({self._content!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self.to_toml())


ScenarioLike = str | Path | Mapping[str, Any] | Scenario
"""A file's path; if a `str` has more than one line, the text of a scenario; a dict with its content; a `Scenario`."""


def plain(value: Any) -> Any:
    """Return NumPy's scalars and arrays as Python's own numbers and lists; other values unchanged."""
    unwrap = getattr(value, "tolist", None)
    return unwrap() if callable(unwrap) else value


def _key(name: str) -> str:
    return name.removesuffix("_")


def _table(keys: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the keys of a call as a table: without those that are None."""
    return {_key(name): _plain(value, f"{path}{_key(name)}") for name, value in keys.items() if value is not None}


def _plain(value: Any, path: str) -> Any:
    """Return a copy of `value` in the types that TOML has; raise TypeError for what it cannot hold."""
    value = plain(value)
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"{path}: {strange[0]!r} cannot be a key; keys are texts")
        return {key: _plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item, f"{path}.{place}") for place, item in enumerate(value)]
    raise TypeError(
        f"{path}: a scenario cannot hold a {type(value).__name__} ({value!r}); use text, a number, a list or a dict"
    )


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a file: plain keys first, then tables in their order."""
    tables = {key: value for key, value in content.items() if _is_section(value)}
    yield from (_line(key, value) for key, value in content.items() if key not in tables)
    for key, value in tables.items():
        head = f"[{_key_text(key)}]" if isinstance(value, dict) else f"[[{_key_text(key)}]]"
        for entry in [value] if isinstance(value, dict) else value:
            yield from ("", head, *(_line(name, item) for name, item in entry.items()))
    yield ""


def _is_section(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, dict) for entry in value)
    return isinstance(value, dict)


def _line(key: str, value: Any) -> str:
    return f"{_key_text(key)} = {_inline(value)}"


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(_line(key, item) for key, item in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)


def _key_text(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
