"""Compare simulator and Linux: run six scenarios in both and write the section of docs/validation.md. Needs root.

python validation/worlds.py
"""

from __future__ import annotations

import os
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shared import place

from explicate import worlds
from explicate.source import Source

SCENARIO = """
name = "worlds"
duration = "{duration}"
warmup = "{warmup}"
seed = {seed}
[sampling]
every = "5ms"
of = ["queue"]
[topology]
kind = "dumbbell"
access = {{ rate = "200Mbit/s", delay = "1ms" }}
bottleneck = {{ rate = "{rate}", delay = "{delay}", queue = {{ kind = "droptail", limit = "1.0bdp" }} }}
[[link]]
name = "r1->r2"
channel = [{{ kind = "random_loss", rate = "{loss}" }}]
[[flows]]
name = "f"
count = {count}
protocol = "{protocol}"
packet = "1500B"
paced = {paced}
start = {{ spread = "500ms" }}
"""

CASES = (
    {"protocol": "xcp", "loss": "0%", "delay": "18ms", "rate": "50Mbit/s", "count": 2},
    {"protocol": "xcp", "loss": "0%", "delay": "48ms", "rate": "30Mbit/s", "count": 4},
    {"protocol": "LR-LMXCP", "loss": "1%", "delay": "18ms", "rate": "50Mbit/s", "count": 2},
    {"protocol": "LR-LMXCP", "loss": "5%", "delay": "48ms", "rate": "30Mbit/s", "count": 2},
    {"protocol": "vcp", "loss": "0%", "delay": "18ms", "rate": "30Mbit/s", "count": 2},
    {"protocol": "cubic", "loss": "0%", "delay": "18ms", "rate": "30Mbit/s", "count": 2},
)
PACED = ("true", "false")
"""Whether hosts pace, or are ACK-clocked."""
WARMUP = 10.0
SEEDS = (2, 4)
"""Minimum and maximum number of seeds; runs stop after the minimum once :data:`ENOUGH` is reached."""
ENOUGH = 10.0
"""Required seconds without stops of the machine, summed over the seeds."""
GOODPUT = 0.05
"""Largest relative difference of the sum of goodput."""
QUEUE = (0.25, 2.0)
"""Largest difference of the mean queue: relative, or in packets."""


@dataclass
class Measured:
    """Results of one scenario: goodput (Mbit/s) and mean queue (packets), simulated and real; means over seeds."""

    goodput: tuple[float, float]
    queue: tuple[float, float]
    undisturbed: float
    """The mean real queue without the times after stops of the machine."""
    seconds: float
    """Seconds of these times, summed over the seeds."""


def measure(case: dict[str, object]) -> Measured:
    """Run simulator and lab, seed after seed, until the undisturbed time suffices."""
    goodput, queue, calm = [], [], []
    seconds = 0.0
    for seed in range(1, SEEDS[1] + 1):
        text = SCENARIO.format(duration="25s", warmup=f"{WARMUP}s", seed=seed, **case)
        results = worlds.compare_source(Source.of(text), [])
        flows = worlds.pairs(results, "flows", "goodput_bps")
        goodput.append((sum(pair[1] for pair in flows) / 1e6, sum(pair[2] for pair in flows) / 1e6))
        queue.append(next(p[1:] for p in worlds.pairs(results, "links", "queue_mean_packets") if p[0] == "r1->r2"))
        mean, share = worlds.undisturbed_queue(results, "r1->r2", WARMUP)
        if share > 0:
            calm.append((mean, share))
        seconds += 15.0 * share
        if seed >= SEEDS[0] and seconds >= ENOUGH:
            break
    average = statistics.fmean
    weight = sum(share for _, share in calm)
    return Measured(
        goodput=(average(g[0] for g in goodput), average(g[1] for g in goodput)),
        queue=(average(q[0] for q in queue), average(q[1] for q in queue)),
        undisturbed=sum(mean * share for mean, share in calm) / weight if weight > 0 else float("nan"),
        seconds=seconds,
    )


def main() -> None:
    """Measure, and write the section."""
    load, processors = os.getloadavg()[2], os.cpu_count()
    lines = [
        "The same scenario runs in the simulator and, with `explicated lab`, on real sockets, queues and clocks: 2",
        "to 4 seeds of 25 s; the last 15 s are measured. Expected: goodput within 5 %, mean queue within 25 % or 2",
        "packets. A virtual machine occasionally loses its processors for up to some 10 ms. Packets that were due",
        "then leave in one burst, which causes a queue that the scenario does not have. ACK-clocked hosts repeat",
        "the burst every round trip; hosts that pace (`paced = true`, in both) do not. Threads that wake up every",
        "millisecond record when the machine was stopped. *Undisturbed* is the mean queue without the half second",
        "after each stop of more than 1 ms, *s* the remaining time. The last column judges the undisturbed queue,",
        "the column before it the whole measurement.",
        f"Load average {load:.0f} on {processors} processors.",
        "",
        "| paced | protocol | loss | one way | rate | flows | Mbit/s: simulated | real | queue: simulated | real "
        "| undisturbed | s | agree | undisturbed |",
        "| --- | --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for case in ({"paced": paced, **case} for paced in PACED for case in CASES):
        m = measure(case)
        good = abs(m.goodput[1] / m.goodput[0] - 1) <= GOODPUT
        most = max(QUEUE[0] * m.queue[0], QUEUE[1])
        near = (abs(queue - m.queue[0]) <= most for queue in (m.queue[1], m.undisturbed))
        words = [*(str(case[key]) for key in ("paced", "protocol", "loss", "delay", "rate", "count"))]
        words += [
            *(f"{value:.2f}" for value in m.goodput),
            *(f"{value:.1f}" for value in (*m.queue, m.undisturbed)),
            f"{m.seconds:.0f}",
            *("yes" if good and short else "**no**" for short in near),
        ]
        lines.append(f"| {' | '.join(words)} |")
        print(lines[-1], flush=True)
    place("worlds", "Simulator and reality", "\n".join(lines) + "\n\n    python validation/worlds.py")


if __name__ == "__main__":
    main()
