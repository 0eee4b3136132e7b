"""One protocol = one new file and one line: tries it on a copy of the tree.

Adds `docs/examples/aimd.rs` and its line in `protocols/mod.rs` to a copy of what git tracks, and then expects of the
copy that the laws hold for the newcomer, that the registry, the parser, the simulator, the schema and the reference
pages know it, and that git sees one new file and one new line. Also looks for protocols' names in crate sources where
none belong.

`CARGO_TARGET_DIR` decides where the copy is built; by default in `target/one-file-one-line`, so that it is fast again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "docs" / "examples" / "aimd.rs"
NAME = "aimd"
LINE = "    aimd::Aimd,\n"
CORE = Path("crates/explicate-core/src")
FILE = CORE / "protocols" / "aimd.rs"
LIST = CORE / "protocols" / "mod.rs"

SCENARIO = f"""
name = "newcomer"
duration = "20s"
warmup = "5s"
[topology]
kind = "dumbbell"
bottleneck = {{ rate = "5Mbit/s", delay = "20ms" }}
[[flows]]
name = "new"
count = 2
protocol = "{NAME}/newreno"
params = {{ keep = "80%" }}
"""

# What the engine of the copy says, printed as JSON by a process of its own that sees the copy's package.
ASK = """
import json, sys
from explicate import engine, lab
entry = next((e for e in engine.registry() if (e["kind"], e["name"]) == ("protocol", sys.argv[1])), None)
results = lab.run(sys.stdin.read(), seed=1)
print(json.dumps({
    "entry": entry,
    "schema": sys.argv[1] in json.dumps(engine.schema()["$defs"]["protocol"]),
    "goodput": results.flows["goodput_bps"].to_list(),
    "utilisation": results.links["utilisation"].max(),
}))
"""


class BrokenPromiseError(Exception):
    """What does not hold; the message says so."""


def expect(holds: object, promise: str) -> None:
    """Raise BrokenPromiseError unless `holds`; tell what was kept."""
    if not holds:
        raise BrokenPromiseError(promise)
    print(f"ok: {promise}", flush=True)


def call(command: Sequence[str | Path], where: Path, *, text: str = "", **environment: str) -> str:
    """Run a command and return what it printed; raise BrokenPromiseError with its last words if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=where, input=text, capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode != 0:
        words = (done.stdout + done.stderr).strip().splitlines()[-40:]
        raise BrokenPromiseError(f"`{' '.join(map(str, command))}` fails:\n" + "\n".join(words))
    return done.stdout


# ------------------------------------------------------------------------------------------ names in the sources

PLACES_OF_NAMES = ("protocols/", "recovery/", "qdisc/", "channel/", "models/", "wire.rs", "wire/", "presets.rs")
"""Below a crate's `src`: where a protocol's name may stand."""

ALLOWED = {
    # Cases of the benchmark are scenarios, and scenarios name protocols.
    "crates/explicate-sim/src/bench.rs": r'case\("(xcp|sack)-|"(xcp|sack)"',
    # Examples in messages and in documentation that a user reads.
    "crates/explicate-core/src/lib.rs": r"//!",
    "crates/explicate-core/src/api.rs": r"///",
    # The fast engine and its forms of ports, beside the reference ones.
    "crates/explicate-core/src/port/mod.rs": r"^use fast::",
    "crates/explicate-sim/src/simulation.rs": r"EngineKind::Fast => ",
    "crates/explicate-py/src/lib.rs": r"engine = \"fast\"",
}
"""Lines elsewhere that may name one, by a pattern, with the reason."""


def without_tests(text: str) -> list[str]:
    """The lines of a source before its unit tests, which stand at the end and may name what they like."""
    lines = text.splitlines()
    below = [*lines[1:], ""]
    marks = [i for i, line in enumerate(lines) if line.strip() == "#[cfg(test)]" and "mod " in below[i]]
    return lines[: marks[0]] if marks else lines


WORDS = ("fast",)
"""Names that are words too: they name a protocol only in quotes or as a module."""


def strays(root: Path, names: Sequence[str]) -> Iterator[str]:
    """Lines of crate sources that name a protocol where none belongs."""
    own = "|".join(name for name in names if name not in WORDS)
    words = "|".join(WORDS)
    pattern = re.compile(rf"(?<![a-z])({own})(?![a-z])|\"({words})\"|\b({words})::", re.IGNORECASE)
    for path in sorted(root.glob("crates/*/src/**/*.rs")):
        relative = path.relative_to(root)
        below = "/".join(relative.parts[3:])
        if below.startswith(PLACES_OF_NAMES):
            continue
        allowed = re.compile(ALLOWED.get(str(relative), r"(?!)"))
        for number, line in enumerate(without_tests(path.read_text(encoding="utf-8")), 1):
            if pattern.search(line) and not allowed.search(line):
                yield f"{relative}:{number}: {line.strip()}"


# ------------------------------------------------------------------------------------------------------ the copy


def copy_tree(target: Path) -> None:
    """Copy what git tracks, as it stands on disk, and commit it there."""
    for name in call(["git", "ls-files", "-z"], ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    call([*git, "init", "-q"], target)
    call([*git, "add", "-A"], target)
    call([*git, "commit", "-q", "-m", "before"], target)


def add_protocol(copy: Path) -> None:
    """Write the file and the line."""
    shutil.copyfile(EXAMPLE, copy / FILE)
    listing = (copy / LIST).read_text(encoding="utf-8")
    head, brace, tail = listing.rpartition("}\n")
    expect(brace and "protocols! {" in head and not tail, "the list of protocols ends the file that it stands in")
    (copy / LIST).write_text(head + LINE + brace, encoding="utf-8")


def try_engine(copy: Path, target: Path) -> None:
    """Build the copy's engine beside its package and ask it."""
    built = {"CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    call(["cargo", "build", "--quiet", "-p", "explicate-py"], copy, **built)
    shutil.copyfile(target / "debug" / "lib_native.so", copy / "python" / "explicate" / "_native.abi3.so")
    python = [sys.executable, "-P", "-c", ASK, NAME]
    told = json.loads(call(python, copy, text=SCENARIO, PYTHONPATH=str(copy / "python")))
    expect(told["entry"], "the registry lists it")
    expect([p["name"] for p in told["entry"]["parameters"]] == ["increase", "keep"], "its parameters are listed")
    expect(told["schema"], "the schema of scenarios knows its name")
    runs = all(goodput > 1e6 for goodput in told["goodput"]) and told["utilisation"] > 0.8
    expect(runs, "a scenario runs it, over another recovery")


def main() -> None:
    """Try it all."""
    listed = re.findall(r"^    (\w+)::\w+,$", (ROOT / LIST).read_text(encoding="utf-8"), re.MULTILINE)
    names = [*listed, "newreno"]
    found = list(strays(ROOT, names))
    listing = "".join(f"\n  {line}" for line in found)
    expect(not found, f"no crate source names a protocol where none belongs{listing}")

    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute() / "one-file-one-line"
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place)
        copy_tree(copy)
        add_protocol(copy)
        call(["cargo", "test", "--quiet", "-p", "explicate-core", "--test", "laws"], copy, CARGO_TARGET_DIR=str(target))
        expect(True, "the laws hold for it")
        try_engine(copy, target)
        call([sys.executable, "scripts/make_docs.py"], copy, PYTHONPATH=str(copy / "python"))
        page = (copy / "docs" / "reference" / f"protocol-{NAME}.md").read_text(encoding="utf-8")
        expect("AIMD with a choice of pace" in page and "`keep`" in page, "its page is made from the file")
        index = (copy / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
        expect(f"protocol-{NAME}.md" in index, "the index of the reference leads to it")
        call(["git", "add", "-A", "crates", "python"], copy)
        stat = call(["git", "diff", "--cached", "--numstat", "--", "crates", "python"], copy).splitlines()
        new = f"{len(EXAMPLE.read_text(encoding='utf-8').splitlines())}\t0\t{FILE}"
        expect(sorted(stat) == sorted([new, f"1\t0\t{LIST}"]), "all that took one new file and one new line")


if __name__ == "__main__":
    try:
        main()
    except BrokenPromiseError as broken:
        sys.exit(f"does not hold: {broken}")
