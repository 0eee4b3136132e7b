"""A scenario's links in the words of Linux's tc: netem for delay, rate and losses."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from typing import Any

from explicate.errors import BadInputError
from explicate.figures.study import SECONDS

RATES = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}
BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2}
PACKET_BYTES = 1500
DEFAULT_LIMIT = 1000
"""netem's own limit in packets, for queues without a limit of their own here."""


def netem(resolved: str, link: str | None = None, device: str = "DEV") -> str:
    """Return the tc commands for the links of a resolved scenario (`explicate check`), or for one of them.

    A link is a name of ``[[link]]``, or a part of the topology such as ``bottleneck``. One command stands for a
    one-way link, at the interface that sends into it. netem's limit counts the packets on the way too, so that it is
    the queue's and those that the delay holds. What tc has no words for stands in a comment. Raise BadInputError for a
    link that is not there.
    """
    links = _links(tomllib.loads(resolved))
    if link is not None and link not in links:
        raise BadInputError(f"no link {link!r} with a rate of its own; there are {', '.join(links) or 'none'}")
    chosen = links if link is None else {link: links[link]}
    if not chosen:
        raise BadInputError("the scenario has no link with a rate")
    return "\n".join(_commands(name, about, device) for name, about in chosen.items())


def _links(scenario: dict[str, Any]) -> dict[str, dict[str, Any]]:
    topology = scenario.get("topology", {})
    found = {name: value for name, value in topology.items() if isinstance(value, dict) and "rate" in value}
    for one in scenario.get("link", []):
        base = found.get("bottleneck", {}) if "rate" not in one else {}
        found[str(one.get("name", f"{one.get('from')}->{one.get('to')}"))] = {**base, **one}
    return {name: value for name, value in found.items() if "rate" in value}


def _commands(name: str, link: dict[str, Any], device: str) -> str:
    rate = _quantity(link["rate"], RATES)
    if rate is None or rate <= 0:
        raise BadInputError(f"{name}: tc has no words for the rate {link['rate']!r}")
    spread = link.get("delay", "0s")
    delay = _quantity(spread, SECONDS)
    notes = []
    if delay is None:
        delay = _quantity(spread.get("from", "0s"), SECONDS) if isinstance(spread, dict) else 0.0
        notes.append(f"the delay is {spread}: this is its first")
    queue = link.get("queue", "auto")
    kind = queue.get("kind", "droptail") if isinstance(queue, dict) else queue
    if kind not in {"droptail", "auto"}:
        notes.append(f"the queue is {kind}: netem has drop-tail alone, put the discipline at another interface")
    router = link.get("router", "auto")
    if router not in {"auto", "none"}:
        notes.append(f"the router is {router if isinstance(router, str) else router.get('kind')}: not in tc")
    limit = _limit(queue.get("limit", "auto") if isinstance(queue, dict) else "auto", rate, delay or 0.0, notes)
    words = ["tc", "qdisc", "replace", "dev", device, "root", "netem", "rate", f"{rate:.0f}bit"]
    words += ["delay", f"{(delay or 0.0) * 1e6:.0f}us"] if delay else []
    for channel in link.get("channel", []):
        words += _channel(channel, notes)
    words += ["limit", str(limit)]
    comments = "".join(f"# not in this command: {note}\n" for note in notes)
    return f"# {name}\n{comments}{shlex.join(words)}"


def _limit(text: Any, rate: float, delay: float, notes: list[str]) -> int:
    """Return netem's limit: the packets of the queue, and those in transit."""
    way = math.ceil(rate * delay / 8 / PACKET_BYTES)
    match = re.fullmatch(r"([0-9.]+)\s*(bdp|pkt)", str(text))
    size = _quantity(text, BYTES)
    if match and match[2] == "pkt":
        return round(float(match[1])) + way
    if match:
        notes.append(f"a limit of {text} is taken as {match[1]} x rate x two delays of this link alone")
        return max(1, math.ceil(float(match[1]) * 2 * way)) + way
    if size is not None:
        return max(1, math.ceil(size / PACKET_BYTES)) + way
    return DEFAULT_LIMIT + way


def _channel(channel: dict[str, Any], notes: list[str]) -> list[str]:
    """Return netem's words for a channel that affects all packets; a note if there are none."""
    kind, rate = channel.get("kind"), _share(channel.get("rate"))
    if channel.get("of", "all") != "all":
        notes.append(f"channel {kind} of {channel['of']} alone")
    elif kind == "random_loss" and rate:
        return ["loss", "random", _percent(rate)]
    elif kind == "duplication" and rate:
        return ["duplicate", _percent(rate)]
    elif kind == "corruption" and rate and not _share(channel.get("bit_error_rate")):
        return ["corrupt", _percent(rate)]
    elif kind == "gilbert_elliott" and channel.get("clock") == "packets":
        good, bad, lost, also = (_share(channel.get(key)) for key in ("good", "bad", "loss_bad", "loss_good"))
        if good and bad and lost is not None and also is not None:
            return ["loss", "gemodel", *map(_percent, (1 / good, 1 / bad, lost, also))]
    else:
        notes.append(f"channel {kind}")
    return []


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def _share(value: Any) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    match = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*%\s*", str(value))
    return float(match[1]) / 100 if match else None


def _quantity(value: Any, units: dict[str, float]) -> float | None:
    match = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([A-Za-zµ/]+)\s*", str(value))
    return float(match[1]) * units[match[2]] if match and match[2] in units else None
