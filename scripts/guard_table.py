"""What CUBIC keeps beside an explicit flow behind a router hardly wider than a plain port, by the simulator.

    python scripts/guard_table.py [--seeds 21,22,23] [--rates 10,40] [--rtts 20,100] [--protocols xcp,xtcp] [--errors]
        [--stack linux] [--done FILE]

The router's port is a tenth wider than the plain port behind it, which has a short buffer. The explicit flow begins
after 5 s; shares are of the 55 s from then on, divided by what CUBIC keeps beside one more CUBIC. `--errors` adds
their standard errors. `--done` keeps the goodput of each finished run in a file, so that an interrupted table goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path

import explicate

PROTOCOLS = "xcp,LR-XCP,LR-LMXCP,p_xcp,vcp-wlte,xtcp,LR-XTCP,LR-LMXTCP,video_xtcp"
BUFFER_MS = (5, 20)

SCENARIO = """\
stack = "{stack}"
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


def scenario(rate: float, rtt_ms: float, buffer_ms: float, count: int, protocol: str, stack: str, seed: int) -> str:
    """The text of a path with `count` flows of CUBIC and one of this protocol, all of this stack."""
    nodes = ", ".join(f'{{ name = "{name}" }}' for name in "abghicd")
    buffer = max(3000, round(rate * 1e6 / 8 * buffer_ms / 1e3))
    wide, near, far = 1.1 * rate, rtt_ms / 20, 0.4 * rtt_ms
    text = SCENARIO.format(
        stack=stack, seed=seed, nodes=nodes, wide=wide, narrow=rate, near=near, far=far, buffer=buffer
    )
    for ends in ("ag", "bg", "ic", "id"):
        text += ACCESS.format(*ends, 5 * wide, rtt_ms / 40)
    return text + FLOWS.format("cubic", count, "cubic", "a", "c", 0) + FLOWS.format("other", 1, protocol, "b", "d", 5)


def goodput(text: str) -> float:
    """Mean goodput of the CUBIC flows, bit/s."""
    flows = explicate.run(text).flows.to_dicts()
    goodputs: list[float] = [row["goodput_bps"] for row in flows if row["group"] == "cubic"]
    return statistics.mean(goodputs)


def remembering(done: Path | None) -> Callable[[str], float]:
    """`goodput`, which takes what is in this file and adds what is not."""
    if done is None:
        return goodput
    lines = done.read_text().splitlines() if done.exists() else []
    known: dict[str, float] = dict(json.loads(line) for line in lines)

    def get(text: str) -> float:
        key = hashlib.sha256(text.encode()).hexdigest()
        if key not in known:
            known[key] = goodput(text)
            with done.open("a") as file:
                file.write(json.dumps([key, known[key]]) + "\n")
        return known[key]

    return get


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
    parser.add_argument("--stack", default="linux", help="of all flows")
    parser.add_argument("--errors", action="store_true", help="standard errors, too")
    parser.add_argument("--done", type=Path, help="file of finished runs, of this version of explicate")
    args = parser.parse_args()
    seeds = [int(word) for word in args.seeds.split(",")]
    names = args.protocols.split(",")
    get = remembering(args.done)

    def kept(path: tuple[float, float, float], protocol: str) -> list[float]:
        return [get(scenario(*path, args.flows, protocol, args.stack, seed)) for seed in seeds]

    print("| Mbit/s, round trip, buffer | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(names))
    rates, rtts = ([float(word) for word in words.split(",")] for words in (args.rates, args.rtts))
    for path in itertools.product(rates, rtts, BUFFER_MS):
        due = kept(path, "cubic")
        shares = [share(kept(path, name), due, args.errors) for name in names]
        rate, rtt_ms, buffer_ms = path
        print(f"| {rate:g}, {rtt_ms:g} ms, {buffer_ms} ms | " + " | ".join(shares) + " |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
