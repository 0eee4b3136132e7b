"""The source of a scenario (a file or a text) and its overrides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from explicate.engine import Checked, Override, ScenarioError, check
from explicate.errors import BadInputError
from explicate.scenario import Scenario, ScenarioLike, plain

MOST_BYTES = 64 << 20
"""Maximum length of a text for the engine; no more is read of a device that never ends."""


@dataclass(frozen=True)
class Source:
    """A scenario's text; `origin` is its name in messages, and the files that it names are relative to `base`."""

    text: str
    origin: str
    base: str

    @classmethod
    def of(cls, scenario: ScenarioLike) -> Source:
        """Read `scenario`; raise OSError if the file cannot be read, ValueError if it is not UTF-8.

        Raise TypeError if a dict has a value that TOML cannot hold.
        """
        if isinstance(scenario, Scenario | Mapping):
            return cls(Scenario.of(scenario).to_toml(), "<scenario>", ".")
        if isinstance(scenario, str) and "\n" in scenario:
            return cls(scenario, "<text>", ".")
        path = Path(scenario)
        with path.open("rb") as file:
            return cls(decoded(file, str(path)), str(path), str(path.parent))

    def check(self, overrides: Sequence[Override] = (), *, fluid: bool = False) -> Checked:
        """Validate with `overrides`, with `fluid` for a fluid model; raise ScenarioError."""
        return check(self.text, self.origin, self.base, overrides, fluid=fluid)

    def sketch(self, overrides: Sequence[Override], *, fluid: bool) -> Checked:
        """As `check`, but a fluid model need not cover the whole scenario, as axes may replace other settings."""
        try:
            return self.check(overrides, fluid=fluid)
        except ScenarioError:
            if not fluid:
                raise
            return self.check(overrides)

    def anonymous(self, message: str) -> str:
        """Return `message` without this source's path, fit for a result file."""
        prefix = f"{self.origin}:"
        return f"scenario:{message.removeprefix(prefix)}" if message.startswith(prefix) else message


def decoded(file: BinaryIO, origin: str) -> str:
    """Return the text in `file`; raise BadInputError if it is not text, or too long for a scenario."""
    raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise BadInputError(f"{origin}: longer than {MOST_BYTES >> 20} MiB; no scenario is that long")
    try:
        return raw.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        column = len(raw[: error.start].rpartition(b"\n")[2].decode()) + 1
        raise BadInputError(f"{origin}:{line}:{column}: not UTF-8 text; save the file as UTF-8") from error


def value_text(value: Any) -> str:
    """Return `value` as the text that ``--set key=value`` would have: strings bare, the rest as TOML.

    Raise TypeError for what TOML cannot hold.
    """
    return value if isinstance(value, str) else _toml(value)


def listed(values: Any) -> Any:
    """Return several values, from any iterable, as a list of Python's own; a text does not count as a list."""
    return values if isinstance(values, str) else [plain(value) for value in values]


def _toml(value: Any) -> str:
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(str(key), ensure_ascii=False)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    raise TypeError(
        f"a scenario cannot hold a {type(value).__name__} ({value!r}); use text, a number, a list or a dict"
    )


def overrides_of(settings: Mapping[str, Any] | Sequence[Override] | None) -> list[Override]:
    """Return `settings` as overrides, in order."""
    if settings is None:
        return []
    if isinstance(settings, str):  # type: ignore[unreachable]
        raise TypeError('settings are a dict, such as {"duration": "3s"}, not a text')
    pairs = settings.items() if isinstance(settings, Mapping) else settings
    return [(key, value_text(value)) for key, value in pairs]
