"""Runs a program under valgrind's callgrind and reads its counts, instruction by instruction.

Only functions that match `SPAN` and their callees are counted: of `engine_cost` the requested span of simulated time,
without set-up and start.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared import ROOT

ENGINE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/engine_cost"
SPAN = "*counted_span*"


class CountError(RuntimeError):
    """The program rejected its input, or callgrind did not count it."""


@dataclass(frozen=True)
class Counted:
    """The output of a run, and its instructions by object file and address."""

    told: dict[str, Any]
    counts: Counter[tuple[str, int]]

    def inside(self, program: Path) -> int:
        """Instructions of the program, without libraries."""
        return sum(count for (place, _), count in self.counts.items() if Path(place).name == program.name)

    def total(self) -> int:
        """All instructions, the C library's too."""
        return self.counts.total()


def build_engine() -> None:
    """Build the program that is counted."""
    build = ["cargo", "build", "--release", "--quiet", "--package", "explicate-sim", "--example", ENGINE.name]
    subprocess.run(build, check=True, cwd=ROOT)


def count(program: Path, arguments: Sequence[str | Path]) -> Counted:
    """Return the cost of a run; raise CountError with the program's message if it fails."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "callgrind.out"
        options = [f"--toggle-collect={SPAN}", "--dump-instr=yes", f"--callgrind-out-file={out}"]
        command = ["valgrind", "--tool=callgrind", *options, program, *arguments]
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            sys.exit("valgrind is missing: `make packages` installs it")
        if done.returncode != 0 or not out.exists():
            raise CountError(re.sub(r"==\d+==.*\n?", "", done.stderr).strip())
        counts = Counter[tuple[str, int]]()
        for place_of, address, cost in costs(out.read_text(encoding="utf-8").splitlines()):
            counts[place_of, address] += cost
    if not counts:
        raise CountError(f"callgrind found no function like {SPAN} in {program.name}")
    return Counted(json.loads(done.stdout), counts)


def costs(lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield object file, address and own cost of every line of callgrind's output, without the cost of calls.

    The output has each name once, then its number; addresses are distances to the one before.
    """
    names: dict[str, str] = {}
    place, address, of_call = "", 0, False
    for line in lines:
        if line.startswith(("ob=", "cob=")):
            number, _, name = line.partition("=")[2].partition(" ")
            name = names.setdefault(number, name)
            place = name if line.startswith("ob=") else place
        elif line.startswith("calls="):
            of_call = True
        elif line[:1] in "0123456789+-*" and line:
            words = line.split()
            if words[0][0] in "+-":
                address += int(words[0], 0)
            elif words[0] != "*":
                address = int(words[0], 0)
            if not of_call:
                yield place, address, int(words[-1])
            of_call = False
