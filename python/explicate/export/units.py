"""Quantities with units, as resolved scenarios write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RATES = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}
BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2}


def quantity(value: Any, units: Mapping[str, float]) -> float | None:
    """Return a quantity such as ``10Mbit/s`` in the base of its `units`; None if it is no such quantity."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([A-Za-zµ/]+)\s*", str(value))
    return float(match[1]) * units[match[2]] if match and match[2] in units else None


def share(value: Any) -> float | None:
    """Return a number, or percents as a share of 1; None for anything else."""
    if isinstance(value, int | float):
        return float(value)
    match = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*%\s*", str(value))
    return float(match[1]) / 100 if match else None


def percent(part: float) -> str:
    """Return a share of 1 as tc writes it."""
    return f"{100 * part:.9g}%"
