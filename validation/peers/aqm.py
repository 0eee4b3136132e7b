"""TCP over RED and REM, Explicate beside ns-2 2.35: utilisation and mean queue over several seeds.

python3 validation/peers/aqm.py [--markdown docs/validation.md]
"""

from __future__ import annotations

import sys
from dataclasses import replace

import seeds
from droptail import PACKET_TIME_S
from simulators import Case, Queue

SEEDS = range(1, 6)


def red(name: str, min_th: int, max_th: int, weight: float, max_p: float) -> Queue:
    """RED by packets, gentle, dropping, nearly empty queues left alone as in ns-2; thresholds in packets."""
    ours = f'kind = "red", min_th = "{min_th}pkt", max_th = "{max_th}pkt", weight = {weight}, max_p = {max_p}'
    return Queue(name, f"red:{min_th}:{max_th}:{weight}:{max_p}", f"{ours}, gentle = true, ns2 = true, mark = false")


def rem(name: str, interval_ms: float, target: int) -> Queue:
    """REM by packets with the paper's gains, dropping; the target in packets."""
    ours = f'kind = "rem", gamma = 0.001, alpha = 0.1, phi = 1.001, interval = "{interval_ms}ms"'
    return Queue(name, f"rem:0.001:1.001:{interval_ms / 1e3}:{target}", f'{ours}, target = "{target}pkt", mark = false')


PAPER = red("RED, min 333, max 667, weight 0.002, max_p 0.1", 333, 667, 0.002, 0.1)
MIDDLE = red("RED, min 50, max 150, weight 0.0002, max_p 0.1", 50, 150, 0.0002, 0.1)
CLASSIC = red("RED, min 5, max 15, weight 0.002, max_p 0.1", 5, 15, 0.002, 0.1)
REMS = [rem("REM, T 0.8 ms, target 333", 0.8, 333), rem("REM, T 2 ms, target 20", 2, 20)]
SYSTEMS = {"newreno": "NewReno", "sack": "SACK"}
SHAPES = [(80, None, [PAPER, MIDDLE, CLASSIC, *REMS]), (70, 90, [MIDDLE, CLASSIC])]
"""Round trips and the queues that are tried with them."""


def cases() -> dict[str, Case]:
    """One case of each kind: 100 Mbit/s, 10 flows, 60 to 160 s."""
    made = {}
    for system, name in SYSTEMS.items():
        for low, high, queues in SHAPES:
            rtt = f"{low}" if high is None else f"{low}..{high}"
            for queue in queues:
                case = Case(system, 100, low, 10, high, duration_s=160.0, warmup_s=60.0, queue=queue, starts="random")
                made[f"{name}, {rtt} ms, {queue.name}"] = replace(case, processing_s=PACKET_TIME_S)
    return made


def fragment(table: str) -> str:
    """The section."""
    return f"""\
100 Mbit/s, 10 flows, a buffer of one BDP (1000 packets of 1000 bytes); packets are dropped, not marked. Hosts of
both simulators process a packet in a random time of at most {PACKET_TIME_S * 1e6:.0f} us. 60 to 160 s, mean and
standard deviation over {len(SEEDS)} seeds. The first RED and the first REM have the settings of the XCP paper's
comparison. RED's thresholds are there a third and two thirds of the buffer; REM's T is ten packet times, its target a
third of the buffer. The last RED has the classic constants, the last REM ns-2's defaults. Expected differences: at
most {100 * seeds.POINTS:.0f} points of utilisation, and {100 * seeds.SHARE:.0f} % of the mean queue.

{table}

    python3 validation/peers/aqm.py --markdown docs/validation.md"""


if __name__ == "__main__":
    sys.exit(seeds.main("aqm", __doc__ or "", cases(), SEEDS, fragment))
