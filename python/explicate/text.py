"""Formats numbers and tables for a terminal or a page."""

from __future__ import annotations

import math
from collections.abc import Sequence

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float | None, digits: int = 3) -> str:
    """Return `value` with `digits` significant digits, integers in full, and a dash for a missing value."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 10 ** (digits - 1) or value == round(value):
        return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 1e4 else f"{value:.0f}"
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{digits - 1 - math.floor(math.log10(abs(value)))}f}"


def amount(value: float | None) -> str:
    """Return a mean of packets or milliseconds: as a number, or that it is next to nothing."""
    return "<0.001" if value is not None and 0 < value < 1e-3 else number(value)


def prefix(largest: float) -> tuple[float, str]:
    """Return the factor and the SI prefix for `largest`: 8e6 gives (1e6, "M")."""
    for factor, name in PREFIXES:
        if abs(largest) >= factor:
            return factor, name
    return 1.0, ""


def rate(value: float | None) -> str:
    """Return a rate in bit/s with an SI prefix."""
    if value is None or not math.isfinite(value):
        return number(value)
    factor, name = prefix(value)
    return f"{number(value / factor)} {name}bit/s"


def percent(value: float | None) -> str:
    """Return a share of 1 as a percentage."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def table(head: Sequence[str], body: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Return an aligned table: the first `left` columns to the left, the others to the right."""
    widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
    lines = []
    for line in (head, *body):
        cells = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
