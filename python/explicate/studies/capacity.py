"""XCP with a capacity that is measured: against the best configured one, against ABC, and against wrong ones.

Hops are rows of ``capacity.toml``, and recordings of the user. Runs, measures and the record are those of the study of
bits (`bits`).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib import resources
from statistics import fmean
from string import Template
from typing import Any

from explicate import text
from explicate.errors import BadInputError
from explicate.source import value_text
from explicate.studies.recordings import check_family, recorded
from explicate.studies.tables import STEP_S, Law, Network, tables
from explicate.studies.verdict import Blocks, Values, interval
from explicate.suggestions import instead
from explicate.text import amount, number

GRID = range(-6, 7)
PER_OCTAVE = 4
"""Configured capacities are 2^(i/4) of a hop's `told`, for i in `GRID`: neighbours are a fifth apart."""
KNEE = 0.95
"""Of the configured capacities that carry this share of the most, the one with the least p99 delay is the best."""
SHARE = 0.9
"""The least share of the best's goodput."""
TIMES, BESIDE = 2.0, 0.215
"""The most delay: so many times the best's, or the best's and this share of the round trip, whichever is more."""
NAME = "capacity"
"""Of this study, in the command and in records."""
NOTE = f"the criterion: {SHARE:.0%} of the best's goodput, its delays {TIMES:g} times or {BESIDE:g} round trips more"
"""What the command says behind the tables."""
FIELDS = ("use", "p50", "p99", "jain", "loss")
DURATION_S, WARMUP_S, EVERY_MS, LIMIT = 20.0, 5.0, 10.0, 100
SPACING = "79.0m"
"""3 dB above the level that 54 Mbit/s need: 17 dB above that at 250 m (N-P22)."""
CAPACITY = "$capacity"
"""Stands for the key in scenarios."""
KERNEL = '[{ kind = "jitter", mean = "5.5ms", spread = 0, keep_order = true }]'
"""What kernels of paper N's hosts add on every hop, each way (N-P2)."""


@dataclass(frozen=True)
class System(Law):
    """A law with a way in which its routers know the capacity: `told` times the hop's, or `measured` by the port."""

    told: float = 0.0
    measured: str = ""


@dataclass(frozen=True)
class Hop(Network):
    """A network with the middle of its grid of capacities; ``capacity.toml`` says what each field is."""

    told: float = 0.0
    follows: bool = False
    air: bool = False
    apart: bool = False
    others: bool = False

    def capacity(self, system: Law) -> str:
        """Return the key `capacity` of the hop's ports."""
        if not isinstance(system, System):
            raise TypeError("a system of this study")
        if system.measured:
            return value_text({"measured": system.measured})
        if self.follows:
            rates = [(STEP_S * i, self.told * system.told * rate) for i, rate in enumerate(self.trace)]
            return value_text([{"at": f"{at:g}s", "rate": f"{rate:.6g}Mbit/s"} for at, rate in rates])
        return f'"{self.told * system.told:.6g}Mbit/s"'

    def text(self, law: Law) -> str:
        """Return the scenario of a system on this hop."""
        return Network.text(replace(self, scenario=self.scenario.replace(CAPACITY, self.capacity(law))), law)


def _system(name: str, label: str, protocol: str, **knows: Any) -> System:
    return System(
        name, label, 32 if protocol == "xcp" else 1, "", {"protocol": protocol},
        {"kind": "droptail", "limit": "${limit}pkt"}, **knows,
    )  # fmt: skip


def told_name(step: int) -> str:
    """Return the name of XCP with a configured capacity."""
    return f"told{step:+d}"


MEASURED, OWN, PHY = "measured", "own", "phy"
ABC_TOLD, ABC_MEASURED = "abc-told", "abc"
SYSTEMS = (
    _system(MEASURED, "XCP, measured", "xcp", measured="air_time"),
    _system(OWN, "XCP, own time only", "xcp", measured="own_time"),
    _system(PHY, "XCP, rate of the radio", "xcp", measured="phy_rate"),
    _system(ABC_MEASURED, "ABC, measured", "abc", measured="air_time"),
    _system(ABC_TOLD, "ABC, configured", "abc", told=1.0),
    *(_system(told_name(i), f"XCP, {2 ** (i / PER_OCTAVE):.3g}", "xcp", told=2 ** (i / PER_OCTAVE)) for i in GRID),
)


@cache
def hops() -> tuple[Hop, ...]:
    """Return the hops of the study."""
    given = tomllib.loads(resources.files("explicate.studies").joinpath("capacity.toml").read_text(encoding="utf-8"))
    return tuple(_hop(row, given["scenario"]) for row in given["hop"])


def _hop(row: Mapping[str, Any], scenarios: Mapping[str, str]) -> Hop:
    own = {key: value for key, value in row.items() if key not in ("what", "with", "scenario", "trace")}
    kernels = "".join(f'\n[[link]]\nname = "{name}"\nchannel = {KERNEL}\n' for name in _both_ways(row["links"]))
    values = {"adaptation": "none", "noise": "", "spacing": SPACING, "kernels": kernels, **row.get("with", {})}
    trace = tuple(next(one for one in tables().networks if one.name == "cellular").trace) if "trace" in row else ()
    return Hop(**{
        "family": row["name"], "question": row["what"], "wanted": "", "rate": row["told"], "carries": 1.0,
        "measures": FIELDS, "drawn": ("use", "p99"), "duration": DURATION_S, "warmup": WARMUP_S, "every": EVERY_MS,
        "limit": LIMIT, "served": row.get("air", False), "trace": trace,
        "scenario": Template(scenarios[row["scenario"]]).safe_substitute(values), **own,
    })  # fmt: skip


def _both_ways(links: Iterable[str]) -> list[str]:
    ends = [name.split("->") for name in links]
    return [f"{a}->{b}" for one, other in ends for a, b in ((one, other), (other, one))]


RIVALS = ("cellular", "cellular-constant")
"""The hops that recordings have, too: against a router that knows the rate of the moment, and against a constant."""


def recorded_hops(files: Iterable[str]) -> list[Hop]:
    """Return two hops for each recording, those of `RIVALS` over its air.

    The middle of the constants is the recording's mean rate. Raise BadInputError with what is wrong with a file.
    """
    bases = [one for one in hops() if one.name in RIVALS]
    return [of_recording(one) for one in recorded(bases, files, CAPACITY)]


def of_recording(hop: Hop) -> Hop:
    """Return a hop over a recording with its words, and with its mean rate as the middle of the constants."""
    if hop.follows:
        return replace(
            hop,
            title=f"{hop.title}, against a router that knows its rate",
            question="Configured routers have a factor of the mean rate of the present half second.",
        )
    return replace(
        hop,
        title=f"{hop.title}, against a constant",
        question="Configured routers have one number for the whole time.",
        told=hop.rate,
    )


def chosen_hops(names: Iterable[str], recordings: Sequence[Hop] = ()) -> list[Hop]:
    """Return the hops and recordings with these names, or all; raise BadInputError for an unknown name."""
    every = [*hops(), *recordings]
    wanted = _known("network", names, list(dict.fromkeys(name for one in every for name in (one.family, one.name))))
    return [one for one in every if not wanted or one.name in wanted or one.family in wanted]


def chosen_systems(names: Iterable[str]) -> list[System]:
    """Return the systems with these names, or all; raise BadInputError for an unknown name."""
    wanted = _known("law", names, [one.name for one in SYSTEMS])
    return [one for one in SYSTEMS if not wanted or one.name in wanted]


def _known(kind: str, names: Iterable[str], known: Sequence[str]) -> list[str]:
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise BadInputError(f"there is no {kind} {name!r}; {instead(name, known)}")
    return wanted


def chosen(
    only: Sequence[str],
    laws: Sequence[str],
    *,
    quick: bool,  # noqa: ARG001 (all hops are in the quick form)
    traces: Sequence[str] = (),
) -> tuple[list[Hop], list[System]]:
    """Return the hops and systems with these names, or all; raise BadInputError for an unknown name.

    `traces` are recordings, each two hops more.
    """
    check_family(only, traces)
    return chosen_hops(only, recorded_hops(traces)), chosen_systems(laws)


def listing(networks: Sequence[Hop]) -> str:
    """Return the hops and all systems, each with what it is."""
    hops_ = text.table(["network", "what"], [[one.name, one.title] for one in networks])
    return hops_ + "\n\n" + text.table(["law", "what"], [[one.name, one.label] for one in SYSTEMS])


def shown(network: Hop, values: Values) -> str:
    """Return a hop's table."""
    return text.table(*table(network, values))


# ----------------------------------------------------------------------------------------------- verdict


class Word(Enum):
    """What the criterion says: in both blocks of seeds, in neither, or in one."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Judged:
    """A system against the best configured capacity: its share of that goodput or power, and what the criterion says.

    `failed` has the parts of the criterion that do not hold in some block.
    """

    share: float
    word: Word
    failed: tuple[str, ...]


def _all(blocks: Blocks) -> list[float]:
    return [value for block in blocks for value in block]


def best(values: Values) -> str | None:
    """Return the name of the best configured capacity; None if none was run."""
    configured = [name for name in map(told_name, GRID) if name in values]
    if not configured:
        return None
    carried = {name: fmean(_all(values[name]["use"])) for name in configured}
    kept = [name for name in configured if carried[name] >= KNEE * max(carried.values())]
    return min(kept, key=lambda name: (fmean(_all(values[name]["p99"])), -carried[name]))


def judge(hop: Hop, values: Values, system: str, rival: str) -> Judged:
    """Return what the criterion says of a system beside the best configured capacity."""
    mine, theirs = values[system], values[rival]
    held: list[set[str]] = []
    for block in range(len(mine["use"])):
        mean = {name: (fmean(mine[name][block]), fmean(theirs[name][block])) for name in ("use", "p50", "p99")}
        parts = {"goodput"} if mean["use"][0] >= SHARE * mean["use"][1] else set()
        for name in ("p50", "p99"):
            delay, least = mean[name]
            if delay <= max(TIMES * least, least + BESIDE * hop.rtt):
                parts.add(name)
        held.append(parts)
    word = _word([len(parts) == 3 for parts in held])
    failed = tuple(name for name in ("goodput", "p50", "p99") if not all(name in parts for parts in held))
    least = fmean(_all(theirs["use"]))
    return Judged(fmean(_all(mine["use"])) / least if least else math.nan, word, failed)


def _word(good: Sequence[bool]) -> Word:
    return Word.HOLDS if all(good) else Word.UNDECIDED if any(good) else Word.FAILS


def power(hop: Hop, measures: Mapping[str, Blocks]) -> list[float]:
    """Return the power in each block, Mbit/s a second: goodput over round trip (Kleinrock, ICC 1979).

    The round trip is the empty one with the median delay in the queues.
    """
    blocks = zip(measures["use"], measures["p50"], strict=True)
    return [1e3 * fmean(use) / (hop.rtt + fmean(p50)) for use, p50 in blocks]


def most_power(hop: Hop, values: Values) -> str | None:
    """Return the name of the configured capacity with the most power; None if none was run."""
    configured = [name for name in map(told_name, GRID) if name in values]
    return max(configured, key=lambda name: fmean(power(hop, values[name])), default=None)


def judge_power(hop: Hop, values: Values, system: str, rival: str) -> Judged:
    """Return what the criterion of power says of a system beside the configured capacity with the most."""
    mine, theirs = power(hop, values[system]), power(hop, values[rival])
    word = _word([one >= SHARE * most for one, most in zip(mine, theirs, strict=True)])
    return Judged(fmean(mine) / fmean(theirs), word, ())


def wrong(rival: str) -> dict[str, str]:
    """Return the names of half and twice the best configured capacity; those outside of the grid are left out."""
    step = int(rival.removeprefix("told"))
    found = {"half of it": step - PER_OCTAVE, "twice as much": step + PER_OCTAVE}
    return {words: told_name(at) for words, at in found.items() if at in GRID}


def rows(hop: Hop, values: Values) -> list[tuple[str, str, bool]]:
    """Return what a hop's table shows: a label, the name of a system, and whether it is a control."""
    rival = best(values)
    unit = "× the rate of the moment" if hop.follows else "Mbit/s"
    controls = {PHY: hop.air, OWN: hop.others}
    made = [(one.label, one.name, controls.get(one.name, False)) for one in SYSTEMS if one.measured]
    if rival:
        factor = next(one.told for one in SYSTEMS if one.name == rival)
        made.insert(0, (f"XCP, best configured: {hop.told * factor:.3g} {unit}", rival, False))
        made += [(f"XCP, {words}", name, True) for words, name in wrong(rival).items()]
    made.append((f"ABC, configured: {hop.told:.3g} {unit}", ABC_TOLD, False))
    return [row for row in made if row[1] in values]


def table(hop: Hop, values: Values) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a hop's table."""
    head = [
        "system",
        "goodput, Mbit/s",
        "of the best",
        "delay p50, ms",
        "delay p99, ms",
        "Jain",
        "drops, %",
        "criterion",
    ]
    rival, body = best(values), []
    for label, name, control in rows(hop, values):
        found = judge(hop, values, name, rival) if rival and name != rival else None
        cells = [cell(values[name][one]) for one in ("use", "p50", "p99", "jain", "loss")]
        said = f"{found.word.value} {', '.join(found.failed)}".strip() if found else ""
        body.append([f"{label}{' (control)' if control else ''}", cells[0], f"{found.share:.3f}" if found else "1",
                     *cells[1:], said])  # fmt: skip
    return head, body


def cell(blocks: Blocks) -> str:
    """Return a mean with half of its 95 % interval, over the seeds of both blocks."""
    mean, low, high = interval(_all(blocks))
    return number(mean) if math.isnan(low) else f"{number(mean)} ± {amount((high - low) / 2)}"
