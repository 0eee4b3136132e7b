"""The study of what may share the queues of L4S: its flows and paths, its criterion, its page."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from explicate.cli import BAD_INPUT, main
from explicate.studies import bits, l4s
from explicate.studies.bits import Record
from explicate.studies.l4s import FIELDS, LAWS, Claim, Judged, Pair, Where

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
Blocks = list[list[float]]


def pair(name: str) -> Pair:
    return next(one for one in l4s.pairs() if one.name == name)


def measures(other: float, delay: float, one: float, *, blocks: Blocks | None = None) -> dict[str, Blocks]:
    """Return values of a flow beside CUBIC over 40 Mbit/s; `blocks` in the place of the neighbour's goodput."""
    means = {"one": one, "other": other, "use": (one + other) / 40, "classic99": delay}
    made = {name: [[value * 0.999, value * 1.001]] * 2 for name, value in means.items()}
    return {**{name: [[math.nan] * 2] * 2 for name in FIELDS}, **made, **({"other": blocks} if blocks else {})}


REFERENCES = {"cubic": measures(19.0, 20.0, 19.0), "prague": measures(13.0, 22.0, 25.0)}


@pytest.mark.usefixtures("native_real")
def test_every_flow_has_a_scenario_beside_every_neighbour() -> None:
    for one in l4s.pairs():
        for law in LAWS:
            checked = one.source(law).check()
            assert (checked["duration_s"], checked["warnings"]) == (one.duration, []), (one.name, law.name)


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        (measures(12.0, 20.0, 26.0), "lives together"),  # 8 % less than beside Prague
        (measures(15.0, 36.0, 22.0), "lives together"),  # 14 ms more than beside Prague
        (measures(11.0, 20.0, 27.0), "harms (goodput)"),
        (measures(15.0, 38.0, 20.0), "harms (delay)"),
        (measures(34.0, 20.0, 4.0), "is harmed"),
        (measures(14.0, 20.0, 17.5), "wastes the line"),
        (measures(4.0, 40.0, 9.0), "harms (goodput, delay), is harmed, wastes the line"),
        (measures(13.0, 20.0, 26.0, blocks=[[11.0, 11.1], [15.0, 15.1]]), "undecided (goodput)"),  # one block
        (measures(13.0, 20.0, 26.0, blocks=[[1.0, 21.0], [1.0, 21.0]]), "undecided (goodput)"),  # wide intervals
        (measures(13.0, math.nan, 26.0), "undecided (delay)"),
    ],
)
def test_the_criterion(mine: dict[str, Blocks], words: str) -> None:
    found = l4s.judge(pair("40-20-cubic"), {**REFERENCES, "xcp": mine}, "xcp")
    assert found is not None
    assert found.words() == words


def test_a_reference_lives_together_and_without_both_there_is_no_verdict() -> None:
    one = pair("40-20-cubic")
    assert l4s.judge(one, REFERENCES, "cubic") == Judged((), ())
    assert l4s.judge(one, {"cubic": REFERENCES["cubic"], "xcp": REFERENCES["prague"]}, "xcp") is None
    assert "no verdict without cubic and prague: add them to --laws" in l4s.shown(one, {"cubic": REFERENCES["cubic"]})


@pytest.mark.parametrize(
    ("worse", "holds"),
    [(0, {Where.NOWHERE}), (1, {Where.SOMEWHERE}), (8, {Where.SOMEWHERE, Where.EVERYWHERE})],
)
def test_a_claim_counts_pairs(worse: int, holds: set[Where], monkeypatch: pytest.MonkeyPatch) -> None:
    names = [one.name for one in l4s.pairs()]
    monkeypatch.setattr(l4s, "judge", lambda one, *_: Judged(("goodput",) * (names.index(one.name) < worse), ()))
    assert {where for where in Where if Claim("", ("xcp",), l4s.HARM, where).holds({})} == holds


def test_what_is_undecided_is_not_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(l4s, "judge", lambda *_: Judged((), ("delay",)))
    claim = Claim("", ("xcp",), l4s.HARM, Where.NOWHERE)
    assert claim.counts({}) == {"xcp": (0, 8)}
    assert not claim.holds({})


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "l4s", "--only", "40-20-cubik"]) == BAD_INPUT
    assert "there is no network '40-20-cubik'; did you mean `40-20-cubic`?" in capsys.readouterr().err
    assert main(["study", "l4s", "--laws", "bbr3"]) == BAD_INPUT
    assert "there is no law 'bbr3'; there are cubic, cubic-ecn," in capsys.readouterr().err
    assert [one.name for one in l4s.chosen(["10-50"], [], quick=True)[0]] == ["10-50-cubic", "10-50-prague"]


@pytest.mark.usefixtures("native_real")
def test_goodputs_and_waits_are_those_of_the_flow_its_neighbour_and_the_queues(tmp_path: Path) -> None:
    networks, laws = l4s.chosen(["10-50-cubic"], ["cubic", "prague"], quick=True)
    record = bits.perform(networks, laws, seeds=1, store=tmp_path, study=l4s.NAME)
    assert not record.failed

    def mean(law: str, name: str) -> float:
        return sum(block[0] for block in record.values["10-50-cubic"][law][name]) / 2

    for law in ("cubic", "prague"):
        carried = mean(law, "one") + mean(law, "other")
        assert 8.0 < carried < 10.0
        assert math.isclose(carried, 10 * mean(law, "use"), rel_tol=1e-4)
        assert 5.0 < mean(law, "classic") < mean(law, "classic99") < 60.0
    assert math.isnan(mean("cubic", "low"))
    assert 0.0 < mean("prague", "low") < mean("prague", "low99") < 10.0


# ------------------------------------------------------------------------------------------------------ page


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_l4s", SCRIPTS / "make_l4s.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_l4s", module)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_tables_of_a_complete_record(script: Any) -> None:
    record = Record.read(script.RECORD, l4s.NAME)
    assert {name: list(values) for name, values in record.values.items()} == {
        one.name: [law.name for law in LAWS] for one in l4s.pairs()
    }
    for name, text in script.parts(record).items():
        assert script.between(script.PAGE, name) == f"\n{text}\n", "scripts/make_l4s.py renews it"
