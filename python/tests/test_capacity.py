"""The study "XCP with a capacity that is measured": its hops, its criterion, its page."""

from __future__ import annotations

import importlib.util
import sys
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
    record = Record.read(script.RECORD, capacity.NAME)
    for path, text in script.files(record).items():
        assert path.read_text(encoding="utf-8") == text, f"scripts/make_capacity.py renews {path.name}"
