"""Y-fig1: lost bytes as computed and as observed (figure 1). Packets are drawn from error to error; see `radio.py`.

They have a code of rate 0.9, so that packets are lost too; wrong bytes are those of the data before correction. A short
run over the channel stands for the one that is observed: a control gives it other bursts than the computed one has.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import explicate
from explicate_papers.controls import edit
from explicate_papers.statistics import Check, Sample, between, falling, near, standard_errors
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study
from explicate_papers.yousefizadeh import base

study = Study("Y-fig1")

PER_BYTE = {5: 0.4179, 10: 0.1779, 15: 0.0638, 20: 0.0212, 25: 0.00683, 30: 0.00217, 40: 0.00022}
"""The register's wrong bytes of a byte, by signal-to-noise ratio in dB."""
OTHERS: tuple[dict[str, Any], ...] = ({"beta": 0.91667}, {"symbol_bits": 4}, {"symbol_bits": 16}, {"points": 4})
OBSERVED = "observed"
SECONDS = base.WARMUP_S + 1.0


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """One run over the channel whose packets are drawn."""
    return {OBSERVED: replace(base.case(replace(effort, seconds=SECONDS), base.VCP, base.CLEAR_DB), seeds=1)}


def as_computed(data: Data) -> bool:
    """Whether the observed channel has the bursts of the computed one."""
    return bool(base.radio(tomllib.loads(data.cases[OBSERVED].text))["beta"] == base.BETA_8)


def trials(effort: Effort) -> int:
    """Return the packets drawn for a point; the paper has a million."""
    return {"quick": 30_000, "all": 300_000}.get(effort.name, 1_000_000)


def lengths(effort: Effort) -> tuple[int, ...]:
    """Return the lengths of packets, bytes."""
    return tuple(int(length) for length in effort.choices["Y-P1"].split(", "))


@cache
def drawn(
    lengths: tuple[int, ...], trials: int, snr: float, other: int = -1, *, exchanged: bool = False
) -> tuple[dict[str, Any], ...]:
    """Return computed and observed values, a row for each length; `exchanged` of short and long bursts."""
    params = OTHERS[other] if other >= 0 else {}
    if exchanged:
        params = {**params, "beta": base.BETA_8 if "beta" in params else base.BETA_12}
    frame = explicate.channel_curves(
        "fading", code="ideal", fec_data=0.9, snr=snr, bytes=lengths, trials=trials, seed=1, **params
    )
    return tuple(frame.iter_rows(named=True))


def rows(data: Data, snr: float, other: int = -1) -> tuple[dict[str, Any], ...]:
    """Return the rows of a point with as many trials as the effort has."""
    given = lengths(data.effort), trials(data.effort), snr, other
    computed = drawn(*given)
    if as_computed(data):
        return computed
    observed = drawn(*given, exchanged=True)
    return tuple(
        {**mine, **{key: value for key, value in theirs.items() if key.startswith("observed_")}}
        for mine, theirs in zip(computed, observed, strict=True)
    )


def agrees(row: dict[str, Any], what: str, snr: float, errors: float, percent: float, name: str = "") -> Check:
    """Check that observed values agree with computed ones."""
    tolerance = max(errors * row[f"observed_{what}_error"], percent / 100 * row[what])
    label = f"{what.replace('_', ' ')} of {row['bytes']} bytes at {snr:g} dB{name}"
    return near(label, Sample.of([row[f"observed_{what}"]]), row[what], tolerance)


@study.predicate("Y-fig1-a", deterministic=True, chance=1, percent=1)
def computed_is_observed(data: Data, chance: float, percent: float) -> Iterator[Check]:
    """The average loss in bytes."""
    errors = standard_errors(len(PER_BYTE) * len(lengths(data.effort)), chance / 100)
    for snr in PER_BYTE:
        for row in rows(data, snr):
            yield agrees(row, "lost_bytes", snr, errors, percent)


def fraction(data: Data, snr: float) -> Sample:
    """Return the observed wrong bytes of a byte, in the longest packets."""
    row = rows(data, snr)[-1]
    return Sample.of([row["observed_lost_bytes"] / row["bytes"]])


@study.predicate("Y-fig1-b", deterministic=True, percent=2)
def is_that_of_the_recursion(data: Data, percent: float) -> Iterator[Check]:
    """One less phi(8, 8)."""
    for snr, loss in PER_BYTE.items():
        yield near(f"wrong bytes of a byte at {snr:g} dB", fraction(data, snr), loss, percent / 100 * loss)


@study.predicate("Y-fig1-c", deterministic=True, low=0.09, high=0.11, from_db=30, to_db=40)
def decade_by_decade(data: Data, low: float, high: float, from_db: float, to_db: float) -> Iterator[Check]:
    """One antenna, diversity one."""
    yield falling("wrong bytes of a byte", [fraction(data, snr) for snr in PER_BYTE])
    ratio = fraction(data, to_db) / fraction(data, from_db)
    yield between(f"loss at {to_db:g} dB over that at {from_db:g} dB", ratio, low, high)


@study.predicate("Y-fig1-d", deterministic=True)
def other_channels_too(data: Data) -> Iterator[Check]:
    """Longer bursts, other symbols, another modulation, with the bounds of the first claim at the same ratios.

    Symbols of 4 and 16 bits are counted in place of bytes.
    """
    bounds = study.rules["Y-fig1-a"].bounds
    checks = len(OTHERS) * len(PER_BYTE) * len(lengths(data.effort))
    errors = standard_errors(checks, bounds["chance"] / 100)
    for place, params in enumerate(OTHERS):
        name = "".join(f", {key} {value}" for key, value in params.items())
        for snr in PER_BYTE:
            for row in rows(data, snr, place):
                yield agrees(row, "lost_symbols", snr, errors, bounds["percent"], name)


@study.predicate("Y-fig1-e", deterministic=True, low=0.9, high=1.1, least=0.3)
def blocks_that_are_mostly_lost(data: Data, low: float, high: float, least: float) -> Iterator[Check]:
    """Equation 6 assumes independent symbols: accurate if most blocks are lost, and too small if few are."""
    for snr in (5, 10, 12, 14, 15, 16, 17, 18):
        for row in rows(data, snr):
            if row["packet_loss"] >= least:
                ratio = Sample.of([row["packet_loss_independent"] / row["packet_loss"]])
                yield between(f"equation 6 over the exact loss of {row['bytes']} bytes at {snr} dB", ratio, low, high)


def long_bursts(content: dict[str, Any]) -> None:
    """Give the channel bad states of twelve bits in the mean instead of eight."""
    base.radio(content)["beta"] = base.BETA_12


study.control(
    "longer bursts in what is observed", edit("exchange", long_bursts), ["Y-fig1-a", "Y-fig1-b", "Y-fig1-d"],
    "The model with bad states of eight bits does not describe packets that crossed bad states of twelve.",
)  # fmt: skip
for place in "ce":
    study.cannot_fail(
        f"Y-fig1-{place}",
        "Any bursts pass: the slope is that of one antenna, and the formula for blocks is not observed.",
    )


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Lost bytes against the signal."""
    lines = []
    for place, length in enumerate(lengths(data.effort)):
        points = [rows(data, snr)[place] for snr in PER_BYTE]
        lines += [
            Line(f"{length} bytes, {name}", list(PER_BYTE), [point[column] for point in points], points=dots)
            for name, column, dots in (("computed", "lost_bytes", False), ("observed", "observed_lost_bytes", True))
        ]
    return [Panel("Average lost bytes", "SNR of the good state (dB)", "wrong bytes in a packet", lines, log="y")]
