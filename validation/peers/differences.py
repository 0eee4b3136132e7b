"""Differences from ns-2 2.35 and their causes: experiments with one change in one of the simulators.

    python3 validation/peers/differences.py [--part NAME] [--jobs N] [--recorded docs/validation.md]
        [--markdown docs/validation.md]

Parts: `unequal` (round trips over drop-tail), `red` (one flow over RED), `small` (XCP over buffers that its start
overflows), `opposite` (flows in opposite directions), `lossy` (SACK and NewReno over a wire that loses packets),
`radios` (802.11 chains). The first takes a quarter of an hour. `lossy.tcl` and `radios.tcl` are the scripts for ns-2.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import aqm
import compared
import report
import seeds
from simulators import (
    PROCESSING,
    XCP_PARAMS,
    XCP_ROUTER,
    Case,
    Explicate,
    Ns2,
    PeerError,
    clock,
    dropped,
    explicate_scenario,
    jain,
    run,
)

HERE = Path(__file__).parent
PACKET_TIME_S = 1000 * 8 / 45e6
"""Transmission time of a packet at the bottleneck of part `unequal`: its longest processing time."""

Figures = tuple[float, float, float]
"""Jain's index, mean queue, drops of a dumbbell; or Mbit/s, timeouts, retransmissions of one flow."""


@dataclass(frozen=True)
class Dumbbell:
    """A dumbbell."""

    case: Case

    @property
    def fills(self) -> bool:
        """Whether the utilisation counts instead of the shares."""
        return self.case.flows == 1 or self.case.opposite

    def ns2(self, command: str, seed: int) -> Figures:
        """Jain's index or, for one flow or opposite directions, the utilisation; mean queue; drops."""
        case = replace(self.case, seed=seed)
        found = run(Ns2(command).arguments(case))[0]
        first = found["utilisation"] if self.fills else jain(found["goodput_bps"])
        return first, found["queue_mean_packets"], found["drops_measured"]

    def ours(self, explicate: Explicate, seed: int) -> Figures:
        """The same of Explicate."""
        case = replace(self.case, seed=seed)
        found = explicate.run_text(explicate_scenario(case))
        link = Explicate.link(found)
        first = link["utilisation"] if self.fills else jain([flow["goodput_bps"] for flow in found["flows"]])
        return first, link["queue_mean_packets"], dropped(link)


@dataclass(frozen=True)
class Flow:
    """One flow: options of ns-2's script, and the scenario's protocol and parameters."""

    script: str
    options: Mapping[str, object] = field(default_factory=dict)
    protocol: str = "sack"
    params: str = ""

    def ns2(self, command: str, seed: int) -> Figures:
        """Mbit/s with headers, timeouts, retransmissions."""
        pairs = [text for key, value in self.options.items() for text in (f"-{key}", f"{value}")]
        done = subprocess.run(
            [command, str(HERE / self.script), *pairs, "-seed", f"{seed}"], capture_output=True, text=True, check=False
        )
        line = next((line for line in done.stdout.splitlines() if line.startswith("result ")), None)
        if line is None:
            raise PeerError(f"{self.script} {' '.join(pairs)}: no result\n{done.stderr[-1000:]}")
        rate, timeouts, again = map(float, line.split()[1:])
        return rate, timeouts, again

    def ours(self, explicate: Explicate, seed: int) -> Figures:
        """The same of Explicate."""
        text = {"lossy.tcl": self.wire, "radios.tcl": self.chain}[self.script](seed)
        flow = explicate.run_text(text)["flows"][0]
        return flow["throughput_bps"] / 1e6, flow["timeouts"], flow["retransmissions"]

    def group(self, first: str, last: str) -> str:
        """The group of flows."""
        window = self.options.get("window", 200)
        stamps = self.options.get("timestamps") != "false"  # both scripts have them otherwise
        given = f"initial_window = 3, receiver_window = {window}, {clock(self.protocol, stamps)}"
        params = f"{given}, {self.params}" if self.params else given
        return f"""
[[flows]]
name = "f"
protocol = "{self.protocol}"
from = "{first}"
to = "{last}"
packet = "1500B"
params = {{ {params} }}
{PROCESSING}
"""

    def wire(self, seed: int) -> str:
        """The scenario that `lossy.tcl` mirrors."""
        loss = self.options.get("loss", 0.05)
        directions = (("a", "b", loss), ("b", "a", self.options.get("ackloss", loss)))
        links = "".join(
            f'[[link]]\nname = "{a}->{b}"\nfrom = "{a}"\nto = "{b}"\nrate = "25Mbit/s"\ndelay = "1.5ms"\n'
            f'queue = "unlimited"\nchannel = [{{ kind = "random_loss", rate = {rate} }}]\n'
            for a, b, rate in directions
        )
        nodes = '[[node]]\nname = "a"\n[[node]]\nname = "b"\n'
        return f'stack = "ns2"\nduration = "100s"\nseed = {seed}\n{nodes}{links}{self.group("a", "b")}'

    def chain(self, seed: int) -> str:
        """The scenario that `radios.tcl` mirrors."""
        stations, capacity, loss = (
            self.options.get(key, other) for key, other in (("stations", 2), ("capacity", 54), ("loss", 0))
        )
        lossy = "".join(
            f'[[link]]\nname = "n{a}->n{b}"\nchannel = [{{ kind = "random_loss", rate = {loss}, place = "kernel" }}]\n'
            for i in range(1, int(str(stations)))
            for a, b in ((i, i + 1), (i + 1, i))
        )
        return f"""stack = "ns2"
duration = "60s"
seed = {seed}
[[medium]]
name = "air"
rate = "54Mbit/s"
control_rate = "24Mbit/s"
rts_threshold = "0B"
cca_time = "0us"
capture = "ns2"
capacity = "{capacity}Mbit/s"
queue = {{ limit = "100pkt" }}
layout = {{ kind = "chain", stations = {stations}, spacing = "200m" }}
{lossy if loss else ""}{self.group("n1", f"n{stations}")}"""


Setting = Dumbbell | Flow


@dataclass(frozen=True)
class Part:
    """Settings with the same figures, each with its number of seeds."""

    heads: tuple[str, str, str]
    digits: tuple[int, int, int]
    settings: Mapping[str, tuple[Setting, int]]


def unequal() -> dict[str, tuple[Setting, int]]:
    """Thirty flows, 40 to 330 ms, over drop-tail: two spans, without and with processing time."""
    made: dict[str, tuple[Setting, int]] = {}
    for system, name in aqm.SYSTEMS.items():
        case = Case(system, 45, 40, 30, 330, starts="random")
        for warmup, duration, processing, count in ((30, 80, 0.0, 8), (200, 400, 0.0, 6), (200, 400, PACKET_TIME_S, 4)):
            span = replace(case, warmup_s=float(warmup), duration_s=float(duration), processing_s=processing)
            taken = "at most a packet's time" if processing else "none"
            made[f"{name}, {warmup} to {duration} s, processing {taken}"] = Dumbbell(span), count
    return made


def red() -> dict[str, tuple[Setting, int]]:
    """One flow over RED 5/15."""
    made: dict[str, tuple[Setting, int]] = {}
    for system, name in aqm.SYSTEMS.items():
        case = Case(system, 30, 100, 1, starts="random", warmup_s=30.0, duration_s=130.0, queue=aqm.CLASSIC)
        made[name] = Dumbbell(case), 10
    return made


def small() -> dict[str, tuple[Setting, int]]:
    """One flow of XCP over buffers that its start overflows: ns-2's two rules, one at a time."""
    made: dict[str, tuple[Setting, int]] = {}
    for rtt, buffer in ((50, 50), (100, 50), (100, 100)):
        both = compared.small("xcp", 30, rtt, 1, buffer)
        for name, change in (
            ("", {"params": "", "router": '"auto"'}),
            (", no feedback of duplicates in both", {"router": '"auto"'}),
            (", 50 ms after an idle interval in both", {"params": ""}),
            (", both rules in both", {}),
        ):
            case = compared.stamped(replace(both, **change))
            made[f"{rtt} ms, buffer {buffer}{name}"] = Dumbbell(case), 6
        if (rtt, buffer) == (100, 50):
            case = compared.stamped(replace(both, rtt_resolution="1ms"))
            made[f"{rtt} ms, buffer {buffer}, both rules and ticks of 1 ms in both"] = Dumbbell(case), 6
    return made


def opposite() -> dict[str, tuple[Setting, int]]:
    """Flows in opposite directions, which compress each other's acknowledgements."""
    made: dict[str, tuple[Setting, int]] = {}
    for system, name in (("xcp", "XCP"), ("newreno", "NewReno")):
        for flows in (2, 10, 40):
            case = Case(system, 16, 124, flows, starts="random", duration_s=60.0, opposite=True, processing_s=0.0005)
            made[f"{name}, {flows // 2} a direction"] = Dumbbell(case), 6
            if system == "xcp":
                both = replace(case, ours="xcp/reno", params=XCP_PARAMS, router=XCP_ROUTER)
                made[f"{name}, {flows // 2} a direction, ns-2's two rules in both"] = Dumbbell(both), 6
    return made


PIPE = 'pipe = "acknowledgements"'
DROPS = "follow_duplicates = false"
KARN = 'backoff_until = "fresh_segment"'


def lossy() -> dict[str, tuple[Setting, int]]:
    """SACK and NewReno over a wire that loses packets and acknowledgements."""
    made: dict[str, tuple[Setting, int]] = {}
    for loss, back in ((0.01, 0.01), (0.025, 0.025), (0.05, 0.05), (0.05, 0), (0.1, 0.1)):
        way = "each way" if back else "of data alone"
        options: dict[str, object] = {"loss": loss, "ackloss": back}
        name = f"SACK, {100 * loss:g} % {way}"
        made[name] = Flow("lossy.tcl", options), 6
        made[f"{name}, ns-2's pipe in both"] = Flow("lossy.tcl", options, params=PIPE), 6
    made["SACK, 5 % each way, back-off kept in both"] = Flow("lossy.tcl", {"reset": "false"}, params=KARN), 6
    newreno = {"agent": "Newreno"}
    made["NewReno, 5 % each way"] = Flow("lossy.tcl", newreno, "newreno"), 6
    made["NewReno, 5 % each way, ns-2 less careful"] = Flow("lossy.tcl", {**newreno, "careful": "false"}, "newreno"), 6
    return made


def radios() -> dict[str, tuple[Setting, int]]:
    """SACK with losses and XCP without, along chains of radios."""
    made: dict[str, tuple[Setting, int]] = {}
    for stations, loss in ((2, 0.025), (2, 0.05), (3, 0.025), (3, 0.05)):
        options: dict[str, object] = {"stations": stations, "loss": loss}
        name = f"SACK, {stations} stations, {100 * loss:g} % at each kernel"
        made[name] = Flow("radios.tcl", options), 6
        made[f"{name}, ns-2's pipe in both"] = Flow("radios.tcl", options, params=PIPE), 6
    for stations, window in ((2, 200), (3, 200), (4, 200), (2, 1000), (4, 1000)):
        options = {"agent": "Reno/XCP", "stations": stations, "window": window}
        name = f"XCP, capacity 54 Mbit/s, {stations} stations, window {window}"
        made[name] = Flow("radios.tcl", options, "xcp/reno"), 6
        made[f"{name}, no feedback of duplicates in both"] = Flow("radios.tcl", options, "xcp/reno", DROPS), 6
        kept = {**options, "timestamps": "false", "reset": "false"}
        made[f"{name}, and back-off kept in both"] = Flow("radios.tcl", kept, "xcp/reno", f"{DROPS}, {KARN}"), 6
    return made


DUMBBELL_HEADS = ("Jain's index", "mean queue, packets", "drops")
FLOW_HEADS = ("Mbit/s", "timeouts", "retransmissions")
PARTS: Mapping[str, Part] = {
    "unequal": Part(DUMBBELL_HEADS, (3, 0, 0), unequal()),
    "red": Part(("utilisation", *DUMBBELL_HEADS[1:]), (3, 2, 1), red()),
    "small": Part(("utilisation", *DUMBBELL_HEADS[1:]), (3, 2, 0), small()),
    "opposite": Part(("utilisation", *DUMBBELL_HEADS[1:]), (3, 1, 0), opposite()),
    "lossy": Part(FLOW_HEADS, (2, 0, 0), lossy()),
    "radios": Part(FLOW_HEADS, (2, 0, 0), radios()),
}


Threads = Callable[[Callable[[int], Figures], Sequence[int]], list[Figures]]
"""Gives the figures of each seed."""
Known = Mapping[str, Sequence[str]]
"""The rows of a recorded table by their first cells."""


def table(part: Part, ns2: str | Known, explicate: Explicate, threads: Threads) -> str:
    """Run a part: mean and standard deviation of each figure, ns-2's and ours; ns-2's may be recorded."""
    rows = []
    for name, (setting, count) in part.settings.items():
        every = range(1, count + 1)

        def theirs(seed: int, one: Setting = setting) -> Figures:
            assert isinstance(ns2, str)
            return one.ns2(ns2, seed)

        def ours(seed: int, one: Setting = setting) -> Figures:
            return one.ours(explicate, seed)

        known = texts(part, threads(theirs, every)) if isinstance(ns2, str) else report.of_row(ns2, name)[1::2]
        pairs = zip(known, texts(part, threads(ours, every)), strict=True)
        cells = [(cell, "-" if cell == "-" else mine) for cell, mine in pairs]
        rows.append([name, f"{count}", *(cell for pair in cells for cell in pair)])
    heads = [text for head in part.heads for text in (f"{head}, ns-2", "Explicate")]
    return report.markdown_table([["setting", "seeds", *heads], *rows])


def texts(part: Part, runs: Sequence[Figures]) -> list[str]:
    """The cells of one simulator, from the figures of each seed."""
    return [seeds.text([one[i] for one in runs], digits) for i, digits in enumerate(part.digits)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts, print their tables, and fill them in as sections `differences-NAME`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--explicate", default=".venv/bin/explicate", metavar="COMMAND")
    parser.add_argument("--ns", default="ns", metavar="COMMAND")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--part", choices=list(PARTS), action="append", help="this part alone; may be repeated")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="take ns-2's figures from this document")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="document whose sections are replaced")
    options = parser.parse_args(argv)
    explicate = Explicate(options.explicate)
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            for name in options.part or PARTS:
                section = f"differences-{name}"
                ns2 = report.recorded(options.recorded, section) if options.recorded else options.ns
                made = table(PARTS[name], ns2, explicate, lambda work, cases: list(pool.map(work, cases)))
                print(f"{name}\n\n{made}\n", flush=True)
                if options.markdown:
                    report.place(options.markdown, made, section)
    except PeerError as error:
        print(f"differences: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
