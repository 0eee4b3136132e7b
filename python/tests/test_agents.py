"""Choices about ns-2's agents leave cases alone with the value in use, and change only what they name otherwise."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from explicate_papers import agents
from explicate_papers.plan import Reads, choices, effort, studies
from explicate_papers.register import PAPERS
from explicate_papers.study import Case

SHOWN = ("I-fig2", "I-fig6", "Y-fig7", "D-fig4", "D-fig2b", "K-fig7", "K-fig2")


def made(identifier: str, changed: dict[str, str] | None = None) -> dict[Any, Case]:
    study = studies()[identifier]
    return dict(study.make_cases(effort(study.experiment, "quick", changed)))


def contents(identifier: str, changed: dict[str, str]) -> list[dict[str, Any]]:
    """Return the parsed scenarios that the alternative changes, which must be some."""
    before, after = made(identifier), made(identifier, changed)
    assert before.keys() == after.keys()
    different = [tomllib.loads(case.text) for label, case in after.items() if case != before[label]]
    assert different, f"{identifier} is the same with {changed}"
    return different


def test_every_rule_is_a_choice_with_its_value_in_use() -> None:
    for key, rule in agents.RULES.items():
        choice = choices(PAPERS[key[0]])[key]
        assert choice.used == rule.kept, key
        assert choice.others, key


@pytest.mark.parametrize("identifier", SHOWN)
def test_with_the_values_in_use_the_cases_are_those_of_the_experiment(identifier: str) -> None:
    study = studies()[identifier]
    chosen = effort(study.experiment, "quick")
    assert made(identifier) == dict(study.make_cases.__wrapped__(chosen))  # type: ignore[attr-defined]


def test_cases_without_the_protocol_do_not_read_the_choice() -> None:
    study = studies()["K-fig2"]
    chosen = effort(study.experiment, "quick")
    study.make_cases(chosen)
    assert isinstance(chosen.choices, Reads)
    assert not chosen.choices.read & {"I-P26", "Y-P25"}
    tcp = {"one": Case('[[flows]]\nname = "one"\nprotocol = "newreno"\n')}
    chosen = effort(study.experiment, "quick")
    assert agents.chosen("K", lambda _: tcp)(chosen) == tcp
    assert isinstance(chosen.choices, Reads)
    assert not chosen.choices.read


@pytest.mark.parametrize(("identifier", "choice"), [("I-fig2", "I-P26"), ("Y-fig7", "Y-P25"), ("K-fig7", "K-P25")])
def test_new_acknowledgements_alone(identifier: str, choice: str) -> None:
    for content in contents(identifier, {choice: "new"}):
        for group in content["flows"]:
            explicit = agents.xcp(group["protocol"]) or agents.vcp(group["protocol"])
            assert group.get("params", {}).get("follow_duplicates", True) is not explicit


@pytest.mark.parametrize(("identifier", "choice"), [("I-fig6", "I-P27"), ("Y-fig7", "Y-P26"), ("D-fig2b", "D-P24")])
def test_the_initial_round_trip(identifier: str, choice: str) -> None:
    for content in contents(identifier, {choice: "initial"}):
        links = [link for link in agents._links(content) if link.get("router", "none") != "none"]
        assert links
        assert all(link["router"]["idle_rtt"] == "initial" for link in links)


def test_routers_that_keep_a_queue_keep_it() -> None:
    before, after = made("D-fig4"), made("D-fig4", {"D-P24": "initial"})
    kept = [case for case in after.values() if case.settings]
    assert kept
    for label, case in after.items():
        for key, router in case.settings.items():
            assert router == {**before[label].settings[key], "idle_rtt": "initial"}


def test_the_sender_of_vcps_author_is_one_change() -> None:
    for content in contents("K-fig7", {"K-P26": "its author's"}):
        for group in content["flows"]:
            if agents.vcp(group["protocol"]):
                assert group["protocol"].endswith("/reno")
                wanted = {"follow_duplicates": False, "pace_parts": "power_of_two", "paced": False}
                assert wanted.items() <= group["params"].items()
    for content in contents("Y-fig7", {"Y-P27": "its author's"}):
        for group in content["flows"]:
            assert group["protocol"] == "vcp/reno"
            assert "paced" not in group["params"]


@pytest.mark.parametrize("value", ["0", "1000000"])
def test_draws_that_are_carried_over(value: str) -> None:
    for content in contents("K-fig5", {"K-P27": value}):
        links = [link for link in agents._links(content) if link.get("router", "none") != "none"]
        assert links
        assert {link["router"]["carried"] for link in links} == {int(value)}
