"""The tutorial notebook runs from top to bottom and shows what it describes."""

import os
import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
from conftest import HERE, PACKAGE_PATH
from nbclient import NotebookClient

import explicate

TUTORIAL = HERE.parent.parent / "docs" / "tutorial.ipynb"


def _run(monkeypatch: pytest.MonkeyPatch, folder: Path, before: str) -> list[Any]:
    """Execute the notebook after the hidden cell `before`; return the code cells."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([PACKAGE_PATH, str(HERE)]))
    notebook = nbformat.read(TUTORIAL, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(before))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the kernel's client has one
        NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]


def _shown(cells: list[Any], kind: str) -> list[str]:
    return [output.data[kind] for cell in cells for output in cell.outputs if kind in output.get("data", {})]


def _is_complete(cells: list[Any]) -> None:
    assert all(len(cell.outputs) == 1 and cell.outputs[0].output_type == "execute_result" for cell in cells)
    assert len(_shown(cells, "image/svg+xml")) == 3
    assert any("newreno" in text for text in _shown(cells, "text/plain"))
    assert any(re.search(r"7Mbit/s[\s\S]*8Mbit/s[\s\S]*9Mbit/s", text) for text in _shown(cells, "text/plain"))


def test_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _is_complete(_run(monkeypatch, tmp_path, "import fake_native\nfake_native.install()"))


def test_what_is_stored_is_what_a_run_shows(
    native_real: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(stored)
    cells = _run(monkeypatch, tmp_path, "pass")
    _is_complete(cells)
    kept = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert len(_shown(kept, "image/svg+xml")) == 3
    tables = [text for text in _shown(kept, "text/plain") if text.startswith("shape:")]
    assert len(tables) == 5
    assert tables == [text for text in _shown(cells, "text/plain") if text.startswith("shape:")]


def test_show_says_what_is_wrong(scenario: Path, bare_scenario: Path) -> None:
    with pytest.raises(ValueError, match="the figures are: response, tradeoff, throughput, delay, queue"):
        explicate.show(explicate.run(scenario), "histogram")
    with pytest.raises(ValueError, match=r'of = \["rtt"\]'):
        explicate.show(explicate.run(bare_scenario), "rtt")
    assert "Goodput of each flow" in explicate.show(explicate.run(bare_scenario)).html
