"""Tables and figures of gateway-bench: their contents, without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from gateway_bench import __main__ as main
from gateway_bench import case, cases, measures, net, table, ways


def test_a_table_has_medians_ranges_verdicts_and_what_failed() -> None:
    wanted = {"seconds": case.beside("bbr", 0.5, "half of bbr's"), "share of the line": case.at_least(0.7, "70 %")}
    page = case.Case("page", net.Line("20Mbit/s", "2Mbit/s"), measures.transfer, wanted)
    runs = {
        "gateway": [{"seconds": s, "share of the line": 0.6} for s in (3.0, 1.0, 2.0)],
        "bbr": [{"seconds": 4.0, "share of the line": 0.3}],
        "kcptun": ["BenchError: in vain: the server listens"],
    }
    seconds, share = table.rows(page, runs, 3)
    assert seconds == (
        "| page | seconds | ≤ half of bbr's: yes | 2 (1 to 3) | 4 (1 run) |  |  |  |"
        " 1 failed: BenchError: in vain: the server listens |"
    )
    assert share.startswith("| page | share of the line | ≥ 70 %: **no** | 60.0%")
    del runs["bbr"]
    assert "≤ half of bbr's: not run" in table.rows(page, runs, 3)[0]


def test_every_figure_that_is_wanted_can_be_judged() -> None:
    for one in cases.CASES:
        for name, wanted in one.wanted.items():
            best = {way: 0.0 if wanted.text.startswith("≤") else 1e9 for way in one.ways}
            verdicts = {wanted.verdict({**best, "gateway": value}) for value in (0.0, 1e9)}
            assert any(text.endswith("**no**") for text in verdicts), (one.name, name)


def test_jain_and_percentiles() -> None:
    assert measures.jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert measures.jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert measures.percentile([float(i) for i in range(100)], 0.95) == 95


def test_a_modem_grants_what_the_trace_had_less_its_queue(tmp_path: Path) -> None:
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
