"""Exports: every setting of the schema is in the output, or in the list of what is lost.

The settings come from the schema, so that a new one fails here until the exporters have it. The exporters of links are
netem and mahimahi, whose trace has the capacity; qlog and the tables have the scenario with all of its settings;
captures have packets, and no settings.
"""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from exports import ACTIVE, SCENARIO, exported, kinds, scenario_of, write_trace
from polars.testing import assert_frame_equal

import explicate
from explicate import engine
from explicate.cli import main
from explicate.commands.run import LOST_OF_A_CAPTURE
from explicate.export.exported import Exported
from explicate.export.netem import UNDERSTOOD
from explicate.export.qlog import left_out, qlog
from explicate.export.tcp import converted, read
from explicate.source import Source, value_text

mahimahi: Any = importlib.import_module("explicate.export.mahimahi")  # the package has the function
pytestmark = pytest.mark.usefixtures("native_real")

TOGETHER: Mapping[tuple[str, str], dict[str, Any]] = {
    ("corruption", "bit_error_rate"): {"rate": 0},
    ("gilbert_elliott", "good_time"): {"clock": "time"},
    ("gilbert_elliott", "bad_time"): {"clock": "time"},
    ("fading", "symbol_bits"): {"code": "ideal"},
    ("random_loss", "spread"): {"distribution": "normal"},
    ("random_loss", "shape"): {"distribution": "pareto"},
    ("jitter", "spread"): {"distribution": "normal"},
    ("jitter", "shape"): {"distribution": "pareto"},
}
"""What else a parameter needs to be legal, or to have an effect."""
LEGAL: Mapping[str, list[Any]] = {
    "time": ["7ms", "70ms", "7s", "700s"], "rate": ["7Mbit/s"], "bytes": ["1000B"], "distance": ["70m"],
    "length": ["7pkt"], "percentage": ["7%"], "packets": ["7pkt"], "decibels": ["7dB"],
}  # fmt: skip
"""Values of each definition that few defaults have."""


def others(form: Mapping[str, Any], default: str) -> Iterator[Any]:
    """Values that a form of the schema allows, except `default` as the registry writes it."""
    if "$ref" in form:
        yield from LEGAL[form["$ref"].rpartition("/")[2]]
    for one in form.get("anyOf", ()):
        yield from others(one, default)
    yield from (word for word in form.get("enum", ()) if word not in {default, "auto", "unlimited"})
    if form.get("type") == "boolean":
        yield default != "true"
    if form.get("type") in {"number", "integer"}:
        low, high = float(form.get("minimum", 0)), float(form.get("maximum", 1e6))
        whole = form["type"] == "integer" or high > 2
        middle = max(low, min(high, 4)) if whole else low + (high - low) / 4
        yield int(middle) if whole else middle


def defaults(kind: str, registry: str) -> dict[str, str]:
    entries = [e for e in engine.registry() if e["name"] == kind and registry in e["kind"]]
    return {one["name"]: one["default"] for entry in entries for one in entry["parameters"]}


def beside_a_trace(bottleneck: Mapping[str, Any]) -> Exported:
    """What mahimahi's trace of the link leaves out; the text is its own comments, as for netem."""
    source = Source.of(scenario_of(bottleneck))
    links = engine.links(source.text, source.origin, source.base, [])["links"]
    lost = mahimahi.lost_of(next(one for one in links if one["name"] == "r1->r2"))
    return Exported("".join(f"# lost: {line.partition(': ')[2]}\n" for line in lost), tuple(lost))


Export = Callable[[Mapping[str, Any]], Exported]
EXPORTERS: Mapping[str, tuple[Export, Mapping[str, tuple[str, ...]], tuple[str, ...]]] = {
    "netem": (exported, UNDERSTOOD, ("wire",)),
    "mahimahi": (beside_a_trace, {}, mahimahi.CAPACITY),
}
"""How to export a bottleneck, the parameters that are in the output, and the channels that are in it as a whole."""


def with_another(
    export: Export, key: str, base: dict[str, Any], name: str, form: Mapping[str, Any], default: str
) -> tuple[Any, Exported]:
    """The export with a value of parameter `name` that the engine accepts and that is not its default."""
    for value in others(form, default):
        if value_text(value) == default:
            continue
        part = {**base, name: value}
        try:
            return value, export({key: [part] if key == "channel" else part})
        except engine.ScenarioError:
            continue
    pytest.fail(f"no other value of {base['kind']}.{name} is legal: {form}")


def is_said(name: str, before: Exported, after: Exported, *, in_words: bool) -> bool:
    """Whether the command changed with a setting that it has words for, or the setting is named as lost."""
    for line in after.lost:
        assert f"# lost: {line.partition(': ')[2]}" in after.text, "what stderr says stands in a comment too"
    named = any(re.search(rf"\b{name}\b", line) for line in set(after.lost) - set(before.lost))
    return named or (in_words and before.text != after.text)


@pytest.fixture
def trace_here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("trace_here")
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_every_parameter_of_every_channel_is_said(exporter: str) -> None:
    export, understood, whole = EXPORTERS[exporter]
    missing, looked_at = [], 0
    for kind, params in kinds("channel").items():
        known = defaults(kind, "channel")
        for name, form in params.items() or [("", {})]:
            looked_at += 1
            base = {"kind": kind, **ACTIVE.get(kind, {}), **TOGETHER.get((kind, name), {})}
            before = export({"channel": [base]})
            if kind in whole:
                assert before.lost == export({}).lost
            elif name in {"steps", "file", ""}:
                assert any(kind in line for line in before.lost), kind
            else:
                value, after = with_another(export, "channel", base, name, form, known[name])
                if not is_said(name, before, after, in_words=name in understood.get(kind, ())):
                    missing.append(f"{kind}.{name} = {value}: {after}")
    assert not missing, "\n".join(missing)
    assert looked_at >= 50


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("registry", ["queue", "router"])
def test_every_parameter_of_every_queue_and_router_is_said(registry: str, exporter: str) -> None:
    export, understood, _ = EXPORTERS[exporter]
    missing = []
    for kind, params in kinds(registry).items():
        known = defaults(kind, "router" if registry == "router" else "q")
        for name, form in params.items():
            base = {"kind": kind, **({"limit": "20pkt", "count": "bytes"} if registry == "queue" else {})}
            before = export({registry: base})
            value, after = with_another(export, registry, base, name, form, known[name])
            words = understood.get("queue", ()) if registry == "queue" else ()
            if not is_said(name, before, after, in_words=name in words):
                missing.append(f"{kind}.{name} = {value}: {after}")
    assert not missing, "\n".join(missing)


LINKS: Mapping[str, dict[str, Any]] = {
    "rate": {"rate": "9Mbit/s"},
    "delay": {"delay": "7ms"},
    "queue": {"queue": "unlimited"},
    "router": {"router": "xcp"},
    "classes": {"classes": [{"match": "other", "weight": 3, "queue": {"kind": "red"}, "router": "none"}]},
    "kappa": {"classes": [{"match": "other"}, {"match": "explicit", "router": "xcp"}], "kappa": 0.5},
    "share_by_flows": {"share_by_flows": True},
    "capacity": {"capacity": [{"at": "0s", "factor": 0.5}, {"at": "3s", "rate": "1Mbit/s"}]},
    "half_duplex": {"half_duplex": True},
    "channel": {"channel": [{"kind": "outages"}]},
    "clock_tick": {"clock_tick": "10ms"},
    "scone": {"scone": {"advise": "5Mbit/s"}},
}
"""A setting of each key of a link; `from`, `to`, `name` and `duplex` say which links there are."""


def test_every_setting_of_a_link_is_said() -> None:
    schema = engine.schema()["properties"]
    keys = set(schema["topology"]["properties"]["bottleneck"]["properties"])
    assert keys == set(LINKS)
    assert set(schema["topology"]["properties"]["access"]["properties"]) == keys
    assert set(schema["topology"]["properties"]["link"]["properties"]) == keys
    present = {key for key, form in schema["link"]["items"]["properties"].items() if not form.get("deprecated")}
    assert present == {*keys, "name", "from", "to", "duplex"}
    plain = exported({})
    assert plain.lost == ()
    for key, setting in LINKS.items():
        changed = exported(setting)
        words = key in {"rate", "delay", "queue"}
        assert is_said("outages" if key == "channel" else key, plain, changed, in_words=words), f"{key}: {changed}"
    for key, setting in LINKS.items():
        beside = set(beside_a_trace(setting).lost) - set(beside_a_trace({}).lost)
        no_queue = key == "queue"  # mm-link's own queue has no limit either
        assert key in {"rate", "channel"} or no_queue or any(re.search(rf"\b{key}\b", one) for one in beside), key
    classes = schema["link"]["items"]["properties"]["classes"]["items"]["properties"]
    (line,) = (line for line in exported(LINKS["classes"]).lost if "classes" in line)
    assert set(classes) == {"match", "weight", "queue", "router"}
    assert 'match = "other", weight = 3, queue = { kind = "red"' in line
    (_, explicit) = (line for line in exported(LINKS["kappa"]).lost if "classes" in line)
    assert 'match = "explicit"' in explicit
    assert 'router = { kind = "xcp" }' in explicit
    (line,) = (line for line in exported(LINKS["capacity"]).lost if "capacity" in line)
    assert "4Mbit/s, 1Mbit/s from 3s" in line


def test_every_line_of_lost_is_on_stderr(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.toml"
    path.write_text(Source.of(SCENARIO).text.replace('"20pkt"', '"20pkt", kind = "red"'), encoding="utf-8")
    assert main(["export", "netem", str(path), "--link", "bottleneck"]) == 0
    out, err = capsys.readouterr()
    comments = re.findall(r"^# lost: (.*)$", out, re.MULTILINE)
    assert comments
    for line in comments:
        assert line in err
    assert json.dumps(err).count("warning: lost: ") == len(dict.fromkeys(comments))


SAMPLED = '[sampling]\nevery = "100ms"\nof = ["throughput", "cwnd", "queue"]\n'


@pytest.fixture
def sampled(tmp_path: Path) -> explicate.Results:
    """Two runs, with an idle link at first."""
    text = Source.of({**SCENARIO, "runs": 2, "duration": "3s"}).text.replace(
        '"newreno"', '"newreno"\nstack = "ns2"\nstart = "1s"'
    )
    results = explicate.run(f"{text}{SAMPLED}")
    return explicate.Results.load(results.write(tmp_path / "out"))


def test_what_a_trace_of_mahimahi_leaves_out(
    sampled: explicate.Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mahimahi.lost(sampled, "r1->r2") == [
        "1 other runs: a trace has one, here run 0",
        "the capacity of 10 of 30 sampling periods, which carried nothing: it is that before",
        'delay = "20ms": run in `mm-delay 20`',
        'queue = { kind = "droptail", limit = "30kB", count = "packets" }: give `mm-link --uplink-queue=droptail '
        "--uplink-queue-args=packets=20`",
    ]
    assert main(["export", "mahimahi", str(tmp_path / "out"), "--link", "r1:r2"]) == 0
    out, err = capsys.readouterr()
    assert [line.isdigit() for line in out.split()] == [True] * len(out.split()), "a trace has no comments"
    assert err.splitlines() == [f"warning: lost: {line}" for line in mahimahi.lost(sampled, "r1->r2")]


@pytest.mark.parametrize(
    ("bottleneck", "option"),
    [
        ({"queue": {"limit": "9000B"}}, "mm-link --uplink-queue=droptail --uplink-queue-args=bytes=9000"),
        (
            {"queue": {"kind": "codel", "limit": "9pkt", "target": "7ms"}},
            "mm-link --uplink-queue=codel --uplink-queue-args=packets=9,target=7,interval=100",
        ),
        ({"queue": {"kind": "red"}}, 'queue = { kind = "red", limit = "44kB" }: not in mahimahi'),
        ({"delay": "1500us"}, "run in `mm-delay 2`, which has whole milliseconds"),
        ({"channel": [{"kind": "random_loss", "rate": 0.02}]}, "run in `mm-loss uplink 0.02`"),
        (
            {"channel": [{"kind": "random_loss", "rate": 0.02, "of": "data"}]},
            'random_loss", rate = 0.02, of = "data" }: not in mahimahi',
        ),
    ],
)
def test_what_the_shells_of_mahimahi_have(bottleneck: dict[str, Any], option: str) -> None:
    found = beside_a_trace(bottleneck).lost
    assert any(option in line for line in found), found


def test_qlog_and_tables_have_the_scenario_and_say_what_else_is_lost(sampled: explicate.Results) -> None:
    log = qlog(sampled)
    assert log["traces"][0]["configuration"]["scenario"] == sampled.scenario
    assert left_out(log) == [
        "1 other runs: a qlog has one, here run 0",
        "samples of flows: throughput_bps: no metric of recovery:metrics_updated",
        "samples of links, classes and agents: r1->r2, r2->r1, r1->s0, r2->d0: qlog is about connections",
    ]
    optional = {"link", "medium", "node", "reroute", "sweep"}
    keys = set(engine.schema()["properties"]) - optional - {"processing", "stack"}  # which groups of flows have
    assert keys <= set(tomllib.loads(sampled.scenario)), "a scenario has every key, its defaults filled in"
    plain = Source.of(scenario_of({})).check()["resolved"]
    for key, setting in LINKS.items():
        changed = Source.of(scenario_of(setting)).check()["resolved"]
        assert re.findall(rf"^{key} = .*", changed, re.MULTILINE) != re.findall(rf"^{key} = .*", plain, re.MULTILINE), (
            key
        )


def test_csv_has_what_the_tables_have(sampled: explicate.Results, tmp_path: Path) -> None:
    sampled.write(tmp_path / "csv", csv=True)
    for name, table in sampled.tables().items():
        again = pl.read_csv(tmp_path / "csv" / f"{name}.csv", schema_overrides=table.schema, null_values="")
        plain = table.with_columns(pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String))
        assert_frame_equal(again.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)), plain, check_exact=True)


def test_a_capture_says_what_tcp_has_no_field_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for protocol, said in (("xcp", True), ("newreno", False)):
        folder, out = tmp_path / protocol, tmp_path / f"{protocol}.pcapng"
        explicate.run(SCENARIO, set={"flows.0.protocol": protocol, "duration": "1s"}, pcap=folder)
        (capture,) = folder.glob("*.pcapng")
        count, lost = converted(capture, out)
        headers = [line for line in lost if "the congestion headers of" in line]
        assert bool(headers) == said
        for line in lost:
            assert f"lost: {line}".encode() in out.read_bytes()[:600]
        assert len(read(capture)[1]) == count + int(re.findall(r"(\d+) times", lost[-1])[0])
        assert main(["export", "tcp", str(capture), "-o", str(out)]) == 0
        assert capsys.readouterr().err.splitlines() == [f"warning: lost: {line}" for line in lost]


def test_a_capture_has_a_comment_on_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.toml").write_text(Source.of({**SCENARIO, "name": "x", "duration": "1s"}).text, encoding="utf-8")
    for words, end in (([], ""), (["--runs", "3"], ", and the other 2 runs")):
        assert main(["run", str(tmp_path / "x.toml"), "--pcap", str(tmp_path), *words]) == 0
        assert f"capture: {LOST_OF_A_CAPTURE}{end}\n" in capsys.readouterr().err
        assert LOST_OF_A_CAPTURE.encode() in (tmp_path / "x.pcapng").read_bytes()[:300]
    assert main(["run", str(tmp_path / "x.toml")]) == 0
    assert "lost" not in capsys.readouterr().err
