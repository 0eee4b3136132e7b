"""Files in the folder of ``-o`` that commands replace, and files that they do not change."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import explicate
from explicate import examples
from explicate.cli import main
from explicate.results import Results, stack
from explicate.source import Source

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def other(scenario: Path) -> Path:
    """A second scenario, with another name."""
    path = scenario.with_name("other.toml")
    path.write_text(scenario.read_text(encoding="utf-8").replace('"small"', '"other"'), encoding="utf-8")
    return path


COMMANDS = {
    "run": ["run"],
    "comparison": ["compare", "--protocols", "xcp,newreno"],
    "sweep": ["sweep", "--vary", "flows.0.count=1,2"],
}


def command(kind: str, scenario: Path, folder: Path, *more: str) -> list[str]:
    verb, *options = COMMANDS[kind]
    return [verb, str(scenario), *options, "-o", str(folder), *more]


@pytest.mark.parametrize("kind", COMMANDS)
def test_results_of_the_same_scenario_are_replaced(kind: str, scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(command(kind, scenario, out)) == 0
    assert main(["report", str(out)]) == 0
    assert (out / "report.html").exists()
    assert main(command(kind, scenario, out, "--set", "duration=25s", "--seed", "9")) == 0
    assert Results.load(out).seed == 9
    assert not (out / "report.html").exists(), "the page of older results is left"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", COMMANDS)
def test_results_of_another_scenario_are_kept(
    kind: str, scenario: Path, other: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert main(command(kind, other, out)) == 0
    before = {path: path.read_bytes() for path in out.iterdir() if path.is_file()}
    capsys.readouterr()
    assert main(command(kind, scenario, out)) == 2
    streams = capsys.readouterr()
    assert f"{out}: has a {kind} of `other`" in streams.err
    assert "choose another directory for -o, or replace it with --force" in streams.err
    assert streams.out == ""
    assert {path: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    assert main(command(kind, scenario, out, "--force")) == 0
    assert Results.load(out).name == "small"


def test_a_sweep_is_not_replaced_by_a_run(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(command("sweep", scenario, out)) == 0
    assert main(command("run", scenario, out)) == 2
    assert "has a sweep of `small`" in capsys.readouterr().err
    assert main(["sweep", str(scenario), "--vary", "seed=1,2,3", "-o", str(out)]) == 0, "another sweep of it"


@pytest.mark.parametrize("name", ["flows.parquet", "links.csv", "report.html", "trace.txt"])
def test_what_is_no_result_is_never_replaced(name: str, scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("another program's", encoding="utf-8")
    assert main(command("run", scenario, out, "--force")) == 2
    assert f"{out}: has {name}, but no results (run.json is missing); choose" in capsys.readouterr().err
    assert [path.read_text(encoding="utf-8") for path in out.iterdir()] == ["another program's"]


@pytest.mark.parametrize("text", ["{}", "[1]", "{", '{"format": 7}', "\udcff"])
def test_a_run_json_of_something_else_is_never_replaced(
    text: str, scenario: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "run.json").write_bytes(text.encode(errors="surrogateescape"))
    assert main(command("run", scenario, out, "--force")) == 2
    assert "run.json" in (message := capsys.readouterr().err)
    assert "choose another directory for -o" in message
    assert (out / "run.json").read_bytes() == text.encode(errors="surrogateescape")


@pytest.mark.parametrize("text", [None, "", "{}", "{", '{"format": 7}', "\udcff"])
def test_finished_runs_outlive_a_damaged_run_json(
    text: str | None, scenario: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert main(command("sweep", scenario, out)) == 0
    before = Results.load(out)
    if text is None:
        (out / "run.json").unlink()
    else:
        (out / "run.json").write_bytes(text.encode(errors="surrogateescape"))
    capsys.readouterr()
    assert main(command("sweep", scenario, out)) == 2
    assert f"finished runs are in {out / 'runs'}: --force writes the other files again" in capsys.readouterr().err
    assert main(command("sweep", scenario, out, "--force")) == 0
    assert "; 0 computed now" in capsys.readouterr().out
    assert all(table.equals(Results.load(out).tables()[name]) for name, table in before.tables().items())


def test_results_of_another_version_are_replaced(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(command("run", scenario, out)) == 0
    about = json.loads((out / "run.json").read_text(encoding="utf-8"))
    (out / "run.json").write_text(json.dumps({**about, "format": 0}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"of another version of explicate .format 0, not 1.; run it again"):
        Results.load(out)
    assert main(command("run", scenario, out)) == 0
    assert Results.load(out).name == "small"


def test_other_files_in_the_folder_stay(scenario: Path, tmp_path: Path) -> None:
    """The folder may be that of the scenario, with the user's own files and folders."""
    (tmp_path / "failures").mkdir()
    (tmp_path / "failures" / "mine.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine.parquet").write_text("mine", encoding="utf-8")
    assert main(command("run", scenario, tmp_path)) == 0
    assert main(command("sweep", scenario, tmp_path, "--force")) == 0
    assert scenario.exists()
    assert (tmp_path / "failures" / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "runs" / "mine.parquet").read_text(encoding="utf-8") == "mine"


def test_the_api_replaces_as_its_documentation_says(scenario: Path, other: Path, tmp_path: Path) -> None:
    explicate.run(other).write(tmp_path / "out")
    assert Results.load(explicate.run(scenario).write(tmp_path / "out")).name == "small"


def _damaged(folder: Path) -> Path:
    path = folder / "flows.parquet"
    path.write_bytes(path.read_bytes()[:100])
    return folder


@pytest.mark.parametrize(
    "arguments",
    [["report"], ["plot"], ["plot", "throughput"], ["diff", "{out}"], ["export", "qlog"], ["export", "mahimahi"]],
)
def test_damaged_results_are_bad_input(arguments: list[str], scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    out = explicate.run(scenario).write(tmp_path / "out")
    command, *more = [word.replace("{out}", str(out)) for word in arguments]
    named = [*more, str(out)] if command == "export" else [str(out), *more]
    _damaged(out)
    assert main([command, *named, *(["--link", "r1:r2"] if "mahimahi" in more else [])]) == 2
    assert capsys.readouterr().err.startswith(f"explicate: {out / 'flows.parquet'}: damaged")


@pytest.mark.parametrize("command", [["report"], ["plot"], ["diff", "{out}"], ["export", "qlog"]])
def test_a_file_in_place_of_results(command: list[str], scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    out = explicate.run(scenario).write(tmp_path / "out")
    assert main([*(word.replace("{out}", str(out)) for word in command), str(scenario)]) == 2
    message = f"explicate: {scenario}: is a file; name the directory that `explicate run -o DIR` wrote\n"
    assert capsys.readouterr().err == message


@contextmanager
def full_disk() -> Iterator[None]:
    """No file grows beyond 100 bytes: as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("command", [["report", "{out}"], ["diff", "{out}", "{out}"], ["plot", "{out}", "throughput"]])
def test_a_page_is_replaced_whole_or_not_at_all(
    command: list[str], scenario: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = explicate.run(scenario).write(tmp_path / "out")
    page = tmp_path / "page.svg"
    arguments = [*(word.replace("{out}", str(out)) for word in command), "-o", str(page)]
    for before in (None, "older"):
        if before is not None:
            page.write_text(before, encoding="utf-8")
        with full_disk():
            assert main(arguments) == 2
        assert f"explicate: {page}: File too large" in capsys.readouterr().err
        assert (page.read_text(encoding="utf-8") if page.exists() else None) == before
        assert {path.name for path in tmp_path.iterdir()} <= {"out", "page.svg", "small.toml"}, "a part is left"
    assert main(arguments) == 0
    assert page.stat().st_size > 1000


def test_results_on_a_full_disk_leave_no_empty_folder(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    with full_disk():
        assert main(["run", str(scenario), "-o", str(tmp_path / "out")]) == 2
    streams = capsys.readouterr()
    assert "File too large" in streams.err
    assert "near" in streams.out, "the summary is printed"
    assert not (tmp_path / "out").exists()


def test_a_sweep_on_a_full_disk_leaves_no_part_of_a_file(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    with full_disk():
        assert main(command("sweep", scenario, tmp_path / "out")) == 2
    assert re.search(r"runs/\w+-\d+\.unfinished: .*", capsys.readouterr().err)
    assert list((tmp_path / "out" / "runs").iterdir()) == []


@pytest.mark.parametrize("kind", COMMANDS)
def test_files_are_synced_as_windows_allows(
    kind: str, scenario: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, a file that is open for reading only cannot be synced: no results could be written."""
    synced = []

    def fsync(fd: int) -> None:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise PermissionError(errno.EACCES, "Permission denied")
        synced.append(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    assert main(command(kind, scenario, tmp_path / "out")) == 0, capsys.readouterr().err
    assert len(synced) >= len(list((tmp_path / "out").glob("*.parquet"))) > 0


def test_a_page_through_a_link_and_into_a_device(scenario: Path, tmp_path: Path) -> None:
    out = explicate.run(scenario).write(tmp_path / "out")
    (tmp_path / "real.html").write_text("older", encoding="utf-8")
    (tmp_path / "link.html").symlink_to("real.html")
    assert main(["report", str(out), "-o", str(tmp_path / "link.html")]) == 0
    assert (tmp_path / "link.html").is_symlink()
    assert "<html" in (tmp_path / "real.html").read_text(encoding="utf-8")
    assert main(["report", str(out), "-o", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


def test_a_demo_keeps_the_scenario_that_was_changed(
    tmp_path: Path, native_real: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    text = "\n".join(examples.text("long-fat-pipe").splitlines()).replace('"60s"', '"12s"')
    monkeypatch.setattr(examples, "text", lambda name: text)
    assert main(["demo", "-o", str(tmp_path)]) == 0
    own = tmp_path / "long-fat-pipe.toml"
    own.write_text("changed", encoding="utf-8")
    capsys.readouterr()
    assert main(["demo", "-o", str(tmp_path)]) == 0
    assert own.read_text(encoding="utf-8") == "changed"
    assert f"{own} has changes, which were kept" in capsys.readouterr().err


def test_captures_appear_when_they_are_whole(
    scenario: Path, tmp_path: Path, native_real: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path, folder = tmp_path / "m.toml", tmp_path / "captures"
    path.write_text(explicate.template("dumbbell").replace('"30s"', '"11s"'), encoding="utf-8")
    assert main(["run", str(path), "-q", "--pcap", str(folder)]) == 0
    (capture,) = folder.iterdir()
    before = capture.read_bytes()
    run = explicate.engine.run

    def interrupted(*arguments: Any, **more: Any) -> Any:
        run(*arguments, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(explicate.engine, "run", interrupted)
    assert main(["run", str(path), "--seed", "7", "--pcap", str(folder)]) == 130
    assert [file.read_bytes() for file in folder.iterdir()] == [before]
    assert main(["run", str(path), "--pcap", str(tmp_path / "none")]) == 130
    assert not (tmp_path / "none").exists()


def test_a_comparison_with_a_laboratory_is_a_kind_of_its_own(
    scenario: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def compared(source: Source, overrides: list[tuple[str, str]]) -> Results:
        asked.append(overrides)
        one = explicate.run(source.text)
        return stack([{"world": "simulated"}, {"world": "real"}], [one, one])

    monkeypatch.setattr("explicate.worlds.compare_source", compared)
    out = str(tmp_path / "out")
    assert main(["compare-lab", str(scenario), "--seed", "3", "--set", "runs=1", "-o", out]) == 0
    assert asked == [[("runs", "1"), ("seed", "3")]]
    assert "real" in capsys.readouterr().out
    assert main(["compare-lab", str(scenario), "-o", out]) == 0
    assert main(["run", str(scenario), "-o", out]) == 2
    assert "has a comparison with a laboratory of `small`" in capsys.readouterr().err


def test_a_laboratory_needs_its_program(scenario: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise FileNotFoundError("no explicated on PATH; build it")

    monkeypatch.setattr("explicate.worlds.program", missing)
    assert main(["compare-lab", str(scenario)]) == 2
    assert capsys.readouterr().err == "explicate: no explicated on PATH; build it\n"


@pytest.mark.parametrize("width", ["0", "101", "nan", "wide"])
def test_a_width_that_no_page_has(width: str, capsys: Capture) -> None:
    assert main(["plot", "out", "throughput", "--width", width]) == 2
    assert f"'{width}' is not a width from 1 to 100 inches" in capsys.readouterr().err
