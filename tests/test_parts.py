"""`scripts/parts.py` runs what was asked for and what that needs, once, and says what failed and why."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = """
[install]
tier = "prepare"
[one]
tier = "test"
needs = ["install"]
[two]
tier = "test"
needs = ["install"]
[three]
tier = "rest"
needs = ["two"]
"""
MAKEFILE = """
install:
\techo made >>made
one: install
\t@echo said by one
two: install
\tRECIPE
three: two
\techo never
.PHONY: install one two three
"""


def parts(folder: Path, *arguments: str, recipe: str = "true") -> subprocess.CompletedProcess[str]:
    """Runs the script over this table in a folder."""
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "parts.py", folder / "scripts")
    (folder / "scripts" / "parts.toml").write_text(TABLE)
    (folder / "Makefile").write_text(MAKEFILE.replace("RECIPE", recipe))
    command = [sys.executable, "scripts/parts.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_what_parts_need_runs_once(tmp_path: Path) -> None:
    """Two parts that need the same, and what they print."""
    done = parts(tmp_path, "test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "made").read_text() == "made\n"
    assert "said by one" in done.stdout
    assert "three" not in done.stdout
    assert done.stdout.endswith("parts: 3 passed, 0 failed\n")


def test_a_failure_stops_only_what_needs_it(tmp_path: Path) -> None:
    """The part that needs it is not run, and counts as failed; the others pass."""
    done = parts(tmp_path, "test", "rest", recipe="echo broken; false")
    assert done.returncode == 1
    assert "two: failed; its output: target/parts/two.log" in done.stdout
    assert "three: not run" in done.stdout
    assert done.stdout.endswith("parts: 2 passed, 2 failed\n")
    assert (tmp_path / "target" / "parts" / "two.log").read_text().startswith("echo broken")


def test_a_registry_that_does_not_answer_has_a_status_of_its_own(tmp_path: Path) -> None:
    """It says nothing about the change."""
    done = parts(tmp_path, "test", recipe="echo 'WARNING: Could not fetch URL https://registry.example/: x'; false")
    assert done.returncode == 75
    assert "two: no registry" in done.stdout


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    """With those that there are."""
    done = parts(tmp_path, "tests")
    assert done.returncode == 1
    assert "no part or tier `tests`; tiers: prepare, rest, test; parts: install, one, two, three" in done.stderr


def test_every_part_is_a_target_and_its_needs_are_the_makefile_s() -> None:
    """A part without a target would fail only when CI runs it."""
    table = tomllib.loads((ROOT / "scripts" / "parts.toml").read_text())
    targets = {}
    for line in (ROOT / "Makefile").read_text().splitlines():
        name, colon, rest = line.partition(":")
        if colon and not line.startswith(("\t", "#", ".")) and not rest.startswith("="):
            targets[name] = rest.partition("#")[0].split()
    for name, keys in table.items():
        assert name in targets, name
        missing = [need for need in targets[name] if need in table and need not in keys.get("needs", [])]
        assert not missing, f"{name} needs {missing}"
