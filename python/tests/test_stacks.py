"""`explicate reproduce --stack`: what a stack replaces in the papers' experiments, and what it leaves."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from explicate import engine
from explicate.cli import main
from explicate.source import Source
from explicate_papers import stacks
from explicate_papers.inputs import Case
from explicate_papers.judge import Attempt
from explicate_papers.lopez_pacheco import txt_lossfree
from explicate_papers.plan import effort, studies
from explicate_papers.register import experiments, predicates
from explicate_papers.store import Job
from explicate_papers.verdicts import Word

pytestmark = pytest.mark.usefixtures("native_real")

STAYS = ("receiver_window", "packet", "start", "count", "on_loss", "ecn", "paced", "dupackthreshold", "processing")
NETWORK = ("node", "link", "topology", "medium", "agent")


def one(protocol: str, **params: Any) -> Case:
    return Case(stacks._scenario(protocol, params).to_toml())


def in_force(case: Case) -> list[dict[str, Any]]:
    """The groups of a case as the engine resolves them, with the recovery of each."""
    resolved = tomllib.loads(Source.of(case.text).check(case.overrides())["resolved"])
    explained = engine.stacks(case.text, "<case>", ".", case.overrides())
    return [
        {**group, **group["params"], "recovery": told["recovery"]}
        for group, told in zip(resolved["flows"], explained, strict=True)
    ]


def test_a_tcp_gets_all_of_the_stack_whatever_it_writes() -> None:
    written = {"initial_window": 1, "receiver_window": 90, "clock_tick": "10ms", "min_rto": "1s", "rto": "ns2"}
    written |= {"ack_every": 2, "quick_acks": 16, "host_queue": "none", "lost_retransmission": "reports"}
    (made,) = in_force(stacks.with_stack(one("sack", **written), "linux"))
    (usual,) = in_force(Case(one("reno", receiver_window=90).text, {"stack": "linux", "flows.0.params.guard": "off"}))
    assert made["recovery"] == "rack"
    apart = {"protocol", "rtt_resolution"}  # a case writes the latter for every flow
    assert {key: made[key] for key in made if key not in {*apart, "params"}} == {
        key: usual[key] for key in usual if key not in {*apart, "params"}
    }
    assert (made["initial_window"], made["rto"], made["min_rto"], made["rtt_resolution"]) == (
        10,
        "linux",
        "auto",
        "auto",
    )


@pytest.mark.parametrize("protocol", ["reno/reno", "newreno", "sack", "tahoe", "reno", "cubic/sack"])
def test_every_recovery_of_tcp_is_the_stacks(protocol: str) -> None:
    (made,) = in_force(stacks.with_stack(one(protocol), "rfc"))
    assert made["recovery"] == "rack"
    assert (made["initial_window"], made["ack_every"], made["rto"], made["host_queue"]) == (10, 2, "rfc6298", "fifo")


def test_explicit_protocols_take_only_what_a_stack_gives_them() -> None:
    written = {"initial_window": 50, "ack_every": 2, "on_loss": "keep", "clock_tick": "10ms", "min_rto": "1s"}
    (made,) = in_force(stacks.with_stack(one("xcp/reno", **written), "linux"))
    assert (made["recovery"], made["rto"], made["host_queue"], made["clock_tick"]) == (
        "rack",
        "linux",
        "fq_codel",
        "auto",
    )
    kept = {"initial_window": 50, "ack_every": 2, "on_loss": "keep", "acks": "counted", "autotuning": "none"}
    assert {key: made[key] for key in kept} == kept


@pytest.mark.parametrize(
    ("protocol", "recovery"),
    [("LR-XCP", "loss_resilient"), ("LR-LMXTCP", "loss_monitor"), ("XCP_dumb", "reno"), ("greedy", "none"),
     ("xcp/sack_monitor", "sack_monitor"), ("reno/loss_resilient", "loss_resilient"), ("video", "none")],
)  # fmt: skip
def test_a_recovery_that_a_protocol_stands_for_stays(protocol: str, recovery: str) -> None:
    for stack in stacks.names():
        (made,) = in_force(stacks.with_stack(one(protocol), stack))
        assert (made["protocol"], made["recovery"], made["stack"]) == (protocol, recovery, stack)


def test_ns2_has_no_recovery_of_its_own_to_put_in_anothers_place() -> None:
    (made,) = in_force(stacks.with_stack(one("xcp/newreno", clock_tick="100ms", initial_window=7), "ns2"))
    assert (made["recovery"], made["rto"], made["clock_tick"], made["initial_window"]) == ("newreno", "ns2", "auto", 7)
    (made,) = in_force(stacks.with_stack(one("newreno", initial_window=1), "ns2"))
    assert (made["recovery"], made["initial_window"], made["host_queue"]) == ("newreno", 3, "none")


def test_settings_of_a_case_lose_what_the_stack_sets_too() -> None:
    settings = {"flows.flow.params.min_rto": "1s", "flows.0.params.on_loss": "keep", "warmup": "1s", "stack": "ns2"}
    made = stacks.with_stack(Case(one("xcp").text, settings), "linux").settings
    assert made == {
        "flows.0.params.on_loss": "keep", "warmup": "1s", "flows.0.params.rtt_resolution": "auto", "stack": "linux",
    }  # fmt: skip


def test_what_was_replaced_is_listed_once_for_each_protocol() -> None:
    cases = [one("sack", initial_window=1), one("sack", initial_window=1), one("LR-XCP")]
    found = stacks.replaced(cases, [stacks.with_stack(case, "linux") for case in cases])
    assert len(set(found)) == len(found)
    start = stacks.Replaced("sack", "initial_window", "1", "10", written=True)
    queue = stacks.Replaced("LR-XCP", "host_queue", "none", "fq_codel", written=False)
    recovery = stacks.Replaced("sack", "recovery", "sack", "rack", written=False)
    assert {start, queue, recovery} <= set(found)
    sack, resilient = stacks.lines(found)
    assert sack.startswith("sack: recovery sack → rack, ")
    assert "initial_window 1 → 10" in sack
    assert "recovery" not in resilient
    assert "<td>1 (written)</td><td>10</td>" in stacks.as_html("linux", found)
    assert stacks.as_html("", ()) == ""


def test_the_lists_are_about_what_there_is() -> None:
    known = {kind: {entry["name"] for entry in engine.registry() if entry["kind"] == kind} for kind in ("recovery",)}
    assert sorted([*stacks.data()["tcp"], *stacks.data()["own"]]) == sorted(known["recovery"])
    params = {
        param["name"] for entry in engine.registry() if entry["kind"] == "preset" for param in entry["parameters"]
    }
    for rule, follow in stacks.data()["follow"].items():
        assert {rule, *follow} <= params
        assert rule in stacks._set_by_stacks("reno")


def test_claims_that_are_not_meaningful_exist_and_have_a_reason() -> None:
    rows = stacks.data()["meaningless"]
    assert len({row["claim"] for row in rows}) == len(rows) > 0
    for row in rows:
        assert row["claim"] in predicates()
        assert set(row["stacks"]) <= set(stacks.names()), row["claim"]
        assert row["stacks"]
        assert len(row["reason"]) > 20, row["claim"]
    assert stacks.meaningless("") == {}


@pytest.mark.papers
@pytest.mark.parametrize("letter", [pytest.param(letter, id=f"{letter}:") for letter in "NIYDK"])
def test_every_case_of_the_papers_runs_with_the_stack_alone(letter: str) -> None:
    """Nothing that a stack sets is left of what a scenario wrote, and nothing else has changed."""
    for study in (made for key, made in studies().items() if key[0] == letter):
        for case in study.make_cases(effort(study.experiment, "quick")).values():
            made = stacks.with_stack(case, "linux")
            Job.of(made, [1])
            for told in engine.stacks(made.text, "<case>", ".", made.overrides()):
                won = [row for row in told["settings"] if row["instead_of"] is not None and row["name"] != "recovery"]
                assert won == [], (study.id, told["group"])
            before, after = (tomllib.loads(one.text) for one in (case, made))
            for group, other in zip(before.pop("flows", []), after.pop("flows", []), strict=True):
                for key in STAYS:
                    assert group.get(key) == other.get(key), (study.id, key)
                    assert group.get("params", {}).get(key) == other.get("params", {}).get(key), (study.id, key)
            assert before == after, study.id


def test_a_run_with_another_stack_has_another_key() -> None:
    planned, other = (Attempt(experiments()["I-fig2"], "quick", stack=stack) for stack in ("", "linux"))
    keys, others = ({job.key for job in attempt.jobs} for attempt in (planned, other))
    assert len(keys) == len(others) > 0
    assert not keys & others


def test_wrong_names_and_mixtures_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "I-fig2", "--stack", "windows"]) == 2
    assert "--stack windows: no such stack; there are linux, rfc, ns2" in capsys.readouterr().err
    assert main(["reproduce", "I-fig99", "--stack", "linux"]) == 2
    assert "I-fig99: no such experiment" in capsys.readouterr().err
    for other in ("--controls", "--multiverse", "--law-table"):
        assert main(["reproduce", "I", "--stack", "linux", other]) == 2
        assert "leave out" in capsys.readouterr().err


def test_two_stacks_are_one_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    for key in ("stack", "flows.bulk.stack"):
        assert main(["reproduce", "I-fig2", "--stack", "linux", "--set", f"{key}=rfc"]) == 2
        assert "two stacks" in capsys.readouterr().err


ALIKE = {
    "N-fig3": "XCP with and without SACK: N-fig3-i is not judged",
    "N-txt-zh": "XCP with and without SACK: N-txt-zh-a is not judged; N-txt-zh-c compares both with TCP",
    "D-txt-rtx": "timers of half their length: D-txt-rtx-c is not judged",
    "D-txt-tcpvar": "NewReno and SACK: the one TCP of the hosts is judged twice",
    "D-txt-queue": "NewReno and SACK: the one TCP of the hosts is judged twice",
}
"""Experiments with cases that differ only in the hosts' TCP: with Linux's stack these cases are the same run. The text
says which ones, and what becomes of the claims that compare them."""


def signature(case: Case) -> str:
    """All that decides the runs of a case, whatever the names of its protocols are."""
    content = tomllib.loads(case.text)
    flows = [(key, stacks._in_force(key, params, stack)) for key, params, stack in stacks._flows(case)]
    for group, (key, in_force) in zip(content.get("flows", []), flows, strict=True):
        group |= {"protocol": stacks._explained(key, "ns2")["protocol"], "params": in_force}
    settings = {key: value for key, value in case.settings.items() if not key.startswith("flows.")}
    return json.dumps([content, settings, case.seeds, case.trace], sort_keys=True, default=str)


@pytest.mark.papers
@pytest.mark.parametrize("letter", [pytest.param(letter, id=f"{letter}:") for letter in "NIYDK"])
def test_cases_that_become_alike_are_known(letter: str) -> None:
    found = set()
    for study in (made for key, made in studies().items() if key[0] == letter):
        planned = study.make_cases(effort(study.experiment, "quick")).values()
        before, after = (
            {signature(case) for case in planned},
            {signature(stacks.with_stack(case, "linux")) for case in planned},
        )
        if len(after) < len(before):
            found.add(study.id)
    assert found == {key for key in ALIKE if key[0] == letter}


def test_the_command_judges_lists_and_keeps_the_papers_pages_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(txt_lossfree, "SECONDS", 1)  # of five, each of 20,000 samples
    main(["reproduce", "I-txt-lossfree", "--quick", "--stack", "linux", "--json", "-o", str(tmp_path)])
    rows = json.loads(capsys.readouterr().out)
    assert {row["stack"] for row in rows} == {"linux"}
    (rule,) = (row for row in rows if row["predicate"] == "I-txt-lossfree-b")
    assert rule["verdict"] == Word.NOT_JUDGED
    assert rule["note"].startswith("not meaningful with stack linux: ")
    noted = json.loads((tmp_path / "linux" / "replaced.json").read_text(encoding="utf-8"))
    settings = {row["setting"]: row for row in noted["experiments"]["I-txt-lossfree"]}
    assert (settings["recovery"]["before"], settings["recovery"]["after"]) == ("reno", "rack")
    page = (tmp_path / "linux" / "I-txt-lossfree.html").read_text(encoding="utf-8")
    assert "Replaced by stack linux" in page
    assert "--quick --stack linux -o papers" in page
    assert not (tmp_path / "index.html").exists()
    assert (tmp_path / "runs").is_dir()
    main(["reproduce", "I-txt-lossfree", "--quick", "--stack", "linux", "-o", str(tmp_path)])
    assert "stack linux replaces in xcp/reno: recovery reno → rack, " in capsys.readouterr().out
