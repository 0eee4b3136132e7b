"""Write the table of XCP-i's laws for edges that share a bottleneck into docs/howto/xcp-i.md.

    python scripts/shared_edges.py [--jobs 2] [--print]

Two or eight pairs of XCP-i routers cross one cloud, whose link of 30 Mbit/s they share. Each cell is one run, of the
whole of which drops are counted; rates and Jain's index are of its last 20 s. `--print` leaves the page alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import explicate
from explicate.summary import jain_index

PAGE = Path(__file__).resolve().parent.parent / "docs" / "howto" / "xcp-i.md"
LAWS = ("paper", "capacity", "shared")
CAPACITY, CROSS = 30.0, 12.0
"""Rate of the shared link and of other traffic, Mbit/s."""
MULTIPLE = 10.0
"""The default of `spare_multiple`."""
LAST_S = 20
LATE_S = 10


@dataclass(frozen=True)
class Scene:
    """Edges, whether they start one after another, and whether round trips differ and other traffic comes."""

    edges: int
    late: bool
    mixed: bool = False

    @property
    def seconds(self) -> int:
        """The simulated time."""
        return 180 if self.late else 60

    @property
    def expected(self) -> float:
        """The sum of all rates at the law's fixed point, Mbit/s."""
        stiffness = MULTIPLE * self.edges
        return (CAPACITY - CROSS * self.mixed) * stiffness / (1 + stiffness)

    def delay_ms(self, path: int) -> float:
        """The delay of each of the four links of a path outside the cloud."""
        return 2 + 30 * path / (self.edges - 1) if self.mixed else 4.0


SCENES = (
    Scene(2, late=False),
    Scene(2, late=True),
    Scene(2, late=True, mixed=True),
    Scene(8, late=False),
    Scene(8, late=True),
    Scene(8, late=True, mixed=True),
)


def links(scene: Scene) -> Iterator[tuple[str, str, float, float]]:
    """Yield the links: both ends, Mbit/s, ms."""
    yield "c1", "c2", CAPACITY, 10.0
    for path in range(scene.edges):
        for one, other in ((f"s{path}", f"a{path}"), (f"a{path}", "c1"), ("c2", f"b{path}"), (f"b{path}", f"d{path}")):
            yield one, other, 80.0, scene.delay_ms(path)
    if scene.mixed:
        yield "x", "c1", 80.0, 5.0
        yield "c2", "y", 80.0, 5.0


def scenario(scene: Scene, law: str) -> str:
    """Return the scenario: hosts s, d, x, y never drop, c1 and c2 are plain routers."""
    lines = [f'duration = "{scene.seconds}s"\nwarmup = "{scene.seconds - LAST_S}s"']
    cables = list(links(scene))
    lines += [f'[[node]]\nname = "{node}"' for node in dict.fromkeys(end for cable in cables for end in cable[:2])]
    for one, other, rate, delay in cables:
        for source, target in ((one, other), (other, one)):
            router = '"none"' if source[0] in "cxy" else f'{{ kind = "xcp_i", law = "{law}" }}'
            queue = "" if source[0] in "sdxy" else 'queue = { kind = "droptail", limit = "0.5bdp" }\n'
            lines.append(
                f'[[link]]\nfrom = "{source}"\nto = "{target}"\nrate = "{rate}Mbit/s"\ndelay = "{delay}ms"\n'
                f"router = {router}\n{queue}"
            )
    for path in range(scene.edges):
        lines.append(
            f'[[flows]]\nname = "f{path}"\nprotocol = "xcp_i"\nparams = {{ guard = "off" }}\npacket = "1000B"\n'
            f'from = "s{path}"\nto = "d{path}"\nstart = "{LATE_S * path * scene.late}s"'
        )
    if scene.mixed:
        lines.append(
            f'[[flows]]\nname = "cross"\nprotocol = "greedy"\nparams = {{ rate = "{CROSS}Mbit/s" }}\npacket = "1000B"\n'
            f'from = "x"\nto = "y"\nstart = "{LATE_S}s"'
        )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Outcome:
    """Jain's index, packets dropped, and the sum of all rates, Mbit/s."""

    jain: float
    drops: int
    mbps: float


def run(scene: Scene, law: str) -> Outcome:
    """Simulate a scene with a law."""
    results = explicate.run(scenario(scene, law))
    rates = results.flows.filter(pl.col("group").cast(pl.String) != "cross")["throughput_bps"].to_list()
    return Outcome(jain_index(rates), int(results.links["drops_total"].sum()), sum(rates) / 1e6)


def table(outcomes: Sequence[Sequence[Outcome]]) -> Iterator[str]:
    """Yield the lines of the table, of the outcomes of each scene with each law."""
    head = [f"`{law}`: Jain, drops" for law in LAWS]
    names = ["edges", "start", *head, "`shared`: Mbit/s in all, and by the formula"]
    for cells in (names, ["---"] * len(names)):
        yield "| " + " | ".join(cells) + " |"
    for scene, row in zip(SCENES, outcomes, strict=True):
        what = f"{scene.edges}{', round trips' if scene.mixed else ''}"
        start = f"{LATE_S} s apart" if scene.late else "together"
        said = [f"{one.jain:.3f}, {one.drops}" for one in row]
        yield f"| {' | '.join([what, start, *said, f'{row[-1].mbps:.2f}, {scene.expected:.2f}'])} |"


def renewed(page: str, lines: Sequence[str]) -> str:
    """Return the page with the table between its marks; raise SystemExit if it has none."""
    text = "\n".join(["<!-- shared-edges:begin -->", *lines, "<!-- shared-edges:end -->"])
    made, times = re.subn(r"<!-- shared-edges:begin -->.*?<!-- shared-edges:end -->", lambda _: text, page, flags=re.S)
    if times != 1:
        raise SystemExit(f"{PAGE.name} has {times} tables between the marks shared-edges")
    return made


def main() -> None:
    """Run all scenes, and write or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at a time")
    parser.add_argument("--print", action="store_true", help="leave the page alone")
    args = parser.parse_args()
    with ThreadPoolExecutor(args.jobs) as pool:
        pending = [[pool.submit(run, scene, law) for law in LAWS] for scene in SCENES]
        lines = list(table([[one.result() for one in row] for row in pending]))
    print("\n".join(lines))
    if not args.print:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), lines), encoding="utf-8")


if __name__ == "__main__":
    main()
