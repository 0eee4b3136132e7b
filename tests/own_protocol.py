"""A protocol in a separate crate, and one in Python: both run, and compute the same.

Builds `examples/own-protocol`, which is no member of the workspace. Its program runs its scenario; its test applies the
laws of `explicate-laws`; its module is an engine with the same protocol, which Python uses here. The scenario runs
there with the protocol in Rust and with the same protocol in Python (`docs/examples/aimd.py`): the tables must be equal
to the last bit.

`CARGO_TARGET_DIR` decides where it is built; by default in `target`, whose libraries it shares.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "examples" / "own-protocol"
SCENARIO = CRATE / "scenario.toml"

SAME = """
import sys
from polars.testing import assert_frame_equal
import explicate, aimd
text = open(sys.argv[1], encoding="utf-8").read()
rows = 0
for settings in ({}, {"flows.0.params.increase": 0.3, "seed": 5}, {"flows.0.count": 7, "flows.0.params.keep": 0.5}):
    settings |= {"sampling": {"every": "100ms", "of": ["queue", "flow"]}}
    rust, python = (explicate.run(text.replace('"aimd/', f'"{name}/'), set=settings) for name in ("aimd", "aimd-py"))
    for name, frame in rust.tables().items():
        twin = python.tables()[name]
        drop = [column for column in ("protocol", "scenario") if column in frame.columns]  # they hold the name
        assert_frame_equal(frame.drop(drop), twin.drop(drop), check_exact=True)
        rows += frame.height
print(rows)
"""


def call(command: list[str], **environment: str) -> str:
    """Run it and return its output. Exit if it fails."""
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def main() -> None:
    """Try it all."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
    cargo = ["--quiet", "--manifest-path", str(CRATE / "Cargo.toml"), "--target-dir", str(target)]
    table = call(["cargo", "run", *cargo, "--", str(SCENARIO)]).splitlines()
    goodput = [float(dict(zip(table[0].split(","), row.split(","), strict=True))["goodput_bps"]) for row in table[1:]]
    if len(goodput) != 2 or not 4e6 < sum(goodput) < 5e6:
        sys.exit(f"its program reports a goodput of {goodput} bit/s on a line of 5 Mbit/s")
    print(f"ok  its program runs its scenario: {sum(goodput) / 1e6:.2f} of 5 Mbit/s")

    told = call(["cargo", "test", *cargo, "--test", "laws"])
    if "1 passed" not in told:
        sys.exit(f"its test of the laws did not run:\n{told}")
    print("ok  it keeps the laws")

    call(
        ["cargo", "build", *cargo, "--lib", "--features", "python"],
        PYO3_PYTHON=sys.executable, PYO3_BUILD_EXTENSION_MODULE="1",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        shutil.copyfile(target / "debug" / "libown_protocol.so", Path(place) / "own_protocol.abi3.so")
        paths = os.pathsep.join([place, str(ROOT / "python"), str(ROOT / "docs" / "examples")])
        rows = call(
            [sys.executable, "-P", "-c", SAME, str(SCENARIO)], PYTHONPATH=paths, EXPLICATE_ENGINE="own_protocol"
        )
    print(f"ok  in Rust and in Python it computes the same: {rows.strip()} equal rows")


if __name__ == "__main__":
    main()
