"""Compute docs/validation.md: what is known, and what the simulator says, side by side.

    python validation/make.py [--traces DIR]

Every table is made from runs. Parts are kept as they stand in the document: the comparison with other simulators,
which `make peers` fills in, what follows it, which scripts beside this one write (see `place`), and the recorded
cellular links, if the recordings are not there. Nothing depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from capacity_error import capacity_error
from cellular import cellular
from equilibrium import equilibrium
from paper_001 import figure_2
from shared import DOCUMENT, ROOT, kept
from targets import tcp_targets, xcp_targets


def appended() -> str:
    """Return what follows the comparison with other simulators: sections of other scripts."""
    old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
    return old.partition("<!-- peers:end -->\n")[2]


def document(traces: Path) -> str:
    """Return the whole document."""
    recorded = cellular(traces)
    if recorded is None:
        print(f"note: no recordings in {traces} (--traces DIR): that section stays as it is", file=sys.stderr)
    sections = [
        xcp_targets(),
        tcp_targets(),
        equilibrium(),
        capacity_error(),
        figure_2(),
        f"## Recorded cellular links\n\n{kept('cellular', recorded)}",
        f"## Other simulators\n\n{kept('peers')}" + appended(),
    ]
    return """# Validation

What is known about the protocols, and what this simulator says. Every table is computed by `make validation`
(another simulator's numbers by `make peers`); the statements marked with a `cargo test` line are tests, and
fail if they do not hold. A **no** is a result too, and the text says why.

""" + "\n".join(sections)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the document."""
    parser = argparse.ArgumentParser(description="Compute docs/validation.md.")
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("EXPLICATE_TRACES", ROOT.parent / "shared" / "traces")),
        help="folder of mahimahi recordings (or EXPLICATE_TRACES; default ../shared/traces)",
    )  # fmt: skip
    text = document(parser.parse_args(argv).traces)
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
