"""What paper I's experiments share: links, flows, and the parameters that its text leaves out (``choices.toml``)."""

from __future__ import annotations

from collections.abc import Iterable

from explicate.papers.study import Effort


def link(effort: Effort, ends: tuple[str, str], rate_mbps: float, *, router: str = "auto", limited: bool = True) -> str:
    """Return a pair of links; `router` is what controls them, a host's own (not `limited`) never drops."""
    choices = effort.choices
    queue = f'queue = {{ kind = "droptail", limit = "{choices["I-P3"]}" }}\nrouter = "{router}"\n' if limited else ""
    return (
        f'[[link]]\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nduplex = true\nrate = "{rate_mbps:g}Mbit/s"\n'
        f'delay = "{choices["I-P1"]}"\n{queue}'
    )


def flow(effort: Effort, name: str, protocol: str, ends: tuple[str, str], start: str = "0s") -> str:
    """Return a bulk flow."""
    return (
        f'[[flows]]\nname = "{name}"\nprotocol = "{protocol}"\npacket = "{effort.choices["I-P2"]}"\n'
        f'from = "{ends[0]}"\nto = "{ends[1]}"\nstart = "{start}"\n'
    )


def scenario(effort: Effort, name: str, nodes: Iterable[str], parts: Iterable[str], every: str = "100ms") -> str:
    """Return a whole scenario file, sampled `every` so often."""
    head = f'name = "{name}"\nduration = "{effort.seconds:g}s"\n'
    sampling = f'[sampling]\nevery = "{every}"\nof = ["queue", "throughput", "cwnd"]\n'
    named = "".join(f'[[node]]\nname = "{node}"\n' for node in nodes)
    return "\n".join([head, sampling, named, *parts])
