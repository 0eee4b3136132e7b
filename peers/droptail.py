"""NewReno and SACK over drop-tail, Explicate beside ns-2 2.35: utilisation and mean queue over several seeds.

    python3 peers/droptail.py [--markdown docs/validation.md]

Nothing is random here but the times at which the flows start: uniform over a second, by the seed.
"""

from __future__ import annotations

import sys

import seeds
from simulators import Case

SEEDS = range(1, 9)
CASES = {
    name: Case(system, 100, 80, 10, starts="random", duration_s=150.0, warmup_s=50.0)
    for system, name in (("newreno", "NewReno"), ("sack", "SACK"))
}
"""The dumbbell: 100 Mbit/s, 80 ms, 10 flows, 50 to 150 s."""


def fragment(table: str) -> str:
    """The section."""
    return f"""100 Mbit/s, 80 ms, 10 flows of 1000-byte packets that start at random within a second, drop-tail
with a buffer of one BDP (1000 packets); 50 to 150 s, mean and standard deviation over {len(SEEDS)} seeds. Expected: at
most {100 * seeds.POINTS:.0f} points of utilisation and {100 * seeds.SHARE:.0f} % of the mean queue apart.

{table}

    python3 peers/droptail.py --markdown docs/validation.md"""


if __name__ == "__main__":
    sys.exit(seeds.main("droptail", __doc__ or "", CASES, SEEDS, fragment))
