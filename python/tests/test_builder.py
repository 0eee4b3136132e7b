"""`explicate.Scenario`: scenarios written in Python, and where they are taken."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explicate
from explicate import Scenario
from explicate.report import page
from explicate.source import Source
from explicate.text import number

ROOT = Path(__file__).resolve().parents[2]
DUMBBELL = (
    Scenario("small", duration="20s", warmup="5s", runs=2, seed=7)
    .topology("dumbbell", pairs=2, bottleneck={"rate": "10Mbit/s", "queue": {"kind": "droptail", "limit": "50pkt"}})
    .flows("near", "xcp", count=2)
    .sampling("500ms", ["throughput", "queue"])
)
TEXT = """\
name = "small"
duration = "20s"
warmup = "5s"
runs = 2
seed = 7

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10Mbit/s", queue = { kind = "droptail", limit = "50pkt" } }

[[flows]]
name = "near"
protocol = "xcp"
count = 2

[sampling]
every = "500ms"
of = ["throughput", "queue"]
"""


def test_a_builder_writes_the_scenario_as_one_would_by_hand() -> None:
    assert DUMBBELL.to_toml() == TEXT
    assert str(DUMBBELL) == TEXT
    assert DUMBBELL.to_dict() == tomllib.loads(TEXT)


def test_links_are_new_or_those_of_the_topology() -> None:
    made = (
        Scenario(duration="1s")
        .node("b", kind="router")
        .link("a", "b", rate="8Mbit/s", queue=None)
        .link(name="r1->r2", channel=[{"kind": "random_loss", "rate": 0.01}])
        .flows("one", "reno", from_="a", to="b")
    )
    assert made.to_dict() == {
        "duration": "1s",
        "node": [{"name": "b", "kind": "router"}, {"name": "a"}],
        "link": [
            {"from": "a", "to": "b", "rate": "8Mbit/s"},
            {"name": "r1->r2", "channel": [{"kind": "random_loss", "rate": 0.01}]},
        ],
        "flows": [{"name": "one", "protocol": "reno", "from": "a", "to": "b"}],
    }
    assert tomllib.loads(made.to_toml()) == made.to_dict()


def test_a_generated_network_has_all_its_nodes() -> None:
    made = Scenario().topology("dumbbell").link("r1", "r2", name="second")
    assert "node" not in made.to_dict()


def test_a_link_has_two_ends_or_a_name() -> None:
    for wrong in ({}, {"from_": "a"}, {"to": "b"}):
        with pytest.raises(ValueError, match=r"link\(\) takes two nodes, or the name of a link"):
            Scenario().link(**wrong)


def test_each_step_is_a_scenario_of_its_own() -> None:
    queue = {"limit": "9pkt"}
    base = Scenario("base").link("a", "b", queue=queue)
    more = base.flows("one", "xcp")
    queue["limit"] = "1pkt"
    more.to_dict()["link"][0]["queue"]["limit"] = "2pkt"
    assert "flows" not in base.to_dict()
    assert more.to_dict()["link"][0]["queue"] == {"limit": "9pkt"}
    assert base.flows("one", "xcp") == more
    assert base != more
    assert pickle.loads(pickle.dumps(more)) == more


def test_keys_are_replaced_and_removed() -> None:
    made = DUMBBELL.replace(seed=None, duration="1s", processing="none").sampling("1s", ["queue"])
    assert made.to_dict() == {
        **{key: value for key, value in DUMBBELL.to_dict().items() if key != "seed"},
        "duration": "1s",
        "processing": "none",
        "sampling": {"every": "1s", "of": ["queue"]},
    }


def test_a_scenario_is_read_from_a_dict_or_a_file() -> None:
    path = ROOT / "scenarios" / "long-fat-pipe.toml"
    given = tomllib.loads(path.read_text(encoding="utf-8"))
    assert Scenario.of(given).to_dict() == given
    assert Scenario.of(path) == Scenario.of(given)
    assert Scenario.of(TEXT) == DUMBBELL
    assert Scenario.of(DUMBBELL) is DUMBBELL


@pytest.mark.parametrize("wrong", [None, object(), {1: 2}, [None]])
def test_what_a_scenario_cannot_hold_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"flows\.0\.params\.x"):
        Scenario().flows("one", "xcp", params={"x": wrong}).to_toml()


values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values, max_size=6))
def test_whatever_toml_holds_comes_back(content: dict[str, Any]) -> None:
    assert tomllib.loads(Scenario.of(content).to_toml()) == content


@pytest.mark.usefixtures("native_real")
def test_the_engine_sees_the_same_scenario_in_all_forms() -> None:
    wanted = Source.of(TEXT).check()["resolved"]
    for scenario in (DUMBBELL, DUMBBELL.to_dict(), TEXT):
        assert Source.of(scenario).check()["resolved"] == wanted


@pytest.mark.usefixtures("native_real")
def test_run_compare_and_sweep_take_all_forms(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(TEXT, encoding="utf-8")
    forms = (DUMBBELL, DUMBBELL.to_dict(), TEXT, path)
    runs = [explicate.run(form, runs=1).flows for form in forms]
    assert all(one.equals(runs[0]) for one in runs)
    compared = [explicate.compare(form, ["xcp", "newreno"], runs=1).flows for form in forms]
    assert all(one.equals(compared[0]) for one in compared)
    swept = [explicate.sweep(form, {"flows.0.count": [1, 2]}, runs=1, jobs=1).flows for form in forms]
    assert all(one.equals(swept[0]) for one in swept)


@pytest.mark.usefixtures("native_real")
def test_an_error_names_the_line_of_the_written_text() -> None:
    with pytest.raises(explicate.ScenarioError, match=r"<scenario>:3"):
        explicate.run(Scenario(duration="20s", warmup="5s").replace(duraton="3s").flows("a", "xcp"))


@pytest.mark.usefixtures("native_real")
def test_the_documented_example_runs() -> None:
    page = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    assert names["results"].flows["variant"].unique(maintain_order=True).to_list() == ["xcp", "newreno"]
    assert names["lossy"].to_dict()["flows"] == names["calm"].to_dict()["flows"]


def test_a_stack_is_for_all_flows_or_for_a_group(native_real: ModuleType) -> None:
    made = Scenario("two", stack="linux", duration="1s").flows("a", "cubic").flows("b", "cubic", stack="ns2")
    assert (made.to_dict()["stack"], [group.get("stack") for group in made.to_dict()["flows"]]) == (
        "linux",
        [None, "ns2"],
    )
    resolved = tomllib.loads(Source.of(made).check()["resolved"])
    assert [group["stack"] for group in resolved["flows"]] == ["linux", "ns2"]
    assert "stack" not in Scenario("none").flows("a", "cubic").to_dict()["flows"][0]
    with pytest.raises(explicate.ScenarioError, match=r"`stack` cannot be `linus`.*did you mean `linux`"):
        explicate.run(made.replace(stack="linus"))


MARKING = {"dctcp": {"kind": "step", "threshold": "20pkt"}, "prague": {"kind": "dualpi2"}}


@pytest.mark.usefixtures("native_real")
@pytest.mark.parametrize("protocol", ["abc", "rcp", "dctcp", "prague", "bbr3"])
def test_what_the_network_says_is_run_sampled_and_reported(protocol: str) -> None:
    queue = {**MARKING.get(protocol, {"kind": "droptail"}), "limit": "200pkt"}
    scenario = (
        Scenario("feedback", duration="4s", warmup="1s")
        .topology("dumbbell", pairs=2, bottleneck={"rate": "20Mbit/s", "delay": "10ms", "queue": queue})
        .flows("own", protocol, count=2)
        .sampling("100ms", ["throughput", "queue", "cwnd", "flow", "router"])
    )
    results = explicate.run(scenario)
    assert results.flows["protocol"].unique().to_list() == [protocol]
    assert results.flows["goodput_bps"].sum() > 10e6
    said = {"abc": "accelerated_share", "rcp": "rate_bps", "dctcp": "alpha", "prague": "mark_probability"}
    variables = results.samples["variable"].cast(pl.String).unique().to_list()
    assert said.get(protocol, "bandwidth_bps") in variables
    marks = results.links.filter(pl.col("link") == "r1->r2")["marks"].item()
    assert (marks > 0) is (protocol in MARKING), marks
    html = page(results)
    assert ('id="feedback"' in html) is (protocol in said), "BBR hears nothing"
    assert f">{protocol}</th>" in html
    assert f'<td class="n">{number(float(marks))}</td>' in html
