"""The pages that package registries show: equal to the repository's, and without links that lead nowhere there."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
metadata = importlib.import_module("metadata")


def test_versions_addresses_and_pages_are_up_to_date() -> None:
    found = subprocess.run(
        [sys.executable, ROOT / "scripts" / "metadata.py"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, f"python scripts/metadata.py --write renews these files:\n{found.stdout}"


@pytest.mark.parametrize("page", ["packaging/readme.md", "papers/README.md"])
def test_no_link_of_a_packaged_page_leads_nowhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert [link[3] for link in metadata.RELATIVE.finditer(text)] == []


def test_links_lead_to_the_repository_once_its_address_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "project", lambda: {"repository": "https://example.org/explicate"})
    text = metadata.packaged(ROOT / "README.md")
    there = f"https://example.org/explicate/{{}}/v{metadata.version()}/docs/"
    assert f"]({there.format('raw')}playground.png)]({there.format('blob')}playground.md)" in text
    assert f"({there.format('blob')}start.md)" in text
    assert metadata.RELATIVE.search(text) is None
