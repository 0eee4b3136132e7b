"""`scripts/measure.py`: medians and spreads, what is called worse, and no figure from a busy machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import measure
from measure import Measurement, Run, Ticks

QUIET = Ticks(busy=100, stolen=0, waiting=0, total=1000)


def runs(*values: float, better: str = "less") -> list[Run]:
    return [Run({"f": (value, "s", better)}, "", False) for value in values]


def test_a_figure_is_a_median_with_the_spread_of_single_runs() -> None:
    found = measure.summary(runs(1.0, 2.0, 3.0, 4.0, 100.0))["f"]
    assert (found["median"], found["runs"], found["unit"]) == (3.0, 5, "s")
    assert found["spread"] == pytest.approx(43.6, abs=0.1)
    assert measure.summary(runs(2.0, 2.0, 2.0))["f"]["spread"] == pytest.approx(0.02), "one percent at least"
    assert measure.summary(runs(2.0))["f"]["spread"] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("better", "median", "said"),
    [
        ("less", 10.0, "as recorded"),
        ("less", 12.9, "as recorded"),
        ("less", 13.1, "worse"),
        ("less", 6.9, "better"),
        ("more", 13.1, "better"),
        ("more", 7.1, "as recorded"),
        ("more", 6.9, "worse"),
    ],
)
def test_worse_is_beyond_three_recorded_spreads(better: str, median: float, said: str) -> None:
    assert measure.verdict({"median": median, "better": better}, {"median": 10.0, "spread": 1.0}) == said


def test_what_was_not_recorded_is_neither() -> None:
    assert measure.verdict({"median": 1.0, "better": "less"}, None) == "not recorded"


@pytest.mark.parametrize(
    ("spent", "own", "late", "said"),
    [
        (QUIET, 0.5, 0.1, ""),  # 50 of 100 hundredths are its own
        (Ticks(200, 0, 0, 1000), 1.9, 0.1, ""),
        (Ticks(200, 0, 0, 1000), 0.5, 0.1, "others use 15% of the processors"),
        (Ticks(100, 30, 0, 1000), 1.0, 0.1, "the host takes 3% of the processors"),
        (Ticks(100, 0, 110, 1000), 1.0, 0.1, "11% of the processors wait for disks"),
        (QUIET, 1.0, 1.5, "a timer is late by 1.5 ms"),
    ],
)
def test_a_busy_machine_is_told_by_others_host_disks_and_timers(
    spent: Ticks, own: float, late: float, said: str
) -> None:
    assert measure.disturbance(spent, own, late) == said


FAKE = Measurement("fake", "true")


def test_runs_that_were_disturbed_do_not_count_and_are_made_again() -> None:
    made = iter([*runs(1.0), Run({"f": (50.0, "s", "less")}, "others use 50%", True), *runs(2.0, 3.0)])
    looks = iter(["", "", "a timer is late", "", ""])
    pauses: list[float] = []
    found = measure.measured(FAKE, 3, lambda _: next(made), lambda: next(looks), pauses.append)
    assert isinstance(found, dict)
    assert (found["runs"], found["failed"], found["figures"]["f"]["median"]) == (3, 0, 2.0)
    assert len(pauses) == 1


def test_a_machine_that_stays_busy_gives_no_figure() -> None:
    found = measure.measured(FAKE, 3, lambda _: runs(1.0)[0], lambda: "a timer is late", lambda _: None)
    assert found == "too busy, 0 of 3 runs: a timer is late"
    late = iter([*runs(1.0, 2.0), *[Run({}, "others use 50%", False)] * 4])
    found = measure.measured(FAKE, 3, lambda _: next(late), lambda: "", lambda _: None)
    assert found == "too busy, 2 of 3 runs: others use 50%"


def test_a_missed_bound_is_counted_and_its_figure_is_kept() -> None:
    failed = Run({"f": (9.0, "s", "less")}, "", True)
    made = iter([failed, *runs(1.0, 2.0)])
    found = measure.measured(FAKE, 3, lambda _: next(made), lambda: "", lambda _: None)
    assert isinstance(found, dict)
    assert (found["failed"], found["figures"]["f"]["median"]) == (1, 2.0)
    assert "1 runs missed a bound" in measure.report("fake", found, {})


def test_figures_of_another_machine_are_not_compared() -> None:
    found = measure.measured(FAKE, 3, lambda _: runs(9.0)[0], lambda: "", lambda _: None)
    assert isinstance(found, dict)
    kept = {"machine": measure.machine(), "figures": {"f": {"median": 1.0, "spread": 0.1}}}
    assert measure.report("fake", found, kept).endswith("worse")
    text = measure.report("fake", found, {**kept, "machine": {"processors": 999, "model": "x"}})
    assert text.endswith("other machine")


def figure(name: str, value: float) -> str:
    return json.dumps({"name": name, "value": value, "unit": "ms", "better": "less"})


def test_a_command_tells_its_figures_by_the_file_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "TODAY", tmp_path / "today.json")
    lines = [figure(*one) for one in (("a", 1.0), ("a", 3.0), ("b", 5.0))]
    script = tmp_path / "script"
    script.write_text("".join(f"echo '{line}' >>$EXPLICATE_FIGURES\n" for line in lines) + "exit 1\n")
    found = measure.run(Measurement("fake", f"sh {script}"))
    assert found.figures == {"a": (2.0, "ms", "less"), "b": (5.0, "ms", "less")}
    assert found.failed
    assert measure.run(Measurement("silent", "true")).figures == {}


def test_figures_of_the_gateway_tables_are_those_of_its_way() -> None:
    results = {"geo": {"gateway": [{"seconds": 5.0, "share of the line": 0.9}, "a reason"], "bbr": [{"seconds": 9.0}]}}
    assert measure.figures_of_tables(json.dumps(results)) == {
        "gateway tables: geo, seconds": (5.0, "", "less"),
        "gateway tables: geo, share of the line": (0.9, "", "more"),
    }
    assert measure.figures_of_tables("") == {}


def test_results_are_kept_apart_from_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "TODAY", tmp_path / "today.json")
    monkeypatch.setattr(measure, "RECORDED", tmp_path / "recorded.json")
    monkeypatch.setattr(measure, "MEASUREMENTS", [FAKE])
    monkeypatch.setattr(
        measure, "measured", lambda _measurement, count: {
            "machine": measure.machine(), "kernel": "6", "commit": "c", "load": 0.5, "runs": count, "failed": 0,
            "figures": measure.summary(runs(*[1.0] * count)),
        },
    )  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["measure.py", "--runs", "2"])
    measure.main()
    kept = json.loads((tmp_path / "today.json").read_text(encoding="utf-8"))
    assert (kept["fake"]["runs"], kept["fake"]["load"], kept["fake"]["figures"]["f"]["median"]) == (2, 0.5, 1.0)
    assert not (tmp_path / "recorded.json").exists()
    monkeypatch.setattr(sys, "argv", ["measure.py", "--record"])
    measure.main()
    assert json.loads((tmp_path / "recorded.json").read_text(encoding="utf-8"))["fake"]["runs"] == measure.RUNS


def test_processes_without_a_waiting_parent_are_measured() -> None:
    burn = "import time\nwhile time.process_time() < 1.0: pass"
    # The parent ignores SIGCHLD and does not wait, so the usage of no process includes that of the burner.
    ignore = "import signal, subprocess, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    start = f"process = subprocess.Popen([sys.executable, '-c', {burn!r}])\nprint(process.pid)"
    with measure.Descendants() as descendants:
        done = subprocess.run([sys.executable, "-c", ignore + start], check=True, capture_output=True, text=True)
        measure.os.waitpid(int(done.stdout), 0)
    assert 0.5 < descendants.seconds() < 3.0
