"""The study "Are the papers' protocols still ahead?": its topologies, its hosts, its rule, its page."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from explicate.cli import BAD_INPUT, main
from explicate.studies import bits
from explicate.studies.bits import Record
from explicate.studies.verdict import MEASURES, Against
from explicate.summary import t_95
from explicate_papers.inputs import Case
from explicate_papers.modern import hosts, study, verdict
from explicate_papers.modern.topologies import TODAY, Topology, law_named, topologies
from explicate_papers.modern.verdict import OWN, PAPER, THEN, Finding, Word
from explicate_papers.register import PAPERS, experiments

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
NETWORK = """
name = "small"
duration = "20s"

[[link]]
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"
router = "auto"

[[link]]
from = "b"
to = "c"
rate = "5Mbit/s"
delay = "10ms"
queue = { kind = "red", limit = "50pkt", min_th = "5pkt" }

[[link]]
from = "c"
to = "d"
rate = "5Mbit/s"
delay = "10ms"
queue = { kind = "droptail", limit = "30pkt" }
router = "none"

[[link]]
name = "b->c"
channel = [{ kind = "random_loss", rate = "5%" }]

[[flows]]
name = "bulk"
protocol = "xcp/newreno"
packet = "1000B"
from = "a"
to = "d"
start = { uniform = "1s" }
params = { receiver_window = 20 }
"""


# -------------------------------------------------------------------------------------------------- topologies


def test_the_topologies_cover_the_papers() -> None:
    every = topologies()
    assert 12 <= len(every) <= 20
    assert {one.experiment[0] for one in every} == set(PAPERS)
    assert len({one.name for one in every}) == len({one.title for one in every}) == len(every)
    for one in every:
        assert one.experiment in experiments()
        assert one.name.startswith(f"{one.experiment[0]}-")
        assert set(one.names) == {THEN, PAPER, OWN}
        assert set(one.drawn) <= set(one.measures) <= set(MEASURES)
        assert {"use", "p99"} <= set(one.measures)
        assert one.question.endswith(".")
        assert one.wanted.endswith(".")
        assert all(one.floor(name) > 0 for name in one.measures)
    assert {"short", "short99"} <= {name for one in every for name in one.measures}, "short flows have their times"


@pytest.mark.usefixtures("native_real")
def test_every_row_has_a_scenario_on_every_topology() -> None:
    for one in topologies():
        for row in study.rows():
            checked = one.source(row).check(one.overrides(row))
            assert (checked["duration_s"], checked["warmup_s"]) == (one.duration, one.warmup), (one.name, row.name)
            stacks = {group["stack"] for group in tomllib.loads(checked["resolved"])["flows"]}
            assert stacks == {"ns2" if row.name in (THEN, PAPER) else "linux"}, (one.name, row.name)


def bare(one: Topology, row: str) -> dict[str, Any]:
    """Return a row's scenario without what a law of today brings."""
    content = tomllib.loads(one.timed(row).text)
    content.pop("stack", None)
    for port in hosts.ports(content):
        if port.get("router") != hosts.PLAIN:
            port.pop("router", None)
            if port.get("queue") != hosts.UNLIMITED:
                port.pop("queue", None)
    for group in content["flows"]:
        for key in hosts.OF_HOSTS:
            group.pop(key, None)
    return content


def test_a_law_of_today_meets_the_paper_s_network() -> None:
    for one in topologies():
        for name in TODAY:
            assert bare(one, name) == bare(one, PAPER), (one.name, name)
            content = tomllib.loads(one.timed(name).text)
            assert {group["protocol"] for group in content["flows"]} == {law_named(name).flows["protocol"]}
            kinds = {port["queue"]["kind"] for port in hosts.ports(content) if isinstance(port.get("queue"), dict)}
            assert law_named(name).queue["kind"] in kinds, (one.name, name)


def test_plain_routers_stay_plain_and_drop_tail_keeps_its_length() -> None:
    constants = {"limit": "7", "delta": "150", "interval": "120"}
    made = tomllib.loads(hosts.with_law(Case(NETWORK), law_named("abc"), constants).text)
    first, narrow, plain, channel = made["link"]
    assert first["router"] == narrow["router"] == {"kind": "abc", "delta": "150ms"}
    assert "queue" not in first, "a host's own queue stays"
    assert narrow["queue"] == {"kind": "droptail", "limit": "50pkt"}, "RED's place and length, without RED"
    assert (plain["router"], plain["queue"]) == ("none", {"kind": "droptail", "limit": "30pkt"})
    assert set(channel) == {"name", "channel"}
    assert made["flows"] == [
        {"name": "bulk", "packet": "1000B", "from": "a", "to": "d", "start": {"uniform": "1s"}, "protocol": "abc"}
    ]
    made = tomllib.loads(hosts.with_law(Case(NETWORK), law_named("cubic-fq"), constants).text)
    assert made["link"][1]["queue"] == {"kind": "fq_codel", "limit": "10240pkt", "interval": "120ms"}
    assert made["link"][2]["queue"]["kind"] == "droptail", "FQ-CoDel does not come to a plain router"
    with pytest.raises(ValueError, match=r"no law of today takes over link\.b->c\.rate"):
        hosts.with_law(Case(NETWORK, {"link.b->c.rate": "1Mbit/s"}), law_named("abc"), constants)


def test_a_baseline_over_plain_routers() -> None:
    made = tomllib.loads(hosts.over_plain_routers(Case(NETWORK), "newreno").text)
    assert [link.get("router") for link in made["link"]] == ["none", "none", "none", None]
    assert made["link"][1]["queue"]["kind"] == "red"
    assert made["flows"][0]["protocol"] == "newreno"
    assert "params" not in made["flows"][0]


@pytest.mark.usefixtures("native_real")
def test_the_paper_s_protocol_gets_today_s_hosts() -> None:
    case = hosts.of_today(Case(NETWORK))
    group = tomllib.loads(case.text)["flows"][0]
    assert group["protocol"] == "xcp/rack"
    assert "receiver_window" not in group["params"]
    assert dict(case.overrides())["stack"] == "linux"


# -------------------------------------------------------------------------------------------------------- rule


@pytest.mark.parametrize(
    ("better", "worse", "said"),
    [((), (), Word.SAME), (("use",), (), Word.AHEAD), ((), ("p99",), Word.BEHIND), (("use",), ("p99",), Word.MIXED)],
)
def test_beside_one_rival(better: tuple[str, ...], worse: tuple[str, ...], said: Word) -> None:
    assert verdict.word(Against("abc", better, worse)) is said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([Word.AHEAD, Word.AHEAD], Word.AHEAD),
        ([Word.AHEAD, Word.SAME], Word.SAME),
        ([Word.SAME, Word.SAME], Word.SAME),
        ([Word.AHEAD, Word.MIXED, Word.SAME], Word.MIXED),
        ([Word.AHEAD, Word.MIXED, Word.BEHIND], Word.BEHIND),
    ],
)
def test_on_a_topology(words: Sequence[Word], said: Word) -> None:
    assert verdict.on_topology(words) is said


def two(mean: float) -> list[list[float]]:
    return [[0.99 * mean, mean, 1.01 * mean]] * 2


def test_verdicts_in_words() -> None:
    values = {
        THEN: {"use": two(0.5), "p99": two(50)},
        PAPER: {"use": two(0.9), "p99": two(50)},
        OWN: {"use": two(0.9), "p99": two(5)},
        "abc": {"use": two(0.9), "p99": two(50)},
        "prague": {"use": two(0.9), "p99": two(20)},
        "bbr3": {"use": two(0.99), "p99": two(5)},
        "cubic-fq": {"use": two(0.95), "p99": two(1)},
    }
    found = verdict.judge(values, TODAY, {"use": 0.02, "p99": 2.0})
    assert found is not None
    assert found.word is Word.BEHIND
    names = {OWN: "XCP", THEN: "TCP", **{name: law_named(name).label for name in TODAY}}
    assert verdict.sentences(found, names) == [
        "Today XCP is ahead of Prague and ABC (p99 delay); the same as BBRv3; behind CUBIC+FQ (p99 delay).",
        "With the paper's hosts, and beside the baseline, it is ahead of TCP (use).",
    ]
    assert verdict.judge({"abc": values["abc"]}, TODAY, {"use": 0.02}) is None
    alone = verdict.judge({OWN: values[OWN], "abc": values["abc"]}, TODAY, {"use": 0.02, "p99": 2.0})
    assert alone is not None
    assert (alone.word, alone.then, list(alone.beside)) == (Word.AHEAD, None, ["abc"])
    mixed = Finding(Word.MIXED, {"abc": Against("abc", ("p99", "loss"), ("use",))}, None)
    assert verdict.sentences(mixed, names) == ["Today XCP is better than ABC in p99 delay and drops and worse in use."]


# ------------------------------------------------------------------------------------------------------- command


@pytest.mark.usefixtures("native_real")
def test_one_topology_runs_with_one_seed() -> None:
    one = replace(study.topology("D-xcp"), duration=4.0, warmup=1.0)
    record = bits.perform([one], study.rows(), seeds=1, study=study.NAME)
    assert not record.failed
    assert set(record.values["D-xcp"]) == {THEN, PAPER, OWN, *TODAY}
    for measures in record.values["D-xcp"].values():
        assert set(measures) == set(one.measures)
        assert all(len(block) == 1 and math.isfinite(block[0]) for blocks in measures.values() for block in blocks)
    use = {row: measures["use"][0][0] for row, measures in record.values["D-xcp"].items()}
    assert all(0.1 < value < 1.1 for value in use.values()), use
    assert use[PAPER] != use["abc"]
    shown = study.shown(one, record.values["D-xcp"])
    assert "De Vleeschouwer, Frossard, Fig. 3 (D-fig3)" in shown
    assert "LR-LMXCP is" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "K-strat"], "there is no topology 'K-strat'; did you mean `K-start`?; the topologies are: N, I, Y"),
        (["--laws", "cubic"], "there is no law 'cubic'; did you mean `cubic-fq`?; the laws are: then, paper, own, "),
        (["-o", "no/such/folder.json"], "no/such/folder.json: is no name for a file in a folder that exists"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_runs(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "papers", *arguments]) == BAD_INPUT
    assert said in capsys.readouterr().err


def test_a_letter_stands_for_a_paper(capsys: pytest.CaptureFixture[str]) -> None:
    networks, rows = study.chosen(["K", "I-clouds"], ["own", "abc"], quick=True)
    assert [one.name for one in networks] == ["I-clouds", "K-start", "K-flows", "K-lossy"]
    assert [row.name for row in rows] == ["own", "abc"]
    assert main(["study", "papers", "--list", "--only", "K"]) == 0
    listed = capsys.readouterr().out
    assert "K-fig4" in listed
    assert "N-hop" not in listed


def test_a_record_of_another_study_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    Record("quick", 1, "0", {}, {}, study.NAME).write(path)
    assert Record.read(path, study.NAME).study == "papers"
    with pytest.raises(Exception, match="is not a record of this study, but of papers; `explicate study bits --quick"):
        Record.read(path)


# ---------------------------------------------------------------------------------------------------------- page


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_modern", SCRIPTS / "make_modern.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_modern", module)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_command_writes(script: Any) -> None:
    record = Record.read(script.RECORD, study.NAME)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(record), "scripts/make_modern.py renews it"
    for one in script.shown(record)[:: len(record.values) - 1]:  # a figure takes half a second
        figure = script.figure(one, record.values[one.name], record.seeds)
        assert script.image(one).read_text(encoding="utf-8") == figure, "scripts/make_modern.py renews it"


def test_the_record_has_every_row_of_every_topology(script: Any) -> None:
    record = Record.read(script.RECORD, study.NAME)
    assert list(record.values) == [one.name for one in topologies()]
    assert not record.failed
    for one in topologies():
        assert set(record.values[one.name]) == {THEN, PAPER, OWN, *TODAY}
        for measures in record.values[one.name].values():
            assert set(measures) == set(one.measures)
            assert all(len(block) == record.seeds for blocks in measures.values() for block in blocks)


def better(one: Topology, name: str, mine: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> bool:
    """Whether `mine` is better by the rule as the page has it, written once more."""
    high = name in ("use", "jain")
    for a, b in zip(mine, theirs, strict=True):
        gain = fmean(a) - fmean(b) if high else fmean(b) - fmean(a)
        margins = sum(t_95(len(block) - 1) * stdev(block) / math.sqrt(len(block)) for block in (a, b))
        if not (gain >= 0.1 * max(fmean(a), fmean(b)) and gain >= one.floor(name) and gain > margins):
            return False
    return True


def test_the_answer_applies_the_rule_as_written(script: Any) -> None:
    recorded = json.loads(script.RECORD.read_text(encoding="utf-8"))["values"]
    text = script.PAGE.read_text(encoding="utf-8")
    rows = {row[1]: row for line in text.splitlines() if (row := re.split(r" *\| *", line))[1:2]}
    for one in topologies():
        values = recorded[one.name]

        def beside(mine: str, theirs: str, one: Topology = one, values: Any = values) -> str:
            wins = any(better(one, name, values[mine][name], values[theirs][name]) for name in one.measures)
            loses = any(better(one, name, values[theirs][name], values[mine][name]) for name in one.measures)
            return {(True, False): "ahead", (False, True): "behind", (True, True): "mixed"}.get((wins, loses), "same")

        words = [beside(OWN, name) for name in TODAY]
        today = (
            "ahead" if set(words) == {"ahead"} else "behind" if "behind" in words
            else "mixed" if "mixed" in words else "same"
        )  # fmt: skip
        row = rows[f"[{one.title}](#{script.anchor(one)})"]
        assert row[5:11] == [beside(PAPER, THEN), *words, f"**{today}**"], one.name


def test_the_words_below_the_answer_rest_on_verdicts(script: Any) -> None:
    record = Record.read(script.RECORD, study.NAME)
    found = {one.name: study.finding(one, record.values[one.name]) for one in topologies()}
    kept = {name: one for name, one in found.items() if one is not None}
    ahead = {name for name, one in kept.items() if one.word is Word.AHEAD}
    assert ahead == {"I-clouds", "I-merge", "I-join", "I-fork"}
    for name in ("I-clouds", "I-merge", "I-fork"):
        assert all("p99" in one.better for one in kept[name].beside.values()), name
    assert {verdict.word(kept["I-upgraded"].beside[name]) for name in ("cubic-fq", "prague", "abc")} == {Word.SAME}
    for name in ("D-xcp", "D-xtcp"):
        assert all("jain" in one.better for one in kept[name].beside.values()), name
    for name in ("N-hop", "N-chain", "Y-fading"):
        for one in ("cubic-fq", "prague"):
            assert "use" in kept[name].beside[one].better, name
            assert ("p99" in kept[name].beside[one].worse) == (name != "Y-fading"), name
        assert "use" not in kept[name].beside["bbr3"].better or name == "N-chain"
    lossy = kept["K-lossy"].beside
    assert all("use" in lossy[name].better for name in ("cubic-fq", "prague", "abc"))
    assert "p99" in lossy["abc"].worse
    assert lossy["bbr3"] == Against("bbr3", ("p99", "loss"), ())
    for name in ("N-flows", "I-chain", "I-upgraded"):
        assert {verdict.word(kept[name].beside[law]) for law in ("prague", "abc")} == {Word.SAME}
    assert kept["K-start"].beside["abc"] == Against("abc", (), ("p99",))
    assert kept["Y-direct"].beside["prague"] == Against("prague", (), ("p99",))
    assert "p99" in kept["N-hop"].beside["bbr3"].worse
    assert all("p99" in kept["N-hub"].beside[one].worse for one in ("cubic-fq", "prague"))
    assert "short99" in kept["Y-short"].beside["cubic-fq"].worse
    assert verdict.word(kept["Y-satellite"].beside["abc"]) is Word.BEHIND
    assert verdict.word(kept["D-long"].beside["abc"]) is Word.BEHIND


def test_a_verdict_that_is_edited_by_hand_is_found(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "PAGE", tmp_path / "docs" / "study-papers.md")
    monkeypatch.setattr(script, "figure", lambda *_: "<svg/>")
    (tmp_path / "docs" / "img").mkdir(parents=True)
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0
    text = script.PAGE.read_text(encoding="utf-8")
    said = re.search(r"\*\*(ahead|same|mixed|behind)\*\* \|", text)
    assert said is not None
    other = "behind" if said[1] == "ahead" else "ahead"
    script.PAGE.write_text(text.replace(f"**{said[1]}** |", f"**{other}** |", 1), encoding="utf-8")
    assert script.main(["--check"]) == 1
    assert "docs/study-papers.md is old" in capsys.readouterr().err


def test_what_the_record_lacks_is_on_the_page(script: Any) -> None:
    record = Record.read(script.RECORD, study.NAME)
    rows = {row: one for row, one in record.values["K-start"].items() if row != "abc"}
    text = script.page(replace(record, values={"K-start": rows}, failed={"K-start": {"abc": "seed 1: no room"}}))
    assert "abc on K-start failed (seed 1: no room)" in text
    assert "Not on record: N-hop, " in text
