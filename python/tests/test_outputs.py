"""What commands replace in the folder of ``-o``, and what they leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import explicate
from explicate.cli import main
from explicate.results import Results

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
    (out / name).write_text("of somebody else", encoding="utf-8")
    assert main(command("run", scenario, out, "--force")) == 2
    assert f"{out}: has {name}, but no results (run.json is missing); choose" in capsys.readouterr().err
    assert [path.read_text(encoding="utf-8") for path in out.iterdir()] == ["of somebody else"]


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
