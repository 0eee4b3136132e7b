"""What is carried over which path, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .net import Line, Net
from .ways import Way

KERNEL = ("gateway", "bbr", "cubic")
ALL = (*KERNEL, "haproxy bbr", "haproxy cubic", "kcptun")
Figures = dict[str, float]
# Medians of a figure by way: whether what is wanted holds.
Holds = Callable[[dict[str, float]], bool]


@dataclass(frozen=True)
class Wanted:
    """What is wanted of the gateway's median; a way that it is compared with may be missing."""

    text: str
    holds: Holds

    def verdict(self, medians: dict[str, float]) -> str:
        """What is wanted, and whether it holds."""
        try:
            return self.text + (": yes" if self.holds(medians) else ": **no**")
        except KeyError:
            return f"{self.text}: not run"


def at_least(least: float, text: str) -> Wanted:
    """Not less than so much."""
    return Wanted(f"≥ {text}", lambda of: of["gateway"] >= least)


def at_most(most: float, text: str) -> Wanted:
    """Not more than so much."""
    return Wanted(f"≤ {text}", lambda of: of["gateway"] <= most)


def beside(way: str, factor: float, text: str, less: bool = True) -> Wanted:
    """So much of another way's."""
    if less:
        return Wanted(f"≤ {text}", lambda of: of["gateway"] <= factor * of[way])
    return Wanted(f"≥ {text}", lambda of: of["gateway"] >= factor * of[way])


@dataclass(frozen=True)
class Case:
    """A case: `measure` makes one run and returns its figures."""

    name: str
    line: Line
    measure: Callable[[Run], Figures]
    wanted: dict[str, Wanted]
    files: tuple[tuple[str, int], ...] = ()
    ways: tuple[str, ...] = ALL
    sites: int = 1
    connections: int = 1
    # Of what is carried without an end; a transfer of files stops after `most`.
    seconds: float = 30.0
    most: float = 120.0
    # The rate of the line as it changes, for the link and the gateway's port: seconds until the end of each, bit/s.
    steps: tuple[tuple[float, float], ...] = ()


@dataclass
class Run:
    """A run: the network is there, the link forwards, and the way is open."""

    case: Case
    net: Net
    way: Way
    law: str


def page() -> tuple[tuple[str, int], ...]:
    """40 objects, 2.5 MB in all: a few large, many small."""
    sizes = (
        [8_000 + 2_000 * (i % 10) for i in range(30)] + [100_000] * 5 + [200_000, 250_000, 300_000, 350_000, 390_000]
    )
    return tuple((f"object{i}", size) for i, size in enumerate(sizes))
