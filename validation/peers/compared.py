"""Compare with ns-2 2.35: all settings in one table, each figure judged by the bounds of `bounds.toml`.

    python3 validation/peers/compared.py [--recorded docs/validation.md] [--markdown docs/validation.md]
        [--group NAME] [--smoke]

Groups: steady XCP, TCP over drop-tail, RED and REM, small buffers, settings with timeouts, unequal round trips, and the
three cases of paper I's figure 2. The table omits no figure; one outside its bound is bold.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import aqm
import droptail
import peers
import report
from figure2 import CASES as FIGURE_2
from figure2 import Figure2
from simulators import (
    PACKET_BYTES,
    XCP_PARAMS,
    XCP_ROUTER,
    Case,
    Explicate,
    Ns2,
    PeerError,
    dropped,
    explicate_scenario,
    header_bytes,
    jain,
    run,
)

BOUNDS = Path(__file__).with_name("bounds.toml")
Figures = Mapping[str, float]
"""A figure by its name in `bounds.toml`."""


@dataclass(frozen=True)
class Bound:
    """How far a figure may be from ns-2's."""

    title: str
    reason: str
    absolute: float = 0.0
    relative: float = 0.0
    percent: bool = False

    def holds(self, theirs: float, ours: float) -> bool:
        """Whether ours is near enough to theirs."""
        return abs(ours - theirs) <= max(self.absolute, self.relative * abs(theirs))

    def show(self, value: float) -> str:
        """A figure with four digits."""
        return f"{100 * value:.2f}" if self.percent else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"

    def words(self) -> str:
        """The allowed difference as text."""
        scale, unit = (100, " of a hundred") if self.percent else (1, "")
        parts = [f"{scale * self.absolute:g}{unit}"] if self.absolute else []
        return ", or ".join([*parts, *([f"{100 * self.relative:g} % of ns-2's"] if self.relative else [])])


def bounds(path: Path = BOUNDS) -> dict[str, Bound]:
    """The bounds by figure; raise PeerError for a file that is not that."""
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        found = {name: Bound(**values) for name, values in read.items()}
    except (OSError, TypeError, tomllib.TOMLDecodeError) as error:
        raise PeerError(f"{path}: {error}") from error
    for name, bound in found.items():
        if not bound.reason or max(bound.absolute, bound.relative) <= 0:
            raise PeerError(f"{path}: [{name}] needs a reason, and a bound above zero")
    return found


@dataclass(frozen=True)
class Group:
    """Settings of one kind; each runs with all seeds."""

    name: str
    settings: Mapping[str, Case | Figure2]
    seeds: Sequence[int]


def named(*cases: Case) -> dict[str, Case]:
    """Cases by their names."""
    return {f"{case.name}{'' if case.buffer is None else f', buffer {case.buffer}'}": case for case in cases}


def small(system: str, rate: int, rtt: int, flows: int, buffer: int) -> Case:
    """A dumbbell with a short buffer and random starts, 20 to 60 s; XCP is ns-2's, with Reno below it."""
    case = Case(system, rate, rtt, flows, buffer=buffer, starts="random", duration_s=60.0, warmup_s=20.0)
    return replace(case, ours="xcp/reno", params=XCP_PARAMS, router=XCP_ROUTER) if system == "xcp" else case


def unequal(system: str, rate: int, low: int, high: int) -> Case:
    """Thirty flows whose round trips are spread, 30 to 90 s."""
    return Case(system, rate, low, 30, high, starts="random", duration_s=90.0, warmup_s=30.0)


def shorter(cases: Mapping[str, Case]) -> dict[str, Case]:
    """The cases over 60 s after 40."""
    return {name: replace(case, duration_s=100.0, warmup_s=40.0) for name, case in cases.items()}


def alike(system: str) -> list[Case]:
    """The dumbbells of `peers.py` with equal round trips."""
    return [case for case in peers.CASES if case.system == system and case.rtt_high_ms is None]


TCP = ("newreno", "sack")
GROUPS = (
    Group("XCP, steady", named(*alike("xcp")), (1,)),
    Group("TCP over drop-tail", {**shorter(droptail.CASES), **named(*alike("sack"))}, (1, 2, 3)),
    Group("TCP over RED and REM", shorter(aqm.cases()), (1, 2, 3)),
    Group(
        "XCP, small buffers",
        named(*(small("xcp", 100, 80, 10, buffer) for buffer in (250, 100, 50)), small("xcp", 30, 100, 1, 100)),
        (1, 2, 3),
    ),
    Group(
        "TCP, small buffers",
        named(*(small(tcp, 100, 80, 10, buffer) for tcp in TCP for buffer in (250, 100, 50))),
        (1, 2, 3),
    ),
    Group(
        "settings with timeouts",
        named(
            *(small("xcp", 30, rtt, 1, 50) for rtt in (50, 100)),
            *(small("xcp", 10, 40, 20, buffer) for buffer in (10, 20)),
            *(small(tcp, 10, 40, 20, buffer) for tcp in TCP for buffer in (10, 20)),
        ),
        (1, 2, 3),
    ),
    Group(
        "unequal round trips",
        named(*(unequal(s, *shape) for s in ("xcp", *TCP) for shape in ((45, 40, 330), (60, 30, 500)))),
        (1, 2, 3),
    ),
    Group("paper I, figure 2", FIGURE_2, (1, 2, 3)),
)


def of_ns2(found: Mapping[str, Any]) -> dict[str, float]:
    """The figures in ns-2's output."""
    return {
        "utilisation": float(found["utilisation"]),
        "queue": float(found["queue_mean_packets"]),
        "drops": float(found["drops_measured"]),
        "jain": jain(found["goodput_bps"]),
        "goodput": sum(found["goodput_bps"]) / 1e6,
    }


def of_explicate(found: Mapping[str, Any], bottleneck: str, protocol: str) -> dict[str, float]:
    """The figures in Explicate's output; goodput with the headers, which ns-2's packets do not have."""
    link = next((link for link in found["links"] if link["link"] == bottleneck), None)
    if link is None:
        raise PeerError(f"Explicate reported no link {bottleneck}")
    goodput = [float(flow["goodput_bps"]) for flow in found["flows"]]
    whole = PACKET_BYTES / (PACKET_BYTES - header_bytes(protocol))
    return {
        "utilisation": float(link["utilisation"]),
        "queue": float(link["queue_mean_packets"]),
        "drops": float(dropped(link)),
        "jain": jain(goodput),
        "goodput": sum(goodput) * whole / 1e6,
    }


def measure_ns2(ns2: Ns2, setting: Case | Figure2) -> Figures:
    """ns-2's figures for one run."""
    whole = isinstance(setting, Figure2)
    return of_ns2(run(setting.ns2(ns2.command) if whole else ns2.arguments(stamped(setting)))[0])


def measure_ours(ours: Explicate, setting: Case | Figure2) -> Figures:
    """Explicate's figures for one run."""
    if isinstance(setting, Figure2):
        return of_explicate(ours.run_text(setting.scenario()), "r2->r3", setting.protocol)
    return of_explicate(ours.run_text(explicate_scenario(stamped(setting))), ours.bottleneck, setting.protocol)


def stamped(case: Case) -> Case:
    """The case with time stamps, as the chains of figure 2 have them."""
    return replace(case, time_stamps=True)


@dataclass(frozen=True)
class Recorded:
    """ns-2's figures as the section of a document has them: means over the seeds, four digits."""

    rows: Mapping[str, Sequence[str]]
    limits: Mapping[str, Bound]

    def figures(self, name: str) -> Figures:
        """ns-2's half of the cells of a setting."""
        cells = report.of_row(self.rows, name)
        theirs = [float(cell.strip("*").partition(" / ")[0]) for cell in cells[: len(self.limits)]]
        scaled = zip(self.limits.items(), theirs, strict=True)
        return {key: value / 100 if bound.percent else value for (key, bound), value in scaled}


def measure(ns2: Ns2 | Recorded, ours: Explicate, name: str, setting: Case | Figure2) -> tuple[Figures, Figures]:
    """The figures of ns-2 and Explicate for one run of the setting that is called `name`."""
    theirs = ns2.figures(name) if isinstance(ns2, Recorded) else measure_ns2(ns2, setting)
    return theirs, measure_ours(ours, setting)


@dataclass(frozen=True)
class Judged:
    """A setting: means over the seeds of each figure, ns-2's and ours."""

    name: str
    figures: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, name: str, runs: Sequence[tuple[Figures, Figures]]) -> Judged:
        """From the figures of each seed."""
        keys = runs[0][0]
        return cls(name, {key: (fmean(t[key] for t, _ in runs), fmean(o[key] for _, o in runs)) for key in keys})

    def within(self, limits: Mapping[str, Bound]) -> dict[str, bool]:
        """Which figures are within their bounds."""
        return {key: limits[key].holds(*pair) for key, pair in self.figures.items()}


def share(verdicts: Sequence[bool]) -> str:
    """How many hold."""
    return f"{sum(verdicts)} of {len(verdicts)}"


def rows(groups: Mapping[str, Sequence[Judged]], limits: Mapping[str, Bound]) -> list[list[str]]:
    """The table: for each group a line with its shares, then a line for each setting; the last line is the sum."""
    table = [["setting", *(bound.title for bound in limits.values()), "within bounds"]]

    def shares(title: str, settings: Sequence[Judged]) -> list[str]:
        verdicts = [setting.within(limits) for setting in settings]
        every = [verdict for of in verdicts for verdict in of.values()]
        cells = [share([of[key] for of in verdicts]) for key in limits]
        percent = f" ({100 * sum(every) / len(every):.0f} %)" if every else ""
        return [f"**{title}**", *cells, share(every) + percent]

    for name, settings in groups.items():
        table.append(shares(f"{name}: {len(settings)}", settings))
        for setting in settings:
            verdicts = setting.within(limits)
            cells = []
            for key, bound in limits.items():
                text = " / ".join(map(bound.show, setting.figures[key]))
                cells.append(text if verdicts[key] else f"**{text}**")
            table.append([setting.name, *cells, share(list(verdicts.values()))])
    table.append(shares("all", [setting for settings in groups.values() for setting in settings]))
    return table


def fragment(groups: Mapping[str, Sequence[Judged]], limits: Mapping[str, Bound]) -> str:
    """The section."""
    allowed = [[bound.title, bound.words(), bound.reason] for bound in limits.values()]
    return f"""\
All settings that are compared with ns-2 2.35. Cells have ns-2 / Explicate, means over the seeds after the warm-up;
**bold** is outside its bound. The bounds are in `validation/peers/bounds.toml`, which was written before the runs:

{report.markdown_table([["figure", "may differ by", "because"], *allowed])}

Neither simulator uses processing times. ns-2 ends a timer's back-off with the first new acknowledgement
(`ts_resetRTO_`), as Explicate does. That needs time stamps, with which ns-2's timer takes a sample of every
acknowledgement; Explicate's does so with `rto = "ns2_timestamps"`. With small buffers and in figure 2, Explicate's XCP
uses two rules of ns-2:
`{XCP_PARAMS}` at senders and `idle_rtt = "initial"` at routers ([why](#what-differed-from-ns-2-and-why)).

{report.markdown_table(rows(groups, limits))}

    python3 validation/peers/compared.py --markdown docs/validation.md"""


def smoke(group: Group) -> Group:
    """The first setting of a group with one seed, over a short time."""
    name, setting = next(iter(group.settings.items()))
    return replace(group, settings={name: replace(setting, duration_s=6.0, warmup_s=2.0)}, seeds=group.seeds[:1])


def chosen(names: Sequence[str] | None) -> list[Group]:
    """The groups of these names, or all."""
    unknown = set(names or ()) - {group.name for group in GROUPS}
    if unknown:
        raise PeerError(f"no group is called {min(unknown)!r}; there are: {'; '.join(g.name for g in GROUPS)}")
    return [group for group in GROUPS if not names or group.name in names]


def judge(group: Group, ns2: Ns2 | Recorded, ours: Explicate, jobs: int) -> list[Judged]:
    """Run a group's settings with all its seeds."""
    runs = [(name, replace(setting, seed=seed)) for name, setting in group.settings.items() for seed in group.seeds]
    with ThreadPoolExecutor(jobs) as threads:
        done = list(threads.map(lambda one: measure(ns2, ours, *one), runs))
    peers.progress(f"{group.name}: done")
    n = len(group.seeds)
    return [Judged.of(name, done[i * n : (i + 1) * n]) for i, name in enumerate(group.settings)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the groups, print the section, and fill it in."""
    parser = argparse.ArgumentParser(prog="compared", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--explicate", default=".venv/bin/explicate", metavar="COMMAND")
    parser.add_argument("--ns", default="ns", metavar="COMMAND")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--group", action="append", metavar="NAME", help="this group alone; may be repeated")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="take ns-2's figures from this document")
    parser.add_argument("--smoke", action="store_true", help="one short run of each group: do both sides run?")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="document whose section `compared` is replaced")
    options = parser.parse_args(argv)
    if options.markdown and (options.smoke or options.group):
        parser.error("--markdown wants all groups at full length")
    if options.recorded and options.smoke:
        parser.error("--recorded has the figures of full length")
    ours = Explicate(options.explicate)
    try:
        limits, groups = bounds(), chosen(options.group)
        recorded = options.recorded and Recorded(report.recorded(options.recorded, "compared"), limits)
        ns2 = recorded or Ns2(options.ns)
        judged = {g.name: judge(smoke(g) if options.smoke else g, ns2, ours, options.jobs) for g in groups}
        section = fragment(judged, limits)
        print(section)
        if options.markdown:
            report.place(options.markdown, section, "compared")
    except PeerError as error:
        print(f"compared: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
