"""Two results side by side: intervals against hand computation, verdicts, the command and its page."""

import json
import math
from pathlib import Path

import polars as pl
import pytest

import explicate
from explicate.cli import main
from explicate.difference import EQUAL, SURE, UNKNOWN, UNSURE, _compared


def _side(values: list[float | None], first: int = 1) -> pl.DataFrame:
    return pl.DataFrame(
        {"seed": range(first, first + len(values)), "m": values}, schema={"seed": pl.UInt64, "m": pl.Float64}
    )


def test_equal_seeds_are_paired() -> None:
    found = _compared(_side([10.0, 20.0, 30.0]), _side([11.0, 22.0, 33.0]), "m")
    assert (found["a"], found["b"], found["difference"]) == (20.0, 22.0, 2.0)
    assert found["margin_95"] == pytest.approx(4.303 * 1.0 / math.sqrt(3))  # gaps 1, 2, 3; Student's t of 2
    assert found["verdict"] == UNSURE
    assert _compared(_side([10.0, 20.0, 30.0]), _side([12.0, 22.1, 32.0]), "m")["verdict"] == SURE


def test_other_seeds_by_welch() -> None:
    found = _compared(_side([1.0, 2.0, 3.0]), _side([5.0, 9.0], first=10), "m")
    # Variances 1/3 and 8/2: error² 13/3; freedom (13/3)² / ((1/3)²/2 + 4²/1) = 1.17, so one.
    assert found["margin_95"] == pytest.approx(12.706 * math.sqrt(13 / 3))
    assert found["verdict"] == UNSURE


def test_what_has_no_interval() -> None:
    assert _compared(_side([1.0]), _side([2.0]), "m")["verdict"] == UNKNOWN
    assert _compared(_side([1.0, 1.0]), _side([1.0, 1.0]), "m")["verdict"] == EQUAL
    assert _compared(_side([1.0, 1.0]), _side([2.0, 2.0]), "m")["verdict"] == SURE, "no seed does that"
    assert _compared(_side([None]), _side([2.0]), "m")["verdict"] == "only in B"
    assert _compared(_side([None]), _side([None]), "m") == {}


def test_a_slower_protocol_differs(scenario: Path, tmp_path: Path) -> None:
    one = explicate.run(scenario).write(tmp_path / "one")
    other = explicate.run(scenario, set={"flows.1.protocol": "newreno"}).write(tmp_path / "other")
    found = explicate.diff(one, other)
    assert found.names == ("one", "other")
    row = found.table().row(by_predicate=pl.col("measure") == "links.r1->r2.drops_total.sum", named=True)
    assert (row["a"], row["b"], row["difference"], row["verdict"]) == (0.0, 120.0, 120.0, SURE)
    assert '-protocol = "xcp"\n+protocol = "newreno"' in found.text()
    assert found.together().axes == ("results",)
    (measure,) = explicate.diff(one, other, ["flows.rtt_mean_ms.p99"]).table()["measure"].to_list()
    assert measure == "flows.rtt_mean_ms.p99"


def test_equal_results(scenario: Path, tmp_path: Path) -> None:
    folder = explicate.run(scenario).write(tmp_path / "one")
    found = explicate.diff(folder, explicate.run(scenario))
    assert found.same
    assert found.text() == "one and B: flows, links and samples are equal"
    assert set(found.table()["verdict"]) <= {EQUAL, UNSURE}


def test_comparisons_point_by_point(scenario: Path) -> None:
    one, other = (explicate.compare(scenario, ["xcp", "newreno"], seed=seed) for seed in (1, 20))
    table = explicate.diff(one, other, ["links.drops_total.sum"]).table()
    assert table.select("variant", "a", "b").rows() == [("xcp", 0.0, 0.0), ("newreno", 120.0, 120.0)]
    with pytest.raises(ValueError, match="A varies variant, B varies nothing"):
        explicate.diff(one, explicate.run(scenario))


def test_the_command(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", 1), ("b", 5)):
        explicate.run(scenario, seed=seed).write(tmp_path / name)
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["diff", *folders, "-o", str(tmp_path / "diff.html")]) == 0
    out = capsys.readouterr().out
    assert "mean goodput, near" in out
    html = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert '<table id="differences"' in html
    assert 'id="throughput"' in html
    assert main(["diff", *folders, "--json", "--measure", "flows.goodput_bps,links.utilisation"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert [row["measure"] for row in about["measures"]] == ["flows.goodput_bps", "links.utilisation"]
    assert main(["diff", folders[0], str(tmp_path / "nowhere")]) == 2
    assert "no results here" in capsys.readouterr().err
    assert main(["diff", *folders, "--measure", "flows.gootput_bps"]) == 2
    assert "did you mean `goodput_bps`" in capsys.readouterr().err
