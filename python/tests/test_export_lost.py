"""Exports: every setting of the schema is in the output, or in the list of what is lost.

The settings come from the schema, so that a new one fails here until the exporters have it. The exporters of links are
netem and mahimahi, whose trace has the capacity; qlog and the tables have the scenario with all of its settings;
captures have packets, and no settings.
"""

from __future__ import annotations

import importlib
import itertools
import json
import random
import re
import shlex
import subprocess
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from patience import PATIENCE_S
from polars.testing import assert_frame_equal
from test_export import tool

import explicate
from explicate import engine
from explicate.cli import main
from explicate.commands.run import LOST_OF_A_CAPTURE
from explicate.export.exported import Exported
from explicate.export.netem import DISCIPLINE, NO_LINK, UNDERSTOOD, commands
from explicate.export.qlog import left_out, qlog
from explicate.export.tcp import converted, read
from explicate.source import Source, value_text

mahimahi: Any = importlib.import_module("explicate.export.mahimahi")  # the package has the function
pytestmark = pytest.mark.usefixtures("native_real")

SCENARIO: dict[str, Any] = {
    "duration": "10s",
    "topology": {"pairs": 1, "bottleneck": {"rate": "8Mbit/s", "delay": "20ms", "queue": {"limit": "20pkt"}}},
    "flows": [{"name": "f", "protocol": "newreno"}],
}
ACTIVE: Mapping[str, dict[str, Any]] = {
    "random_loss": {"rate": 0.02},
    "burst_loss": {"rate": 0.02},
    "corruption": {"rate": 0.02},
    "duplication": {"rate": 0.02},
    "reordering": {"rate": 0.02},
    "rate_steps": {"steps": [{"at": "0s", "rate": "6Mbit/s"}, {"at": "1s", "rate": "7Mbit/s"}]},
    "trace": {"file": "some.trace"},
}
"""What gives a channel an effect that its defaults do not have."""
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


def kinds(definition: str) -> dict[str, dict[str, Any]]:
    """The tables of a definition by their kinds, with the present names of their keys."""
    tables = [one for one in engine.schema()["$defs"][definition]["anyOf"] if "properties" in one]
    return {
        one["properties"]["kind"]["const"]: {
            key: form for key, form in one["properties"].items() if key != "kind" and not form.get("deprecated")
        }
        for one in tables
    }


def defaults(kind: str, registry: str) -> dict[str, str]:
    entries = [e for e in engine.registry() if e["name"] == kind and registry in e["kind"]]
    return {one["name"]: one["default"] for entry in entries for one in entry["parameters"]}


def scenario_of(bottleneck: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    middle = {**SCENARIO["topology"]["bottleneck"], **bottleneck}
    return {**SCENARIO, **more, "topology": {**SCENARIO["topology"], "bottleneck": middle}}


def exported(bottleneck: Mapping[str, Any], **more: Any) -> Exported:
    return commands(Source.of(scenario_of(bottleneck, **more)), "r1->r2")


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


def command(found: Exported) -> str:
    return next((line for line in found.text.splitlines() if line.startswith("tc ")), "")


def is_said(name: str, before: Exported, after: Exported, *, in_words: bool) -> bool:
    """Whether the command changed with a setting that it has words for, or the setting is named as lost."""
    for line in after.lost:
        assert f"# lost: {line.partition(': ')[2]}" in after.text, "what stderr says stands in a comment too"
    named = any(re.search(rf"\b{name}\b", line) for line in set(after.lost) - set(before.lost))
    return named or (in_words and before.text != after.text)


@pytest.fixture
def trace_here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some.trace").write_text("1\n2\n3\n")
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


def names_in(source: Source) -> set[str]:
    """The links of an export."""
    lines = commands(source).text.splitlines()
    return {name for line in lines if re.match(r"# (\S+->|up)", line) for name in line[2:].split(", ")}


def test_netem_has_the_links_of_every_topology() -> None:
    own = {"node": [{"name": "a"}, {"name": "b"}], "link": [{"from": "a", "to": "b", "duplex": True, "name": "up"}]}
    ends = {"flows": [{"name": "f", "protocol": "newreno", "from": "a", "to": "b"}]}
    found: dict[str, dict[str, Any]] = {
        "pairs": {"topology": {"pairs": 2}},
        "hops": {"topology": {"kind": "chain", "hops": 3}},
        "cross": {"topology": {"kind": "parking_lot", "cross": 2}},
        "hosts": {"topology": {"kind": "star", "hosts": 3}},
        "own": {**own, **ends},
    }
    names = {key: names_in(Source.of({**SCENARIO, "topology": {}, **more})) for key, more in found.items()}
    assert names["hops"] >= {"r1->r2", "r2->r3", "r3->r4", "r4->r3"}
    assert names["cross"] >= {"c1s0->r1", "c1s1->r1", "c2s0->r2"}
    assert names["hosts"] == {f"{a}->{b}" for host in ("h0", "h1", "h2") for a, b in ((host, "r1"), ("r1", host))}
    assert names["pairs"] >= {"s0->r1", "s1->r1"}
    assert names["own"] == {"up", "up-back"}
    spread = {"pairs": 2, "access": {"delay": {"from": "1ms", "to": "3ms"}}}
    text = commands(Source.of({**SCENARIO, "topology": spread}), "access").text
    assert "delay 1000us" in text
    assert "delay 3000us" in text
    assert "r1->r2" not in text


def test_netem_says_what_concerns_all_links() -> None:
    more = {"sweep": {"topology.bottleneck.rate": ["1Mbit/s"]}, "reroute": [{"at": "3s", "without": []}]}
    found = exported({}, **more)
    assert [line.partition(":")[0] for line in found.lost] == ["reroute at 3s", "sweep.topology.bottleneck.rate"]
    assert found.text.count("# lost: ") == 2
    known = {*NO_LINK, "topology", "link", "medium", "reroute", "sweep"}
    assert set(engine.schema()["properties"]) == known, "a new key is a link's, or one of NO_LINK"


def test_netem_has_no_radio() -> None:
    medium = '[[medium]]\nname = "air"\nlayout = { stations = 3 }\n'
    text = medium + '[[flows]]\nname = "f"\nprotocol = "newreno"\nfrom = "n1"\nto = "n3"\n'
    with pytest.raises(ValueError, match="netem has no wireless medium"):
        commands(Source(text, "wifi.toml", "."))
    text += '[[node]]\nname = "server"\n[[link]]\nfrom = "n1"\nto = "server"\nduplex = true\nrate = "5Mbit/s"\n'
    found = commands(Source(text, "wifi.toml", "."))
    assert "\n# n1->server\n" in found.text
    radio = [line for line in found.lost if "the whole link, over" in line]
    assert radio
    assert all("netem has no wireless medium (dcf)" in line for line in radio)


def parses(line: str) -> str:
    """What tc says of a command for a device that does not exist, which it looks up once it has parsed the rest."""
    assert line.startswith("tc qdisc replace dev DEV root netem ")
    words = shlex.split(line.replace("dev DEV", "dev nowhere0"))
    done = subprocess.run(
        [tool("tc", "iproute2"), *words[1:]], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )  # fmt: skip
    return done.stderr


@pytest.mark.usefixtures("trace_here")
def test_tc_parses_every_pair_of_channels() -> None:
    all_kinds = [{"kind": kind, **ACTIVE.get(kind, {})} for kind in kinds("channel")]
    all_kinds += [{"kind": "random_loss", "rate": 0.02, "correlation": 0.25}]
    all_kinds += [{"kind": "gilbert_elliott", "loss_bad": 0.7, "loss_good": 1e-7, "good": 1e6, "bad": 1}]
    all_kinds += [{"kind": "jitter", "distribution": word} for word in ("normal", "pareto", "exponential")]
    lines = set()
    for one, other in itertools.combinations_with_replacement(all_kinds, 2):
        try:
            lines.add(command(exported({"channel": [one, other]})))
        except engine.ScenarioError:
            assert {one["kind"], other["kind"]} <= {"rate_steps", "outages", "trace"}, f"{one}, {other}"
    assert len(lines) > 30
    assert "Cannot find device" not in parses(next(iter(lines)).replace(" limit", " limmit"))
    for line in sorted(lines):
        assert "Cannot find device" in parses(line), f"{line}: {parses(line)}"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"rate": "10bit/s"}, "rate 8bit"),
        ({"rate": "100Gbit/s", "delay": "600s"}, "rate 100000000000bit -14 delay 274877906us"),
        ({"rate": "1000007bit/s", "delay": "1234567ns"}, "rate 1000008bit -14 delay 1235us"),
        ({"delay": "0s"}, "-14 limit 21"),
        ({"queue": "unlimited"}, "limit 4294967295"),
        ({"queue": {"limit": "0B"}}, "limit 14"),
        ({"queue": {"limit": "1e15pkt"}}, "limit 4294967295"),
    ],
)
def test_tc_parses_extremes(setting: dict[str, Any], words: str) -> None:
    found = exported(setting)
    assert words in command(found)
    assert "Cannot find device" in parses(command(found))
    assert bool(found.lost) == any(key in {"rate", "delay"} and value != "0s" for key, value in setting.items())


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        # Losses of rate p whose neighbours have the correlation c: p (1 - c) to the bad state, (1 - p) (1 - c) back.
        ([{"kind": "random_loss", "rate": 0.02, "correlation": 0.25}], "loss gemodel 1.5% 73.5% 100% 0%"),
        # Independent losses: 1 - 0.98 * 0.9.
        ([{"kind": "random_loss", "rate": rate} for rate in (0.02, 0.1)], "loss random 11.8%"),
        (
            [{"kind": "random_loss", "rate": 0.1}, {"kind": "gilbert_elliott", "good": 100, "bad": 4, "loss_bad": 0.5}],
            "loss gemodel 1% 25% 55% 10%",
        ),
        (
            [{"kind": "gilbert_elliott", "good": 100, "bad": 4, "loss_bad": 0.5}, {"kind": "random_loss", "rate": 0.1}],
            "loss gemodel 1% 25% 55% 10%",
        ),
        ([{"kind": "corruption", "rate": rate} for rate in (0.1, 0.2)], "corrupt 28%"),
        ([{"kind": "jitter", "mean": "5ms"}], "delay 25000us 5000us"),
        ([{"kind": "jitter", "mean": "4ms", "distribution": "normal"}], "delay 24000us 1000us distribution normal"),
        ([{"kind": "jitter", "mean": "4ms", "distribution": "pareto"}], "delay 24000us 2000us distribution pareto"),
        ([{"kind": "jitter", "mean": "4ms", "distribution": "exponential"}], "delay 20000us limit"),
        ([{"kind": "random_loss", "rate": 1, "most": 3}], "delay 20000us limit"),
        ([{"kind": "random_loss", "rate": 1, "start": "3s"}], "delay 20000us limit"),
        ([{"kind": "random_loss", "rate": 1, "of": "acks"}], "delay 20000us limit"),
    ],
)
def test_what_channels_are_in_netems_words(channels: list[dict[str, Any]], words: str) -> None:
    assert words in command(exported({"channel": channels}))


def test_the_chain_of_correlated_losses_is_the_simulators() -> None:
    """Shares of losses, and of losses after a loss, in the chain that netem is given."""
    rate, correlation = 0.2, 0.4
    found = command(exported({"channel": [{"kind": "random_loss", "rate": rate, "correlation": correlation}]}))
    words = found.split()
    into, out = (float(word.rstrip("%")) / 100 for word in words[words.index("gemodel") + 1 :][:2])
    assert into / (into + out) == pytest.approx(rate)
    assert 1 - out == pytest.approx(rate + correlation * (1 - rate)), "a loss after a loss"


def test_netem_limits_are_the_queues_that_a_run_has() -> None:
    """The automatic queue and its length in words are one; the simulation counts what waits."""
    automatic = {**SCENARIO, "topology": {"pairs": 1, "bottleneck": {"rate": "1.5Mbit/s", "delay": "20ms"}}}
    written = {
        **automatic,
        "topology": {"pairs": 1, "bottleneck": {"rate": "1.5Mbit/s", "delay": "20ms", "queue": {"limit": "1bdp"}}},
    }
    words = [command(commands(Source.of(scenario), "r1:r2".replace(":", "->"))) for scenario in (automatic, written)]
    assert words[0] == words[1]
    # 1 bdp of 44 ms are 8250 bytes, which hold 5 packets; 1 is sent; 20 ms at this rate are 2.5 packets.
    assert words[0].endswith("limit 8")
    results = explicate.run(automatic)
    assert results.links.filter(link="r1->r2")["queue_max_packets"][0] == 5


def netem_departures(arrivals: list[float], line_s: float, delay_s: float, limit: int) -> dict[int, float]:
    """The departures of packets of one length from sch_netem with these settings, by numbers of arrivals."""
    held, leaves = deque[float](), dict[int, float]()
    for number, now in enumerate(arrivals):
        while held and held[0] <= now:
            held.popleft()
        if len(held) < limit:
            held.append(max(held[-1] if held else 0.0, now + delay_s) + line_s)
            leaves[number] = held[-1]
    return leaves


def link_arrivals(arrivals: list[float], line_s: float, delay_s: float, waiting: int) -> dict[int, float]:
    """The same packets over a link with a drop-tail queue: when they reach its end."""
    begins, reaches, free = deque[float](), dict[int, float](), 0.0
    for number, now in enumerate(arrivals):
        while begins and begins[0] <= now:
            begins.popleft()
        if len(begins) < waiting or free <= now:
            start = max(free, now)
            begins.append(start)
            free = start + line_s
            reaches[number] = free + delay_s
    return reaches


def test_a_rate_that_changes_is_one_rate() -> None:
    steps: list[dict[str, Any]] = [{"at": "0s", "rate": "6Mbit/s"}, {"at": "1s", "rate": "8Mbit/s"}]
    for channel, rate, what in (
        ({"kind": "rate_steps", "steps": steps, "period": "2s"}, 7_000_000, "the mean of their period"),
        ({"kind": "rate_steps", "steps": steps}, 6_000_000, "or else the first"),
        ({"kind": "outages"}, 8_000_000, "that without them"),
    ):
        found = exported({"channel": [channel]})
        assert f"rate {rate}bit" in command(found)
        (line,) = (one for one in found.lost if "netem's rate is constant" in one)
        assert what in line


@pytest.mark.parametrize(
    ("load", "waiting", "delay_s"), [(0.7, 20, 0.02), (1.3, 20, 0.02), (3.0, 5, 0.0), (1.1, 60, 0.1)]
)
def test_the_limit_makes_netem_the_link(load: float, waiting: int, delay_s: float) -> None:
    """Packets arrive at random: the link and sch_netem deliver as many, at the same times if none is dropped."""
    line_s = 1500 * 8 / 8e6
    setting = {"delay": f"{delay_s * 1e3:g}ms", "queue": {"limit": f"{waiting}pkt"}}
    limit = int(command(exported(setting)).rpartition(" ")[2])
    draw, now, arrivals = random.Random(1), 0.0, []
    for _ in range(50_000):
        now += draw.expovariate(load / line_s)
        arrivals.append(now)
    link, netem = link_arrivals(arrivals, line_s, delay_s, waiting), netem_departures(arrivals, line_s, delay_s, limit)
    assert len(netem) == pytest.approx(len(link), rel=0.005)
    longest = [max(end - arrivals[number] for number, end in ends.items()) for ends in (link, netem)]
    assert longest[1] <= longest[0] + line_s * (limit - waiting), (
        "a burst finds the places of those on the way, no more"
    )
    if load < 1:
        assert {number: round(end, 9) for number, end in netem.items()} == {n: round(end, 9) for n, end in link.items()}


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


def test_the_page_has_what_netem_understands() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "export.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (?:queue )?`(\w+)` \| (`.*`) \|$", page, re.MULTILINE))
    rows["queue"] = rows.pop(DISCIPLINE)
    assert {kind: tuple(re.findall(r"`(\w+)`", names)) for kind, names in rows.items()} == {
        kind: names for kind, names in UNDERSTOOD.items() if names
    }
    shown = exported({"rate": "4Mbit/s"}).text.replace("dev DEV", "dev eth1")
    assert f"```text\n{shown}```" in page


def test_understood_parameters_exist() -> None:
    for kind, names in UNDERSTOOD.items():
        table = kinds("queue")["droptail"] if kind == "queue" else kinds("channel")[kind]
        assert set(names) <= set(table), kind
    assert DISCIPLINE in kinds("queue")
