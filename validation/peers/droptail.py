"""NewReno and SACK over drop-tail, Explicate beside ns-2 2.35: utilisation and mean queue over several seeds.

    python3 validation/peers/droptail.py [--markdown docs/validation.md]

Two times are random: the start of a flow, uniform over a second, and the processing time of a packet at a host, at
most the transmission time of a packet at the bottleneck.
"""

from __future__ import annotations

import sys

import seeds
from simulators import Case

SEEDS = range(1, 9)
PACKET_TIME_S = 80e-6
"""Transmission time of 1000 bytes at 100 Mbit/s."""
CASES = {
    name: Case(system, 100, 80, 10, starts="random", processing_s=PACKET_TIME_S, duration_s=150.0, warmup_s=50.0)
    for system, name in (("newreno", "NewReno"), ("sack", "SACK"))
}
"""The dumbbell: 100 Mbit/s, 80 ms, 10 flows, 50 to 150 s."""


def fragment(table: str) -> str:
    """The section."""
    return f"""\
100 Mbit/s, 80 ms, drop-tail with a buffer of one BDP (1000 packets). Ten flows of 1000-byte packets start at random
within a second. Hosts of both simulators process a packet in a random time of at most {PACKET_TIME_S * 1e6:.0f} us.
50 to 150 s, mean and standard deviation over {len(SEEDS)} seeds. Expected differences: at most
{100 * seeds.POINTS:.0f} points of utilisation, and {100 * seeds.SHARE:.0f} % of the mean queue.

{table}

    python3 validation/peers/droptail.py --markdown docs/validation.md"""


if __name__ == "__main__":
    sys.exit(seeds.main("droptail", __doc__ or "", CASES, SEEDS, fragment))
