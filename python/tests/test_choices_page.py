"""docs/reproduction-choices.md: it is what its command writes, and every table has its argument and its rows."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from explicate_papers.plan import choices
from explicate_papers.register import PAPERS

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("trace_choices", SCRIPTS / "trace_choices.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("make_criteria", None)


@pytest.fixture
def record(script: Any) -> dict[str, list[list[str]]]:
    made: dict[str, list[list[str]]] = json.loads(script.RECORD.read_text(encoding="utf-8"))
    return made


def test_the_page_is_what_the_command_writes(script: Any, record: Any) -> None:
    assert script.DOCUMENT.read_text(encoding="utf-8") == script.page(record), "scripts/trace_choices.py renews it"


def test_each_table_has_an_argument_and_rows(script: Any, record: Any) -> None:
    assert set(record) == set(script.ROWS) == set(script.traces())
    for key, one in script.traces().items():
        assert one["why"], key
        assert one["then"], key
        assert record[key], key
        assert all(len(row) == len(one["head"]) for row in record[key]), key
        for identifier in one["ids"]:
            assert identifier in choices(PAPERS[identifier[0]]), identifier


def test_a_window_that_a_loss_halves_carries_what_the_sum_says(script: Any) -> None:
    """24 packets: 0.5 w (1 + 0.6 + 0.36 + ...) is 30 packets of 130."""
    lacking = sum(12 * 0.6**k for k in range(100))
    assert script.carried(24) == pytest.approx(100 / (100 + lacking))
    assert script.carried(24) == pytest.approx(0.769, abs=0.001)
