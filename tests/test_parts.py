"""`scripts/parts.py` runs what was asked for and what that needs, once, and says what failed or did not run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import parts as script  # noqa: E402
import turns  # noqa: E402

TABLE = """
limit = 30
common = ["shared/"]
[install]
tier = "prepare"
seconds = 5
[one]
tier = "test"
needs = ["install"]
seconds = 5
[two]
tier = "test"
needs = ["install"]
seconds = 5
[three]
tier = "rest"
needs = ["two"]
own = ["a/"]
seconds = 10
[four]
tier = "rest"
own = ["b.txt"]
seconds = 10
"""
MAKEFILE = """
install:
\techo made >>made
one: install
\t@echo said by one
two: install
\tRECIPE
three: two
\t@echo said by three
four:
\t@echo said by four
.PHONY: install one two three four
"""


def prepare(folder: Path, recipe: str = "true") -> None:
    """Puts the script and this table into a folder."""
    (folder / "scripts").mkdir()
    for name in ("parts.py", "turns.py", "rustc_times", "rustdoc_times"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    (folder / "scripts" / "parts.toml").write_text(TABLE)
    (folder / "Makefile").write_text(MAKEFILE.replace("RECIPE", recipe))


# Without what this script itself has set, where it runs these tests.
OWN = ("RUSTC_WRAPPER", "RUSTDOC", "COMPILE_TIMES", "NOT_RUN")
AROUND = {name: value for name, value in os.environ.items() if name not in OWN}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the script there."""
    command = [sys.executable, "scripts/parts.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=AROUND)


def parts(folder: Path, *arguments: str, recipe: str = "true") -> subprocess.CompletedProcess[str]:
    """Runs the script over this table in a folder."""
    prepare(folder, recipe)
    return run(folder, *arguments)


def row(output: str, name: str) -> list[str]:
    """The cells of a part in the table at the end."""
    (line,) = (line for line in output.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


# -------------------------------------------------------------------------------------------------- runs and their ends


def test_what_parts_need_runs_once(tmp_path: Path) -> None:
    """Two parts that need the same, and what they print."""
    done = parts(tmp_path, "test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "made").read_text() == "made\n"
    assert "said by one" in done.stdout
    assert "three" not in done.stdout
    assert [row(done.stdout, name)[2] for name in ("install", "one", "two")] == ["passed"] * 3
    assert done.stdout.endswith("parts: 3 passed, 0 failed\n")


def test_a_failure_stops_only_what_needs_it(tmp_path: Path) -> None:
    """The part that needs it is not run, and counts as failed; the others pass."""
    done = parts(tmp_path, "test", "rest", recipe="echo broken; false")
    assert done.returncode == 1
    assert "two: failed; its output: target/parts/two.log" in done.stdout
    assert "three: not run, since it needs two" in done.stdout
    assert row(done.stdout, "three")[2:] == ["not run", "", "", "", ""]
    assert row(done.stdout, "one")[2] == "passed"
    assert done.stdout.endswith("parts: 3 passed, 2 failed\n")
    assert (tmp_path / "target" / "parts" / "two.log").read_text().startswith("echo broken")


@pytest.mark.parametrize(
    "said",
    [
        "error: failed to download from `https://index.crates.io/config.json`",
        "  [6] Could not resolve hostname (Could not resolve host: index.crates.io)",
        "error: could not download file from 'https://static.rust-lang.org/x' to '/y'",
        "WARNING: Could not fetch URL https://registry.example/: x",
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError': /simple/x/",
        "npm error code ETIMEDOUT",
        "npm could not fetch uplot@1.6.32: reports will have no charts",
        "E: Failed to fetch http://deb.debian.org/x  Connection failed",
        "go: proxy.golang.org: dial tcp: lookup proxy.golang.org: i/o timeout",
    ],
)
def test_a_registry_that_does_not_answer_has_a_status_of_its_own(tmp_path: Path, said: str) -> None:
    """It says nothing about the change. The lines are those of each program's messages about downloads."""
    (tmp_path / "said").write_text(f"{said}\n")
    done = parts(tmp_path, "test", "three", recipe="cat said; false")
    assert done.returncode == 75
    assert "two: no registry; its output: target/parts/two.log" in done.stdout
    assert "three: not run, since it needs two" in done.stdout


def test_a_download_that_was_repeated_hides_no_failure(tmp_path: Path) -> None:
    """What stands above the last lines was overcome."""
    recipe = "echo 'warning: spurious network error: Could not resolve host'; seq 40; false"
    done = parts(tmp_path, "test", recipe=recipe)
    assert done.returncode == 1
    assert "two: failed" in done.stdout


def test_a_failure_beside_a_registry_that_does_not_answer_is_a_failure(tmp_path: Path) -> None:
    """Status 75 is for runs in which nothing else failed."""
    prepare(tmp_path, "echo 'npm error code ENOTFOUND'; false")
    makefile = (tmp_path / "Makefile").read_text()
    (tmp_path / "Makefile").write_text(makefile.replace("@echo said by one", "false"))
    done = run(tmp_path, "test")
    assert done.returncode == 1
    assert row(done.stdout, "one")[2] == "failed"
    assert row(done.stdout, "two")[2] == "no registry"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_what_runs_and_shows_the_table(tmp_path: Path, how: signal.Signals) -> None:
    """Nothing of what was started goes on."""
    prepare(tmp_path, "echo $$PPID >two; sleep 1000")
    process = subprocess.Popen(
        [sys.executable, "scripts/parts.py", "test", "rest"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env=AROUND,
    )
    until = time.monotonic() + 120
    while not ((tmp_path / "two").is_file() and (tmp_path / "two").read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    make = int((tmp_path / "two").read_text())
    process.send_signal(how)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert row(said, "two")[2] == "interrupted"
    assert "two: interrupted; its output: target/parts/two.log" in said
    assert row(said, "three")[2] == "not run"
    assert row(said, "install")[2] == "passed"
    assert not Path(f"/proc/{make}").exists()


def test_what_a_machine_cannot_run_is_listed(tmp_path: Path) -> None:
    """A part says so in the file `$(NOT_RUN)`; what needs it runs, and only `--strict` fails."""
    prepare(tmp_path, 'echo "worlds: as root, make worlds" >$$NOT_RUN')
    for strict in (False, True):
        done = run(tmp_path, "test", "rest", *["--strict"] * strict)
        assert done.returncode == int(strict)
        assert row(done.stdout, "two")[2] == "incomplete"
        assert row(done.stdout, "three")[2] == "passed"
        assert "not run, since it is not possible here:\n  worlds: as root, make worlds\n" in done.stdout


def test_what_a_machine_cannot_run_is_listed_beside_a_failure(tmp_path: Path) -> None:
    """And what an earlier run said is forgotten."""
    prepare(tmp_path, 'echo "worlds: as root, make worlds" >$$NOT_RUN')
    makefile = (tmp_path / "Makefile").read_text()
    (tmp_path / "Makefile").write_text(makefile.replace("@echo said by one", "false"))
    done = run(tmp_path, "test")
    assert done.returncode == 1
    assert "worlds: as root, make worlds" in done.stdout
    (tmp_path / "Makefile").write_text(MAKEFILE.replace("RECIPE", "true"))
    done = run(tmp_path, "test")
    assert done.returncode == 0
    assert "worlds" not in done.stdout


def test_the_lab_says_where_the_script_looks_what_it_cannot_run(tmp_path: Path) -> None:
    """The recipe of the Makefile, on a machine without namespaces."""
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile[makefile.index("\nlab:") :].split("\n\n")[0].replace("lab: compiled", "lab:")
    assert "NOT_RUN ?=" in makefile
    (tmp_path / "Makefile").write_text(f"SHELL := /bin/bash\nNOT_RUN ?= target/not-run\n{recipe}\n")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "in_namespace").write_text("#!/bin/sh\nfalse\n")
    (tmp_path / "scripts" / "in_namespace").chmod(0o755)
    subprocess.run(["make", "lab", f"NOT_RUN={tmp_path / 'here' / 'missing'}"], cwd=tmp_path, check=True)
    assert "as root, make linux" in (tmp_path / "here" / "missing").read_text()


def test_an_unknown_part_is_named(tmp_path: Path) -> None:
    """With those that there are."""
    done = parts(tmp_path, "tests")
    assert done.returncode == 1
    assert "no part or tier `tests`; tiers: prepare, rest, test; parts: install, one, two, three, four" in done.stderr


def test_compiling_is_counted_apart(tmp_path: Path) -> None:
    """The wrapper of rustc passes its status on, and adds its processor time."""
    work = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.5: pass\nraise SystemExit(3)'"
    (tmp_path / "work").write_text(f"#!/bin/sh\n{work}\n")
    (tmp_path / "work").chmod(0o755)
    done = parts(tmp_path, "two", recipe="for i in 1 2; do $$RUSTC_WRAPPER ./work; [ $$? = 3 ] || exit 1; done")
    assert done.returncode == 0, done.stdout
    assert script.compile_seconds(tmp_path / "target" / "parts" / "two.compiling") > 0.9  # `times` cuts off hundredths
    assert script.compile_seconds(tmp_path / "nothing") == 0
    *_, processor, compiling, _load = row(done.stdout, "two")
    assert 1 == int(compiling) <= int(processor)


def test_a_part_that_outgrows_its_entry_is_named() -> None:
    """Its entry decides what has its turn."""
    grown = turns.Part("grown", "rest", seconds=40, state="passed", processor=80)
    small = turns.Part("small", "rest", seconds=40, state="passed", processor=55)
    said = script.notes([grown, small], [], {})
    assert said == ["grown: took 80 s of processor time, and scripts/parts.toml says 40 s"]


def test_a_page_is_filled_only_if_all_passed(tmp_path: Path) -> None:
    """With the table, and how many minutes it took."""
    prepare(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- parts:begin -->\n<!-- parts:end -->\nb\n")
    assert run(tmp_path, "test", "--markdown", "page.md").returncode == 0
    filled = page.read_text()
    assert "| one     | test    | passed |" in filled
    assert "processor, s | of it compiling, s" in filled
    (tmp_path / "Makefile").write_text(MAKEFILE.replace("RECIPE", "false"))
    assert run(tmp_path, "test", "--markdown", "page.md").returncode == 1
    assert page.read_text() == filled


# ---------------------------------------------------------------------------------------------------------------- turns


def repository(folder: Path) -> None:
    """The folder with the files of the table, which all have passed."""
    prepare(folder)
    for name in ("shared/x", "a/y", "b.txt", "tests/other"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (folder / ".gitignore").write_text("target\nmade\n__pycache__\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    done = run(folder, "test", "rest", "--record")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(json.loads((folder / "tests" / "parts.json").read_text())) == {"", "three", "four"}


def test_what_has_passed_is_left_out_until_a_file_changes(tmp_path: Path) -> None:
    """A run goes on where another failed, and records what both have shown."""
    prepare(tmp_path, "test -e target/ok")
    (tmp_path / "tests").mkdir()
    (tmp_path / ".gitignore").write_text("target\nmade\n__pycache__\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    goes_on = ("test", "rest", "--resume", "--record")
    assert run(tmp_path, *goes_on).returncode == 1
    assert not (tmp_path / "tests" / "parts.json").exists()
    (tmp_path / "target" / "ok").touch()
    done = run(tmp_path, *goes_on)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "made").read_text() == "made\n", "prepared once"
    assert "said by one" not in done.stdout
    assert "said by three" in done.stdout
    assert row(done.stdout, "one")[2] == "passed"
    assert (tmp_path / "tests" / "parts.json").exists()
    (tmp_path / "other").write_text("a change")
    assert "said by one" in run(tmp_path, *goes_on).stdout


def turn(folder: Path) -> tuple[str, str]:
    """Which of the two parts that take turns is due, and why. There is time for one."""
    said = run(folder, "test", "rest", "--due", "--dry").stdout
    (line,) = (line for line in said.splitlines() if line.startswith(("three", "four")))
    name, _seconds, _s, why = line.split(maxsplit=3)
    return name, why


def test_what_has_changed_comes_first(tmp_path: Path) -> None:
    """A part's own files before the common ones, before none; and in the same tree always the same."""
    repository(tmp_path)
    name, why = turn(tmp_path)
    assert why == "its turn"
    assert turn(tmp_path) == (name, why)
    (tmp_path / "shared" / "x").write_text("changed")
    assert turn(tmp_path)[1] == "what it uses changed"
    for changed, part in (("b.txt", "four"), ("a/new", "three")):
        kept = (tmp_path / changed).read_text() if (tmp_path / changed).is_file() else None
        (tmp_path / changed).write_text("changed")
        assert turn(tmp_path) == (part, "its files changed")
        if kept is not None:
            (tmp_path / changed).write_text(kept)


def test_over_trees_everything_has_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is in the tree decides, though nothing that the parts depend on has changed."""
    repository(tmp_path)
    monkeypatch.setattr(turns, "ROOT", tmp_path)
    monkeypatch.setattr(turns, "RECORD", tmp_path / "tests" / "parts.json")
    table = turns.read(tmp_path / "scripts" / "parts.toml")
    every = turns.named(table.parts, ["test", "rest"])
    seen = Counter()
    for number in range(40):
        (tmp_path / "tests" / "other").write_text(str(number))
        files = turns.contents()
        due = turns.due(table, every, turns.digest(files, list(files)), turns.reasons(table, files))
        seen.update(part.name for part in due if part.own)
    assert seen.keys() == {"three", "four"}
    assert sum(seen.values()) == 40, "there is time for one"
    assert min(seen.values()) >= 8


def test_what_is_not_due_is_said_with_how_to_run_it(tmp_path: Path) -> None:
    """And all of it, without `--due`, runs."""
    repository(tmp_path)
    (tmp_path / "a" / "y").write_text("changed")
    done = run(tmp_path, "test", "rest", "--due")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "said by three" in done.stdout
    assert "said by four" not in done.stdout
    assert "run because its files changed: three\n" in done.stdout
    assert (
        "not run, since it is not their turn (all: make rest; these: python3 scripts/parts.py four):\n  four, 10 s"
        in done.stdout
    )
    done = run(tmp_path, "test", "rest")
    assert "said by three" in done.stdout
    assert "said by four" in done.stdout


def test_a_part_without_a_record_counts_as_changed(tmp_path: Path) -> None:
    """Nobody knows what it was when it passed."""
    repository(tmp_path)
    (tmp_path / "tests" / "parts.json").unlink()
    assert turn(tmp_path)[1] == "its files changed"


# ---------------------------------------------------------------------------------------------- the project's own table


def test_every_part_is_a_target_and_its_needs_are_the_makefile_s() -> None:
    """A part without a target would fail only when CI runs it."""
    listed = subprocess.run(["make", "-pnq", "help"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    targets = {}
    for line in listed.splitlines():
        name, colon, rest = line.partition(":")
        if colon and not line.startswith(("\t", "#", ".")) and not rest.startswith(("=", ":")):
            targets[name] = rest.split()
    table = turns.read().parts
    for name, part in table.items():
        assert name in targets, name
        missing = [need for need in targets[name] if need in table and need not in part.needs]
        assert not missing, f"{name} needs {missing}"


def test_every_part_says_what_it_takes_and_its_paths_exist() -> None:
    """A path that is not there is never changed."""
    table = turns.read()
    assert all(part.seconds > 0 for part in table.parts.values())
    assert all(part.tier == "rest" for part in table.parts.values() if part.own), "only parts of `rest` take turns"
    files = turns.contents()
    nothing = turns.digest(files, [])
    for path in [*table.common, *(path for part in table.parts.values() for path in part.own)]:
        assert turns.digest(files, [path]) != nothing, path


@pytest.mark.parametrize("changed", ["nothing", "all", "what all use", "each"])
def test_no_tree_takes_longer_than_its_limit_and_each_part_has_its_turn(changed: str) -> None:
    """By the seconds of the table, over a thousand trees."""
    table = turns.read()
    assert table.limit <= 2400 - 150
    every = turns.named(table.parts, ["test", "rest"])
    taking = [part.name for part in every if part.own]
    rank = {"nothing": 2, "all": 0, "what all use": 1, "each": 2}[changed]
    seen = Counter()
    for number in range(1000):
        why = dict.fromkeys(taking, rank)
        first = taking[number % len(taking)]
        if changed == "each":
            why[first] = 0
        due = turns.due(table, every, f"tree {number}", why)
        assert sum(part.seconds for part in due) <= table.limit
        assert {part.name for part in every if not part.own and part.tier != "prepare"} <= {part.name for part in due}
        needed = {need for part in due for need in part.needs}
        assert {part.name for part in due if part.tier == "prepare"} <= needed, "nothing is prepared in vain"
        names = [part.name for part in due if part.own]
        if changed == "each":
            assert first in names, "what the change touches runs"
        seen.update(names)
    fewest = 1000 / (2 * len(taking))
    assert not [name for name in taking if seen[name] < fewest], seen
