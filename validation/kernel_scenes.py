"""Scenes that run beside the kernel's TCP: which they are, their scenario files, and the figures that are compared.

    python validation/kernel_scenes.py            # lists them
    python validation/kernel_scenes.py NAME       # prints the scenario of one

The same file runs in the simulator and in `explicated lab --kernel GROUP=CONTROLLER`. Needs only the standard library.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FACTORS: dict[str, tuple[Any, ...]] = {
    "controller": ("reno", "cubic", "bbr"),
    "rtt_ms": (10, 40, 100, 300, 600),
    "mbps": (5, 20, 50),
    "flows": (1, 4, 8),
    "buffer_bdp": (0.25, 1, 4),
    "loss_percent": (0, 0.05, 0.1, 1),
    "jitter_ms": (0, 1, 5),
}
"""What the covering scenes choose from."""

DESIGN_SEED, HIDDEN_SEED = 1, 34
"""Seeds of the covering choice, and of the third that is not looked at before the end."""

PACKET_BYTES = 1500
BOTTLENECK = "r1->r2"
SECONDS = {10: 15, 40: 15, 100: 20, 300: 30, 600: 45}
"""Duration of a scene by its round trip in ms: at least 75 round trips."""

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Group:
    """Flows of one controller. Times in seconds."""

    name: str
    controller: str
    flows: int
    size_kb: int | None = None
    start: str = '{ uniform = "500ms" }'


@dataclass(frozen=True)
class Scene:
    """A dumbbell with groups of flows; `channel` is on the way of the data."""

    name: str
    groups: tuple[Group, ...]
    rtt_ms: int
    mbps: float
    buffer_bdp: float
    channel: tuple[str, ...] = ()
    seconds: float = 0.0
    """Duration if it is not that of the round trip."""

    @property
    def duration_s(self) -> float:
        """Duration of a run."""
        return self.seconds or SECONDS[self.rtt_ms]

    @property
    def kernel(self) -> dict[str, str]:
        """Controllers of the kernel by group."""
        return {group.name: group.controller for group in self.groups}

    @property
    def sized(self) -> bool:
        """Whether flows of finite size are what is compared."""
        return any(group.size_kb for group in self.groups)

    def scenario(self) -> str:
        """Return the scenario file."""
        pairs = max(min(group.flows, 8) for group in self.groups)
        channel = f'\n[[link]]\nname = "{BOTTLENECK}"\nchannel = [{", ".join(self.channel)}]\n' if self.channel else ""
        return (
            f"""\
name = "{self.name}"
duration = "{self.duration_s:g}s"
warmup = "0s"
seed = 1

[topology]
kind = "dumbbell"
pairs = {pairs}
access = {{ rate = "{5 * self.mbps:g}Mbit/s", delay = "1ms" }}

[topology.bottleneck]
rate = "{self.mbps:g}Mbit/s"
delay = "{self.rtt_ms / 2 - 2:g}ms"
queue = {{ kind = "droptail", limit = "{self.buffer_bdp:g}bdp" }}
"""
            + channel
            + "".join(map(flows, self.groups))
        )


def flows(group: Group) -> str:
    """Return the section of a group."""
    size = f'size = "{group.size_kb}kB"\n' if group.size_kb else ""
    return f"""
[[flows]]
name = "{group.name}"
count = {group.flows}
protocol = "{group.controller}"
packet = "{PACKET_BYTES}B"
start = {group.start}
{size}"""


def impairments(loss_percent: float, jitter_ms: float) -> tuple[str, ...]:
    """Return the channels that lose at random, and that delay each packet by chance so that some overtake others."""
    loss = f'{{ kind = "random_loss", rate = "{loss_percent:g}%" }}'
    jitter = f'{{ kind = "jitter", mean = "{jitter_ms:g}ms" }}'
    return (*([loss] if loss_percent else []), *([jitter] if jitter_ms else []))


def too_small(row: Mapping[str, Any]) -> bool:
    """Return whether path and buffer hold less than two packets for each flow, or the buffer less than four."""
    bdp = row["mbps"] * row["rtt_ms"] * 125 / PACKET_BYTES
    return bool(bdp * (1 + row["buffer_bdp"]) < 2 * row["flows"] or bdp * row["buffer_bdp"] < 4)


def pairs(row: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """Return the pairs of values that a row covers."""
    return set(itertools.combinations(row.items(), 2))


def covering() -> list[dict[str, Any]]:
    """Return rows in which every pair of values of two factors occurs, chosen greedily among random ones."""
    rng = random.Random(DESIGN_SEED)
    names = list(FACTORS)
    missing = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in FACTORS[a] for y in FACTORS[b]}
    rows = []
    while missing:
        seeds = sorted(missing, key=repr)
        best: dict[str, Any] = {}
        for _ in range(300):
            row = {name: rng.choice(values) for name, values in FACTORS.items()} | dict(rng.choice(seeds))
            if not too_small(row) and len(pairs(row) & missing) > (len(pairs(best) & missing) if best else 0):
                best = row
        if best:
            rows.append(best)
            missing -= pairs(best)
    return rows


def covered() -> Iterator[Scene]:
    """Yield the covering scenes."""
    for row in covering():
        parts = [
            f"{row['controller']}{row['flows']}",
            f"{row['rtt_ms']}ms",
            f"{row['mbps']}M",
            f"{row['buffer_bdp']:g}bdp",
            *([f"loss{row['loss_percent']:g}"] if row["loss_percent"] else []),
            *([f"jitter{row['jitter_ms']}"] if row["jitter_ms"] else []),
        ]
        groups = (Group("f", row["controller"], row["flows"]),)
        channel = impairments(row["loss_percent"], row["jitter_ms"])
        yield Scene("-".join(parts), groups, row["rtt_ms"], row["mbps"], row["buffer_bdp"], channel)


def short(controller: str, kb: int, rtt_ms: int, mbps: float, loss_percent: float = 0) -> Scene:
    """Return twelve flows of finite size, each mostly alone on the path."""
    name = f"{controller}-{kb}kB-{rtt_ms}ms-{mbps:g}M" + (f"-loss{loss_percent:g}" if loss_percent else "")
    spread = 12 * max(0.6, 4 * rtt_ms / 1000)
    seconds = math.ceil(spread + 5 + 15 * rtt_ms / 1000)
    groups = (Group("f", controller, 12, kb, f'{{ spread = "{spread:g}s" }}'),)
    return Scene(name, groups, rtt_ms, mbps, 1, impairments(loss_percent, 0), seconds)


def steps(controller: str, rtt_ms: int, first: int, then: int) -> Scene:
    """Return four flows on a link whose rate changes for ten seconds and back."""
    change = ", ".join(
        f'{{ at = "{at}s", rate = "{rate}Mbit/s" }}' for at, rate in ((0, first), (10, then), (20, first))
    )
    channel = (f'{{ kind = "rate_steps", steps = [{change}] }}',)
    return Scene(
        f"{controller}-rate-{first}to{then}-{rtt_ms}ms", (Group("f", controller, 4),), rtt_ms, first, 1, channel, 30
    )


def outage(controller: str, rtt_ms: int, mbps: float) -> Scene:
    """Return two flows on a link that carries nothing from 12 to 17 s; the next outage would begin at the end."""
    channel = ('{ kind = "outages", up = "12s", down = "5s" }',)
    return Scene(
        f"{controller}-outage-{rtt_ms}ms-{mbps:g}M", (Group("f", controller, 2),), rtt_ms, mbps, 1, channel, 29
    )


def beside(one: str, other: str, rtt_ms: int, mbps: float, buffer_bdp: float) -> Scene:
    """Return two flows of one controller beside two of another."""
    groups = (Group("f", one, 2), Group("g", other, 2))
    return Scene(
        f"{one}-beside-{other}-{rtt_ms}ms-{mbps:g}M-{buffer_bdp:g}bdp", groups, rtt_ms, mbps, buffer_bdp, (), 30
    )


def all_scenes() -> list[Scene]:
    """Return every scene."""
    found = [
        *covered(),
        short("cubic", 20, 40, 20),
        short("reno", 20, 100, 5, 1),
        short("bbr", 20, 600, 20),
        short("cubic", 20, 300, 5, 1),
        short("cubic", 200, 300, 20),
        short("reno", 200, 40, 5),
        short("bbr", 200, 100, 20, 1),
        short("cubic", 200, 600, 20, 0.1),
        steps("cubic", 100, 20, 5),
        steps("reno", 40, 5, 20),
        steps("bbr", 100, 20, 5),
        steps("cubic", 300, 5, 20),
        outage("cubic", 100, 20),
        outage("reno", 40, 5),
        outage("bbr", 100, 20),
        outage("cubic", 600, 5),
        beside("cubic", "reno", 40, 20, 1),
        beside("cubic", "bbr", 100, 20, 1),
        beside("reno", "bbr", 300, 20, 1),
        beside("cubic", "bbr", 40, 20, 4),
    ]
    names = [scene.name for scene in found]
    assert len(set(names)) == len(names), names
    return found


def hidden(scenes: Sequence[Scene], seed: int = HIDDEN_SEED) -> set[str]:
    """Return the names of the third that is drawn by `seed`."""
    names = sorted(scene.name for scene in scenes)
    return set(random.Random(seed).sample(names, round(len(names) / 3)))


def jain(rates: Sequence[float]) -> float:
    """Return Jain's index of fairness."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0


def figures(scene: Scene, flows: Sequence[Mapping[str, Any]], links: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the figures of a run from its rows of flows and links, which the lab and the simulator name alike."""
    link = next(row for row in links if row["link"] == BOTTLENECK)
    found = {
        "queue_ms": float(link["queue_mean_ms"] or 0.0),
        "drops": float(link["drops_overflow"] + link["drops_early"]),
        "retransmissions": float(sum(row["retransmissions"] for row in flows)),
        "timeouts_per_flow": sum(row["timeouts"] for row in flows) / len(flows),
    }
    if scene.sized:
        # A flow that is not complete has taken at least the rest of the run.
        taken = [row["completion_s"] or scene.duration_s - row["start_s"] for row in flows]
        return {**found, "completion_s": sum(taken) / len(taken)}
    for group in scene.groups:
        name = "goodput_mbps" if len(scene.groups) == 1 else f"goodput_mbps.{group.controller}"
        found[name] = sum(row["goodput_bps"] for row in flows if row["group"] == group.name) / 1e6
    if len(flows) > 1:
        found["jain"] = jain([row["goodput_bps"] for row in flows])
    return found


def main(argv: Sequence[str]) -> None:
    """List the scenes, or print the scenario of one."""
    scenes = {scene.name: scene for scene in all_scenes()}
    if argv:
        print(scenes[argv[0]].scenario())
        return
    kept = hidden(list(scenes.values()))
    print(f"{len(scenes)} scenes, {len(kept)} of them hidden by seed {HIDDEN_SEED}")
    for name, scene in scenes.items():
        print(f"{'hidden' if name in kept else '      '}  {scene.duration_s:4g} s  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
