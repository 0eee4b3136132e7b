"""docs/reproduction-seeds.md: it is what its command writes, and a set of seeds is read whole or not at all."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("make_fresh")


def rows(script: Any, **other: str) -> list[dict[str, Any]]:
    """Every claim with its verdict on record, but for `other`, by id with _ for -."""
    changed = {key.replace("_", "-"): word for key, word in other.items()}
    return [
        {
            "predicate": key,
            "basis": "number",
            "verdict": changed.get(key, word),
            "checks": [{"text": f"{key} is met", "met": True}, {"text": f"{key} is not met", "met": False}],
        }
        for key, word in script.on_record().items()
    ]


def put(folder: Path, seed: int, found: list[dict[str, Any]]) -> None:
    (folder / f"seed-{seed}").mkdir()
    (folder / f"seed-{seed}" / "verdicts.json").write_text(json.dumps(found), encoding="utf-8")


def test_the_page_is_what_the_command_writes(script: Any) -> None:
    record = json.loads(script.FRESH.read_text(encoding="utf-8"))
    assert script.DOCUMENT.read_text(encoding="utf-8") == script.page(record), "scripts/make_fresh.py renews it"


def test_verdicts_that_differ_are_counted_and_shown_with_what_is_not_met(script: Any, tmp_path: Path) -> None:
    used = script.on_record()
    held = next(key for key, word in used.items() if word == "holds")
    put(tmp_path, 4001, rows(script, **{held.replace("-", "_"): "fails"}))
    put(tmp_path, 6001, rows(script))
    text = script.page(script.read(tmp_path))
    assert f"**1 of {len(used)} verdicts differ**" in text
    assert f"1 of these is from *holds* to *fails* or back: {held}." in text
    assert f"| {held} | holds | fails | {held} is not met |" in text
    assert f"**0 of {len(used)} verdicts differ** (0.0%); none of these is" in text


def test_a_set_that_is_not_whole_is_refused(script: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no seed-N/verdicts\.json"):
        script.read(tmp_path)
    put(tmp_path, 4001, rows(script)[1:])
    with pytest.raises(SystemExit, match=r"lacks 1 claims, .* reproduce all"):
        script.read(tmp_path)
