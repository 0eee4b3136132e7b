"""The tables of the study: laws and networks, as ``bits.toml`` has them, and the scenario of a law on a network."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from importlib import resources
from string import Template
from typing import Any, ClassVar

from explicate.engine import Override
from explicate.errors import BadInputError
from explicate.results import Results
from explicate.source import Source, value_text
from explicate.studies.verdict import MEASURES
from explicate.suggestions import instead

PACKET_KBIT = 12.0
"""A packet of 1500 bytes."""
FEWEST_PACKETS, FEWEST_MARKED = 20, 3
"""The least length of a full queue, and the least threshold of marks, packets."""
STEP_S = 0.5
"""How long a rate of a trace lasts."""
WORKERS = 32
"""Hosts that answer at once in incast, from h3 on."""
WORDS = ("title", "question", "wanted", "drawn")
"""Fields of a network that change no measure."""


@dataclass(frozen=True)
class Law:
    """A row of the table of laws: what flows and ports have, and how many bits of feedback a packet carries."""

    name: str
    label: str
    bits: int
    carried: str
    flows: Mapping[str, Any]
    queue: Mapping[str, Any]
    router: str | Mapping[str, Any] = "auto"
    scone: str = ""
    air: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Network:
    """A network at one rate; ``bits.toml`` says what each field is. Rates are in Mbit/s, `rtt` and `every` in ms.

    `family` is the name of its row, which stands for all of its rates. `SAMPLED` is what its runs sample.
    """

    SAMPLED: ClassVar[Sequence[str]] = ("queue",)

    name: str
    family: str
    title: str
    question: str
    wanted: str
    rate: float
    rtt: float
    measures: Sequence[str]
    drawn: Sequence[str]
    links: Mapping[str, float]
    duration: float
    warmup: float
    every: float
    scenario: str
    served: bool = False
    keep: bool = False
    trace: Sequence[float] = ()
    carries: float = 0.0
    crosses: Mapping[str, float] = field(default_factory=dict)
    fair: Mapping[str, float] = field(default_factory=dict)
    limit: int = 0
    mark: int = 0
    tail: float = 0.0

    @property
    def capacity_mbps(self) -> float:
        """What all flows together could carry after the warm-up, Mbit/s."""
        return self.carries or self.mean_mbps or self.rate

    @property
    def mean_mbps(self) -> float:
        """The mean of the trace after the warm-up; 0 without a trace."""
        kept = self.trace[round(self.warmup / STEP_S) : round(self.duration / STEP_S)]
        return sum(kept) / len(kept) if kept else 0.0

    @property
    def limit_packets(self) -> int:
        """Length of a full queue."""
        return self.limit or max(FEWEST_PACKETS, round(self.rate * self.rtt / PACKET_KBIT))

    @property
    def mark_packets(self) -> int:
        """Threshold of DCTCP's marks, C RTT / 7 (SIGCOMM 2010, section 3.4)."""
        return self.mark or max(FEWEST_MARKED, round(self.rate * self.rtt / PACKET_KBIT / 7))

    def floor(self, measure: str) -> float:
        """Return the least difference that counts; of a delay a twentieth of a round trip, and a packet's time."""
        named = MEASURES[measure].floor
        return max(self.rtt / 20, PACKET_KBIT / self.rate) if named is None else named

    def constants(self) -> dict[str, str]:
        """Return what queues and routers of laws take from the network, by the name behind the $."""
        return {
            "limit": str(self.limit_packets),
            "mark": str(self.mark_packets),
            "delta": f"{max(133.0, 0.7 * self.rtt):g}",
            "t_rho": f"{max(200.0, 1.25 * self.rtt):g}",
            "interval": f"{max(100.0, self.rtt):g}",
        }

    def measuring(self) -> dict[str, Any]:
        """Return all fields that decide what a run's measures are."""
        return {one.name: getattr(self, one.name) for one in fields(Network) if one.name not in WORDS}

    def text(self, law: Law) -> str:
        """Return the scenario of `law` on this network."""
        values = self.constants() | {
            "rate": f"{self.rate:g}",
            "tenfold": f"{10 * self.rate:g}",
            "mean": f"{self.mean_mbps:.2f}",
            "steps": _toml([{"at": f"{STEP_S * i:g}s", "rate": f"{r:g}Mbit/s"} for i, r in enumerate(self.trace)]),
            "workers": _toml([f"h{i + 3}" for i in range(WORKERS)]),
        }
        keys = dict(law.flows)
        if self.keep and law.air:
            keys["params"] = {**keys.get("params", {}), **law.air}
        for name, value in (("queue", law.queue), ("router", law.router)):
            values[name] = Template(_toml(value)).substitute(values)
        values["law"] = "\n".join(f"{key} = {Template(_toml(value)).substitute(values)}" for key, value in keys.items())
        head = f'name = "bits-{self.name}"\nduration = "{self.duration:g}s"\nwarmup = "{self.warmup:g}s"\n'
        sampling = f'[sampling]\nevery = "{self.every:g}ms"\nof = {_toml(self.SAMPLED)}\n'
        scenario = _with_elements(self.scenario, law.scone) if law.scone else self.scenario
        return f"{head}{Template(scenario).substitute(values)}\n{sampling}"

    def source(self, law: Law) -> Source:
        """Return the scenario with a name for messages."""
        return Source(self.text(law), f"<{self.name}, {law.name}>", ".")

    def overrides(self, _law: Law, /) -> Sequence[Override]:
        """Return the settings on top of the scenario of a law: none, unless a kind of network has some."""
        return ()

    def more(self, _results: Results, /) -> Mapping[str, float]:
        """Return measures of a run that no other network has: none, unless a kind of network has some."""
        return {}


def _with_elements(scenario: str, advise: str) -> str:
    """Return a scenario whose ports have a SCONE element beside the law's router, and none beside another."""
    lines = []
    for line in scenario.splitlines():
        of_table = line.startswith("router = ")
        element = f"{{ advise = {_toml(advise)} }}" if "$router" in line or not of_table else '"none"'
        if of_table:
            lines += [line, f"scone = {element}"]
        else:
            lines.append(line.replace("router = $router", f"router = $router, scone = {element}"))
    return "\n".join(lines)


def _toml(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else value_text(value)


def _row(
    kind: type[Law] | type[Network], row: Mapping[str, Any], place: str, given: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a row of a table whose keys are the fields of `kind`; raise BadInputError otherwise."""
    known = [one.name for one in fields(kind) if one.name not in given]
    for key in row:
        if key not in known:
            raise BadInputError(f"{place}: unknown key `{key}`; {instead(key, known)}")
    needed = [one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]
    if missing := [key for key in needed if key not in row and key not in given]:
        raise BadInputError(f"{place}: lacks {', '.join(f'`{key}`' for key in missing)}")
    return dict(row)


@dataclass(frozen=True)
class Tables:
    """The laws, in order of their bits, and the networks, each at its rates."""

    laws: tuple[Law, ...]
    networks: tuple[Network, ...]
    quick: frozenset[str]

    @classmethod
    def of(cls, text: str, origin: str) -> Tables:
        """Read the tables; raise BadInputError with the row that is wrong."""
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise BadInputError(f"{origin}: {error}") from error
        laws = [Law(**_row(Law, row, _place(origin, "law", row))) for row in given["law"]]
        for law in laws:
            if "protocol" not in law.flows:
                raise BadInputError(f"{_place(origin, 'law', {'name': law.name})}: `flows` lacks `protocol`")
        networks, quick = list[Network](), set[str]()
        for row in given["network"]:
            made = _networks(row, given.get("trace", {}), _place(origin, "network", row))
            networks += made.values()
            quick |= {made[rate].name for rate in row.get("quick_rates", made) if rate in made}
        for kind, names in (("law", [one.name for one in laws]), ("network", [one.name for one in networks])):
            if twice := {name for name in names if names.count(name) > 1}:
                raise BadInputError(f"{origin}: two rows of [[{kind}]] are called {', '.join(sorted(twice))}")
        return cls(tuple(sorted(laws, key=lambda law: law.bits)), tuple(networks), frozenset(quick))

    def chosen_networks(self, names: Iterable[str], *, quick: bool) -> list[Network]:
        """Return the networks with these names, or all; ``dumbbell`` is all of ``dumbbell-1``, ``dumbbell-10`` ...

        Raise BadInputError for an unknown name. With `quick` a row stands for its
        rates of the quick form alone.
        """
        wanted = list(names)
        known = [one.name for one in self.networks]
        families = list(dict.fromkeys(one.family for one in self.networks))
        for name in wanted:
            if name not in known and name not in families:
                raise BadInputError(_unknown("network", name, [*families, *known], families))
        usual = {one.name for one in self.networks if not quick or one.name in self.quick}
        families = [one for one in families if not wanted or one in wanted]
        return [one for one in self.networks if one.name in wanted or (one.name in usual and one.family in families)]

    def chosen_laws(self, names: Iterable[str]) -> list[Law]:
        """Return the laws with these names, or all; raise BadInputError for an unknown name."""
        wanted, known = list(names), [law.name for law in self.laws]
        for name in wanted:
            if name not in known:
                raise BadInputError(_unknown("law", name, known, known))
        return [law for law in self.laws if not wanted or law.name in wanted]


def _unknown(kind: str, name: str, known: Sequence[str], listed: Sequence[str]) -> str:
    near = instead(name, known)
    hint = f"{near}; " if near.startswith("did you mean") else ""
    return f"there is no {kind} {name!r}; {hint}the {kind}s are: {', '.join(listed)}"


def _place(origin: str, table: str, row: Mapping[str, Any]) -> str:
    return f"{origin}: [[{table}]] {row.get('name', 'without a name')}"


def _networks(row: Mapping[str, Any], traces: Mapping[str, Any], place: str) -> dict[float, Network]:
    """Return the networks of a row, by rate."""
    rates = row.get("rates", ())
    if not rates:
        raise BadInputError(f"{place}: lacks `rates`")
    own = {key: value for key, value in row.items() if key not in ("rates", "quick_rates", "at")}
    others = row.get("at", {})
    if unknown := set(others) - {f"{rate:g}" for rate in rates}:
        raise BadInputError(f"{place}: `at` has {', '.join(sorted(unknown))}, which is none of its `rates`")
    if "trace" in own:
        if own["trace"] not in traces:
            raise BadInputError(f"{place}: no trace {own['trace']!r}; [trace] has {', '.join(traces)}")
        own["trace"] = tuple(traces[own["trace"]])
    checked = _row(Network, own, place, given=["rate", "family"])
    for keys in others.values():
        _row(Network, {**checked, **keys}, place, given=["rate", "family"])
    for key in ("measures", "drawn"):
        for name in checked[key]:
            if name not in MEASURES:
                raise BadInputError(f"{place}: no measure {name!r}; the measures are: {', '.join(MEASURES)}")
    several = len(rates) > 1
    return {
        rate: Network(
            **{
                **checked,
                **others.get(f"{rate:g}", {}),
                "rate": float(rate),
                "family": row["name"],
                "name": f"{row['name']}-{rate:g}" if several else row["name"],
                "title": f"{row['title']} of {_spelt(rate)}" if several else row["title"],
            }
        )
        for rate in rates
    }


def _spelt(rate: float) -> str:
    return f"{rate / 1000:g} Gbit/s" if rate >= 1000 else f"{rate:g} Mbit/s"


@cache
def tables() -> Tables:
    """Return the tables of the study."""
    text = resources.files("explicate.studies").joinpath("bits.toml").read_text(encoding="utf-8")
    return Tables.of(text, "bits.toml")
