"""The arithmetic of the table, its bounds, and the inputs of both simulators; neither simulator is needed."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import compared
import differences
import pytest
import report
import seeds
from compared import GROUPS, Bound, Judged
from figure2 import CASES, Figure2
from simulators import Case, Explicate, Ns2, PeerError, explicate_scenario

LIMITS = {
    "queue": Bound("mean queue", "because", absolute=2.0, relative=0.10),
    "utilisation": Bound("used", "because", absolute=0.01, percent=True),
}


@pytest.mark.parametrize(
    ("theirs", "ours", "holds"),
    [(0.0, 2.0, True), (0.0, 2.01, False), (100.0, 110.0, True), (100.0, 89.9, False), (10.0, 8.0, True)],
)
def test_a_bound_is_the_larger_of_two(theirs: float, ours: float, holds: bool) -> None:
    assert LIMITS["queue"].holds(theirs, ours) is holds


def test_bounds_are_relative_to_ns2() -> None:
    bound = Bound("", "because", relative=0.5)
    assert bound.holds(2.0, 1.0)
    assert not bound.holds(1.0, 2.0)


def test_means_over_seeds_are_judged() -> None:
    """Each seed is outside its bound, the mean is not; shares count figures."""
    runs = [({"queue": 10.0, "utilisation": 0.9}, {"queue": 4.0, "utilisation": 0.95}),
            ({"queue": 10.0, "utilisation": 0.9}, {"queue": 16.0, "utilisation": 0.95})]  # fmt: skip
    one = Judged.of("one", runs)
    assert one.figures == {"queue": (10.0, 10.0), "utilisation": (0.9, pytest.approx(0.95))}
    assert one.within(LIMITS) == {"queue": True, "utilisation": False}
    other = Judged("other", {"queue": (1.0, 9.0), "utilisation": (0.5, 0.505)})
    good = Judged("good", {"queue": (1.0, 1.0), "utilisation": (0.5, 0.5)})
    assert compared.rows({"first": [one, other], "second": [good]}, LIMITS) == [
        ["setting", "mean queue", "used", "within bounds"],
        ["**first: 2**", "1 of 2", "1 of 2", "2 of 4 (50 %)"],
        ["one", "10 / 10", "**90.00 / 95.00**", "1 of 2"],
        ["other", "**1 / 9**", "50.00 / 50.50", "1 of 2"],
        ["**second: 1**", "1 of 1", "1 of 1", "2 of 2 (100 %)"],
        ["good", "1 / 1", "50.00 / 50.00", "2 of 2"],
        ["**all**", "2 of 3", "2 of 3", "4 of 6 (67 %)"],
    ]
    section = compared.fragment({"first": [one]}, LIMITS)
    assert "| mean queue | 2, or 10 % of ns-2's | because |" in section
    assert "| used | 1 of a hundred | because |" in section


def test_the_bounds_of_the_file_have_reasons(tmp_path: Path) -> None:
    found = compared.bounds()
    assert set(found) == {"utilisation", "queue", "drops", "jain", "goodput"}
    text = compared.BOUNDS.read_text(encoding="utf-8")
    for slip in (
        text.replace("relative = 0.05", "relative = 0.0"),
        re.sub(r'reason = "one point.*', 'reason = ""', text),
        text.replace("absolute = 0.01", "absolut = 0.01"),
        text.replace("[jain]", "[jain"),
    ):
        (tmp_path / "bounds.toml").write_text(slip, encoding="utf-8")
        with pytest.raises(PeerError, match=r"bounds\.toml"):
            compared.bounds(tmp_path / "bounds.toml")


def test_figures_of_both_sides_mean_the_same() -> None:
    ns2 = {"utilisation": 0.5, "queue_mean_packets": 3, "drops_measured": 7, "goodput_bps": [6e6, 2e6]}
    link = {"link": "r1->r2", "utilisation": 0.5, "queue_mean_packets": 3.0, "drops_overflow": 4, "drops_early": 2,
            "drops_channel": 1}  # fmt: skip
    ours = {"links": [link], "flows": [{"goodput_bps": 6e6 * 0.928}, {"goodput_bps": 2e6 * 0.928}]}
    assert compared.of_explicate(ours, "r1->r2", "xcp/reno") == pytest.approx(compared.of_ns2(ns2))
    with pytest.raises(PeerError, match="no link r9"):
        compared.of_explicate(ours, "r9", "xcp")


def test_groups_have_what_they_promise() -> None:
    assert len({group.name for group in GROUPS}) == len(GROUPS)
    settings = {name: setting for group in GROUPS for name, setting in group.settings.items()}
    assert len(settings) == sum(len(group.settings) for group in GROUPS), "each once"
    of = {group.name: list(group.settings.values()) for group in GROUPS}
    spread = {(c.rtt_ms, c.rtt_high_ms) for c in of["unequal round trips"] if isinstance(c, Case)}
    assert spread == {(40, 330), (30, 500)}
    assert {one.case for one in CASES.values()} == {"a", "b", "c"}
    for setting in of["settings with timeouts"]:
        assert isinstance(setting, Case)
        assert setting.buffer_packets <= 50
    chosen = compared.chosen(["XCP, steady"])
    assert [group.name for group in chosen] == ["XCP, steady"]
    with pytest.raises(PeerError, match="no group is called 'XCP'; there are: XCP, steady"):
        compared.chosen(["XCP"])


def test_a_short_buffer_is_asked_of_both() -> None:
    case = compared.small("xcp", 30, 100, 1, 50)
    arguments = Ns2().arguments(case)
    assert arguments[arguments.index("-buffer") + 1] == "50"
    scenario = tomllib.loads(explicate_scenario(case))
    assert scenario["topology"]["bottleneck"]["queue"]["limit"] == "50pkt"
    assert scenario["flows"][0]["protocol"] == "xcp/reno"
    assert Case("xcp", 30, 100, 1).buffer_packets == 375, "one bandwidth-delay product"


NS2_ROUTER = {"kind": "xcp", "idle_rtt": "initial"}
TICKS = {"clock_tick": "1ms"}
TICKS_OF_XCP = {**TICKS, "rtt_resolution": "0s"}
STAMPS = {"rto": "ns2_timestamps"}


def test_clocks_tick_as_in_the_scripts_for_ns2() -> None:
    """1 ms, which is neither the default of ns-2 nor that of `stack = "ns2"`."""
    folder = compared.BOUNDS.parent
    for script in ("dumbbell.tcl", "chain.tcl"):
        assert re.search(r"-tick +0\.001 ", (folder / script).read_text(encoding="utf-8")), script
    for script in ("lossy.tcl", "radios.tcl"):
        assert "tcpTick_ 0.001" in (folder / script).read_text(encoding="utf-8"), script
    flow = differences.Flow("lossy.tcl", params='pipe = "acknowledgements"')
    for text in (explicate_scenario(Case("sack", 10, 40, 2)), Figure2("a").scenario(), flow.wire(1), flow.chain(1)):
        scenario = tomllib.loads(text)
        assert scenario["stack"] == "ns2"
        assert {**TICKS, **scenario["flows"][0]["params"]} == scenario["flows"][0]["params"]


def test_a_timer_takes_the_samples_that_ns2s_takes() -> None:
    """Every acknowledgement where the script for ns-2 has time stamps, else one a round trip."""

    def rule(text: str) -> str:
        scenario = tomllib.loads(text)
        return str(scenario["flows"][0]["params"].get("rto", scenario["stack"]))

    case = Case("sack", 10, 40, 2)
    for one, rto, reset in ((case, "ns2", "0"), (compared.stamped(case), "ns2_timestamps", "1")):
        words = Ns2("ns").arguments(one)
        assert (rule(explicate_scenario(one)), words[words.index("-reset") + 1]) == (rto, reset)
    for script in ("chain.tcl", "lossy.tcl"):
        assert re.search(r"timestamps_ true", (compared.BOUNDS.parent / script).read_text(encoding="utf-8")), script
    assert [rule(Figure2("a").scenario()), rule(differences.Flow("lossy.tcl").wire(1))] == ["ns2_timestamps"] * 2
    radios = (differences.Flow("radios.tcl", options).chain(1) for options in ({}, {"timestamps": "false"}))
    assert [rule(text) for text in radios] == ["ns2_timestamps", "ns2"]


def test_every_second_flow_goes_the_other_way() -> None:
    case = Case("xcp", 16, 124, 5, opposite=True)
    groups = tomllib.loads(explicate_scenario(case))["flows"]
    assert [(group["path"], group["count"]) for group in groups] == [("long", 3), ("reverse", 2)]
    words = Ns2("ns").arguments(case)
    assert words[words.index("-opposite") + 1] == "1"


def test_short_buffers_are_met_by_the_xcp_of_ns2() -> None:
    """Its sender drops the feedback of duplicates, its router forgets the mean RTT; nothing of the kind for TCP."""
    scenario = tomllib.loads(explicate_scenario(compared.small("xcp", 30, 100, 1, 50)))
    assert scenario["flows"][0]["params"] == {"initial_window": 2, "follow_duplicates": False, **TICKS_OF_XCP}
    assert [scenario["topology"][link]["router"] for link in ("access", "bottleneck")] == [NS2_ROUTER] * 2
    scenario = tomllib.loads(explicate_scenario(compared.small("sack", 30, 100, 1, 50)))
    assert scenario["flows"][0]["params"] == {"initial_window": 2, **TICKS}
    assert scenario["topology"]["access"]["router"] == "auto"


@pytest.mark.parametrize("case", ["a", "b", "c"])
def test_figure_2_has_the_xcp_of_ns2(case: str) -> None:
    """The scenario's own parameter, no guard, remains; round trips in its headers are exact."""
    scenario = tomllib.loads(Figure2(case).scenario())
    own = STAMPS | ({"follow_duplicates": False, **TICKS_OF_XCP} if case != "a" else TICKS)
    guard = {"guard": "off"} if case == "c" else {}
    assert scenario["flows"][0]["params"] == {"initial_window": 2, **guard, **own}
    routers = {"a": [None] * 4, "b": [NS2_ROUTER] * 4, "c": [NS2_ROUTER, NS2_ROUTER, "none", NS2_ROUTER]}
    assert [link.get("router") for link in scenario["link"]] == routers[case]


def test_figure_2_is_asked_as_its_twin_is() -> None:
    one = Figure2("c", 20.0, 0.5, seed=3)
    scenario = tomllib.loads(one.scenario())
    links = {link["from"]: link for link in scenario["link"]}
    assert all(link["delay"] == "20ms" for link in links.values())
    assert links["r2"] == {**links["r2"], "rate": "30Mbit/s", "router": "none"}
    assert links["r2"]["queue"]["limit"] == "0.5bdp"
    assert (scenario["seed"], scenario["duration"], scenario["flows"][0]["protocol"]) == (3, "60s", "xcp/reno")
    command = one.ns2("ns")
    options = dict(zip(command[2::2], command[3::2], strict=True))
    assert (options["-case"], options["-delay"], options["-buffer"], options["-seed"]) == ("c", "20.0", "0.5", "3")
    known = Path(command[1]).read_text(encoding="utf-8")
    assert all(re.search(rf"^    {name} ", known, re.MULTILINE) for name in options)
    assert "-reset " in Ns2.script.read_text(encoding="utf-8")


def test_figures_of_ns2_may_be_recorded(tmp_path: Path) -> None:
    """What a page says of ns-2 is read back from it: means of four digits, with and without bold."""
    limits = compared.bounds()
    group = compared.chosen(["TCP, small buffers"])[0]
    theirs = {"utilisation": 0.9012, "queue": 60.48, "drops": 69.0, "jain": 0.9967, "goodput": 90.1}
    ours = {"utilisation": 0.8958, "queue": 90.0, "drops": 1234.0, "jain": 0.99, "goodput": 89.6}
    judged = {group.name: [Judged.of(name, [(theirs, ours)]) for name in group.settings]}
    page = tmp_path / "page.md"
    page.write_text(
        f"<!-- compared:begin -->\n{compared.fragment(judged, limits)}\n<!-- compared:end -->\n", encoding="utf-8"
    )
    recorded = compared.Recorded(report.recorded(page, "compared"), limits)
    for name in group.settings:
        assert recorded.figures(name) == pytest.approx(theirs)
    with pytest.raises(PeerError, match="no figures of ns-2 are recorded for 'another'"):
        recorded.figures("another")
    with pytest.raises(PeerError, match="section `aqm` has no table"):
        report.recorded(page, "aqm")


def test_recorded_sides_keep_their_cells() -> None:
    ours = seeds.Side.of([(0.90, 10.0), (0.91, 12.0)])
    assert seeds.row("x", seeds.Side.read("89.00 ± 0.10", "10.0 ± 0.1"), ours) == [
        "x", "89.00 ± 0.10", "90.50 ± 0.71", "+1.50", "10.0 ± 0.1", "11.0 ± 1.4", "+10.0 %", "yes",
    ]  # fmt: skip
    assert seeds.row("x", seeds.Side.read("88.00 ± 0.10", "10.0 ± 0.1"), ours)[-1] == "**no**"
    part = differences.PARTS["red"]
    known = {name: ["10", "1 ± 0", "0 ± 0", "2 ± 0", "0 ± 0", "3 ± 0", "0 ± 0"] for name in part.settings}

    def threads(_work: object, every: range) -> list[tuple[float, float, float]]:
        return [(0.5, 4.0, 5.0) for _ in every]

    table = differences.table(part, known, Explicate("explicate"), threads)
    assert table.splitlines()[-1] == "| SACK | 10 | 1 ± 0 | 0.500 ± 0.000 | 2 ± 0 | 4.00 ± 0.00 | 3 ± 0 | 5.0 ± 0.0 |"


def test_a_setting_is_judged_from_its_own_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    group = replace(GROUPS[3], seeds=(1, 2, 3))

    def measured(_ns2: Ns2, _ours: Explicate, _name: str, setting: Case) -> tuple[dict[str, float], dict[str, float]]:
        return {"queue": float(setting.buffer_packets)}, {"queue": float(setting.seed)}

    monkeypatch.setattr(compared, "measure", measured)
    found = compared.judge(group, Ns2(), Explicate("explicate"), 2)
    assert [one.figures["queue"] for one in found] == [(float(c.buffer_packets), 2.0) for c in group.settings.values()]
    small = compared.smoke(group)
    assert (len(small.settings), small.seeds) == (1, (1,))
