"""Tables and figures of gateway-bench: what stands in them, without a network."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of the package, which is no part of the installation."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield lambda name: import_module(f"gateway_bench.{name}")
    for name in [name for name in sys.modules if name.startswith("gateway_bench")]:
        del sys.modules[name]


def test_a_table_has_medians_ranges_verdicts_and_what_failed(part: Any) -> None:
    case = part("case")
    wanted = {"seconds": case.beside("bbr", 0.5, "half of bbr's"), "share of the line": case.at_least(0.7, "70 %")}
    page = case.Case("page", part("net").Line("20Mbit/s", "2Mbit/s"), part("measures").transfer, wanted)
    runs = {
        "gateway": [{"seconds": s, "share of the line": 0.6} for s in (3.0, 1.0, 2.0)],
        "bbr": [{"seconds": 4.0, "share of the line": 0.3}],
        "kcptun": ["BenchError: in vain: the server listens"],
    }
    seconds, share = part("table").rows(page, runs)
    assert seconds == (
        "| page | seconds | ≤ half of bbr's: yes | 2 (1 to 3, 3 runs) | 4 |  |  |  |"
        " 1 failed: BenchError: in vain: the server listens |"
    )
    assert share.startswith("| page | share of the line | ≥ 70 %: **no** | 60.0%")
    del runs["bbr"]
    assert "≤ half of bbr's: not run" in part("table").rows(page, runs)[0]


def test_every_figure_that_is_wanted_can_be_judged(part: Any) -> None:
    for case in part("cases").CASES:
        for name, wanted in case.wanted.items():
            best = {way: 0.0 if wanted.text.startswith("≤") else 1e9 for way in case.ways}
            verdicts = {wanted.verdict({**best, "gateway": value}) for value in (0.0, 1e9)}
            assert any(text.endswith("**no**") for text in verdicts), (case.name, name)


def test_jain_and_percentiles(part: Any) -> None:
    measures = part("measures")
    assert measures.jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert measures.jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert measures.percentile([float(i) for i in range(100)], 0.95) == 95


def test_a_modem_grants_what_the_trace_had_less_its_queue(part: Any, tmp_path: Path) -> None:
    main, ways = part("__main__"), part("ways")
    trace = tmp_path / "trace"
    main.trace_of(((1.0, 12e6), (2.0, 1.2e6)), trace)
    steps = main.steps_of(trace, 0.5)
    assert [round(rate / 1e6, 1) for _, rate in steps[:4]] == [12.0, 12.0, 1.2, 1.2]

    class Link:
        link_began = 0.0

        def last_report(self) -> dict[str, float]:
            return {"queue_bytes": 15_000}

    assert ways.Capacity(tmp_path / "rate", Link(), [(1e12, 10e6)]).rate() == 10e6
    granted = ways.Capacity(tmp_path / "rate", Link(), [(1e12, 10e6)], 0.1).rate()
    assert granted == pytest.approx(ways.EAGER * 10e6 - 8 * 15_000 / ways.DRAIN)
