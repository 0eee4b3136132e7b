"""How long the tests wait for what has to come: one limit for all, which ends a wait in vain and judges no speed."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 120.0


def eventually(what: str, is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.02)
