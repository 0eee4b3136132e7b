"""Versions and addresses are the same everywhere, and can be changed in one place."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import make_man  # noqa: E402
import metadata  # noqa: E402


def test_nothing_differs() -> None:
    assert [str(path) for path in metadata.stale()] == []


def test_a_release_changes_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*metadata.FILES, "packaging/project.toml", "README.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(metadata, "ROOT", tmp_path)
    cargo = tmp_path / "Cargo.toml"
    cargo.write_text(cargo.read_text().replace('\nversion = "0.1.0"', '\nversion = "0.2.0"'))
    filled = 'homepage = "https://example.org"\nrepository = "https://example.org/git"\ndocumentation = ""\n'
    (tmp_path / "packaging" / "project.toml").write_text(filled + 'contact = ""\nreleased = "2027-01-02"\n')
    for path, text in metadata.stale().items():
        path.write_text(text)
    assert metadata.stale() == {}
    assert metadata.empty() == ["documentation", "contact"]
    crates = tomllib.loads(cargo.read_text())["workspace"]
    assert {crate["version"] for crate in crates["dependencies"].values() if "path" in crate} == {"0.2.0"}
    assert crates["package"]["repository"] == "https://example.org/git"
    core = tomllib.loads((tmp_path / "crates/explicate-core/Cargo.toml").read_text())["package"]
    assert core["repository"] == {"workspace": True}
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert project["urls"] == {"Homepage": "https://example.org", "Repository": "https://example.org/git"}
    papers = tomllib.loads((tmp_path / "papers/pyproject.toml").read_text())["project"]
    assert (papers["version"], papers["dependencies"][0]) == ("0.2.0", "explicate==0.2.0")
    citation = (tmp_path / "CITATION.cff").read_text()
    assert "\nversion: 0.2.0\ndate-released: 2027-01-02\nurl: https://example.org\n" in citation


def test_the_man_page_is_that_of_the_parser() -> None:
    assert make_man.PAGE.read_text(encoding="utf-8") == make_man.page(), "python scripts/make_man.py"


def test_what_is_missing_is_named_with_its_remedy(tmp_path: Path) -> None:
    for tool in ("bash", "sed", "cut", "sort", "head", "apt-get"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "/bin/true")
    done = subprocess.run(
        [ROOT / "scripts" / "needs"], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "missing: cargo 1." in done.stderr
    assert "https://sh.rustup.rs" in done.stderr
    assert "sudo apt-get install python3 python3-venv" in done.stderr
