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


AS_WRITTEN = {key: rule.kept for key, rule in agents.RULES.items()}


def contents(identifier: str, changed: dict[str, str]) -> list[dict[str, Any]]:
    """Return the parsed scenarios that these values alone change, which must be some."""
    before, after = made(identifier, AS_WRITTEN), made(identifier, {**AS_WRITTEN, **changed})
    assert before.keys() == after.keys()
    different = [tomllib.loads(case.text) for label, case in after.items() if case != before[label]]
    assert different, f"{identifier} is the same with {changed}"
    return different


def test_every_rule_is_a_choice_that_has_its_value() -> None:
    for key, rule in agents.RULES.items():
        choice = choices(PAPERS[key[0]])[key]
        assert rule.kept in {choice.used, *choice.others}, key
        assert choice.others, key


@pytest.mark.parametrize("identifier", SHOWN)
def test_one_value_leaves_the_cases_as_the_experiment_has_them(identifier: str) -> None:
    study = studies()[identifier]
    chosen = effort(study.experiment, "quick")
    assert made(identifier, AS_WRITTEN) == dict(study.make_cases.__wrapped__(chosen))  # type: ignore[attr-defined]


def test_what_ns2s_agents_do_is_in_use() -> None:
    """Where a paper names that simulator and no change to these parts of its agents."""
    for identifier in ("I-fig2", "Y-fig7"):
        for case in made(identifier).values():
            content = tomllib.loads(case.text)
            for group in content["flows"]:
                if agents.xcp(group["protocol"]) or agents.vcp(group["protocol"]):
                    assert group["protocol"].endswith("/reno")
                    assert group["params"]["follow_duplicates"] is False
            for link in agents._links(content):
                router = link.get("router", "none")
                assert router == "none" or router["kind"] == "vcp" or router["idle_rtt"] == "initial"
    for case in made("K-fig7").values():
        for group in tomllib.loads(case.text)["flows"]:
            if agents.vcp(group["protocol"]):
                assert group["protocol"].endswith("/reno")
                wanted = {"follow_duplicates": False, "pace_parts": "power_of_two", "paced": False}
                assert wanted.items() <= group["params"].items()


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
    before, after = made("D-fig4", AS_WRITTEN), made("D-fig4", {"D-P24": "initial"})
    kept = [case for case in after.values() if case.settings]
    assert kept
    for label, case in after.items():
        for key, router in case.settings.items():
            assert router == {**before[label].settings[key], "idle_rtt": "initial"}


@pytest.mark.parametrize(("identifier", "choice"), [("K-fig7", "K-P26"), ("Y-fig7", "Y-P27")])
def test_the_parts_of_vcps_author(identifier: str, choice: str) -> None:
    for content in contents(identifier, {choice: "its author's"}):
        for group in content["flows"]:
            assert (group.get("params", {}).get("pace_parts") == "power_of_two") is agents.vcp(group["protocol"])


@pytest.mark.parametrize("value", ["0", "1000000"])
def test_draws_that_are_carried_over(value: str) -> None:
    for content in contents("K-fig5", {"K-P27": value}):
        links = [link for link in agents._links(content) if link.get("router", "none") != "none"]
        assert links
        assert {link["router"]["carried"] for link in links} == {int(value)}
