"""The plan of a sweep: scenario, axes, runs and measures, from arguments or from a sweep file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from explicate.engine import MOST_RUNS, Override, ScenarioError, link_names
from explicate.errors import BadInputError
from explicate.scenario import ScenarioLike
from explicate.source import Source, overrides_of, value_text
from explicate.suggestions import instead
from explicate.sweeps import measures
from explicate.sweeps.design import Design, Point, Range
from explicate.sweeps.measures import Measure
from explicate.sweeps.work import Unit, units_of

KEYS: Mapping[str, type] = {
    "scenario": str, "grid": dict, "latin": dict, "points": int, "draw": int, "set": dict, "seed": int, "runs": int,
    "measure": list,
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One sweep, of packets or `fluid`. `places` are the locations of the axes, for messages."""

    source: Source
    design: Design = field(default_factory=Design)
    settings: tuple[Override, ...] = ()
    seed: int | None = None
    runs: int | None = None
    measures: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    fluid: bool = False

    def units(self) -> list[Unit]:
        """Return every run, in order; raise BadInputError or ScenarioError if one cannot be used."""
        taken = [Measure.of(measure) for measure in self.wanted()]
        if self.runs is not None and not 1 <= self.runs <= MOST_RUNS:
            raise BadInputError(f"runs must be from 1 to {MOST_RUNS:,}, not {self.runs}")
        own = {key: values for key, values in self._sketch()["sweep"] if key not in self.design.ranges}
        design = replace(self.design, grid={**own, **self.design.grid})
        units, files = list[Unit](), dict[str, str]()
        for point in design.combinations():
            overrides = [*self.settings, *((key, value_text(value)) for key, value in point.items())]
            units += self._units(point, overrides, files)
        self._check_names([measure for measure in taken if measure.name], units)
        return units

    def _check_names(self, taken: Sequence[Measure], units: Sequence[Unit]) -> None:
        """Raise BadInputError for a measure of a group or a link that no point has."""
        names: dict[str, dict[str, None]] = {table: {} for table in measures.NAMES}
        for overrides in dict.fromkeys(unit.overrides for unit in units):
            if not (unmet := measures.unmet(names, taken)):
                return
            checked = self.source.check(overrides, fluid=self.fluid)
            names["flows"] |= dict.fromkeys(group["name"] for group in checked["flows"])
            if any(measure.table == "links" for measure in taken):
                where = (self.source.text, self.source.origin, self.source.base)
                names["links"] |= dict.fromkeys(link_names(*where, overrides, fluid=self.fluid))
        if unmet := measures.unmet(names, taken):
            raise BadInputError("\n".join(unmet))

    def name(self) -> str:
        """Return the scenario's name; raise ScenarioError if it cannot be used."""
        return str(self._sketch()["name"])

    def wanted(self) -> tuple[str, ...]:
        """Return the measures, as they are written."""
        return self.measures or measures.DEFAULT

    def _sketch(self) -> Any:
        try:
            return self.source.sketch(self.settings, fluid=self.fluid)
        except ScenarioError as error:
            raise self._located(error) from error

    def _units(self, point: Point, overrides: Sequence[Override], files: dict[str, str]) -> list[Unit]:
        try:
            return list(units_of(self.source, point, overrides, self.seed, self.runs, files, self.fluid))
        except ScenarioError as error:
            raise self._located(error) from error

    def _located(self, error: ScenarioError) -> ScenarioError:
        """Return `error` with the location of the axis in place of ``--set``, if it concerns an axis."""
        lines = str(error).splitlines()
        for i, line in enumerate(lines):
            for key, place in self.places.items():
                if line.startswith(f"--set {key}:"):
                    lines[i] = place + line.removeprefix("--set ")
        return ScenarioError("\n".join(lines))


def plan_of(scenario: ScenarioLike) -> Plan:
    """Return the sweep that `scenario`, a sweep file, describes; or, of a plain scenario, one without any axis.

    Raise OSError if a file cannot be read, ValueError if it cannot be used.
    """
    return plan_of_source(Source.of(scenario))


def plan_of_source(source: Source) -> Plan:
    """As `plan_of`. A sweep file is recognised by its key ``scenario``."""
    try:
        given = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError:
        return Plan(_anywhere(source))  # the engine reports errors and their locations
    if "scenario" not in given:
        return Plan(_anywhere(source))
    return _SweepFile(source, given).plan()


def _anywhere(source: Source) -> Source:
    """Return `source` in a form for any process: the files that it names have absolute locations."""
    return replace(source, base=str(Path(source.base).resolve()))


@dataclass(frozen=True)
class _SweepFile:
    source: Source
    given: dict[str, Any]

    def plan(self) -> Plan:
        for key, value in self.given.items():
            self._known(key, value)
        grid, latin, settings = (self._table(name) for name in ("grid", "latin", "set"))
        for key, values in grid.items():
            if not isinstance(values, list) or not values:
                raise self._wrong(key, f"[grid] `{key}` needs a list of one value or more")
        for key, text in latin.items():
            if not isinstance(text, str):
                raise self._wrong(key, f'[latin] `{key}` is a range in quotes, such as "1ms..100ms"')
            self._tried(key, Range.of, key, text)
        path = Path(self.source.base, self.given["scenario"])
        try:
            scenario = Source.of(path)
        except OSError as error:
            raise self._wrong("scenario", f"{path}: {error.strerror}") from error
        wanted = tuple(str(text) for text in self.given.get("measure", ()))
        for text in wanted:
            self._tried("measure", Measure.of, text)
        design = Design(grid, latin, self.given.get("points"), self.given.get("draw", 1))
        return Plan(
            _anywhere(scenario),
            design,
            tuple(overrides_of(settings)),
            self.given.get("seed"),
            self.given.get("runs"),
            wanted,
            {key: f"{self._place(key)}: " for key in (*grid, *latin, *settings)},
        )

    def _tried(self, key: str, read: Callable[..., object], *words: str) -> None:
        try:
            read(*words)
        except BadInputError as error:
            raise self._wrong(key, str(error)) from error

    def _known(self, key: str, value: Any) -> None:
        if key not in KEYS:
            raise self._wrong(key, f"unknown key `{key}`; {instead(key, KEYS)}")
        if not isinstance(value, KEYS[key]) or isinstance(value, bool):
            kinds = {str: "a text", dict: "a table", int: "a whole number", list: "a list of texts"}
            raise self._wrong(key, f"`{key}` is {kinds[KEYS[key]]}, not {value!r}")
        if isinstance(value, int) and value < (key in ("runs", "points")):
            raise self._wrong(key, f"`{key}` is {value}, which is too small")

    def _table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] = self.given.get(name, {})
        for key, value in table.items():
            if isinstance(value, dict) and name != "set":
                raise self._wrong(key, f'[{name}]: a path with dots stands in quotes, like "topology.bottleneck.rate"')
        return table

    def _place(self, key: str) -> str:
        """Return file and line of `key`."""
        for number, line in enumerate(self.source.text.splitlines(), 1):
            if re.match(rf"""\s*\[?\s*["']?{re.escape(key)}["']?\s*[=.\]]""", line):
                return f"{self.source.origin}:{number}"
        return self.source.origin

    def _wrong(self, key: str, message: str) -> BadInputError:
        return BadInputError(f"{self._place(key)}: {message}")
