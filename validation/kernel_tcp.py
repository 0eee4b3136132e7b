"""Compare the simulator's TCP with the kernel's, scene by scene, as `kernel_record.py` has recorded it.

    python validation/kernel_tcp.py [--set KEY=VALUE] [--scene NAME] [--seeds 20] [--jobs N] [--check]
    python validation/kernel_tcp.py --hidden      # of the hidden third, only how many cells pass

Prints a table: for each scene and figure the kernel's median and range over its runs, and those of the simulator over
its seeds; and why a cell is outside its bound, from `kernel/causes.toml`. `--check` fails if that lists other cells
than are outside, or if fewer cells pass than are wanted, of all or of a column.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from kernel_scenes import Scene, all_scenes, figures

FOLDER = Path(__file__).with_name("kernel")
LEAST_ROUNDS = 60
"""Shares of flows are compared where they have had as many round trips, queue included."""
WANTED, WANTED_EACH = 0.95, 0.85
"""Share of cells that has to pass: of all, and of each column."""
ALL = "all cells"


@dataclass(frozen=True)
class Bound:
    """How far a median may be from the kernel's: by a factor, or an absolute difference."""

    title: str
    factor: float = 1.0
    absolute: float = 0.0

    def holds(self, theirs: float, ours: float) -> bool:
        """Whether ours is near enough."""
        low, high = sorted((theirs, ours))
        return high - low <= self.absolute or (low > 0 and high <= self.factor * low)


@dataclass(frozen=True)
class Share(Bound):
    """A relative difference, of the kernel's figure."""

    def holds(self, theirs: float, ours: float) -> bool:
        """Whether ours is near enough."""
        return abs(ours - theirs) <= (self.factor - 1) * abs(theirs) + 1e-12


BOUNDS: dict[str, Bound] = {
    "goodput_mbps": Share("goodput, Mbit/s", 1.05),
    "queue_ms": Share("queueing delay, ms", 1.15),
    "drops": Bound("drops", 1.5, 30),
    "retransmissions": Bound("retransmissions", 2, 50),
    "timeouts_per_flow": Bound("timeouts a flow", 2, 0.2),
    "jain": Bound("Jain"),
    "completion_s": Share("completion, s", 1.15),
}
"""The bounds by figure, written before the comparison."""


def column(figure: str) -> str:
    """Return the column of a figure: a group's goodput belongs to that of all."""
    return figure.partition(".")[0]


def passes(figure: str, theirs: Sequence[float], ours: Sequence[float]) -> bool:
    """Return whether the medians are within the bound, or the ranges overlap.

    Where the kernel never timed out, only the mean over our seeds counts: one run of ours without a timeout would make
    the ranges overlap.
    """
    name = column(figure)
    if name == "timeouts_per_flow":
        if max(theirs) == 0:
            return fmean(ours) <= BOUNDS[name].absolute
        if BOUNDS[name].holds(fmean(theirs), fmean(ours)):
            return True
    elif name != "jain" and BOUNDS[name].holds(median(theirs), median(ours)):
        return True
    return min(theirs) <= max(ours) and min(ours) <= max(theirs)


@dataclass(frozen=True)
class Cell:
    """A figure of a scene, for each run of the kernel and each seed of ours."""

    scene: str
    figure: str
    theirs: Sequence[float]
    ours: Sequence[float]

    @property
    def passed(self) -> bool:
        """Whether it is within its bound."""
        return passes(self.figure, self.theirs, self.ours)

    def text(self) -> str:
        """Medians and ranges; bold if outside."""

        def side(values: Sequence[float]) -> str:
            low, high = min(values), max(values)
            return f"{median(values):.4g}" + (f" ({low:.3g} to {high:.3g})" if low < high else "")

        text = f"{side(self.theirs)} / {side(self.ours)}"
        return text if self.passed else f"**{text}**"


def rounds(scene: Scene, queue_ms: float) -> float:
    """Return how many round trips a scene has, with this queueing delay."""
    return 1000 * scene.duration_s / (scene.rtt_ms + queue_ms)


def compared(scene: Scene, recorded: Mapping[str, Any], ours: Sequence[Mapping[str, float]]) -> list[Cell]:
    """Return the cells of a scene."""
    theirs = [run["figures"] for run in recorded["runs"]]
    names = list(theirs[0])
    if rounds(scene, median(run["queue_ms"] for run in theirs)) < LEAST_ROUNDS:
        names = [name for name in names if name != "jain"]
    return [Cell(scene.name, n, [run[n] for run in theirs], [run[n] for run in ours]) for n in names]


def setting(word: str) -> tuple[str, str]:
    """Return the key and the value of an override."""
    key, given, value = word.partition("=")
    if not given:
        raise argparse.ArgumentTypeError(f"{word} is not KEY=VALUE")
    return key, value


def simulated(scene: Scene, seeds: int, jobs: int, settings: Sequence[tuple[str, str]]) -> list[dict[str, float]]:
    """Return the figures of each seed. Their timeouts include those of SYNs."""
    import explicate  # noqa: PLC0415  (the logic above needs no compiled part)

    # The lab's namespaces have no queue.
    queues = [(f"flows.{group.name}.params.host_queue", "none") for group in scene.groups]
    results = explicate.run(scene.scenario(), runs=seeds, jobs=jobs, set=[*queues, *settings])
    flows, links = results.flows.to_dicts(), results.links.to_dicts()
    of_run = lambda rows, run: [row for row in rows if row["run"] == run]  # noqa: E731
    return [figures(scene, of_run(flows, run), of_run(links, run)) for run in range(seeds)]


def recordings(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what is recorded, by scene."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def share(cells: Iterable[Cell]) -> tuple[int, int]:
    """Return how many cells pass, and how many there are."""
    verdicts = [cell.passed for cell in cells]
    return sum(verdicts), len(verdicts)


@dataclass(frozen=True)
class Cause:
    """Why a cell is outside, as found by changing one thing, and its figure with and without that change."""

    scene: str
    column: str
    cause: str
    changed: str
    kernel: float
    before: float
    after: float

    def text(self) -> str:
        """What its row says."""
        figures_ = f"{self.before:g}, then {self.after:g}; kernel {self.kernel:g}"
        return f"{BOUNDS[self.column].title}: {self.cause} ({self.changed}: {figures_})"


def read_causes(path: Path) -> list[Cause]:
    """Return the causes in a file; none if there is no file."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["cause"] if path.exists() else []
    return [Cause(**entry) for entry in entries]


def contradictions(cells: Sequence[Cell], causes: Sequence[Cause]) -> list[str]:
    """Return which cells outside have no cause, and which causes are of no cell outside, in the scenes of the cells."""
    outside = {(cell.scene, column(cell.figure)) for cell in cells if not cell.passed}
    scenes = {cell.scene for cell in cells}
    explained = [(cause.scene, cause.column) for cause in causes if cause.scene in scenes]
    return [
        *(
            f"{scene}, {name}: outside its bound, and causes.toml has no cause"
            for scene, name in sorted(outside - set(explained))
        ),
        *(
            f"{scene}, {name}: causes.toml has a cause, but it is not outside"
            for scene, name in sorted(set(explained) - outside)
        ),
        *(
            f"{scene}, {name}: causes.toml has two causes"
            for scene, name in sorted({e for e in explained if explained.count(e) > 1})
        ),
    ]


def columns(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Return the cells by column."""
    return {name: [c for c in cells if column(c.figure) == name] for name in BOUNDS}


def summary(cells: Sequence[Cell]) -> list[str]:
    """Return the lines that say how many cells of each column pass, and of all."""
    lines = ["| column | pass | of |", "| --- | --- | --- |"]
    for name, some in columns(cells).items():
        passed, count = share(some)
        lines.append(f"| {BOUNDS[name].title} | {passed} | {count} |")
    passed, count = share(cells)
    return [*lines, f"| **all** | {passed} | {count} |"]


def table(cells: Sequence[Cell], causes: Sequence[Cause]) -> list[str]:
    """Return the table of scenes: kernel / simulator in each cell, and the cause of what is outside."""
    heads = ["scene", *(bound.title for bound in BOUNDS.values()), "because"]
    lines = ["| " + " | ".join(heads) + " |", "| --- " * len(heads) + "|"]
    for scene in dict.fromkeys(cell.scene for cell in cells):
        own = columns([cell for cell in cells if cell.scene == scene])
        texts = ["; ".join(cell.text() for cell in some) for some in own.values()]
        lines.append(
            "| "
            + " | ".join([scene, *texts, "; ".join(cause.text() for cause in causes if cause.scene == scene)])
            + " |"
        )
    return lines


def short_of(cells: Sequence[Cell]) -> list[str]:
    """Return where fewer cells pass than wanted."""
    found = []
    for name, wanted, some in [
        (ALL, WANTED, cells),
        *((BOUNDS[name].title, WANTED_EACH, some) for name, some in columns(cells).items()),
    ]:
        passed, count = share(some)
        if passed < wanted * count:
            found.append(f"{name}: {passed} of {count} pass, {wanted:.0%} are wanted")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenes, and print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--set", action="append", default=[], type=setting, metavar="KEY=VALUE", help="override of every scenario"
    )
    parser.add_argument("--scene", action="append", metavar="NAME", help="this scene alone; may be repeated")
    parser.add_argument("--seeds", type=int, default=20, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--hidden", action="store_true", help="how many cells of the hidden third pass; nothing else")
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail if fewer cells pass than wanted, or if a cell outside has no cause",
    )
    options = parser.parse_args(argv)
    folder = FOLDER / "hidden" if options.hidden else FOLDER
    recorded = recordings(folder)
    scenes = {scene.name: scene for scene in all_scenes()}
    if unknown := set(options.scene or ()) - set(recorded):
        parser.error(f"no recording of {min(unknown)} in {folder}")
    if not recorded:
        parser.error(f"no recordings in {folder}; `make kernel-peers` makes them, as root")
    cells = []
    began = time.process_time()
    for name, found in recorded.items():
        if options.scene and name not in options.scene:
            continue
        if name not in scenes or found["scenario"] != scenes[name].scenario():
            parser.error(f"{folder / name}.json is of another scenario than kernel_scenes.py has; record it again")
        try:
            ours = simulated(scenes[name], options.seeds, options.jobs, options.set)
        except (ValueError, RuntimeError) as error:
            parser.error(f"{name}: {error}")
        cells += compared(scenes[name], found, ours)
    cost = time.process_time() - began
    causes = [] if options.hidden else read_causes(FOLDER / "causes.toml")
    if not options.hidden:
        print("\n".join(table(cells, causes)))
        print()
    print("\n".join(summary(cells)))
    count = len({cell.scene for cell in cells})
    print(f"\n{count} scenes, {options.seeds} seeds, {cost:.0f} s of CPU", file=sys.stderr)
    wanting = short_of(cells)
    wrong = [] if options.hidden else contradictions(cells, causes)
    for line in [*wanting, *wrong]:
        print(line, file=sys.stderr)
    return 1 if options.check and (wanting or wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
