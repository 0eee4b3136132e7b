"""The only door to the compiled engine: JSON becomes typed dictionaries, tables become Polars frames.

Nothing else in the package imports ``explicate._native``, so that a test can put another engine in its place.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    import polars as pl

OTHER = os.environ.get("EXPLICATE_ENGINE", "")
"""The module that replaces the compiled engine, with more protocols (docs/own-protocol.md)."""

try:
    from explicate import _native
except ImportError as error:
    if not OTHER:
        raise ImportError(
            f"explicate's compiled engine is missing or does not load ({error}); "
            "build it with `make install`, or `maturin develop --release` in this environment"
        ) from error
if OTHER:
    try:
        _native = importlib.import_module(OTHER)
    except ImportError as error:
        raise ImportError(f"EXPLICATE_ENGINE names {OTHER!r}, which does not load: {error}") from error

ScenarioError = _native.ScenarioError
ScenarioError.__module__ = __name__  # where pickle finds it: an error has to come back from another process
if TYPE_CHECKING:
    Ack = _native.Ack
    Header = _native.Header
    Loss = _native.Loss
    Packet = _native.Packet
    PortView = _native.PortView
    Sent = _native.Sent
    Undo = _native.Undo
else:
    # Another engine need not have these.
    Ack, Header, Loss, Packet, PortView, Sent, Undo = (
        getattr(_native, name, object) for name in ("Ack", "Header", "Loss", "Packet", "PortView", "Sent", "Undo")
    )

KINDS = ("fast", "reference")
"""Engines of :func:`run`; they give the same tables."""

MOST_RUNS = 1_000_000
"""The limit of a scenario."""

Override = tuple[str, str]
"""One ``--set``: a dotted key and the text of its value."""


class Parameter(TypedDict):
    """One parameter of a registry entry."""

    name: str
    default: str
    unit: str
    source: str
    doc: str


class Entry(TypedDict):
    """One line of the registry: a protocol, recovery, router, queue discipline, channel, ..."""

    kind: str
    name: str
    summary: str
    source: str
    parameters: list[Parameter]
    header_bytes: NotRequired[int]
    """Of a protocol: bytes of headers in front of the payload of its data packets."""


class Column(TypedDict):
    """One column of a result table, with its unit and definition."""

    name: str
    unit: str
    doc: str


class FlowGroup(TypedDict):
    """One ``[[flows]]`` table of a scenario."""

    name: str
    count: int
    protocol: str


class Checked(TypedDict):
    """Facts about a valid scenario. ``sweep`` is a list of ``[key, values]``.

    ``unused`` has those ``warnings`` that are about a setting which nothing uses, each with the setting.
    """

    resolved: str
    warnings: list[str]
    unused: list[tuple[str, str]]
    runs: int
    seed: int
    duration_s: float
    warmup_s: float
    name: str
    sweep: list[tuple[str, list[Any]]]
    flows: list[FlowGroup]
    links: int


class BenchCase(TypedDict):
    """The cost of one case of the engine's own benchmark."""

    name: str
    hops: int
    cpu_seconds: float
    hops_per_cpu_second: float
    instructions_per_hop: float | None
    bytes_per_flow: float | None
    bytes_per_flow_after: float | None


@dataclass(frozen=True)
class Output:
    """The tables and texts of one call of :func:`run`."""

    flows: pl.DataFrame
    links: pl.DataFrame
    samples: pl.DataFrame
    run: pl.DataFrame
    warnings: tuple[str, ...]
    unused: tuple[tuple[str, str], ...]
    trace: str
    timing: Any


def file() -> str:
    """Return the path of the compiled engine."""
    return str(_native.__file__)


def version() -> str:
    """Return the engine's version, which is the package's."""
    return _native.version()


def registry() -> list[Entry]:
    """Return everything that a scenario can name, with parameters, units and paper sections."""
    return cast(list[Entry], json.loads(_native.registry()))


def register(protocol: dict[str, Any]) -> None:
    """Register a protocol written in Python (`explicate.protocols`); raise ValueError if it is invalid."""
    _native.register(protocol)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files."""
    return cast(dict[str, Any], json.loads(_native.schema()))


def columns() -> dict[str, list[Column]]:
    """Return, for each result table, its columns in order with unit and definition.

    ``samples.variable`` lists in the same form what that column can hold.
    """
    return cast(dict[str, list[Column]], json.loads(_native.columns()))


def template(kind: str) -> str:
    """Return a commented scenario to start from; raise ScenarioError, which lists the kinds, for an unknown kind."""
    return _native.template(kind)


def templates() -> dict[str, str]:
    """Return the templates by name, with a sentence about each."""
    return cast(dict[str, str], json.loads(_native.templates()))


def companions(kind: str) -> dict[str, str]:
    """Return the additional files of a template: contents by name."""
    return cast(dict[str, str], json.loads(_native.companions(kind)))


def check(text: str, origin: str, base: str, overrides: Sequence[Override], *, fluid: bool = False) -> Checked:
    """Validate a scenario, with `fluid` as one for a fluid model, and resolve its defaults; raise ScenarioError."""
    return cast(Checked, json.loads(_native.check(text, origin, base, list(overrides), fluid)))


class Explained(TypedDict):
    """A group of flows with its stack; ``place`` is where the stack is written.

    A setting has its ``name``, its ``value``, where that is ``from``, and the value of the stack that it is
    ``instead_of``, if any.
    """

    group: str
    protocol: str
    recovery: str
    stack: str | None
    place: str | None
    settings: list[dict[str, str | None]]


class Setting(TypedDict):
    """A parameter or another setting of a resolved scenario: as written, and whether that is its default."""

    name: str
    text: str
    default: bool
    value: NotRequired[float | None]
    """Of a parameter: the number in its base unit; None for `auto`, `unlimited` and contents."""


class Part(TypedDict):
    """A router controller or a channel, with all of its parameters."""

    kind: str
    params: list[Setting]


class Queue(Part):
    """A queue discipline; lengths are in bytes."""

    mean_packet: float


class PortClass(TypedDict):
    """A class of packets with a queue of its own."""

    match: str
    weight: float
    queue: Queue | None
    routers: list[Part]


class Link(TypedDict):
    """A one-way link with all settings. `part` is its table in ``[topology]``, or empty."""

    name: str
    part: str
    rate_bps: int
    delay_ns: int
    queue: Queue | None
    routers: list[Part]
    classes: list[PortClass]
    channels: list[Part]
    medium: dict[str, str] | None
    settings: list[Setting]


class Links(TypedDict):
    """The links of a scenario, and what concerns all of them."""

    links: list[Link]
    reroutes: list[dict[str, Any]]
    sweep: list[str]


def stacks(text: str, origin: str, base: str, overrides: Sequence[Override]) -> list[Explained]:
    """Return for each group of flows what its stack sets, and what wins over it; raise ScenarioError."""
    return cast(list[Explained], json.loads(_native.stacks(text, origin, base, list(overrides))))


def link_names(text: str, origin: str, base: str, overrides: Sequence[Override], *, fluid: bool = False) -> list[str]:
    """Return the names of a scenario's links, with `fluid` of one for a fluid model; raise ScenarioError."""
    return _native.link_names(text, origin, base, list(overrides), fluid)


def links(text: str, origin: str, base: str, overrides: Sequence[Override]) -> Links:
    """Return the links of a scenario with every setting, as a run has them; raise ScenarioError."""
    return cast(Links, json.loads(_native.links(text, origin, base, list(overrides))))


def run(
    text: str,
    origin: str,
    base: str,
    overrides: Sequence[Override],
    *,
    seed: int | None,
    runs: int | None,
    jobs: int,
    trace: str | None = None,
    pcap: str | None = None,
    progress: Callable[[float], None] | None = None,
    kind: str = "fast",
) -> Output:
    """Simulate by the engine of this `kind`; `progress` gets the fraction done, 0 to 1.

    Raise ScenarioError, RuntimeError, or ValueError for a kind that is not one of `KINDS`.
    """
    return _output(_native.run(text, origin, base, list(overrides), seed, runs, jobs, trace, pcap, progress, kind))


def fluid(
    text: str,
    origin: str,
    base: str,
    overrides: Sequence[Override],
    *,
    seed: int | None,
    runs: int | None,
    progress: Callable[[float], None] | None = None,
) -> Output:
    """Compute the scenario's fluid model; as `run`, the rows of `flows` being classes."""
    return _output(_native.fluid(text, origin, base, list(overrides), seed, runs, progress))


def fluid_models() -> dict[str, str]:
    """Return the protocols that have a fluid model, with a sentence about each."""
    return {model["protocol"]: model["summary"] for model in json.loads(_native.fluid_models())}


def _output(raw: _native.Output) -> Output:
    import polars as pl  # noqa: PLC0415 (slow to import, and only runs use it)

    return Output(
        flows=pl.DataFrame(raw.flows),
        links=pl.DataFrame(raw.links),
        samples=pl.DataFrame(raw.samples),
        run=pl.DataFrame(raw.run),
        warnings=tuple(raw.warnings),
        unused=tuple(raw.unused),
        trace=raw.trace,
        timing=json.loads(raw.timing),
    )


def curves(
    text: str,
    overrides: Sequence[Override],
    link: str,
    lengths: Sequence[int],
    *,
    acks: bool,
    trials: int,
    seed: int,
) -> list[dict[str, Any]]:
    """Return what a link's channels predict for packets of each length, and what drawn ones saw: a row for each."""
    rows = _native.curves(text, "curves", ".", list(overrides), link, list(lengths), acks, trials, seed)
    return cast(list[dict[str, Any]], json.loads(rows))


def bench_cases() -> list[str]:
    """Return the names of the benchmark's cases."""
    return _native.bench_cases()


def bench(case: str | None = None, duration: float | None = None) -> list[BenchCase]:
    """Measure the engine; `duration` is in simulated seconds. Raise ValueError for an unknown case."""
    return cast(list[BenchCase], json.loads(_native.bench(case, duration))["cases"])


def floor_cases() -> list[str]:
    """Return the names of the programs that only move packets."""
    return _native.floor_cases()


def floor(case: str, duration: float | None = None) -> BenchCase:
    """Measure the cost of moving packets without an engine; raise ValueError for an unknown case."""
    return cast(BenchCase, json.loads(_native.floor(case, duration))["cases"][0])
