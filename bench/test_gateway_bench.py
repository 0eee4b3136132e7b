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
    for one in [*cases.CASES, *(one for of in cases.COUNTED.values() for one in of)]:
        for name, wanted in one.wanted.items():
            best = {way: 0.0 if wanted.text.startswith("≤") else 1e9 for way in one.ways}
            verdicts = {wanted.verdict({**best, "gateway": value}) for value in (0.0, 1e9)}
            assert any(text.endswith("**no**") for text in verdicts), (one.name, name)


def test_a_table_by_connections_judges_all_numbers_of_them(tmp_path: Path) -> None:
    assert [one.connections for one in cases.COUNTED["shares"]] == [1, 10, 100]
    assert [len(one.files) for one in cases.COUNTED["10 MiB"]] == [1, 10, 100]
    results: table.Results = {
        f"unshaped, {count}": {"gateway": [{"Gbit/s": 2.0 - low}, {"Gbit/s": 2.0}, {"Gbit/s": 2.5}]}
        for count, low in ((1, 0.0), (10, 0.5), (100, 1.5))
    }
    one_kind = {"unshaped": cases.COUNTED["unshaped"]}
    text = table.by_connections(one_kind, results)
    assert text.splitlines()[0] == "| case | figure | wanted | 1 connection | 10 connections | 100 connections |"
    assert text.splitlines()[2:] == [
        "| unshaped | Gbit/s | ≥ 1: yes | 2 (2 to 2.5) | 2 (1.5 to 2.5) | 2 (0.5 to 2.5) |"
    ]
    results["unshaped, 100"] = {"gateway": [{"Gbit/s": 0.5}]}
    assert "| ≥ 1: **no** | 2 (2 to 2.5) | 2 (1.5 to 2.5) | 0.5 (1 run) |" in table.by_connections(one_kind, results)
    del results["unshaped, 10"], results["unshaped, 100"]
    assert "| ≥ 1: not run | 2 (2 to 2.5) |  |  |" in table.by_connections(one_kind, results)
    page = tmp_path / "page.md"
    page.write_text("a <!-- gateway-connections:begin -->old<!-- gateway-connections:end --> b")
    table.put(page, table.CONNECTIONS, "new")
    assert page.read_text() == "a <!-- gateway-connections:begin -->\n\nnew\n\n<!-- gateway-connections:end --> b"


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
