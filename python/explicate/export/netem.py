"""A scenario's links in the words of Linux's tc: netem for rate, delay, losses and other impairments.

netem (net/sched/sch_netem.c) loses and duplicates packets first, then keeps those that remain, at most `limit` of
them, until each has waited for its delay and for the line: it leaves at max(departure of the one before, arrival +
delay) + length / rate. With a constant delay these are the times at which packets arrive over a link whose queue comes
before its delay. `limit` therefore counts the packets of the queue, the one in service, and those on the way.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from explicate import engine
from explicate.engine import Link, Part, Queue
from explicate.errors import BadInputError
from explicate.export.exported import LOST, Exported, assignments, some, table, value, word
from explicate.export.units import percent
from explicate.scenario import ScenarioLike
from explicate.source import Source
from explicate.suggestions import instead

ETHERNET_BYTES = 14
"""netem counts the frame; rates of scenarios count IP bytes."""
UNLIMITED = 2**32 - 1
"""The largest limit of netem, for queues without one."""
MOST_DELAY_US = 274_877_906
"""The longest time of tc before it overflows: 2^32 ticks of 64 ns."""
MOST_JITTER_US = 2_147_483
"""The longest jitter of netem, whose nanoseconds are a signed integer of 32 bits."""
UNDERSTOOD = {
    "queue": ("limit", "count"),
    "random_loss": ("rate", "correlation", "place"),
    "gilbert_elliott": ("clock", "good", "bad", "loss_good", "loss_bad", "place"),
    "corruption": ("rate",),
    "duplication": ("rate",),
    "jitter": ("mean", "distribution", "spread", "shape", "keep_order"),
    "wire": (),
}
"""The parameters that a command has words for, by kinds of channels; others that are not at their defaults are lost.

Rate, delay and the limit of the queue are the only other settings of a link that it has.
"""
NO_LINK = ("name", "duration", "warmup", "runs", "seed", "processing", "stack", "flows", "sampling", "node")
"""Keys of a scenario that are no settings of links."""
DISCIPLINE = "droptail"

CONSTANT = {
    "trace": "its mean",
    "rate_steps": "the mean of their period, or else the first",
    "outages": "that without them",
}
"""The rate of a command, for channels that change it."""

NORMAL_SPREAD = 0.25
"""netem's table of normal variates ends four standard deviations from the mean: there a jitter of this spread ends."""
PARETO_SHAPE = 3.0
PARETO_SCALE = 0.5
"""netem's table `pareto` has 4/3 (x - 3/2) for Pareto variates x of shape 3 from 1: this times the mean scales it."""


def netem(scenario: ScenarioLike, link: str | None = None, device: str = "DEV") -> str:
    """Return the tc commands for the links of a scenario, or for one of them; comments say what they cannot.

    `link` is the name of a link, or a part of the topology such as ``bottleneck``. A command stands for one direction
    of a link, at the interface that sends into it; links with the same settings share one. Raise ScenarioError, or
    BadInputError for a link that is not there.
    """
    return commands(Source.of(scenario), link, device).text


def commands(source: Source, link: str | None = None, device: str = "DEV") -> Exported:
    """Return the commands of `netem`, and what they do not say."""
    resolved = engine.links(source.text, source.origin, source.base, [])
    chosen = _chosen(resolved["links"], link)
    common = [f"reroute at {one['at']}: the routes are yours to change" for one in resolved["reroutes"]]
    common += [f"sweep.{key}: these are the links of the scenario's own value" for key in resolved["sweep"]]
    same: dict[tuple[str, ...], list[str]] = {}
    losers: dict[str, list[str]] = {}
    for one in chosen:
        about = _command(one, device)
        lines = [*(f"# {note}" for note in about.notes), *(f"# {LOST}{line}" for line in about.lost)]
        same.setdefault((*lines, about.words), []).append(one["name"])
        for line in about.lost:
            losers.setdefault(line, []).append(one["name"])
    texts = [f"# {LOST}{line}\n" for line in common]
    texts += ["\n".join([f"# {', '.join(names)}", *lines]).rstrip() + "\n" for lines, names in same.items()]
    lost = [f"{some(names)}: {line}" for line, names in losers.items()]
    return Exported("".join(texts), (*common, *lost))


def _chosen(links: list[Link], wanted: str | None) -> list[Link]:
    if wanted is None:
        chosen = links
    else:
        chosen = [one for one in links if wanted in (one["name"], one["part"])]
        if not chosen:
            names = list(
                dict.fromkeys([*(one["part"] for one in links if one["part"]), *(one["name"] for one in links)])
            )
            raise BadInputError(f"no link `{wanted}`; {instead(wanted, names, names[:12])}")
    if all(one["medium"] for one in chosen):
        raise BadInputError("netem has no wireless medium, and no other link was chosen")
    return chosen


@dataclass
class _Command:
    """A link's command in the making."""

    words: str = ""
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    delay_us: float = 0.0
    jitter: list[str] = field(default_factory=list)
    chain: tuple[float, float] | None = None
    """Probabilities of going from the good state to the bad one, and back."""
    loss: tuple[float, float] = (0.0, 0.0)
    """Probabilities of a loss in the two states."""
    duplicated: float = 0.0
    corrupted: float = 0.0

    def lose(self, what: str, why: str) -> None:
        self.lost.append(f"{what}: {why}")


def _command(link: Link, device: str) -> _Command:
    command = _Command()
    if link["medium"]:
        medium = link["medium"]
        command.lose(f"the whole link, over `{medium['name']}`", f"netem has no wireless medium ({medium['kind']})")
        return command
    command.delay_us = link["delay_ns"] / 1e3
    for channel in link["channels"]:
        _channel(command, channel)
    for setting in assignments(link["settings"]):
        command.lose(setting, "a controller's or scheduler's; not in netem")
    for router in link["routers"]:
        command.lose(f"router = {table(router)}", "netem has no controllers")
    for one in link["classes"]:
        parts = [f'match = "{one["match"]}"', f"weight = {one['weight']:g}"]
        parts += [f"queue = {table(one['queue'])}"] if one["queue"] else ['queue = "unlimited"']
        parts += [f"router = {table(router)}" for router in one["routers"]]
        command.lose(f"classes = {{ {', '.join(parts)} }}", "netem has one queue")
    words = ["tc", "qdisc", "replace", "dev", device, "root", "netem", "rate", _rate(command, link["rate_bps"])]
    words += [f"-{ETHERNET_BYTES}", *_delay(command), *_losses(command)]
    words += ["duplicate", percent(command.duplicated)] if command.duplicated else []
    words += ["corrupt", percent(command.corrupted)] if command.corrupted else []
    words += ["limit", str(_limit(command, link))]
    command.words = shlex.join(words)
    return command


def _rate(command: _Command, bps: int) -> str:
    """Return a rate as tc keeps it, in whole bytes per second; zero would be no limit at all."""
    whole = max(1, round(bps / 8)) * 8
    if whole != bps:
        command.lose(f'rate = "{bps}bit/s"', f"tc has whole bytes per second; this is {whole}bit/s")
    return f"{whole}bit"


def _delay(command: _Command) -> list[str]:
    whole = round(command.delay_us)
    if whole > MOST_DELAY_US:
        command.lose(f'delay = "{command.delay_us / 1e6:g}s"', f"tc has at most {MOST_DELAY_US}us")
        whole = MOST_DELAY_US
    elif abs(whole - command.delay_us) > 1e-6:
        command.lose(f'delay = "{command.delay_us * 1e3:.0f}ns"', f"tc has whole microseconds; this is {whole}us")
    return ["delay", f"{whole}us", *command.jitter] if whole or command.jitter else []


def _losses(command: _Command) -> list[str]:
    good, bad = command.loss
    if command.chain:
        return ["loss", "gemodel", *map(percent, (*command.chain, bad, good))]
    return ["loss", "random", percent(good)] if good else []


def _limit(command: _Command, link: Link) -> int:
    """Return netem's limit: the packets that wait, the one in service, and those on the way."""
    queues = [link["queue"]] if not link["classes"] else [one["queue"] for one in link["classes"]]
    waiting = [_packets(command, queue) for queue in queues]
    finite = [count for count in waiting if count is not None]
    if len(finite) < len(waiting):
        return UNLIMITED
    packet = next((queue["mean_packet"] for queue in queues if queue), 1500.0)
    way = math.floor(link["rate_bps"] * command.delay_us / 8e6 / packet + 1e-9)
    wait = sum(finite)
    counts = next((word(queue, "count") for queue in queues if queue), "packets")
    note = (
        f"limit: {wait} packets of {packet:g} B wait (the scenario counts {counts}) and 1 is sent; netem counts packets"
    )
    if way:
        note += f", and the {way} that are on the way: more may wait while fewer are"
    command.notes.append(note)
    return min(wait + 1 + way, UNLIMITED)


def _packets(command: _Command, queue: Queue | None) -> int | None:
    """Return how many packets may wait; None if there is no limit."""
    if queue is None:
        return None
    if queue["kind"] != DISCIPLINE:
        command.lose(f"queue = {table(queue)}", "netem has drop-tail alone")
    else:
        for setting in assignments(queue["params"], UNDERSTOOD["queue"]):
            command.lose(f"queue {setting}", "not in netem")
    limit = value(queue, "limit")
    if limit is None:
        return None
    counted = limit / queue["mean_packet"]
    return math.floor(counted + 0.5) if word(queue, "count") == "packets" else math.floor(counted + 1e-9)


def _channel(command: _Command, channel: Part) -> None:
    """Add a channel, or what is lost of it."""
    kind = channel["kind"]
    write = CHANNELS.get(kind)
    if write is None:
        constant = f"netem's rate is constant, here {CONSTANT[kind]}" if kind in CONSTANT else "not in netem"
        command.lose(f"channel {table(channel)}", constant)
    elif word(channel, "of") not in {"", "all"}:
        command.lose(f"channel {table(channel)}", "netem does not tell data from acknowledgements")
    elif (why := write(command, channel)) is not None:
        command.lose(f"channel {table(channel)}", why)
    else:
        for setting in assignments(channel["params"], UNDERSTOOD[kind]):
            command.lose(f"channel {kind} {setting}", "not in netem")
        if word(channel, "place") == "air":
            command.lose(
                f'channel {kind} place = "air"',
                "netem loses packets before the queue, so they take no time on the line",
            )


def _number(channel: Part, name: str) -> float:
    number = value(channel, name)
    return math.nan if number is None else number


def _random_loss(command: _Command, channel: Part) -> str | None:
    rate, correlation = _number(channel, "rate"), _number(channel, "correlation")
    if rate == 0:
        return "its rate is 0"
    limits = [f"{name} is not" for name in ("start", "most") if _number(channel, name)]
    if limits:
        return f"{' and '.join(limits)} in netem, whose losses have neither start nor end"
    if not correlation:
        command.loss = (either(command.loss[0], rate), either(command.loss[1], rate))
        return None
    # The two-state chain whose losses have this rate and correlation. netem's own correlation changes the rate.
    return _lose_in_states(command, (rate * (1 - correlation), (1 - rate) * (1 - correlation)), (0.0, 1.0))


def _gilbert_elliott(command: _Command, channel: Part) -> str | None:
    if word(channel, "clock") != "packets":
        return "netem's chain moves with packets, not in time"
    chain = (1 / _number(channel, "good"), 1 / _number(channel, "bad"))
    return _lose_in_states(command, chain, (_number(channel, "loss_good"), _number(channel, "loss_bad")))


def _lose_in_states(command: _Command, chain: tuple[float, float], loss: tuple[float, float]) -> str | None:
    if command.chain is not None:
        return "netem has one chain of losses, and another channel has it"
    command.chain, alone = chain, command.loss[0]
    command.loss = (either(loss[0], alone), either(loss[1], alone))
    return None


def either(one: float, other: float) -> float:
    """Return the probability that at least one of two independent events happens."""
    return one + other - one * other


def _duplication(command: _Command, channel: Part) -> str | None:
    rate = _number(channel, "rate")
    if rate == 0:
        return "its rate is 0"
    if command.duplicated:
        return "netem duplicates once, and another channel does"
    command.duplicated = rate
    command.notes.append("duplicates are made before the queue and take time on the line")
    return None


def _corruption(command: _Command, channel: Part) -> str | None:
    if _number(channel, "bit_error_rate"):
        return "netem damages packets of any length with one probability"
    if _number(channel, "rate") == 0:
        return "its rate is 0"
    command.corrupted = either(command.corrupted, _number(channel, "rate"))
    return None


def _jitter(command: _Command, channel: Part) -> str | None:
    if command.jitter:
        return "netem has one jitter, and another channel has it"
    mean_us, shape = _number(channel, "mean") * 1e6, _number(channel, "shape")
    distribution, spread = word(channel, "distribution"), _number(channel, "spread")
    if mean_us == 0:
        return "its mean is 0"
    if distribution == "uniform":
        half, words = mean_us, []
    elif distribution == "normal" and spread <= NORMAL_SPREAD:
        half, words = mean_us * spread, ["distribution", "normal"]
    elif distribution == "pareto" and shape == PARETO_SHAPE:
        half, words = mean_us * PARETO_SCALE, ["distribution", "pareto"]
        command.notes.append("the longest 1 % of netem's Pareto variates are cut off, at three times the mean")
    elif distribution == "normal":
        return f"netem's normal variates reach four deviations, below zero; `spread` is at most {NORMAL_SPREAD}"
    elif distribution == "pareto":
        return f"netem's Pareto variates have the shape {PARETO_SHAPE:g}"
    else:
        return f"netem has no {distribution} variates"
    if round(half) < 1 or abs(round(half) - half) > 0.005 * half:
        return "tc has whole microseconds"
    if half > MOST_JITTER_US:
        return f"netem has at most {MOST_JITTER_US}us of jitter"
    if command.delay_us + mean_us > MOST_DELAY_US:
        return f"tc has at most {MOST_DELAY_US}us of delay"
    command.delay_us += mean_us
    command.jitter = [f"{round(half)}us", *words]
    command.notes.append("jitter comes before the queue")
    if word(channel, "keep_order") == "false":
        command.lose("channel jitter keep_order = false", "with a rate, netem keeps the order of packets")
    return None


CHANNELS: dict[str, Callable[[_Command, Part], str | None]] = {
    "random_loss": _random_loss,
    "gilbert_elliott": _gilbert_elliott,
    "corruption": _corruption,
    "duplication": _duplication,
    "jitter": _jitter,
    "wire": lambda _command, _channel: None,
}
"""The kinds of channels that netem has: each adds its words, or returns why it cannot."""
