"""Running a TCP dumbbell under ns-3: `dumbbell.cc`, compiled against Debian's libns3-dev on first use."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import simulators
from simulators import Case, Ns2, Outcome, PeerError

SOURCE = Path(__file__).with_name("dumbbell.cc")
PROGRAM = SOURCE.resolve().parents[2] / "out" / "peers" / "dumbbell-ns3"
MODULES = ("core", "network", "internet", "point-to-point", "applications")
PACKAGES = ("libns3-dev", "g++")
SYSTEMS = ("sack", "newreno")
"""The common protocols: ns-3 has no explicit one."""
UNKNOWN = ("-starts", "-queue", "-seed", "-overhead", "-opposite", "-reset")
"""Options of ns-2's script alone."""


class Ns3:
    name = "ns-3"

    def __init__(self, program: str | None = None, core: int | None = None) -> None:
        self.program, self.core = program, core

    def arguments(self, case: Case) -> list[str]:
        random = case.starts != "even" or case.processing_s
        if case.system not in SYSTEMS or case.queue.ns2 != "droptail" or random or case.opposite or case.time_stamps:
            raise PeerError(f"ns-3 has no {case.name}")
        # The twin has the same options, but neither a seed nor other queues: nothing is random in it.
        words = Ns2().arguments(case)[2:]
        pairs = zip(words[::2], words[1::2], strict=True)
        kept = [word for pair in pairs if pair[0] not in UNKNOWN for word in pair]
        return [self.program or str(compiled()), *kept]

    def measure(self, case: Case) -> Outcome:
        return Ns2.outcome(simulators.run(self.arguments(case), self.core)[0])

    def cost_command(self, case: Case, duration_s: float) -> list[str]:
        return [*self.arguments(replace(case, duration_s=duration_s, warmup_s=0.0)), "-sample", "0"]


def compiled() -> Path:
    """The program, compiled anew if its source is newer."""
    if PROGRAM.is_file() and PROGRAM.stat().st_mtime >= SOURCE.stat().st_mtime:
        return PROGRAM
    if shutil.which("g++") is None or not Path("/usr/include/ns3/core-module.h").is_file():
        raise PeerError(f"ns-3 needs {' and '.join(PACKAGES)} (--install brings them)")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-O2", "-std=c++17", "-Wall", str(SOURCE), "-o", str(PROGRAM)]
    done = subprocess.run(
        [*command, *(f"-lns3-{name}" for name in MODULES)], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise PeerError(f"{SOURCE.name} does not compile:\n{done.stderr[-2000:]}")
    return PROGRAM
