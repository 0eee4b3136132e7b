"""The comparison with the kernel's TCP, by made-up recordings; and the choice of scenes."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path

import kernel_record
import kernel_tcp
import pytest
from kernel_scenes import FACTORS, Scene, all_scenes, covering, figures, hidden, too_small
from kernel_tcp import Cause, Cell, passes

SCENES = {scene.name: scene for scene in all_scenes()}
BULK = next(s for s in SCENES.values() if s.groups[0].flows == 4 and len(s.groups) == 1 and not s.sized)


@pytest.mark.parametrize(
    ("figure", "theirs", "ours", "pass_"),
    [
        ("goodput_mbps", [19.0, 19.1], [18.1, 18.2], True),  # 5 % below
        ("goodput_mbps", [19.0, 19.1], [17.9, 18.0], False),
        ("goodput_mbps", [19.0, 19.1], [10.0, 17.9, 19.05], True),  # the ranges overlap
        ("goodput_mbps.cubic", [10.0], [10.6], False),
        ("queue_ms", [20.0], [22.9], True),
        ("queue_ms", [20.0], [23.1], False),
        ("queue_ms", [0.0], [0.0], True),
        ("drops", [100.0], [150.0], True),  # by the factor
        ("drops", [150.0], [100.0], True),
        ("drops", [100.0], [151.0], False),
        ("drops", [0.0], [30.0], True),  # by the difference
        ("drops", [0.0], [31.0], False),
        ("retransmissions", [100.0], [200.0], True),
        ("retransmissions", [100.0], [201.0], False),
        ("retransmissions", [1.0], [51.0], True),
        ("timeouts_per_flow", [0.0, 0.0], [0.0, 0.4], True),  # a mean of .2
        ("timeouts_per_flow", [0.0, 0.0], [0.0, 0.5], False),  # though the ranges overlap
        ("timeouts_per_flow", [0.0, 1.0], [2.0, 3.0], False),
        ("timeouts_per_flow", [0.0, 1.0], [1.0, 3.0], True),
        ("jain", [0.9, 0.95], [0.94, 0.99], True),
        ("jain", [0.9, 0.95], [0.951, 0.99], False),  # near, but by ranges alone
        ("completion_s", [1.0], [1.15], True),
        ("completion_s", [1.0], [0.84], False),
    ],
)
def test_a_cell_passes_within_its_bound_or_where_ranges_overlap(
    figure: str, theirs: list[float], ours: list[float], pass_: bool
) -> None:
    assert passes(figure, theirs, ours) is pass_


def row(group: str, goodput: float, **more: float | None) -> dict[str, object]:
    given = {"retransmissions": 5, "timeouts": 1, "completion_s": None, "start_s": 0.0}
    return {"group": group, "goodput_bps": goodput, **given, **more}


LINKS = [
    {"link": "s0->r1", "queue_mean_ms": 9.0, "drops_overflow": 9, "drops_early": 9},
    {"link": "r1->r2", "queue_mean_ms": 2.5, "drops_overflow": 3, "drops_early": 1},
]


def test_the_figures_of_a_run_are_those_of_its_flows_and_of_the_bottleneck() -> None:
    found = figures(BULK, [row("f", 1e6), row("f", 3e6)], LINKS)
    assert found == {
        "queue_ms": 2.5,
        "drops": 4.0,
        "retransmissions": 10.0,
        "timeouts_per_flow": 1.0,
        "goodput_mbps": 4.0,
        "jain": 0.8,
    }
    two = next(s for s in SCENES.values() if len(s.groups) == 2)
    apart = figures(two, [row("f", 1e6), row("g", 3e6)], LINKS)
    assert {key: apart[key] for key in apart if key.startswith("goodput")} == {
        f"goodput_mbps.{two.groups[0].controller}": 1.0,
        f"goodput_mbps.{two.groups[1].controller}": 3.0,
    }


def test_a_flow_that_is_not_complete_has_taken_the_rest_of_the_run() -> None:
    scene = next(s for s in SCENES.values() if s.sized)
    rows = [row("f", 0.0, completion_s=1.0), row("f", 0.0, start_s=scene.duration_s - 3.0)]
    assert figures(scene, rows, LINKS)["completion_s"] == pytest.approx(2.0)


def recorded(runs: list[dict[str, float]]) -> dict[str, object]:
    return {"runs": [{"figures": run} for run in runs]}


def test_shares_are_compared_after_sixty_round_trips_only() -> None:
    run = {"queue_ms": 0.0, "jain": 0.9}
    seconds = kernel_tcp.LEAST_ROUNDS * BULK.rtt_ms / 1000
    long, short = (Scene("s", BULK.groups, BULK.rtt_ms, 20, 1, (), s) for s in (seconds + 0.1, seconds - 0.1))
    assert [c.figure for c in kernel_tcp.compared(long, recorded([run]), [run])] == ["queue_ms", "jain"]
    assert [c.figure for c in kernel_tcp.compared(short, recorded([run]), [run])] == ["queue_ms"]
    # A queue makes round trips longer.
    full = {"queue_ms": float(BULK.rtt_ms), "jain": 0.9}
    assert [c.figure for c in kernel_tcp.compared(long, recorded([full]), [full])] == ["queue_ms"]


def test_the_tables_count_what_passes_and_show_what_does_not() -> None:
    cells = [
        Cell("a", "goodput_mbps", [10.0, 12.0], [11.0]),
        Cell("a", "drops", [0.0], [31.0]),
        Cell("b", "goodput_mbps.bbr", [10.0], [5.0]),
        Cell("b", "goodput_mbps.reno", [10.0], [10.0]),
    ]
    lines = kernel_tcp.summary(cells)
    assert "| goodput, Mbit/s | 2 | 3 |" in lines
    assert "| drops | 0 | 1 |" in lines
    assert "| Jain | 0 | 0 |" in lines
    assert lines[-1] == "| **all** | 2 | 4 |"
    cause = Cause("a", "drops", "Y", "X alone", 0, 31, 0)
    head, _, first, second = kernel_tcp.table(cells, [cause])
    assert head.startswith("| scene | goodput")
    assert first.startswith("| a | 11 (10 to 12) / 11 |")
    assert "**0 / 31**" in first
    assert first.endswith("| drops: Y (X alone: 31, then 0; kernel 0) |")
    assert "**10 / 5**; 10 / 10" in second
    assert [line.split(":")[0] for line in kernel_tcp.short_of(cells)] == ["all cells", "goodput, Mbit/s", "drops"]


def test_every_cell_outside_has_a_cause_and_no_other() -> None:
    outside, inside = Cell("a", "drops", [0.0], [31.0]), Cell("a", "goodput_mbps.bbr", [10.0], [10.0])
    cause = Cause("a", "drops", "Y", "X alone", 0, 31, 0)
    of_other = Cause("b", "drops", "Y", "X alone", 0, 31, 0)
    assert kernel_tcp.contradictions([outside, inside], [cause, of_other]) == []
    (missing,) = kernel_tcp.contradictions([outside, inside], [of_other])
    assert missing.startswith("a, drops: outside its bound")
    (stale,) = kernel_tcp.contradictions([inside], [cause])
    assert stale.startswith("a, drops: causes.toml has a cause")
    (twice,) = kernel_tcp.contradictions([outside, inside], [cause, cause])
    assert twice == "a, drops: causes.toml has two causes"


def test_the_causes_are_of_recorded_cells() -> None:
    causes = kernel_tcp.read_causes(kernel_tcp.FOLDER / "causes.toml")
    recorded_ = kernel_tcp.recordings(kernel_tcp.FOLDER)
    assert causes
    for cause in causes:
        medians = recorded_[cause.scene]["medians"]
        assert cause.kernel == pytest.approx(medians[cause.column], rel=0.01), cause
        assert cause.text().startswith(kernel_tcp.BOUNDS[cause.column].title)


def test_the_check_fails_where_the_causes_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = {"scenario": BULK.scenario(), "runs": [{"figures": {"queue_ms": 1.0}}]}
    (tmp_path / f"{BULK.name}.json").write_text(json.dumps(contents))
    monkeypatch.setattr(kernel_tcp, "FOLDER", tmp_path)
    monkeypatch.setattr(kernel_tcp, "simulated", lambda *_: [{"queue_ms": 1.0}])
    assert kernel_tcp.main(["--check"]) == 0
    entry = 'column = "queue_ms"\ncause = "Y"\nchanged = "X"\nkernel = 1\nbefore = 2\nafter = 1\n'
    (tmp_path / "causes.toml").write_text(f'[[cause]]\nscene = "{BULK.name}"\n{entry}')
    assert kernel_tcp.main([]) == 0
    assert kernel_tcp.main(["--check"]) == 1
    assert "it is not outside" in capsys.readouterr().err


def test_the_hidden_third_is_counted_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures_ = {"goodput_mbps": 12345.0, "drops": 777.0}
    for folder in (tmp_path, tmp_path / "hidden"):
        folder.mkdir(exist_ok=True)
        contents = {"scenario": BULK.scenario(), "runs": [{"figures": {**figures_, "queue_ms": 1.0}}]}
        (folder / f"{BULK.name}.json").write_text(json.dumps(contents))
    monkeypatch.setattr(kernel_tcp, "FOLDER", tmp_path)
    monkeypatch.setattr(kernel_tcp, "simulated", lambda *_: [{"goodput_mbps": 12345.0, "drops": 1.0, "queue_ms": 1.0}])
    assert kernel_tcp.main([]) == 0
    shown = capsys.readouterr().out
    assert BULK.name in shown
    assert "777" in shown
    assert kernel_tcp.main(["--hidden"]) == 0
    secret = capsys.readouterr().out
    assert "| drops | 0 | 1 |" in secret
    assert BULK.name not in secret
    assert "777" not in secret
    assert kernel_tcp.main(["--hidden", "--check"]) == 1


def test_a_recording_of_another_scenario_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"{BULK.name}.json").write_text(json.dumps({"scenario": "other", "runs": []}))
    monkeypatch.setattr(kernel_tcp, "FOLDER", tmp_path)
    with pytest.raises(SystemExit):
        kernel_tcp.main([])
    assert "record it again" in capsys.readouterr().err


def test_an_override_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        kernel_tcp.main(["--set", "stack"])
    assert "stack is not KEY=VALUE" in capsys.readouterr().err


def test_the_scenes_cover_every_pair_of_values() -> None:
    rows = covering()
    for a, b in itertools.combinations(FACTORS, 2):
        wanted = set(itertools.product(FACTORS[a], FACTORS[b]))
        assert {(row[a], row[b]) for row in rows} == wanted, (a, b)
    assert not any(map(too_small, rows))
    assert len(SCENES) >= 40


def test_a_third_is_hidden_and_always_the_same() -> None:
    scenes = list(SCENES.values())
    drawn = hidden(scenes)
    assert abs(len(drawn) - len(scenes) / 3) < 1
    assert hidden(scenes[::-1]) == drawn
    assert hidden(scenes, 1) != drawn


def told(**late: float) -> dict[str, object]:
    work = {"late_p50_us": 20.0, "late_p99_us": 100.0, "late_p999_us": 900.0, "late_most_us": 4900.0}
    forwarder = {**work, "missed": 0, "refused": 0, "no_room": 0, **late}
    calm = {**work, "missed": 0, "refused": 0, "no_room": 0}
    return {"forwarders": [calm, forwarder], "machine": {"real_time": True, "stalls": 1, "longest_stall_ms": 2.0}}


def why(scene: Scene, run: dict[str, object]) -> str:
    return kernel_record.spoilt(kernel_record.lateness(run), kernel_record.limits(scene), run)


def test_a_run_counts_only_with_little_lateness() -> None:
    short, long, shallow = (Scene("s", BULK.groups, *path) for path in ((10, 20, 0.25), (600, 20, 1), (600, 20, 0.25)))
    assert why(short, told()) == ""
    assert why(short, told(late_p999_us=2600.0)) == "p999_ms 2.60 > 2.5"
    assert why(short, told(late_most_us=6000.0)) == "longest_ms 6.00 > 5"
    assert why(long, told(late_p999_us=11_900.0, late_most_us=119_000.0)) == ""
    assert why(long, told(late_p999_us=12_100.0)) == "p999_ms 12.10 > 12"
    assert why(long, told(late_most_us=121_000.0)) == "longest_ms 121.00 > 120"
    assert why(shallow, told(late_most_us=61_000.0)) == "longest_ms 61.00 > 60"
    assert why(short, told(missed=1)) == "frames missed"
    slow = {**told(), "machine": {"real_time": False, "stalls": 0, "longest_stall_ms": 0.0}}
    assert why(short, slow) == "no real-time priority"


def test_scenes_run_together_while_their_rates_are_low() -> None:
    budget, lefts = kernel_record.Budget(80), []

    def third() -> None:
        with budget.of(20):
            lefts.append(budget.left)

    waits = threading.Thread(target=third)
    with budget.of(50):
        with budget.of(20):
            waits.start()
            waits.join(0.05)
            assert waits.is_alive(), "80 are not enough for three"
        waits.join()
    assert (lefts, budget.left) == ([10], 80)


def test_recording_goes_on_where_it_stopped_and_repeats_what_is_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third to fifth of all runs are late; the first turn ends with them."""
    made = itertools.count(1)

    def counted(_scene: Scene, seed: int, _explicated: str) -> tuple[dict[str, object], str]:
        late = {"p50_ms": 0.0, "p99_ms": 0.0, "p999_ms": 0.0, "longest_ms": 0.0}
        number = next(made)
        found = {"seed": seed, "figures": {"drops": number}, "lateness": late, "sysctls": {"tcp_sack": "1"}}
        return found, "late" if number in {3, 4, 5} else ""

    monkeypatch.setattr(kernel_record, "counted", counted)
    part = tmp_path / "scene.part"
    assert kernel_record.record(BULK, part, "explicated", lambda _: None) is None
    assert len(json.loads(part.read_text())["runs"]) == 2
    found = kernel_record.record(BULK, part, "explicated", lambda _: None)
    assert found is not None
    assert [run["seed"] for run in found["runs"]] == [1, 2, 3, 4, 5, 6, 7]
    assert (found["medians"], found["ranges"]) == ({"drops": 7}, {"drops": [1, 10]})
    assert [one["seed"] for one in found["thrown"]] == [3, 3, 3]
    assert found["sysctls"] == {"tcp_sack": "1"}
    assert json.loads(kernel_record.compact(found)) == found


RECORDED = {path.stem: path for path in Path(kernel_tcp.__file__).with_name("kernel").rglob("*.json")}


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_what_is_recorded_is_of_these_scenes_and_counts(name: str) -> None:
    """Compares without showing: a failure must not print the figures of a hidden scene."""
    found, scene = json.loads(RECORDED[name].read_text(encoding="utf-8")), SCENES[name]
    assert (RECORDED[name].parent.name == "hidden") == (name in hidden(list(SCENES.values())))
    assert found["scenario"] == scene.scenario(), "record it again"
    assert [run["seed"] for run in found["runs"]] == list(range(1, kernel_record.RUNS + 1))
    limits = kernel_record.limits(scene)
    assert all(run["lateness"][key] <= limit for run in found["runs"] for key, limit in limits.items())
    again = kernel_record.summary(scene, [{**run, "sysctls": found["sysctls"]} for run in found["runs"]], [])
    same = all(found[key] == again[key] for key in ("medians", "ranges", "controllers"))
    assert same, "medians and ranges are not those of the runs"
    buffers = [int(found["sysctls"][key].split()[2]) for key in ("tcp_wmem", "tcp_rmem")]
    path = scene.mbps * 125 * scene.rtt_ms * (1 + scene.buffer_bdp)
    assert min(buffers) >= 8 * path, "buffers of sockets may have limited the flows"
