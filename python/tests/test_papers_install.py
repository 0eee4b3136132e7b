"""The papers are a separate distribution, which `explicate` needs only for `reproduce` and `study papers`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import child_environment

from explicate.cli import main

ROOT = Path(__file__).resolve().parents[2]


def test_both_distributions_have_one_version() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    papers = tomllib.loads((ROOT / "papers" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = workspace["workspace"]["package"]["version"]
    assert papers["version"] == version
    assert f"explicate=={version}" in papers["dependencies"]


def test_two_commands_import_the_papers_when_they_run() -> None:
    sources = sorted((ROOT / "python" / "explicate").rglob("*.py"))
    named = [path.name for path in sources if "explicate_papers" in path.read_text(encoding="utf-8")]
    assert named == ["distribution.py", "reproduce.py", "study.py"]
    code = (
        "import fake_native; fake_native.install(); import sys, explicate.cli\n"
        "sys.exit(any(name.startswith('explicate_papers') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], env=child_environment(), check=False).returncode == 0


@pytest.mark.parametrize("command", ["reproduce", "study papers"])
def test_without_the_papers_a_command_says_how_to_install_them(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "explicate_papers"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "explicate_papers", None)
    assert main([*command.split(), "--list"]) == 2
    said = capsys.readouterr().err
    assert f"`explicate {command}` needs the papers' experiments: `pip install explicate-papers`" in said


def test_papers_that_lack_a_module_are_a_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "explicate_papers.command", None)
    monkeypatch.delattr("explicate_papers.command", raising=False)
    main(["reproduce", "--list"])
    said = capsys.readouterr().err
    assert "explicate_papers.command" in said
    assert "pip install" not in said
