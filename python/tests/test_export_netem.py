"""netem's commands: their links, what tc parses, and that a queue with this limit is the link's."""

from __future__ import annotations

import itertools
import random
import re
import shlex
import subprocess
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from exports import ACTIVE, SCENARIO, exported, kinds, write_trace
from patience import PATIENCE_S
from test_export import tool

import explicate
from explicate import engine
from explicate.export.exported import Exported
from explicate.export.netem import DISCIPLINE, NO_LINK, UNDERSTOOD, commands
from explicate.source import Source

pytestmark = pytest.mark.usefixtures("native_real")


def command(found: Exported) -> str:
    return next((line for line in found.text.splitlines() if line.startswith("tc ")), "")


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


def test_tc_parses_every_pair_of_channels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(tmp_path)
    monkeypatch.chdir(tmp_path)
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
