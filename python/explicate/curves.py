"""What channels do, in closed form (losses by signal, by length of packet, by code), and what drawn packets see of it.

>>> import explicate
>>> frame = explicate.channel_curves("fading", snr=range(0, 41, 2), antennas=["1x1", "2x2"])   # doctest: +SKIP
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from explicate import engine
from explicate.source import value_text

MOST_TRIALS = 100_000_000
"""Maximum number of packets per row: some minutes of computing with a code."""
LINK = "r1->r2"
GENERATED = re.compile(r"^curves:\d+:\d+: ")
"""A place in the generated scenario, which no user has seen."""
PATH = f"link.{LINK}.channel.0."
"""Path of the channel in the generated scenario."""


def scenario(kind: str) -> str:
    """Return the smallest scenario with a channel of this kind."""
    return (
        f'[topology]\nkind = "dumbbell"\npairs = 1\nbottleneck = {{ rate = "10Mbit/s" }}\n'
        f'[[link]]\nname = "{LINK}"\nchannel = [{{ kind = {json.dumps(kind)} }}]\n'
        '[[flows]]\nname = "f"\nprotocol = "sack"\n'
    )


def channel_curves(
    kind: str,
    *,
    bytes: Sequence[int] = (40, 520, 1040),  # noqa: A002  (what the column is called)
    acks: bool = False,
    trials: int = 0,
    seed: int = 1,
    **params: Any,
) -> pl.DataFrame:
    """Return what channels of this `kind` predict: a row for each combination of parameters and length of packet.

    A parameter is a value as a scenario writes it (``antennas="2x2"``, ``snr="20dB"``) or several of them
    (``snr=range(0, 41, 2)``), which become an axis and a column. `acks` asks about acknowledgements, which may have a
    code of their own. With `trials` packets are drawn too, and columns ``observed_...`` hold what became of them.

    Columns of ``fading`` (paper Y): ``symbol_error_good`` and ``symbol_error_bad``, the rates of wrong symbols of the
    modulation (equation 5); ``code_symbol_error``, of symbols of the code; ``lost_symbols``, the mean number of wrong
    ones among a packet's, and ``lost_bytes``, the same where they have 8 bits (figure 1); ``packet_loss``, exact, and
    ``packet_loss_independent``, by equation 6; ``wire_bytes`` with parity.
    Raise ScenarioError for a kind or parameter that is not known, ValueError for a length that is no packet's.
    """
    if not bytes or not all(1 <= length <= 65535 for length in bytes):
        raise ValueError("`bytes` are lengths of packets, from 1 to 65535")
    if not 0 <= trials <= MOST_TRIALS:
        raise ValueError(f"`trials` is a number of packets, up to {MOST_TRIALS:,}, not {trials}")
    axes = {key: list(value) for key, value in params.items() if _several(value)}
    fixed = {key: value for key, value in params.items() if key not in axes}
    rows = [row for point in _points(axes) for row in _rows(kind, {**fixed, **point}, point, bytes, acks, trials, seed)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _several(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def _points(axes: Mapping[str, Sequence[Any]]) -> Iterable[dict[str, Any]]:
    return (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))


def _rows(
    kind: str,
    params: Mapping[str, Any],
    point: Mapping[str, Any],
    lengths: Sequence[int],
    acks: bool,
    trials: int,
    seed: int,
) -> list[dict[str, Any]]:
    overrides = [(PATH + key, value_text(value)) for key, value in params.items()]
    try:
        rows = engine.curves(scenario(kind), overrides, LINK, lengths, acks=acks, trials=trials, seed=seed)
    except engine.ScenarioError as error:
        text = str(error).partition("\n")[0]  # below is an excerpt of the generated scenario
        raise engine.ScenarioError(GENERATED.sub("", text).replace(PATH, "")) from error
    return [{"channel": row["channel"], **point, **row} for row in rows]
