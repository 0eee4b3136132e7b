"""The tutorial notebook runs from top to bottom and shows what it speaks of."""

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
        warnings.simplefilter("ignore")  # the kernel's client has its own
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells[1:] if cell.cell_type == "code"]


def _shown(cells: list[Any], kind: str) -> list[str]:
    return [output.data[kind] for cell in cells for output in cell.outputs if kind in output.get("data", {})]


def _is_complete(cells: list[Any]) -> None:
    assert all(len(cell.outputs) == 1 and cell.outputs[0].output_type == "execute_result" for cell in cells)
    frames = [html for html in _shown(cells, "text/html") if "<iframe" in html]
    assert len(frames) == 3
    assert all(html.count("class=&quot;line s") >= 2 for html in frames)
    assert any("newreno" in text for text in _shown(cells, "text/plain"))
    assert any(re.search(r"7Mbit/s[\s\S]*8Mbit/s[\s\S]*9Mbit/s", text) for text in _shown(cells, "text/plain"))


def test_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _is_complete(_run(monkeypatch, tmp_path, "import fake_native\nfake_native.install()"))


def test_runs_on_the_compiled_engine(native_real: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _is_complete(_run(monkeypatch, tmp_path, "pass"))


def test_is_kept_without_outputs() -> None:
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 5
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_show_says_what_is_wrong(scenario: Path, bare_scenario: Path) -> None:
    with pytest.raises(ValueError, match="the figures are: response, tradeoff, throughput, delay, queue"):
        explicate.show(explicate.run(scenario), "histogram")
    with pytest.raises(ValueError, match=r'of = \["rtt"\]'):
        explicate.show(explicate.run(bare_scenario), "rtt")
    assert "Goodput of each flow" in explicate.show(explicate.run(bare_scenario)).html
