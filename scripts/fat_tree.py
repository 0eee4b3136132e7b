"""Write a scenario of a fat tree: K pods of K/2 edge and K/2 aggregation switches, (K/2)^2 cores, K^3/4 hosts.

    python scripts/fat_tree.py --k 20 --flows 10000000 > fat-tree.toml
    explicate run fat-tree.toml --fluid -o out

Every host sends to one other in another pod, by a core drawn from the seed; flows are dealt out evenly, so a class has
FLOWS / hosts of them. K = 20 are 12,000 one-way links and 2,000 classes.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

RATE = {"host": "100Gbit/s", "pod": "100Gbit/s", "core": "100Gbit/s"}
DELAY = {"host": "100us", "pod": "500us", "core": "2ms"}


def links(k: int) -> Iterator[tuple[str, str, str]]:
    """Yield both ends and the tier of every cable."""
    half = k // 2
    for pod in range(k):
        for edge in range(half):
            for host in range(half):
                yield f"h{pod}.{edge}.{host}", f"e{pod}.{edge}", "host"
            for up in range(half):
                yield f"e{pod}.{edge}", f"a{pod}.{up}", "pod"
        for up in range(half):
            for core in range(half):
                yield f"a{pod}.{up}", f"c{up}.{core}", "core"


def paths(k: int, seed: int) -> Iterator[list[str]]:
    """Yield the way from every host to one in another pod."""
    half, draw = k // 2, random.Random(seed)
    hosts = [(pod, edge, host) for pod in range(k) for edge in range(half) for host in range(half)]
    for index, (pod, edge, host) in enumerate(hosts):
        to_pod, to_edge, to_host = hosts[(index + len(hosts) // 2) % len(hosts)]
        up, core = draw.randrange(half), draw.randrange(half)
        switches = [f"e{pod}.{edge}", f"a{pod}.{up}", f"c{up}.{core}", f"a{to_pod}.{up}", f"e{to_pod}.{to_edge}"]
        yield [f"h{pod}.{edge}.{host}", *switches, f"h{to_pod}.{to_edge}.{to_host}"]


def scenario(k: int, flows: int, protocol: str, duration: str, seed: int) -> str:
    """Return the scenario."""
    lines = [f'name = "fat-tree-{k}"', f'duration = "{duration}"', f'warmup = "{float(duration[:-1]) / 2:g}s"']
    lines.append('[topology]\nkind = "explicit"')
    cables = list(links(k))
    for node in dict.fromkeys(node for one, other, _ in cables for node in (one, other)):
        lines.append(f'[[node]]\nname = "{node}"\nkind = "{"host" if node[0] == "h" else "router"}"')
    for one, other, tier in cables:
        lines.append(f'[[link]]\nfrom = "{one}"\nto = "{other}"\nduplex = true')
        lines.append(f'rate = "{RATE[tier]}"\ndelay = "{DELAY[tier]}"')
    ways = list(paths(k, seed))
    for index, way in enumerate(ways):
        count = flows // len(ways) + (index < flows % len(ways))
        path = ", ".join(f'"{node}"' for node in way)
        lines.append(f'[[flows]]\nname = "{way[0]}"\ncount = {count}\nprotocol = "{protocol}"\npath = [{path}]')
    return "\n".join(lines)


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description="Write a scenario of a fat tree.")
    parser.add_argument("--k", type=int, default=20, help="pods, an even number (default 20: 12,000 one-way links)")
    parser.add_argument("--flows", type=int, default=10_000_000, help="flows in all (default ten million)")
    parser.add_argument("--protocol", default="xcp", help="their protocol (default xcp)")
    parser.add_argument("--duration", default="5s", help="of the run (default 5s)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of cores (default 1)")
    args = parser.parse_args()
    if args.k < 2 or args.k % 2 or args.flows < args.k**3 // 4:
        parser.error("K is an even number, and there is a flow per host at least")
    print(scenario(args.k, args.flows, args.protocol, args.duration, args.seed))


if __name__ == "__main__":
    main()
