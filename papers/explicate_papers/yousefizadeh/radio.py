"""The channel of section II without a network: the paper's recursion, and where a coded packet's losses fall."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import explicate

GAMMA, BETA = 0.99875, 0.875


@cache
def told(length: int = 1040, acks: bool = False, **params: Any) -> dict[str, Any]:
    """Return the engine's closed forms for packets of this length; one block per packet."""
    row = explicate.channel_curves("fading", bytes=[length], acks=acks, **{"code": "ideal", **params})
    return row.row(0, named=True)


@cache
def phi(bits: int, good: float, bad: float, gamma: float = GAMMA, beta: float = BETA) -> tuple[float, ...]:
    """Return the probabilities that 0, 1, ... of `bits` are received, by equations 1 to 4.

    `good` and `bad` are the states' error rates. Equations 2 and 3 lack a plus sign, equation 4 longer runs' start.
    """
    stay, start = (gamma, beta), ((1 - beta) / (2 - gamma - beta), (1 - gamma) / (2 - gamma - beta))
    rows = [[start[0]], [start[1]]]
    for _ in range(bits):
        came = [
            [stay[s] * rows[s][r] + (1 - stay[1 - s]) * rows[1 - s][r] for r in range(len(rows[0]))] for s in (0, 1)
        ]
        rows = [
            [
                error * (came[s][r] if r < len(came[s]) else 0.0) + (1 - error) * (came[s][r - 1] if r else 0.0)
                for r in range(len(came[s]) + 1)
            ]
            for s, error in enumerate((good, bad))
        ]
    return tuple(map(sum, zip(*rows, strict=True)))


def bisect(low: float, high: float, is_above: Callable[[float], bool], precision: float) -> float:
    """Return where `is_above` turns from true at `low` to false at `high`."""
    while high - low > precision:
        middle = (low + high) / 2
        low, high = (middle, high) if is_above(middle) else (low, middle)
    return (low + high) / 2


def parity(length: int, loss: float, symbol_bits: int = 8, **params: Any) -> tuple[int, int]:
    """Return the symbols of a packet's data, and the smallest parity that reduces its loss to `loss`."""
    data = length * 8 // symbol_bits
    low, high = 0, 2 * data
    while high - low > 2:
        middle = low + (high - low) // 4 * 2
        rate = data / (data + middle)
        lost = told(length, symbol_bits=symbol_bits, fec_data=rate, **params)["packet_loss"]
        low, high = (middle, high) if lost > loss else (low, middle)
    return data, high
