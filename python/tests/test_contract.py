"""The interface of engines: the same tests for the synthetic one and, once it is built, the compiled one."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import fake_native
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import explicate
from explicate import engine
from explicate.files import TABLES
from explicate.report import page


@pytest.fixture(params=["synthetic", "compiled"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Each of the two engines in turn, in place."""
    chosen = request.getfixturevalue("native_real") if request.param == "compiled" else fake_native
    monkeypatch.setattr(engine, "_native", chosen)
    assert isinstance(chosen, ModuleType)
    return chosen


SMALL: dict[str, Any] = {"duration": "6s", "warmup": "1s"}


def test_describes_itself(either: ModuleType) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", engine.version())
    entries = engine.registry()
    assert {"xcp", "droptail"} <= {entry["name"] for entry in entries}
    assert all({"kind", "name", "summary", "source", "parameters"} <= set(entry) for entry in entries)
    assert engine.schema()["$schema"].startswith("https://json-schema.org/")
    assert set(TABLES) <= set(engine.columns())


def test_every_template_runs_with_its_companions(
    native_real: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("dumbbell", "chain", "parking_lot", "star", "explicit", "trace"):
        text = native_real.template(kind)
        for name, contents in json.loads(native_real.companions(kind)).items():
            (tmp_path / name).write_text(contents, encoding="utf-8")
        assert (
            json.loads(native_real.check(text, kind, str(tmp_path), [("duration", "1s"), ("warmup", "0s")]))["links"]
            > 0
        )
    assert (tmp_path / "steps.trace").exists()


def test_template_checks_and_runs(either: ModuleType) -> None:
    text = engine.template("dumbbell")
    checked = engine.check(text, "new.toml", ".", [("seed", "5"), ("runs", "2")])
    assert (checked["seed"], checked["runs"]) == (5, 2)
    assert checked["flows"]
    assert checked["duration_s"] > checked["warmup_s"] >= 0
    again = engine.check(checked["resolved"], "resolved.toml", ".", [])
    assert again["resolved"] == checked["resolved"]
    results = explicate.run(text, seed=5, runs=2, set=SMALL)
    assert results.run["run"].n_unique() == 2
    assert results.seed == 5
    assert results.flows.height == 2 * sum(group["count"] for group in checked["flows"])
    assert results.flows["goodput_bps"].min() > 0  # type: ignore[operator]
    assert 0 < results.jain() <= 1


def test_tables_have_the_documented_columns(either: ModuleType) -> None:
    results = explicate.run(engine.template("dumbbell"), set=SMALL)
    documented = engine.columns()
    for name, frame in results.tables().items():
        assert frame.columns == [column["name"] for column in documented[name]], name
        assert set(fake_native.SCHEMAS[name]) <= set(frame.columns), name


def test_sampled_variables_have_units(native_real: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_native", native_real)
    units = {column["name"]: column["unit"] for column in engine.columns()["samples.variable"]}
    assert (units["cwnd"], units["rtt_ms"], units["throughput_bps"]) == ("segments", "ms", "bit/s")
    sampling = {"sampling.every": "200ms", "sampling.of": ["queue", "throughput", "rtt", "goodput", "flow", "router"]}
    results = explicate.run(engine.template("dumbbell"), set={**SMALL, **sampling})
    assert set(results.samples["variable"].unique()) <= set(units)


def test_headers_convert_throughput_to_goodput(native_real: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_native", native_real)
    headers = {entry["name"]: entry["header_bytes"] for entry in engine.registry() if entry["kind"] == "protocol"}
    assert (headers["reno"], headers["xcp"], headers["xcp_i"]) == (52, 72, 80)
    text = engine.template("dumbbell")
    names = [group["name"] for group in engine.check(text, "a.toml", ".", [])["flows"]]
    keys = {f"flows.{name}.{key}": value for name in names for key, value in (("packet", "1000B"), ("protocol", "xcp"))}
    flows = explicate.run(text, set={**SMALL, **keys}).flows
    expected = flows["throughput_bps"] * (1000 - headers["xcp"]) / 1000
    assert (flows["goodput_bps"] / expected - 1).abs().max() < 0.001  # type: ignore[operator]


def test_a_run_warns_of_what_it_saw(native_real: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine, "_native", native_real)
    text = """
        duration = "2s"
        topology = { kind = "dumbbell", pairs = 2, bottleneck = { rate = "1Mbit/s", delay = "10ms" } }
        flows = [{ name = "loud", count = 2, protocol = "greedy/none", params = { rate = "10Mbit/s" } }]
    """
    narrow = {"topology.access": '{ rate = "2Mbit/s", queue = { limit = "10pkt" } }'}
    refused = "--set topology.access: `s0` refused more packets of its own flows than it delivered over s0->r1"
    assert not any("refused" in w for w in explicate.run(text).warnings)
    for results in (explicate.run(text, set=narrow, runs=3), explicate.sweep(text, {"seed": [1, 2]}, set=narrow)):
        assert sum(w.startswith(refused) for w in results.warnings) == 1, "once, however many runs"
    # The place is that of the cause, in a file its line, whose path no result has.
    cut = tmp_path / "cut.toml"
    cut.write_text(
        'duration = "3s"\nwarmup = "1s"\n[[link]]\nname = "r1->r2"\nchannel = [{ kind = "random_loss", '
        'rate = "100%" }]\n[[flows]]\nname = "bulk"\nprotocol = "cubic"\n',
        encoding="utf-8",
    )
    starved = "a flow of `bulk` delivered nothing after the warm-up"
    axes = {"flows.bulk.protocol": ["cubic", "newreno"]}
    for results in (explicate.run(cut), explicate.sweep(cut, axes), explicate.compare(cut, ["cubic", "newreno"])):
        told = [warning for warning in results.warnings if starved in warning]
        assert [warning.splitlines()[0].partition(": ")[0] for warning in told] == ["scenario:6:1"]
    made = explicate.Scenario.of(cut)
    assert any(warning.startswith(f"flows.bulk: {starved}") for warning in explicate.run(made).warnings)


def test_what_one_scenario_of_several_uses_is_not_superfluous(native_real: ModuleType, tmp_path: Path) -> None:
    """A key that XCP uses and CUBIC does not is there for XCP; one that neither uses is warned of once."""
    text = engine.template("dumbbell")
    few = {**SMALL, "flows.0.protocol": "xcp", "topology.bottleneck.capacity": "8Mbit/s"}
    idle = {**few, "flows.0.size": "10kB", "flows.0.stop": "400ms"}

    def told(results: explicate.Results, what: str) -> list[str]:
        return [warning for warning in results.warnings if what in warning]

    alone = explicate.run(text, set={**few, "flows.0.protocol": "cubic"})
    assert len(told(alone, "`capacity` has no effect")) == 1
    both = ["xcp", "cubic"]
    axes, seen = {"flows.0.protocol": both}, "`stop` has no effect"
    for given, stop in ((few, 0), (idle, 1)):
        for results in (
            explicate.compare(text, both, set=given),
            explicate.sweep(text, axes, set=given),
            explicate.sweep(text, axes, set=given, store=tmp_path / "runs"),
            explicate.sweep(text, axes, set=given, store=tmp_path / "runs"),
        ):
            assert told(results, "`capacity` has no effect") == []
            assert len(told(results, seen)) == stop
    # Neither uses it.
    for results in (
        explicate.compare(text, ["newreno", "cubic"], set=few),
        explicate.compare(text, ["cubic"], set=few),
    ):
        assert len(told(results, "`capacity` has no effect")) == 1
    # Each says so in its own words.
    guarded = explicate.compare(text, ["newreno", "cubic"], set={**few, "flows.0.params.guard": "on"})
    assert len(told(guarded, "`guard` has no effect")) == 2
    assert told(explicate.compare(text, both, set={**few, "flows.0.params.guard": "on"}), "`guard`") == []
    # Settings in a file, and a value of an axis that switches others off.
    file = tmp_path / "mine.toml"
    file.write_text(text + '[[link]]\nname = "r1->r2"\ncapacity = "8Mbit/s"\n', encoding="utf-8")
    assert told(explicate.compare(file, both, set=SMALL), "`capacity`") == []
    lossy = {**SMALL, "topology.bottleneck.channel": '[{ kind = "random_loss", rate = "1%", spread = 0.5 }]'}
    words = {"topology.bottleneck.channel.0.distribution": ["pareto", "normal"]}
    assert told(explicate.sweep(text, words, set=lossy), "`spread`") == []


def test_sampled_objects_are_flows_and_links(either: ModuleType) -> None:
    sampling = {"sampling.every": "200ms", "sampling.of": ["queue", "cwnd", "throughput", "rtt"]}
    results = explicate.run(engine.template("dumbbell"), set={**SMALL, **sampling})
    assert {"queue_packets", "cwnd", "throughput_bps", "rtt_ms"} <= set(results.samples["variable"].unique())
    known = set(results.flows["flow"].cast(pl.String)) | set(results.links["link"])
    assert set(results.samples["object"].cast(pl.String)) <= known
    assert 'id="missing"' not in page(results)


def test_nothing_but_the_seed_decides(either: ModuleType) -> None:
    text = engine.template("dumbbell")
    first, again = (explicate.run(text, seed=3, runs=2, jobs=jobs, set=SMALL) for jobs in (1, 2))
    for name, frame in first.tables().items():
        assert_frame_equal(again.tables()[name], frame)


def test_errors_point_at_the_line(either: ModuleType) -> None:
    text = engine.template("dumbbell")
    line = text[: text.index("duration")].count("\n") + 1
    with pytest.raises(explicate.ScenarioError, match=rf"^mine\.toml:{line}:\d+: .*durration.*[;,?]"):
        engine.check(text.replace("duration", "durration", 1), "mine.toml", ".", [])
    with pytest.raises(explicate.ScenarioError, match="dumbbell"):
        engine.template("nonsuch")
    with pytest.raises(explicate.ScenarioError, match="nonsuch"):
        engine.check(text, "mine.toml", ".", [("flows.0.protocol", "nonsuch")])


def test_progress(either: ModuleType) -> None:
    seen: list[float] = []
    explicate.run(engine.template("dumbbell"), runs=3, set=SMALL, progress=seen.append)
    assert seen == sorted(seen)
    assert all(0 <= fraction <= 1 for fraction in seen)
    assert seen[-1] == 1


def test_a_fluid_has_the_same_tables_in_classes(either: ModuleType) -> None:
    seen: list[float] = []
    text = engine.template("dumbbell")
    fluid = explicate.run(text, set={**SMALL, "flows.0.protocol": "xcp"}, fluid=True, progress=seen.append)
    packets = explicate.run(text, set={**SMALL, "flows.0.protocol": "xcp"})
    assert fluid.flows.columns == [*packets.flows.columns, "count"]
    assert fluid.flows["count"].sum() == packets.flows.height
    assert fluid.links.schema == packets.links.schema
    assert fluid.summary()["flows"].to_list() == packets.summary()["flows"].to_list()
    assert seen[-1] == 1
    assert "xcp" in engine.fluid_models()
    with pytest.raises(ValueError, match="no packets"):
        explicate.run(text, fluid=True, trace="flow=0")


def test_the_reference_engine_gives_the_same_tables(native_real: ModuleType) -> None:
    text = engine.template("dumbbell")
    fast = explicate.run(text, set=SMALL)
    plain = explicate.run(text, set=SMALL, engine="reference")
    assert fast.flows["sent_packets"].sum() > 100
    for name in ("flows", "links", "samples", "run"):
        assert getattr(fast, name).equals(getattr(plain, name)), name
    with pytest.raises(ValueError, match="engine must be fast or reference, not 'slow'"):
        explicate.run(text, set=SMALL, engine="slow")
    with pytest.raises(ValueError, match="no reference engine"):
        explicate.run(text, set={**SMALL, "flows.0.protocol": "xcp"}, fluid=True, engine="reference")


def test_what_no_fluid_model_covers_is_refused_by_line(native_real: ModuleType) -> None:
    text = engine.template("dumbbell")
    at = rf"^--set flows.0.protocol: --fluid: `cubic` has no fluid model; there are {', '.join(engine.fluid_models())}"
    with pytest.raises(explicate.ScenarioError, match=at):
        explicate.run(text, set={"flows.0.protocol": "cubic"}, fluid=True)


def test_fluids_compared_and_swept(either: ModuleType) -> None:
    text = engine.template("dumbbell")
    compared = explicate.compare(text, ["xcp"], set=SMALL, fluid=True)
    alone = explicate.run(text, set={**SMALL, "flows.0.protocol": "xcp"}, fluid=True)
    assert compared.select(variant="xcp").flows["goodput_bps"].to_list() == alone.flows["goodput_bps"].to_list()
    swept = explicate.sweep(text, {"flows.0.protocol": ["xcp"]}, set=SMALL, fluid=True)
    assert swept.flows["count"].sum() == alone.flows["count"].sum()


def test_a_fluid_sweep_is_checked_before_it_runs(native_real: ModuleType) -> None:
    text = engine.template("dumbbell")
    axes = {"flows.0.protocol": ["xcp", "cubic"]}
    with pytest.raises(explicate.ScenarioError, match="`cubic` has no fluid model"):
        explicate.sweep(text, axes, fluid=True)
    with pytest.raises(explicate.ScenarioError, match="`cubic` has no fluid model"):
        explicate.compare(text, axes["flows.0.protocol"], fluid=True)
    # A separate protocol that the sweep replaces; sizes that packets cannot reach.
    xcp = {"flows.0.protocol": ["xcp"]}
    assert explicate.sweep(text, xcp, set={**SMALL, "flows.0.protocol": "cubic"}, fluid=True).flows.height
    many = {**SMALL, "flows.0.protocol": "xcp", "flows.0.count": 10_000_000}
    assert explicate.sweep(text, xcp, set=many, fluid=True).flows["count"].sum() >= 10_000_000


def test_what_only_a_fluid_warns_of_is_told_by_sweeps_too(native_real: ModuleType, tmp_path: Path) -> None:
    text = engine.template("dumbbell")
    many = {**SMALL, "flows.0.protocol": "xcp", "topology.pairs": 1, "flows.0.count": 100}
    spread = {**many, "flows.0.start": {"spread": "1s"}}
    told = explicate.run(text, set=spread, fluid=True).warnings
    assert any("36 starts of its flows are merged" in warning for warning in told)
    for _ in ("fresh", "kept"):
        swept = explicate.sweep(text, {"flows.0.packet": ["1000B"]}, set=spread, fluid=True, store=tmp_path / "runs")
        assert swept.warnings == told


@pytest.mark.parametrize("fluid", [False, True])
def test_the_last_run_has_a_seed_too(native_real: ModuleType, fluid: bool) -> None:
    text = engine.template("dumbbell")
    last = 2**63 - 1
    with pytest.raises(explicate.ScenarioError, match=f"seed.*for 2 of them it is at most {last - 1}"):
        explicate.run(text, seed=last, runs=2, set=SMALL, fluid=fluid)
    with pytest.raises(explicate.ScenarioError, match=f"seed.*for 2 of them it is at most {last - 1}"):
        explicate.sweep(text, {"flows.0.protocol": ["xcp"]}, seed=last, runs=2, set=SMALL, fluid=fluid)
    swept = explicate.sweep(text, {"flows.0.protocol": ["xcp"]}, seed=last - 1, runs=2, set=SMALL, fluid=fluid)
    assert swept.run["seed"].to_list() == [last - 1, last]


def test_bench(either: ModuleType) -> None:
    for case in engine.bench(None, 1.0):
        assert case["hops"] > 0
        assert case["hops_per_cpu_second"] > 0
        assert {"instructions_per_hop", "bytes_per_flow"} <= set(case)
    with pytest.raises(ValueError, match="nonsuch"):
        engine.bench("nonsuch", None)


def test_floor(either: ModuleType) -> None:
    for name in engine.floor_cases():
        case = engine.floor(name, 0.2)
        assert case["name"] == name
        assert case["hops_per_cpu_second"] > 0
        assert case["bytes_per_flow"] is None
    with pytest.raises(ValueError, match="nonsuch"):
        engine.floor("nonsuch", None)


def test_the_installed_command(native_real: ModuleType, tmp_path: Path) -> None:
    def command(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "explicate", *args], capture_output=True, text=True, check=False, cwd=tmp_path,
            env=dict(os.environ),
        )  # fmt: skip

    made = command("new", "dumbbell")
    assert (made.returncode, made.stderr) == (0, "")
    (tmp_path / "mine.toml").write_text(made.stdout, encoding="utf-8")
    assert command("check", "mine.toml").returncode == 0
    compared = command("compare", "mine.toml", "--protocols", "xcp,newreno", "--set", "duration=6s", "-o", "both")
    assert compared.returncode == 0, compared.stderr
    assert command("report", "both").returncode == 0
    assert (tmp_path / "both" / "report.html").stat().st_size > 10_000
    printed = command("run", "mine.toml", "--json", "--set", "duration=6s")
    assert json.loads(printed.stdout)["flows"]
    plain = command("run", "mine.toml", "--json", "--set", "duration=6s", "--engine", "reference")
    assert plain.stdout == printed.stdout
    traced = command("run", "mine.toml", "--set", "duration=6s", "--trace", "flow=0", "--pcap", "captures")
    assert traced.returncode == 0, traced.stderr
    assert traced.stdout.count("\n") > 10
    assert list((tmp_path / "captures").glob("*.pcapng"))


def test_a_sample_is_found_by_its_time(native_real: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_native", native_real)
    sets = {"duration": "2s", "warmup": "0s", "sampling.every": "100ms", "sampling.of": ["queue"]}
    samples = explicate.run(engine.template("dumbbell"), set=sets).samples
    assert sorted(samples["time_s"].unique()) == [float(f"{k / 10:.1f}") for k in range(1, 21)]
    assert samples.filter(pl.col("time_s") == 0.3).height > 0
