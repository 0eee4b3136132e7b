"""One protocol = one new file and one line: tries it on a copy of the tree.

Adds two protocols (AIMD of `examples/own-protocol`, which works end to end, and a short RCP of `docs/examples`, with
routers) and their lines in `protocols/mod.rs` to a copy of the files that git tracks. In the copy the laws must hold
for both, and the registry, the parser, the simulator, the lab, the schema and the reference pages must include them.
Git must show one new file and one new line for each. The test also searches crate sources for protocols' names where
none belong. The lab needs namespaces: the test fails if the kernel has none.

The copy is built in `one-file-one-line` of `CARGO_TARGET_DIR`, by default of `target`, so that it is fast again. It
cannot share the folder of the tree: cargo names crates by their path in the workspace, and takes one for the other.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("crates/explicate-core/src")
LIST = CORE / "protocols" / "mod.rs"
LAB_SECONDS = 6


@dataclass(frozen=True)
class Newcomer:
    """A protocol of the examples, and its lines in a scenario."""

    name: str
    folder: str
    unit: str
    title: str
    parameters: tuple[str, ...]
    flows: str

    @property
    def example(self) -> Path:
        """The file to copy."""
        return ROOT / self.folder / f"{self.name}.rs"

    @property
    def file(self) -> Path:
        """Where it goes."""
        return CORE / "protocols" / f"{self.name}.rs"

    @property
    def scenario(self) -> str:
        """Two flows over a line of 5 Mbit/s."""
        return f"""
name = "newcomer"
duration = "20s"
warmup = "5s"
[topology]
kind = "dumbbell"
bottleneck = {{ rate = "5Mbit/s", delay = "20ms" }}
[[flows]]
name = "new"
count = 2
{self.flows}
"""


NEWCOMERS = (
    Newcomer(
        "aimd", "examples/own-protocol/src", "Aimd", "AIMD with a choice of pace", ("increase", "keep"),
        'protocol = "aimd/newreno"\nparams = { keep = "80%" }',
    ),
    Newcomer("rcp_lite", "docs/examples", "RcpLite", "RCP in a page", (), 'protocol = "rcp_lite"'),
)  # fmt: skip

# The values of the copy's engine, printed as JSON by a separate process that imports the copy's package.
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
    """A statement does not hold; the message names it."""


def expect(holds: object, promise: str) -> None:
    """Raise BrokenPromiseError unless `holds`; print the statement otherwise."""
    if not holds:
        raise BrokenPromiseError(promise)
    print(f"ok: {promise}", flush=True)


def call(command: Sequence[str | Path], where: Path, *, text: str = "", **environment: str) -> str:
    """Run a command and return its output; raise BrokenPromiseError with its last lines if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=where, input=text, capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode != 0:
        words = (done.stdout + done.stderr).strip().splitlines()[-40:]
        raise BrokenPromiseError(f"`{' '.join(map(str, command))}` fails:\n" + "\n".join(words))
    return done.stdout


# ------------------------------------------------------------------------------------------ names in the sources

PLACES_OF_NAMES = ("protocols/", "recovery/", "qdisc/", "channel/", "models/", "presets.rs")
"""Below a crate's `src`: files in which a protocol's name may occur."""

ALLOWED = {
    # Cases of the benchmark and templates are scenarios, and scenarios name protocols.
    "crates/explicate-sim/src/bench.rs": r'case\("(xcp|sack)-|"(xcp|sack)"',
    "crates/explicate-scenario/src/templates.rs": r"^\s*(name|summary|text): ",
    # Examples in messages and in documentation that a user reads.
    "crates/explicate-core/src/lib.rs": r"//!",
    "crates/explicate-core/src/api.rs": r"///",
    # Comments: routers that report drops, and measurements.
    "crates/explicate-core/src/guard.rs": r"^\s*///",
    "crates/explicate-core/src/guard/full_queue.rs": r"^//!",
    "crates/explicate-core/src/guard/watch.rs": r"^\s*//",
    # The gateway offers only two controllers, one with routers and one without.
    "crates/explicate-net/src/gateway/config.rs": r'//|"cubic"',
    "crates/explicate-net/src/gateway/controller.rs": r"//|\bcubic\b",
    "crates/explicate-net/src/gateway/port.rs": r'protocol\("xcp"\)',
    "crates/explicate-net/src/gateway/shim.rs": r"^//!",
    # What flows fall back to where the other end refuses explicit feedback.
    "crates/explicate-laws/src/flows.rs": r'fallback = registry::protocol\("reno"\)',
    # A message says which routers divide a line.
    "crates/explicate-scenario/src/scone.rs": r'^\s*let with = "write `router = ',
    # The fast engine and its forms of ports, beside the reference ones.
    "crates/explicate-core/src/port/mod.rs": r"^use fast::",
    "crates/explicate-sim/src/simulation.rs": r"EngineKind::Fast => ",
    "crates/explicate-py/src/lib.rs": r"engine = \"fast\"",
}
"""Lines elsewhere that may name one, by a pattern, with the reason."""


def without_tests(text: str) -> list[str]:
    """The lines of a source before its unit tests, which are at the end and may contain any name."""
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
        if below.startswith(PLACES_OF_NAMES) or path.name == "tests.rs":
            continue
        allowed = re.compile(ALLOWED.get(str(relative), r"(?!)"))
        for number, line in enumerate(without_tests(path.read_text(encoding="utf-8")), 1):
            if pattern.search(line) and not allowed.search(line):
                yield f"{relative}:{number}: {line.strip()}"


# ------------------------------------------------------------------------------------------------------ the copy


def copy_tree(target: Path) -> None:
    """Copy the files that git tracks, as they are on disk, and commit them there."""
    for name in call(["git", "ls-files", "-z"], ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    call([*git, "init", "-q"], target)
    call([*git, "add", "-A"], target)
    call([*git, "commit", "-q", "-m", "before"], target)


def add_protocols(copy: Path) -> None:
    """Write the files and the lines."""
    listing = (copy / LIST).read_text(encoding="utf-8")
    head, brace, tail = listing.rpartition("}\n")
    expect(brace and "protocols! {" in head and not tail, "the list of protocols ends the file that it stands in")
    for new in NEWCOMERS:
        shutil.copyfile(new.example, copy / new.file)
        head += f"    {new.name}::{new.unit},\n"
    (copy / LIST).write_text(head + brace, encoding="utf-8")


BUILT = ("explicate-py", "explicate-net", "explicate-wasm")
"""What is built, at once and with the third, so that libraries have the same features as for `cargo test`."""


def build(copy: Path, target: Path) -> None:
    """Test and build the copy, and put its engine and its program where they are looked for."""
    built = {"CARGO_TARGET_DIR": str(target), "PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    call(["cargo", "test", "--quiet", "--test", "laws"], copy, **built)
    expect(True, "the laws hold for them")
    call(["cargo", "build", "--quiet", *(f"--package={name}" for name in BUILT)], copy, **built)
    (target / "debug" / "lib_native.so").replace(copy / "python" / "explicate" / "_native.abi3.so")
    (target / "debug" / "explicated").replace(copy / "explicated")


def try_engine(copy: Path) -> None:
    """Ask the copy's engine, from beside its package."""
    for new in NEWCOMERS:
        python = [sys.executable, "-P", "-c", ASK, new.name]
        told = json.loads(call(python, copy, text=new.scenario, PYTHONPATH=str(copy / "python")))
        expect(told["entry"], f"{new.name}: the registry lists it")
        expect(tuple(p["name"] for p in told["entry"]["parameters"]) == new.parameters, "its parameters are listed")
        expect(told["schema"], "the schema of scenarios knows its name")
        runs = all(goodput > 1e6 for goodput in told["goodput"]) and told["utilisation"] > 0.8
        expect(runs, f"a scenario runs it: {told['goodput']} bit/s")


def try_lab(copy: Path) -> None:
    """Run the protocol with routers on real sockets and queues, as long as a machine that other work uses allows."""
    new = NEWCOMERS[-1]
    (copy / "lab.toml").write_text(new.scenario, encoding="utf-8")
    program = [copy / "explicated", "lab", "--json", "lab.toml"]
    settings = ["--set", f"duration={LAB_SECONDS}s", "--set", "warmup=3s"]
    told = call([copy / "scripts" / "in_namespace", *program, *settings], copy)
    lines = json.loads(told.strip().splitlines()[-1])
    rates = [flow["goodput_bps"] for flow in lines["flows"]]
    (line,) = (link for link in lines["links"] if link["link"] == "r1->r2")
    expect(all(rate > 1e6 for rate in rates), f"the laboratory runs {new.name}: {rates} bit/s")
    expect(line["drops_total"] == 0, f"its routers hold the queue: {line['queue_mean_packets']} packets, none dropped")


def check_pages(copy: Path) -> None:
    """Make the reference of the copy and look for the newcomers in it."""
    call([sys.executable, "scripts/make_docs.py"], copy, PYTHONPATH=str(copy / "python"))
    index = (copy / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    for new in NEWCOMERS:
        page = (copy / "docs" / "reference" / f"protocol-{new.name}.md").read_text(encoding="utf-8")
        named = all(f"`{parameter}`" in page for parameter in new.parameters)
        expect(new.title in page and named, f"{new.name}: its page is made from the file")
        expect(f"protocol-{new.name}.md" in index, "the index of the reference leads to it")


def main() -> None:
    """Try it all."""
    listed = re.findall(r"^    (\w+)::\w+,$", (ROOT / LIST).read_text(encoding="utf-8"), re.MULTILINE)
    names = [*listed, "newreno"]
    found = list(strays(ROOT, names))
    listing = "".join(f"\n  {line}" for line in found)
    expect(not found, f"no crate source names a protocol where none belongs{listing}")

    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute() / "one-file-one-line"
    copy = target / "tree"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    copy_tree(copy)
    add_protocols(copy)
    build(copy, target)
    try_engine(copy)
    try_lab(copy)
    check_pages(copy)
    call(["git", "add", "-A", "crates", "python"], copy)
    stat = call(["git", "diff", "--cached", "--numstat", "--", "crates", "python"], copy).splitlines()
    files = [f"{len(new.example.read_text(encoding='utf-8').splitlines())}\t0\t{new.file}" for new in NEWCOMERS]
    expect(sorted(stat) == sorted([*files, f"{len(NEWCOMERS)}\t0\t{LIST}"]), "each took one new file and one line")


if __name__ == "__main__":
    try:
        main()
    except BrokenPromiseError as broken:
        sys.exit(f"does not hold: {broken}")
