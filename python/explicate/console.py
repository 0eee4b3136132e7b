"""Output of the command: notes and warnings, JSON, and tables that fit the terminal.

Results go to standard output, the rest to standard error. Where standard output is no terminal, tables have their full
width and no colours. `rich` is imported only to draw on a terminal; it honours NO_COLOR.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from explicate import text

GROUPING = "\u202f"
"""Separates thousands on pages; a terminal shows plain digits, which can be copied into other programs."""

PLAIN = {"–": "-", "−": "-", "…": "...", "∞": "inf", "±": "+-", "×": "x", "→": "->", "≥": ">=", "≤": "<=", "µ": "u"}
"""Replacements for encodings that lack a character."""

QUIET, NORMAL, VERBOSE = -1, 0, 1


class _State:
    """Verbosity on standard error, and the start time of the command."""

    level = NORMAL
    began = time.monotonic()


def set_level(level: int) -> None:
    """Print errors only (`QUIET`), also warnings and notes (`NORMAL`), or also the steps of the work (`VERBOSE`)."""
    _State.level = level


def elapsed_s() -> float:
    """Return the seconds since the command began."""
    return time.monotonic() - _State.began


def prepare() -> None:
    """Replace characters that an encoding such as cp1252 lacks, and streams that are closed; catch interrupts."""
    _State.began = time.monotonic()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    codecs.register_error("explicate.plain", _replacement)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="explicate.plain")


def _nowhere() -> TextIO:
    """Return a stream that discards what is printed: Python has none where a file descriptor is closed."""
    return Path(os.devnull).open("w", encoding="utf-8")


def _replacement(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(char, "?") for char in error.object[error.start : error.end]), error.end


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let an interrupt end the process during a long call of the engine that leaves nothing behind."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def show(message: str, *, file: TextIO | None = None) -> None:
    """Print a result with plain digits."""
    print(message.replace(GROUPING, ""), file=file or sys.stdout)


def print_json(value: Any) -> None:
    """Print `value` as JSON, in ASCII where the output's encoding is not UTF-8."""
    unicode = (sys.stdout.encoding or "utf-8").lower().replace("_", "-") == "utf-8"
    print(json.dumps(value, indent=2, ensure_ascii=not unicode, allow_nan=False))


def write_toml(content: str) -> None:
    """Print a scenario, which is UTF-8 whatever the encoding of a terminal is."""
    content = content if content.endswith("\n") else content + "\n"
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None or sys.stdout.isatty():
        sys.stdout.write(content)
        return
    sys.stdout.flush()
    raw.write(content.encode())


def note(message: str, *, file: TextIO | None = None, blank: bool = False) -> None:
    """Print a note, unless the output is quiet; `blank` adds an empty line before it."""
    if _State.level >= NORMAL:
        print(("\n" if blank else "") + message, file=file or sys.stderr)


def detail(message: str) -> None:
    """Print a step of the work, if the output is verbose."""
    if _State.level >= VERBOSE:
        print(message, file=sys.stderr)


def warning(message: str) -> None:
    """Print a warning, unless the output is quiet."""
    if _State.level >= NORMAL:
        _marked("warning:", message, "yellow")


def complain(message: object) -> None:
    """Print an error."""
    for line in str(message).splitlines() or [type(message).__name__]:
        _marked("explicate:", line, "red")


def _marked(mark: str, message: str, colour: str) -> None:
    if not sys.stderr.isatty():
        print(mark, message, file=sys.stderr)
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    Console(stderr=True).print(Text.assemble((mark, f"bold {colour}"), " ", message), soft_wrap=True)


def wants_progress() -> bool:
    """Whether a progress line may be shown."""
    return _State.level >= NORMAL


def table(head: Sequence[str], body: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Return an aligned table: as wide as it is where output is no terminal, else no wider than that.

    The first `left` columns stand to the left, the others to the right. On a terminal that is too narrow, the columns
    go on below, with the first `left` ones repeated.
    """
    plain = [[cell.replace(GROUPING, "") for cell in line] for line in body]
    if not sys.stdout.isatty():
        return text.table(head, plain, left=left)
    return _drawn(head, plain, left)


def _drawn(head: Sequence[str], body: Sequence[Sequence[str]], left: int) -> str:
    """Draw with rich for standard output."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    terminal = Console(file=sys.stdout, width=shutil.get_terminal_size().columns)
    parts = []
    for columns in _fitting(head, body, left, terminal.width):
        drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
        for i in columns:
            drawn.add_column(Text(head[i]), justify="left" if i < left else "right", overflow="fold")
        for line in body:
            drawn.add_row(*(Text(line[i]) for i in columns))
        with terminal.capture() as captured:
            terminal.print(drawn)
        parts.append("\n".join(line.rstrip() for line in captured.get().splitlines()))
    return "\n\n".join(parts)


def _fitting(head: Sequence[str], body: Sequence[Sequence[str]], left: int, width: int) -> list[list[int]]:
    """Return the columns of each part of a table, so that the parts fit `width`; texts on the left may be wrapped."""
    if left >= len(head):
        return [list(range(len(head)))]
    widths = [max(len(line[i]) for line in (head, *body)) + 2 for i in range(len(head))]
    first = list(range(left))
    used = sum(widths[i] for i in first)
    parts: list[list[int]] = [[]]
    room = width - used
    for i in range(left, len(head)):
        if parts[-1] and sum(widths[j] for j in parts[-1]) + widths[i] > room + 2:
            parts.append([])
        parts[-1].append(i)
    return [[*first, *part] for part in parts]
