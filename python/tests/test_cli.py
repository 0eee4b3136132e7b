"""The command: exit statuses, output streams, JSON shapes, and no tracebacks."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import fake_native
import jsonschema
import polars as pl
import pytest
from conftest import Command, child_environment
from patience import PATIENCE_S

from explicate.cli import build_parser, main
from explicate.commands.values import split_values
from explicate.progress import ProgressLine

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-q"], "required: COMMAND"),
        (["fly"], "invalid choice"),
        (["run"], "required: SCENARIO"),
        (["run", "nowhere.toml"], "nowhere.toml: No such file or directory; `explicate new dumbbell"),
        (["run", "{s}", "--set", "runs"], "'runs' is not key=value"),
        (["run", "{s}", "--runs", "0"], "'0' is not a whole number of 1 or more"),
        (["run", "{s}", "--runs", "99999999999"], "'99999999999' is too many; the maximum is 1,000,000"),
        (["run", "/dev/zero"], "/dev/zero: longer than 64 MiB"),
        (["run", "/"], "/: Is a directory\n"),
        (["run", "{s}", "--seed", "-1"], "'-1' is not a whole number from 0"),
        (["run", "{s}", "--csv"], "add -o DIR"),
        (["run", "{s}", "-o", "{s}"], "small.toml: is not a directory"),
        (["run", "{s}", "-o", "{s}/out"], "{s}/out: {s} is not writable; choose another directory for -o"),
        (["run", "{s}", "--set", "durration=3s"], "{s}:1:1: unknown key `durration`; did you mean `duration`?"),
        (["run", "{s}", "--trace", "flow=1", "--json"], "both write to standard output"),
        (["run", "{s}", "--fluid", "--trace", "flow=1"], "no packets to trace or capture"),
        (["check", "{s}", "--set", "flows.0.protocol=tcpp"], "{s}:14:1: unknown protocol `tcpp`; the protocols are"),
        (["compare", "{s}"], "required: --protocols"),
        (["compare", "{s}", "--protocols", ","], "give one name or more"),
        (["compare", "{s}", "--protocols", "xcp,tcpp"], "unknown protocol `tcpp`"),
        (["sweep", "{s}"], "nothing to vary; add --vary key=v1,v2"),
        (["sweep", "{s}", "--vary", "seed="], "has no values"),
        (
            ["sweep", "{s}", "--latin", "seed=1..9", "--points", "9999999999"],
            "make 9,999,999,999 points; the maximum is 1,000,000",
        ),
        (["sweep", "{s}", "--vary", "seed=1,2", "--latin", "seed=1..9", "--points", "2"], "is an axis of the grid and"),
        (["sweep", "{s}", "--vary", "seed=1,2", "--measure", "flows.protocol"], "holds names, not numbers"),
        (["report", "nowhere"], "nowhere: no results here (run.json is missing)"),
        (["new", "torus"], "is called `torus`; `explicate new --list` lists them"),
        (["protocols", "tcpp"], "unknown name 'tcpp'"),
        (["bench", "--case", "x"], "unknown case 'x'; there are dumbbell"),
        (["bench", "--floor", "--case", "dumbbell"], "remove --case and --duration"),
        (["bench", "--duration", "soon"], "'soon' is not a number of seconds"),
    ],
)
def test_bad_input(arguments: list[str], message: str, scenario: Path, capsys: Capture) -> None:
    status = main([argument.replace("{s}", str(scenario)) for argument in arguments])
    streams = capsys.readouterr()
    assert status == 2
    assert message.replace("{s}", str(scenario)) in streams.err
    assert streams.out == ""


def test_a_failed_run(scenario: Path, capsys: Capture) -> None:
    assert main(["run", str(scenario), "--set", "name=crash"]) == 1
    assert capsys.readouterr().err == "explicate: the run failed: run 0 failed: packets not conserved on r1->r2\n"


def test_interrupt(scenario: Path, capsys: Capture) -> None:
    assert main(["run", str(scenario), "--set", "name=interrupt"]) == 130
    assert capsys.readouterr().err == "explicate: interrupted; nothing was written\n"


def test_a_defect_or_a_panic_is_a_sentence(scenario: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    for error in (PanicException("index out of bounds"), ZeroDivisionError("index out of bounds")):

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(fake_native, "run", fail)
        assert main(["run", str(scenario)]) == 1
        err = capsys.readouterr().err
        assert "internal error: " in err
        assert "index out of bounds" in err
        assert "this is a defect in explicate; EXPLICATE_DEBUG=1 shows where" in err
        assert "Traceback" not in err
        monkeypatch.setenv("EXPLICATE_ENGINE", "fake_native")
        assert main(["run", str(scenario)]) == 1
        assert "this is a defect in explicate or in the protocols of fake_native;" in capsys.readouterr().err
        monkeypatch.delenv("EXPLICATE_ENGINE")


def test_run_for_people(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", str(scenario), "-o", str(tmp_path / "out"), "--csv"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "small: 2 runs, seed 7, explicate 0.1.0"
    near = next(line for line in lines if line.startswith("near"))
    assert near.split()[1:3] == ["xcp", "3"]
    assert re.search(r"r1->r2 +97\.0 %", out)
    assert "s0->r1" not in out
    assert f"written: {tmp_path / 'out'}/ (Parquet and CSV tables, run.json)" in out
    assert f"explicate report {tmp_path / 'out'}" in out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {f"{t}.{e}" for t in fake_native.SCHEMAS for e in ("csv", "parquet")} | {"run.json", "timing.json"}


def test_run_json(scenario: Path, capsys: Capture) -> None:
    assert main(["run", str(scenario), "--json", "--seed", "3", "--runs", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert list(found) == ["scenario", "seed", "version", "flows", "links"]
    assert (found["seed"], found["version"]) == (3, "0.1.0")
    assert list(found["flows"][0]) == list(fake_native.FLOW_COLUMNS)
    assert list(found["links"][0]) == list(fake_native.LINK_COLUMNS)
    assert [row["goodput_bps"] for row in found["flows"]] == [fake_native.goodput("xcp", i, 3) for i in range(5)]
    assert found["flows"][0]["completion_s"] is None


def test_warnings_go_to_stderr_with_the_file(scenario: Path, capsys: Capture) -> None:
    assert main(["run", str(scenario), "--json", "--set", "warmup=20s"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert err == f"warning: {scenario}:1:1: the run is all warm-up; make `duration` longer\n"


def test_trace(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", str(scenario), "--trace", "flow=3"]) == 0
    out, err = capsys.readouterr()
    assert out == "0.000000 flow=3 enqueue r1->r2 packet 1\n"
    assert "Jain" in err
    assert main(["run", str(scenario), "--trace", "flow=3", "-o", str(tmp_path / "out")]) == 0
    assert "enqueue" not in capsys.readouterr().out
    assert (tmp_path / "out" / "trace.txt").read_text(encoding="utf-8") == out


def test_a_sweep_in_the_file_is_not_run_in_silence(scenario: Path, capsys: Capture) -> None:
    scenario.write_text(scenario.read_text(encoding="utf-8") + "[sweep]\nseed = [1, 2]\n", encoding="utf-8")
    assert main(["run", str(scenario)]) == 0
    assert "[sweep] (seed) is ignored; `explicate sweep" in capsys.readouterr().err
    assert main(["sweep", str(scenario)]) == 0
    assert "2 points" in capsys.readouterr().out


def test_an_old_name_of_a_command(scenario: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """`compare-worlds` equals `compare-lab`, but warns and is not listed."""
    called = []
    monkeypatch.setattr("explicate.commands.compare_lab.execute", lambda args: called.append(args.scenario))
    assert main(["compare-worlds", str(scenario)]) == 0
    assert called == [str(scenario)]
    assert "`compare-worlds` is now called `compare-lab`" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        build_parser().parse_args(["--help"])
    listed = capsys.readouterr().out
    assert "compare-lab" in listed
    assert "compare-worlds" not in listed


def test_compare(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    out_dir = tmp_path / "both"
    assert main(["compare", str(scenario), "--protocols", "xcp, newreno", "-o", str(out_dir)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = [line for line in lines if line[:1] in (["xcp"], ["newreno"])]
    assert [row[0] for row in rows] == ["xcp", "xcp", "newreno", "newreno"]
    assert pl.read_parquet(out_dir / "links.parquet")["variant"].unique().sort().to_list() == ["newreno", "xcp"]
    assert main(["compare", str(scenario), "--protocols", "xcp,newreno", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["axes"] == ["variant"]
    assert {row["variant"] for row in found["flows"]} == {"xcp", "newreno"}


def test_sweep(scenario: Path, capsys: Capture) -> None:
    arguments = ["--vary", "flows.0.count=1,2", "--vary", "flows.0.protocol=xcp,vcp", "--runs", "1", "--json"]
    assert main(["sweep", str(scenario), *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["axes"] == ["flows.0.count", "flows.0.protocol"]
    assert {(row["flows.0.count"], row["flows.0.protocol"]) for row in found["flows"]} == {
        (1, "xcp"), (1, "vcp"), (2, "xcp"), (2, "vcp"),
    }  # fmt: skip


def test_check_new_and_standard_input(scenario: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["check", str(scenario), "--set", "runs=3"]) == 0
    assert "runs = 3" in capsys.readouterr().out
    assert main(["check", str(scenario), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["runs"], checked["warmup_s"], len(checked["flows"])) == (2, 5.0, 2)
    assert main(["new", "dumbbell"]) == 0
    template = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(template))
    assert main(["check", "-"]) == 0
    assert 'name = "dumbbell"' in capsys.readouterr().out


def test_lists(capsys: Capture) -> None:
    assert main(["protocols"]) == 0
    assert "xcp/loss_monitor" in capsys.readouterr().out
    assert main(["protocols", "xcp"]) == 0
    assert "alpha      0.4" in capsys.readouterr().out
    assert main(["protocols", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    entry = {
        "type": "object",
        "required": ["kind", "name", "summary", "source", "parameters"],
        "properties": {"parameters": {"items": {"required": ["name", "default", "unit", "source"]}}},
    }
    jsonschema.validate(entries, {"type": "array", "minItems": 5, "items": entry})
    assert main(["columns", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["flows", "links", "samples", "run"]
    assert main(["columns"]) == 0
    assert "queue_mean_packets" in capsys.readouterr().out
    assert main(["schema"]) == 0
    assert "$schema" in json.loads(capsys.readouterr().out)
    assert main(["bench", "--json"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["instructions_per_hop"] is None
    assert main(["bench"]) == 0
    assert "40.0" in capsys.readouterr().out
    assert main(["bench", "--floor"]) == 0
    floor = capsys.readouterr().out
    assert re.search(r"hops +12\.5 +1\.0", floor)
    assert main(["bench", "--floor", "--json"]) == 0
    assert [case["name"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["hops", "dumbbell"]


def test_every_verb_has_help_with_an_example(capsys: Capture) -> None:
    verbs = ["run", "compare", "sweep", "report", "check", "new", "protocols", "columns", "schema", "bench"]
    for verb in verbs:
        assert main([verb, "--help"]) == 0
        out = capsys.readouterr().out
        assert f"  explicate {verb}" in out.partition("examples:")[2]
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert [verb for verb in verbs if not re.search(rf"^    {verb}\b", out, re.MULTILINE)] == []


def test_split_values() -> None:
    assert split_values("1,2") == [1, 2]
    assert split_values("1,2.5") == [1.0, 2.5]
    assert split_values("0%, 1%,") == ["0%", "1%"]
    assert split_values('[1, 2],{ a = "x,y" },"p,q"') == ["[1, 2]", '{ a = "x,y" }', '"p,q"']
    assert split_values("") == []


def test_a_process_of_its_own(process: Command, scenario: Path) -> None:
    done = process("run", scenario, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["flows"]) == 10
    bad = process("run", "-", stdin="durration = 3\n")
    assert bad.returncode == 2
    assert bad.stderr == "explicate: <stdin>:1:1: unknown key `durration`; did you mean `duration`?\n"


def test_a_closed_pipe_is_quiet(scenario: Path) -> None:
    script = Path(__file__).with_name("fake_explicate.py")
    read = f"exec 3>&1; {{ {sys.executable} {script} run {scenario} --json 2>&3; echo status $? >&3; }} | true"
    done = subprocess.run(
        ["bash", "-c", read], capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=child_environment()
    )
    assert done.stdout == "status 141\n"
    assert done.stderr == ""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    silent, shown = io.StringIO(), _Terminal()
    for stream in (silent, shown):
        with ProgressLine(stream, "running") as line:
            line(0.5)
            line(7.0)
    assert silent.getvalue() == ""
    plain = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", shown.getvalue())
    assert re.search(r"running .*100%", plain)
    assert shown.getvalue().endswith("\x1b[2K"), "the line is cleared"


def test_progress_is_quiet_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explicate.console.wants_progress", lambda: False)
    shown = _Terminal()
    with ProgressLine(shown, "running") as line:
        line(0.5)
    assert shown.getvalue() == ""
