"""What CUBIC keeps beside an explicit flow behind a router hardly wider than a plain port, by the simulator.

    python scripts/guard_table.py [--seeds 21,22,23] [--rates 10,40] [--rtts 20,100] [--protocols xcp,xtcp] [--errors]

The router's port is a tenth wider than the plain port behind it, which has a short buffer. The explicit flow begins
after 5 s; shares are of the 55 s from then on, divided by what CUBIC keeps beside one more CUBIC. `--errors` adds
their standard errors.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
from collections.abc import Sequence

import explicate

PROTOCOLS = "xcp,LR-XCP,LR-LMXCP,p_xcp,vcp-wlte,xtcp,LR-XTCP,LR-LMXTCP,video_xtcp"
BUFFER_MS = (5, 20)

SCENARIO = """\
duration = "60s"
warmup = "5s"
seed = {seed}
node = [{nodes}]

[[link]]
from = "g"
to = "h"
duplex = true
rate = "{wide}Mbit/s"
delay = "{near}ms"
queue = {{ kind = "droptail", limit = "300pkt" }}

[[link]]
from = "h"
to = "i"
duplex = true
router = "none"
rate = "{narrow}Mbit/s"
delay = "{far}ms"
queue = {{ kind = "droptail", limit = "{buffer}B" }}
"""
ACCESS = """
[[link]]
from = "{}"
to = "{}"
duplex = true
router = "none"
rate = "{}Mbit/s"
delay = "{}ms"
"""
FLOWS = """
[[flows]]
name = "{}"
count = {}
protocol = "{}"
from = "{}"
to = "{}"
start = "{}s"
"""


def scenario(rate: float, rtt_ms: float, buffer_ms: float, count: int, protocol: str, seed: int) -> str:
    """The text of a path with `count` flows of CUBIC and one of this protocol."""
    nodes = ", ".join(f'{{ name = "{name}" }}' for name in "abghicd")
    buffer = max(3000, round(rate * 1e6 / 8 * buffer_ms / 1e3))
    wide, near, far = 1.1 * rate, rtt_ms / 20, 0.4 * rtt_ms
    text = SCENARIO.format(seed=seed, nodes=nodes, wide=wide, narrow=rate, near=near, far=far, buffer=buffer)
    for ends in ("ag", "bg", "ic", "id"):
        text += ACCESS.format(*ends, 5 * wide, rtt_ms / 40)
    return text + FLOWS.format("cubic", count, "cubic", "a", "c", 0) + FLOWS.format("other", 1, protocol, "b", "d", 5)


def kept(path: tuple[float, float, float], count: int, protocol: str, seeds: Sequence[int]) -> list[float]:
    """Mean goodput of the CUBIC flows with each seed, bit/s."""

    def mean(seed: int) -> float:
        flows = explicate.run(scenario(*path, count, protocol, seed)).flows.to_dicts()
        goodputs: list[float] = [row["goodput_bps"] for row in flows if row["group"] == "cubic"]
        return statistics.mean(goodputs)

    return [mean(seed) for seed in seeds]


def share(got: list[float], due: list[float], errors: bool) -> str:
    """The ratio of two means, and its standard error."""
    means = [statistics.mean(values) for values in (got, due)]
    ratio = means[0] / means[1]
    if not errors:
        return f"{ratio:.2f}"
    relative = (statistics.stdev(values) / mean for values, mean in zip((got, due), means, strict=True))
    return f"{ratio:.2f} ± {ratio * math.hypot(*relative) / math.sqrt(len(got)):.2f}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="21,22,23")
    parser.add_argument("--flows", type=int, default=1, help="of CUBIC")
    parser.add_argument("--rates", default="10,40", help="of the plain port, Mbit/s")
    parser.add_argument("--rtts", default="20,100", help="ms")
    parser.add_argument("--protocols", default=PROTOCOLS)
    parser.add_argument("--errors", action="store_true", help="standard errors, too")
    args = parser.parse_args()
    seeds = [int(word) for word in args.seeds.split(",")]
    names = args.protocols.split(",")
    print("| Mbit/s, round trip, buffer | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(names))
    rates, rtts = ([float(word) for word in words.split(",")] for words in (args.rates, args.rtts))
    for path in itertools.product(rates, rtts, BUFFER_MS):
        due = kept(path, args.flows, "cubic", seeds)
        shares = [share(kept(path, args.flows, name, seeds), due, args.errors) for name in names]
        rate, rtt_ms, buffer_ms = path
        print(f"| {rate:g}, {rtt_ms:g} ms, {buffer_ms} ms | " + " | ".join(shares) + " |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
