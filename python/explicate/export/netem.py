"""A scenario's links in the words of Linux's tc: netem for delay, rate and losses."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from typing import Any

from explicate.errors import BadInputError
from explicate.export.units import BYTES, RATES, percent, quantity, share
from explicate.figures.study import SECONDS

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
    rate = quantity(link["rate"], RATES)
    if rate is None or rate <= 0:
        raise BadInputError(f"{name}: tc has no words for the rate {link['rate']!r}")
    spread = link.get("delay", "0s")
    delay = quantity(spread, SECONDS)
    notes = []
    if delay is None:
        delay = quantity(spread.get("from", "0s"), SECONDS) if isinstance(spread, dict) else 0.0
        notes.append(f"the delay is {spread}: this is its first")
    queue, router = _table(link.get("queue", "auto")), _table(link.get("router", "auto"))
    if queue["kind"] not in {"droptail", "auto"}:
        kind = queue["kind"]
        notes.append(f"the queue is {kind}: netem has drop-tail alone, put the discipline at another interface")
    if router["kind"] not in {"auto", "none"}:
        notes.append(f"the router is {router['kind']}: not in tc")
    limit = _limit(queue.get("limit", "auto"), rate, delay or 0.0, notes)
    words = ["tc", "qdisc", "replace", "dev", device, "root", "netem", "rate", f"{rate:.0f}bit"]
    words += ["delay", f"{(delay or 0.0) * 1e6:.0f}us"] if delay else []
    for channel in link.get("channel", []):
        found = _channel(channel)
        words += found
        if not found:
            part = channel.get("of", "all")
            notes.append(f"channel {channel.get('kind')}" + (f" of {part} alone" if part != "all" else ""))
    words += ["limit", str(limit)]
    comments = "".join(f"# not in this command: {note}\n" for note in notes)
    return f"# {name}\n{comments}{shlex.join(words)}"


def _table(value: Any) -> dict[str, Any]:
    """Return a queue or a router, which a scenario may write as its name alone, as a table with its ``kind``."""
    return {"kind": "droptail", **value} if isinstance(value, dict) else {"kind": value}


def _limit(text: Any, rate: float, delay: float, notes: list[str]) -> int:
    """Return netem's limit: the packets of the queue, and those in transit."""
    way = math.ceil(rate * delay / 8 / PACKET_BYTES)
    match = re.fullmatch(r"([0-9.]+)\s*(bdp|pkt)", str(text))
    size = quantity(text, BYTES)
    if match and match[2] == "pkt":
        return round(float(match[1])) + way
    if match:
        notes.append(f"a limit of {text} is taken as {match[1]} x rate x two delays of this link alone")
        return max(1, math.ceil(float(match[1]) * 2 * way)) + way
    if size is not None:
        return max(1, math.ceil(size / PACKET_BYTES)) + way
    return DEFAULT_LIMIT + way


def _channel(channel: dict[str, Any]) -> list[str]:
    """Return netem's words for a channel; none if it has none, or if the channel does not affect all packets."""
    kind, rate = channel.get("kind"), share(channel.get("rate"))
    if channel.get("of", "all") != "all":
        return []
    if kind == "random_loss" and rate:
        return ["loss", "random", percent(rate)]
    if kind == "duplication" and rate:
        return ["duplicate", percent(rate)]
    if kind == "corruption" and rate and not share(channel.get("bit_error_rate")):
        return ["corrupt", percent(rate)]
    if kind == "gilbert_elliott" and channel.get("clock") == "packets":
        good, bad, lost, also = (share(channel.get(key)) for key in ("good", "bad", "loss_bad", "loss_good"))
        if good and bad and lost is not None and also is not None:
            return ["loss", "gemodel", *map(percent, (1 / good, 1 / bad, lost, also))]
    return []
