"""The study "XCP with a capacity that is measured": its hops, its criterion, its page."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explicate.cli import BAD_INPUT, main
from explicate.studies import bits, capacity
from explicate.studies.bits import Record
from explicate.studies.capacity import Hop, Word
from explicate.studies.verdict import Values

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def hop(name: str) -> Hop:
    return next(one for one in capacity.hops() if one.name == name)


@pytest.mark.usefixtures("native_real")
def test_every_system_has_a_scenario_on_every_hop() -> None:
    for one in capacity.hops():
        for system in capacity.SYSTEMS:
            checked = one.source(system).check()
            assert checked["duration_s"] == one.duration
            assert not [said for said in checked["warnings"] if "capacity" in str(said)], (one.name, system.name)


def test_routers_know_what_the_system_says() -> None:
    systems = {one.name: one for one in capacity.SYSTEMS}
    assert 'capacity = "22Mbit/s"' in hop("hop-54").text(systems["told+0"])
    assert 'capacity = "44Mbit/s"' in hop("hop-54").text(systems["told+4"])
    assert '"measured" = "own_time"' in hop("hop-54").text(systems["own"])
    moment = hop("cellular").text(systems["told-4"])
    assert '"rate" = "11.6Mbit/s"' in moment
    assert '"rate" = "5.8Mbit/s"' in moment


def values(**systems: tuple[list[float], list[float], list[float]]) -> Values:
    """Return values in which both blocks of a system have these goodputs, medians and p99."""
    names = ("use", "p50", "p99")
    return {
        name.replace("_", "-").replace("plus", "+"): dict(zip(names, ([one, one] for one in given), strict=True))
        for name, given in systems.items()
    }


def test_the_best_configured_capacity_has_most_of_the_goodput_and_the_least_delay() -> None:
    found = values(
        toldplus0=([10.0, 10.0], [1.0], [5.0]),
        toldplus1=([10.4, 10.4], [1.0], [9.0]),
        told_1=([9.8, 9.8], [1.0], [4.0]),  # 94 % of the most
        measured=([20.0, 20.0], [1.0], [1.0]),
    )
    assert capacity.best(found) == "told+0"
    assert capacity.best(values(measured=([1.0], [1.0], [1.0]))) is None
    assert capacity.wrong("told+0") == {"half of it": "told-4", "twice as much": "told+4"}
    assert capacity.wrong("told-3") == {"twice as much": "told+1"}


@pytest.mark.parametrize(
    ("mine", "word", "failed"),
    [
        (([9.0], [2.0], [8.0]), Word.HOLDS, ()),
        (([8.9], [2.0], [8.0]), Word.FAILS, ("goodput",)),
        (([9.0], [3.6], [8.1]), Word.FAILS, ("p50", "p99")),  # 1 + 0.215 * 12 = 3.58; twice 4
        (([9.0], [3.5], [8.0]), Word.HOLDS, ()),
        (([float("nan")], [1.0], [1.0]), Word.FAILS, ("goodput",)),
    ],
)
def test_the_criterion(mine: tuple[list[float], ...], word: Word, failed: tuple[str, ...]) -> None:
    found = values(toldplus0=([10.0], [1.0], [4.0]), measured=(mine[0], mine[1], mine[2]))
    judged = capacity.judge(hop("hop-54"), found, "measured", "told+0")
    assert (judged.word, judged.failed) == (word, failed)


def test_blocks_that_differ_decide_nothing() -> None:
    found = {
        "told+0": {"use": [[10.0], [10.0]], "p50": [[1.0], [1.0]], "p99": [[1.0], [1.0]]},
        "measured": {"use": [[10.0], [5.0]], "p50": [[1.0], [1.0]], "p99": [[1.0], [1.0]]},
    }
    judged = capacity.judge(hop("hop-54"), found, "measured", "told+0")
    assert (judged.word, judged.failed) == (Word.UNDECIDED, ("goodput",))


@pytest.mark.parametrize(
    ("mine", "word", "share"),
    [
        (([10.0], [12.0], [99.0]), Word.HOLDS, 1.0),
        (([9.1], [12.0], [1.0]), Word.HOLDS, 0.91),
        (([8.9], [12.0], [1.0]), Word.FAILS, 0.89),
        (([20.0], [44.0], [1.0]), Word.FAILS, 48 / 56),  # twice the goodput in 56 ms instead of 24
        (([float("nan")], [1.0], [1.0]), Word.FAILS, None),
    ],
)
def test_the_criterion_of_power(
    mine: tuple[list[float], list[float], list[float]], word: Word, share: float | None
) -> None:
    most, more = ([10.0], [12.0], [20.0]), ([10.5], [20.0], [20.0])  # Mbit/s in 24 and 32 ms
    found = values(toldplus0=most, toldplus1=more, told_1=([4.0], [0.0], [0.0]), measured=mine)
    assert capacity.most_power(hop("hop-54"), found) == "told+0"
    judged = capacity.judge_power(hop("hop-54"), found, "measured", "told+0")
    assert (judged.word, judged.failed) == (word, ())
    assert share is None or judged.share == pytest.approx(share)
    assert capacity.most_power(hop("hop-54"), {"measured": found["measured"]}) is None


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "capacity", "--only", "hop-55"]) == BAD_INPUT
    assert "there is no network 'hop-55'" in capsys.readouterr().err
    assert main(["study", "capacity", "--laws", "told"]) == BAD_INPUT


@pytest.mark.usefixtures("native_real")
def test_a_study_runs_and_is_recorded(tmp_path: Path) -> None:
    systems = capacity.chosen_systems(["measured", "told+0"])
    record = bits.perform(
        capacity.chosen_hops(["hop-54"]), systems, seeds=1, store=tmp_path / "store", study=capacity.NAME
    )
    assert not record.failed
    record.write(tmp_path / "record.json")
    again = Record.read(tmp_path / "record.json", capacity.NAME)
    assert (again.study, again.values["hop-54"]["measured"]["use"]) == (
        "capacity", record.values["hop-54"]["measured"]["use"],
    )  # fmt: skip
    head, body = capacity.table(hop("hop-54"), again.values["hop-54"])
    assert len(body) == 2
    assert all(len(row) == len(head) for row in body)


def test_a_recording_is_two_hops(tmp_path: Path) -> None:
    # A second: 500 chances up to 500 ms, 12 Mbit/s; 50 then, 1.2. It repeats.
    file = tmp_path / "LTE $1.down"
    file.write_text("\n".join(map(str, [*range(1, 501), *range(510, 1001, 10)])) + "\n", encoding="ascii")
    networks, _ = capacity.chosen(["trace"], [], quick=True, traces=[str(file), str(file)])
    assert [one.name for one in networks] == [
        "trace-LTE-1.down", "trace-LTE-1.down-constant", "trace-LTE-1.down~2", "trace-LTE-1.down-constant~2",
    ]  # fmt: skip
    follows, constant = networks[:2]
    assert (follows.follows, follows.told, constant.follows) == (True, 1.0, False)
    assert constant.told == pytest.approx(6.6), "its mean rate"
    assert (follows.rtt, follows.limit_packets, follows.duration) == (40, 333, 60)
    systems = {one.name: one for one in capacity.SYSTEMS}
    assert '"at" = "0.5s", "rate" = "2.4Mbit/s"' in follows.text(systems["told+4"]), "twice the rate of the moment"
    assert 'capacity = "13.2Mbit/s"' in constant.text(systems["told+4"])
    assert '"measured" = "air_time"' in constant.text(systems["measured"])
    assert "LTE $1.down" in constant.text(systems["measured"])
    chosen, _ = capacity.chosen(["trace-LTE-1.down", "hop-54"], [], quick=True, traces=[str(file)])
    assert [one.name for one in chosen] == ["hop-54", "trace-LTE-1.down"]
    every, _ = capacity.chosen([], [], quick=True, traces=[str(file)])
    assert [one.name for one in every] == [one.name for one in (*capacity.hops(), follows, constant)]


@pytest.mark.usefixtures("native_real")
def test_a_study_of_a_recording_runs_and_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "LTE $1.down", tmp_path / "mine.json"
    file.write_text("\n".join(str(ms) for ms in range(2, 9001, 2)), encoding="ascii")
    made = capacity.recorded_hops([str(file)])
    for one in made:
        for system in capacity.SYSTEMS:
            assert one.source(system).check()["warnings"] == hop("cellular").source(system).check()["warnings"]
    monkeypatch.setattr(bits, "SEEDS", {"quick": 1, "full": 1})
    words = ["study", "capacity", "--only", "trace", "--trace", str(file), "--laws", "measured,told+0,abc"]
    assert main([*words, "--store", str(tmp_path / "s"), "-o", str(out)]) == 0
    shown, said = capsys.readouterr()
    assert "trace-LTE-1.down-constant: The recording LTE $1.down, against a constant" in shown
    assert "12 of 12 runs to do" in said
    record = Record.read(out, capacity.NAME)
    assert list(record.values) == [one.name for one in made]
    for laws in record.values.values():
        carried = [value for law in laws.values() for block in law["use"] for value in block]
        assert len(carried) == 6
        assert all(4.8 < value < 6.0 for value in carried), "Mbit/s of 6"


# ------------------------------------------------------------------------------------------------------ page


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_capacity", SCRIPTS / "make_capacity.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_capacity", module)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_command_writes(script: Any) -> None:
    records = [Record.read(path, capacity.NAME) for path in (script.RECORD, script.TRACES)]
    for path, text in script.files(*records).items():
        assert path.read_text(encoding="utf-8") == text, f"scripts/make_capacity.py renews {path.name}"


def test_the_page_has_no_recording_of_a_user(script: Any) -> None:
    record, traces = (Record.read(path, capacity.NAME) for path in (script.RECORD, script.TRACES))
    mine = {"trace-mine.down": record.values["cellular"], "trace-mine.down-constant": record.values["cellular"]}
    assert script.files(replace(record, values={**record.values, **mine}), traces) == script.files(record, traces)


def test_the_tables_of_recordings(script: Any) -> None:
    """A recording that has only runs of a constant still has a row; the criteria report what `capacity` reports."""
    mine = values(toldplus0=([10.0], [40.0], [90.0]), measured=([9.5], [2.0], [60.0]))
    traces = Record("quick", 1, "0", {"trace-LTE.up": {}, "trace-LTE.up-constant": mine}, study=capacity.NAME)
    text = "\n".join(script.over_recordings(traces))
    assert "| LTE up | the rate of the moment | – | – | – | – | – | – | – |" in text
    assert "| LTE up | a constant | holds, 0.95 | – | – | – | – | – | – |" in text
    assert "| LTE up | – | 10 at 40 / 90 (1) | – | – |" in text
    assert "against constants it holds on 1 (LTE up)" in "\n".join(script.by_power([], traces))
