"""Values of command-line arguments; argparse calls these functions as `type`."""

from __future__ import annotations

import argparse

from explicate.engine import MOST_RUNS


def setting(text: str) -> tuple[str, str]:
    """Return the key and the value of ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        shell = ""
        if key.rstrip().endswith("-"):
            shell = "; a shell takes the > of a link's name as a redirection: write link.A:B, or quote the argument"
        raise argparse.ArgumentTypeError(f"{text!r} is not key=value, such as flows.0.count=20{shell}")
    return key.strip(), value.strip()


def positive(text: str) -> int:
    """Return a whole number of 1 or more."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return value


def runs(text: str) -> int:
    """Return a number of runs."""
    value = positive(text)
    if value > MOST_RUNS:
        raise argparse.ArgumentTypeError(f"{text!r} is too many; the maximum is {MOST_RUNS:,}")
    return value


def lengths(text: str) -> list[int]:
    """Return lengths in bytes, separated by commas."""
    return [positive(part) for part in text.split(",")]


def seed(text: str) -> int:
    """Return a seed."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return value


def seconds(text: str) -> float:
    """Return a number of seconds above 0."""
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def hours(text: str) -> float:
    """Return a number of hours above 0."""
    try:
        value = float(text.removesuffix("h"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0, such as 0.5")
    return value


def names(text: str) -> list[str]:
    """Return names, separated by commas."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError("give one name or more, separated by commas")
    return found


def link(text: str) -> str:
    """Return the name of a link; ``a:b`` stands for ``a->b``, because a shell interprets ``>``."""
    return text.replace(":", "->", 1)


def axis(text: str) -> tuple[str, list[int | float | str]]:
    """Return the key and the values of ``KEY=V1,V2``."""
    key, values = setting(text)
    parts = split_values(values)
    if not parts:
        raise argparse.ArgumentTypeError(f"{text!r} has no values; write key=v1,v2")
    return key, parts


def shard(text: str) -> tuple[int, int]:
    """Return the part I and the number of parts N of ``I/N``."""
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part of the whole, such as 1/8 ... 8/8")
    return int(index), int(count)


def split_values(text: str) -> list[int | float | str]:
    """Split at commas outside quotes and brackets; numbers if all parts are numbers."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        if char == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    kept = [part.strip() for part in parts if part.strip()]
    for kind in (int, float):
        try:
            return [kind(part) for part in kept]
        except ValueError:
            continue
    return list(kept)
