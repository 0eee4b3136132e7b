"""Compute docs/validation.md: known results beside those of the simulator.

    python validation/make.py [--traces DIR]

Every table is computed from runs, and no result depends on the machine. The script leaves three parts of the document
unchanged: the comparison with other simulators (`make peers` writes it), the sections after it (other scripts in this
folder write them, see `place`), and the recorded cellular links if the recordings are missing.
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
from shared import DOCUMENT, ROOT, kept, with_contents
from targets import tcp_targets, xcp_targets


def appended() -> str:
    """Return the sections after the comparison with other simulators, which other scripts write."""
    old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
    return old.partition("<!-- peers:end -->\n")[2]


def document(traces: Path) -> str:
    """Return the whole document."""
    recorded = cellular(traces)
    if recorded is None:
        print(f"note: no recordings in {traces} (--traces DIR): that section is left unchanged", file=sys.stderr)
    sections = [
        xcp_targets(),
        tcp_targets(),
        equilibrium(),
        capacity_error(),
        figure_2(),
        f"## Recorded cellular links\n\n{kept('cellular', recorded)}",
        f"## Other simulators\n\n{kept('compared')}\n{kept('peers')}" + appended(),
    ]
    return """# Validation

What is known about the protocols, and what this simulator computes. `make validation` computes every table,
`make peers` the figures of other simulators. Statements above a `cargo test` line are tests, which fail if the
statement does not hold. A **no** is a result too; the text gives its cause.

<!-- contents:begin -->
<!-- contents:end -->

""" + "\n".join(sections)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the document."""
    parser = argparse.ArgumentParser(description="Compute docs/validation.md.")
    parser.add_argument(
        "--traces", type=Path, default=Path(os.environ.get("EXPLICATE_TRACES", ROOT.parent / "shared" / "traces")),
        help="folder of mahimahi recordings (or EXPLICATE_TRACES; default ../shared/traces)",
    )  # fmt: skip
    text = with_contents(document(parser.parse_args(argv).traces))
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
