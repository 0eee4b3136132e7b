"""The user's recordings of cellular links as networks of a study: its cellular network, with a recording for its air.

A recording has a line for each chance to deliver 1500 bytes, in milliseconds: mahimahi's format, which the channel
``trace`` plays as it is. Its mean rate in each half second stands for the study's own trace: routers that know the rate
of the moment have that one, and the queue drains at it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from explicate.errors import BadInputError
from explicate.studies.tables import PACKET_KBIT, STEP_S, Network, Tables

FAMILY = "trace"
"""Stands for all recordings."""
BASE = "cellular"
"""The network whose flows, buffer and measures a recording gets."""
LEAST_MBPS = 0.05
"""Of a half second in which the air carries nothing: a router's capacity is above zero."""
LATEST_MS = 100_000_000_000
"""The engine's bound, about three years."""
FORMAT = "a recording has one whole number per line, the millisecond at which 1500 bytes could leave (mahimahi)"
SCENARIO = """
[topology]
kind = "dumbbell"
pairs = 2
access = { rate = "$ACCESSMbit/s", delay = "1ms", router = $router }
bottleneck = { delay = "18ms", queue = $queue, router = $router }

[[link]]
name = "r1->r2"
channel = [{ kind = "trace", file = $FILE }]
capacity = $CAPACITY

[[link]]
name = "r2->r1"
rate = "$ACCESSMbit/s"

[[flows]]
name = "bulk"
count = 2
start = { uniform = "1s" }
$law
"""


N = TypeVar("N", bound=Network)


def check_family(names: Iterable[str], files: Iterable[str]) -> None:
    """Raise BadInputError if `names` have the family of recordings, and there are none."""
    if FAMILY in names and not list(files):
        raise BadInputError(f"--only {FAMILY} stands for recordings; add --trace FILE")


def with_recordings(known: Tables, files: Iterable[str]) -> Tables:
    """Return the tables with a network for each file, in order; raise BadInputError with what is wrong with a file."""
    base = next(one for one in known.networks if one.name == BASE)
    words = (
        "The same two transfers over a recorded link, whose router has the mean rate of the present half second. Which "
        "feedback follows it?"
    )
    added = [replace(one, question=words) for one in recorded([base], files, "$steps")]
    return replace(known, networks=(*known.networks, *added), quick=known.quick | {one.name for one in added})


def recorded(bases: Sequence[N], files: Iterable[str], capacity: str) -> list[N]:
    """Return the networks of each file in order: each of `bases` with the recording for its air.

    `capacity` is what their scenario has for the capacity of the port. A network's name is that of the file, and what
    that of its base has behind `BASE`. Raise BadInputError with what is wrong with a file.
    """
    added: list[N] = []
    for file in map(Path, files):
        times = chances(file)
        for base in bases:
            made = _network(base, file, times, capacity)
            same = sum(one.name == made.name or one.name.startswith(f"{made.name}~") for one in added)
            added.append(replace(made, name=f"{made.name}~{same + 1}") if same else made)
    return added


def _network(base: N, file: Path, times: Sequence[int], capacity: str) -> N:
    rates = rates_of(times, base.duration)
    name = f"{FAMILY}-{re.sub(r'[^A-Za-z0-9._-]+', '-', file.name)}{base.name.removeprefix(BASE)}"
    path = json.dumps(str(file.resolve()), ensure_ascii=False).replace("$", "$$")
    scenario = SCENARIO.replace("$ACCESS", f"{max(10.0, 10 * max(rates)):.0f}").replace("$CAPACITY", capacity)
    kept = rates[round(base.warmup / STEP_S) :]
    return replace(
        base,
        name=name,
        family=FAMILY,
        title=f"The recording {file.name}",
        rate=sum(kept) / len(kept),
        trace=rates,
        scenario=scenario.replace("$FILE", path),
    )


def chances(file: Path) -> list[int]:
    """Return the times of a recording, ms; raise BadInputError with the line that is wrong."""
    if not file.is_file():
        raise BadInputError(f"{file}: {'is no file' if file.exists() else 'there is no such file'}; {FORMAT}")
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise BadInputError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{file}: is not text; {FORMAT}") from error
    times: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.rstrip()
        if not (text.isdecimal() and int(text) <= LATEST_MS):
            raise BadInputError(f"{file}:{number}: {text[:40]!r} is no time; {FORMAT}")
        times.append(int(text))
        if times[-1] < times[max(0, number - 2)]:
            raise BadInputError(f"{file}:{number}: {times[-1]} comes after {times[number - 2]}; sort the lines")
    if not times or times[-1] == 0:
        raise BadInputError(f"{file}: has no line above 0; {FORMAT}")
    return times


def rates_of(times: Sequence[int], duration: float) -> tuple[float, ...]:
    """Return the mean rate of each half second of `duration`, Mbit/s; a short recording repeats, as it is played."""
    steps = round(duration / STEP_S)
    step_ms, period = round(1000 * STEP_S), times[-1]
    counts = [0] * steps
    begins = 0
    while begins < steps * step_ms:
        for time in times:
            # A chance at the end of a half second ends it.
            place = (begins + time - 1) // step_ms
            if place >= steps:
                break
            counts[max(place, 0)] += 1
        begins += period
    return tuple(max(LEAST_MBPS, round(count * PACKET_KBIT / step_ms, 3)) for count in counts)
