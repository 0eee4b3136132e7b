"""A progress line on standard error, if that is a terminal."""

from __future__ import annotations

import time
from typing import TextIO

from explicate import console

WIDTH = 24
INTERVAL_S = 0.1
FIRST_GUESS_S = 2.0


class ProgressLine:
    """Shows the fraction done; silent if `stream` is not a terminal. Use as a context manager."""

    def __init__(self, stream: TextIO, label: str) -> None:
        self._stream = stream
        self._label = label
        self._shown = False
        self._began = time.monotonic()
        self._next = self._began + INTERVAL_S
        self.active = stream.isatty() and console.wants_progress()

    def __call__(self, fraction: float) -> None:
        """Show `fraction`, 0 to 1; cheap when called often."""
        now = time.monotonic()
        if not self.active or now < self._next:
            return
        self._next = now + INTERVAL_S
        done = min(max(fraction, 0.0), 1.0)
        bar = "#" * round(done * WIDTH)
        self._stream.write(f"\r{self._label} [{bar:<{WIDTH}}] {done:4.0%}{self._left(now, done)}\033[K")
        self._stream.flush()
        self._shown = True

    def _left(self, now: float, done: float) -> str:
        """Return the time left, if enough is done to estimate it."""
        spent = now - self._began
        if spent < FIRST_GUESS_S or not 0 < done < 1:
            return ""
        left = round(spent * (1 - done) / done)
        hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
        parts = [f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (left >= 60) + [f"{seconds} s"] * (hours == 0)
        return f", {' '.join(parts)} left"

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the line."""
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()
