"""A progress line on standard error, if that is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from explicate import console

if TYPE_CHECKING:
    from rich.progress import Progress


class ProgressLine:
    """Shows the fraction done and the time left; silent if `stream` is not a terminal. Use as a context manager."""

    def __init__(self, stream: TextIO, label: str) -> None:
        self._stream = stream
        self._label = label
        self._shown: Progress | None = None
        self.active = stream.isatty() and console.wants_progress()

    def __call__(self, fraction: float) -> None:
        """Show `fraction`, 0 to 1; cheap when called often."""
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], completed=min(max(fraction, 0.0), 1.0))

    def __enter__(self) -> ProgressLine:
        """Show the line."""
        if self.active:
            from rich.console import Console  # noqa: PLC0415 (imported only where something is shown)
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._shown = Progress(*columns, console=Console(file=self._stream), transient=True)
            self._shown.add_task(self._label, total=1.0)
            self._shown.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the line."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None
