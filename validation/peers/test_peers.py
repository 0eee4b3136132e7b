"""The parts that need neither ns-2 nor Explicate, on canned output."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import peers
import pytest
import report
import simulators
from footing import FEW, MANY, Footing, footing
from ns3 import Ns3
from simulators import Case, Explicate, Ns2, Outcome, PeerError, Spent

NS2_OUTPUT = """\
{"version": "ns-2 2.35", "system": "sack", "rate_mbps": 10, "flows": 2, "buffer_packets": 50,
 "goodput_bps": [6000000.0, 2000000.0], "retransmissions": 40, "drops": 30, "drops_measured": 4,
 "hops": 600, "utilisation": 0.8, "queue_mean_packets": 20.25, "queue_p95_packets": 41,
 "queue_max_packets": 49, "queue_peak_packets": 50, "time_to_90_s": null}
"""
SACK = Case("sack", 10, 40, 2)
SPREAD = Case("xcp", 45, 40, 30, rtt_high_ms=330)


def explicate_report(queue_max: float, drops: int) -> dict[str, object]:
    link = {
        "link": "r1->r2",
        "utilisation": 0.9,
        "queue_mean_packets": 1.5,
        "queue_p95_packets": 3.0,
        "queue_max_packets": queue_max,
        "drops_overflow": drops,
        "drops_early": 0,
        "drops_channel": 1,
        "time_to_90_s": 0.4,
    }
    flows = [{"goodput_bps": 3e6}, {"goodput_bps": 3e6}]
    return {"flows": flows, "links": [{"link": "r2->r1"}, link]}


def outcome(utilisation: float = 0.5) -> Outcome:
    return Outcome(utilisation, 1.0, 2.0, 3.0, 4.0, 5, 6, 1.0, 0.5)


def test_jain_is_one_when_equal_and_one_over_n_when_one_has_all() -> None:
    assert simulators.jain([7.0, 7.0, 7.0]) == pytest.approx(1.0)
    assert simulators.jain([8.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert simulators.jain([0.0, 0.0]) == 0.0


def test_ns2_output_becomes_an_outcome() -> None:
    found = Ns2.outcome(simulators.parse_report(NS2_OUTPUT))
    assert found == Outcome(0.8, 20.25, 41, 49, 50, 4, 30, 0.8, None)


def test_chatter_before_the_object_is_skipped() -> None:
    assert simulators.parse_report('warning: slow\n{"hops": 3}\n') == {"hops": 3}


@pytest.mark.parametrize("text", ["", "nothing", '{"hops": ', "[1]"])
def test_output_without_an_object_is_an_error(text: str) -> None:
    with pytest.raises(PeerError):
        simulators.parse_report(text)


def test_ns3_is_asked_as_its_twin_is() -> None:
    command = Ns3("dumbbell-ns3").cost_command(Case("sack", 100, 80, 10), 4.0)
    assert command[0] == "dumbbell-ns3"
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert (options["-duration"], options["-warmup"], options["-sample"]) == ("4.0", "0.0", "0")
    assert (options["-buffer"], options["-access"]) == ("1000", "400")
    # The program's table has every option that is given.
    known = (Path(__file__).parent / "dumbbell.cc").read_text(encoding="utf-8")
    assert all(f'{{"{name[1:]}",' in known for name in options)
    with pytest.raises(PeerError, match="ns-3 has no xcp"):
        Ns3("dumbbell-ns3").arguments(SPREAD)


OTHERS: Mapping[str, Any] = {
    "system": "newreno", "rate_mbps": 45, "rtt_ms": 60, "flows": 7, "rtt_high_ms": 330, "starts": "random",
    "processing_s": 0.001, "duration_s": 30.0, "warmup_s": 10.0, "queue": simulators.Queue("red", "red:5:15:0.002:0.1"),
    "seed": 9, "buffer": 33, "opposite": True, "time_stamps": True,
}  # fmt: skip
OURS = ("ours", "params", "router", "rtt_resolution")
"""Fields in Explicate's words alone, which make it equal to the others."""


@pytest.mark.parametrize("simulator", [Ns2("ns"), Ns3("dumbbell-ns3")], ids=["ns-2", "ns-3"])
def test_every_field_of_a_case_is_asked_for_or_refused(simulator: Ns2 | Ns3) -> None:
    plain = Case("sack", 100, 80, 10)
    assert {field.name for field in fields(Case)} == {*OTHERS, *OURS}
    for name, value in OTHERS.items():
        if simulator.name == "ns-3" and name == "seed":
            continue  # nothing is random in it
        with suppress(PeerError):  # it says what the simulator does not have
            assert simulator.arguments(replace(plain, **{name: value})) != simulator.arguments(plain), name


class Grows:
    """A simulator whose flows need 4 ms and 3000 bytes each."""

    name = "ns-3"

    def measure(self, case: Case) -> Outcome:
        raise NotImplementedError

    def cost_command(self, case: Case, duration_s: float) -> list[str]:
        return [str(case.flows), str(duration_s)]


def test_a_flows_footing_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], core: int) -> tuple[dict[str, int], str, float]:
        assert (command[1], core) == ("0.001", 3)
        return {"peak_bytes": 10**6 + 3000 * int(command[0]), "hops": 0}, "", 0.5 + 0.004 * int(command[0])

    monkeypatch.setattr(simulators, "run", run)
    found = footing(Grows(), 3, 2)
    assert (found.flows, found.bytes_per_flow) == (MANY["ns-3"], 3000.0)
    assert found.setup_us == pytest.approx(4000.0)
    assert found.flows > FEW


def test_ns2_is_asked_for_the_case() -> None:
    command = Ns2("ns").arguments(SPREAD)
    options = dict(zip(command[2::2], command[3::2], strict=True))
    assert options["-rtt"] == "40:330"
    assert options["-buffer"] == str(round(45e6 * 0.185 / 8000))
    assert options["-access"] == "180"


def test_explicate_whole_run_columns_come_from_the_run_without_warmup() -> None:
    found = Explicate.outcome(explicate_report(5.0, 0), explicate_report(90.0, 7))
    assert (found.queue_max_packets, found.queue_peak_packets) == (5.0, 90.0)
    assert (found.drops, found.drops_whole_run) == (1, 8)


def test_explicate_without_the_bottleneck_is_an_error() -> None:
    with pytest.raises(PeerError, match="r1->r2"):
        Explicate.outcome({"flows": [], "links": []}, explicate_report(1.0, 0))


def test_scenario_with_equal_rtts_is_one_group_over_80_ms() -> None:
    scenario = tomllib.loads(simulators.explicate_scenario(Case("xcp", 100, 80, 10)))
    topology = scenario["topology"]
    assert topology["bottleneck"]["delay"] == "38ms"
    assert topology["access"]["rate"] == "400Mbit/s"
    assert [group["count"] for group in scenario["flows"]] == [10]


def test_the_resolution_of_a_case_is_that_of_its_headers() -> None:
    case = Case("xcp", 100, 80, 10)
    found = [
        tomllib.loads(simulators.explicate_scenario(one))["flows"][0]["params"]["rtt_resolution"]
        for one in (case, replace(case, rtt_resolution="1ms"))
    ]
    assert found == ["0s", "1ms"]


def test_scenario_with_spread_rtts_adds_up_to_each_flows_rtt() -> None:
    scenario = tomllib.loads(simulators.explicate_scenario(SPREAD))
    bottleneck_ms = float(scenario["topology"]["bottleneck"]["delay"].removesuffix("ms"))
    ends = scenario["topology"]["access"]["delay"]
    access_ms = [float(ends[end].removesuffix("ms")) for end in ("from", "to")]
    assert [2 * (bottleneck_ms + 2 * ms) for ms in access_ms] == [40.0, 330.0]
    assert scenario["topology"]["pairs"] == 30


def test_valgrinds_count_is_read() -> None:
    log = "==7== Cachegrind\n==7== \n==7== I   refs:      1,754,515,200\n"
    assert simulators.parse_instructions(log) == 1_754_515_200
    assert simulators.parse_instructions(f"{log}==8== I refs: 100\n") == 1_754_515_300
    with pytest.raises(PeerError):
        simulators.parse_instructions("==7== killed")


def test_costs_are_those_between_two_runs() -> None:
    short, long = Spent(100, 1.0, 5_000), Spent(300, 1.5, 25_000)
    assert report.per_hop(short, long) == 100.0
    assert report.per_cpu_second(short, long) == 400.0
    with pytest.raises(PeerError):
        report.per_cpu_second(long, short)


def test_ratios_are_taken_within_a_repetition() -> None:
    prices = {
        "ns-2": report.Price(1700.0, [4e6, 2e6, 4e6]),
        "Explicate": report.Price(250.0, [40e6, 30e6, 36e6]),
    }
    assert report.ratios(prices, "Explicate", "ns-2") == [10.0, 15.0, 9.0]
    assert report.ratios(prices, "Explicate", "nobody") == []
    footings = {"ns-2": Footing(200, 12_345.0, 250_000.4)}
    table = report.cost_rows({SACK: prices}, footings, "Explicate")
    assert table[1] == [SACK.name, "ns-2", "1,700", "4", "10.0", "-", "-"]
    assert table[2] == [SACK.name, "Explicate", "250", "36", "-", "-", "-"]
    assert table[3][1:] == ["ns-2", "-", "-", "-", "1.23e+04", "250,000"]


def test_a_missing_simulator_leaves_its_column_empty() -> None:
    rows = report.case_rows({"ns-2": outcome()}, ["ns-2", "Explicate"])
    assert rows[1] == ["utilisation, %", "50.00", "-"]
    prices = {"ns-2": report.Price(1700.0, [4e6])}
    assert report.cost_rows({SACK: prices}, {}, "Explicate")[1][4] == "-"


def test_terminal_columns_are_in_line() -> None:
    lines = report.text_table([["what", "a"], ["x", "10.5"]]).splitlines()
    assert lines == ["what     a", "----  ----", "x     10.5"]


def test_markdown_has_a_table_for_each_system() -> None:
    both = {"ns-2": outcome(0.5), "Explicate": outcome(0.625)}
    text = report.validation_fragment({SACK: both}, ["ns-2", "Explicate"])
    assert "**TCP SACK**" in text
    assert "**XCP**" not in text
    assert "| 10 Mbit/s, 40 ms, 2 flows | 50.00 / 62.50 | 1.0 / 1.0 |" in text


def test_a_fragment_replaces_what_stands_between_the_markers(tmp_path: Path) -> None:
    document = tmp_path / "docs" / "validation.md"
    report.place(document, "one")
    document.write_text(f"# Title\n\n{document.read_text()}\nThe end.\n")
    report.place(document, "two")
    text = document.read_text()
    assert text.startswith("# Title\n\n")
    assert text.endswith("\nThe end.\n")
    assert "two" in text
    assert "one" not in text


def test_a_document_without_markers_is_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "validation.md"
    document.write_text("# Title\n")
    with pytest.raises(PeerError):
        report.place(document, "one")
    assert document.read_text() == "# Title\n"


def test_the_quick_subset_leaves_out_the_expensive_cases() -> None:
    cases, timings = peers.quick(peers.CASES, peers.TIMINGS)
    assert {case.rate_mbps for case in cases} == {10, 30, 100}
    assert {case.system for case in cases} == {"xcp", "sack"}
    assert {timing.case.rate_mbps for timing in timings} == {100}


def test_a_missing_command_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    code = peers.main(["--only", "ns2", "--quick", "--no-cost", "--ns", "no-such-ns"])
    assert code == 2
    assert "no-such-ns: no such command" in capsys.readouterr().err


def test_bench_names() -> None:
    assert [timing.case.bench_name for timing in peers.TIMINGS] == [
        "xcp-100M-10",
        "xcp-1G-10",
        "sack-100M-10",
        "sack-1G-10",
    ]


def test_the_whole_command_over_stand_ins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Runs are pinned to a core where that can be done; here it need not be.
    (tmp_path / "taskset").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    (tmp_path / "taskset").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    both = [stand_in(tmp_path / "ns", NS2_OUTPUT)]
    both.append(stand_in(tmp_path / "explicate", json.dumps(explicate_report(5.0, 0))))
    command = ["--quick", "--no-cost", "--ns", both[0], "--explicate", both[1]]
    written = tmp_path / "all.json"
    assert peers.main([*command, "--json", str(written), "--markdown", f"{tmp_path}/"]) == 0
    table = capsys.readouterr().out
    assert table.splitlines()[5].split()[2:] == ["80.00", "90.00"]
    assert "80.00 / 90.00" in (tmp_path / "validation.md").read_text()
    assert not (tmp_path / "performance.md").exists()
    first = json.loads(written.read_text())["cases"][0]["outcomes"]
    assert first["Explicate"]["queue_max_packets"] == 5.0


def stand_in(path: Path, output: str) -> str:
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(("processing_s", "line"), [(0.0, "none"), (80e-6, "80us")])
def test_both_simulators_take_the_same_processing_time(processing_s: float, line: str) -> None:
    case = replace(SPREAD, starts="random", processing_s=processing_s)
    scenario = tomllib.loads(simulators.explicate_scenario(case))
    assert [group["processing"] for group in scenario["flows"]] == [line]
    assert "channel" not in scenario["topology"]["access"], "no jitter of ours alone"
    arguments = simulators.Ns2().arguments(case)
    assert float(arguments[arguments.index("-overhead") + 1]) == processing_s
