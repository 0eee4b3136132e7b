"""The command line: its start-up cost, its suggestions, and the amount and streams of its output."""

from __future__ import annotations

import io
import json
import os
import pickle
import pty
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

import pytest
from conftest import Command, child_environment
from patience import PATIENCE_S

import explicate
from explicate import cli, commands, console, engine, examples, suggestions, text
from explicate.cli import build_parser, main
from explicate.errors import StoppedError

Capture = pytest.CaptureFixture[str]

IMPORT_CPU_S = 0.2
HELP_CPU_S = 0.15
"""Twice the aims of 100 and 60 ms and more, since the machine that tests may be slow and busy."""


def cpu_seconds(*arguments: str) -> float:
    """The least CPU time of five processes."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=child_environment())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(spent)


def test_what_is_written_has_one_option_everywhere() -> None:
    verbs = next(action for action in build_parser()._actions if action.dest == "verb")
    assert isinstance(verbs.choices, dict)
    found = {
        name: action.option_strings
        for name, parser in verbs.choices.items()
        for action in parser._actions
        if "-o" in action.option_strings or {"--out", "--output"} & set(action.option_strings)
    }
    assert len(found) >= 10
    assert {tuple(options) for options in found.values()} == {("-o", "--output")}, found


def test_without_a_command_the_help_is_shown(capsys: Capture) -> None:
    assert main([]) == cli.BAD_INPUT
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: explicate")
    assert "explicate new dumbbell > mine.toml" in shown.err


def test_the_exit_status_of_every_end_is_documented() -> None:
    ends = {str(value) for value in (cli.OK, cli.FAILED, cli.BAD_INPUT, cli.INTERRUPTED, cli.PIPE_CLOSED)}
    shown = build_parser().format_help().partition("exit status:")[2]
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^  (\d+) ", shown)) == ends
    assert set(re.findall(r"(?m)^\| (\d+) \|", page)) == ends


def test_import_and_help_are_cheap() -> None:
    assert cpu_seconds("-c", "import explicate") < IMPORT_CPU_S
    assert cpu_seconds("-m", "explicate", "--help") < HELP_CPU_S


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["protocols"], ["check", "{s}"], ["new", "web"]])
def test_what_runs_nothing_imports_no_polars(arguments: list[str], scenario: Path, native_real: ModuleType) -> None:
    code = (
        "import sys; from explicate.cli import main; status = main(sys.argv[1:]); "
        "sys.exit(status or 'polars' in sys.modules or 'rich' in sys.modules)"
    )
    words = [word.replace("{s}", str(scenario)) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], check=False, capture_output=True, text=True, env=child_environment()
    )
    assert done.returncode == 0, done.stderr


def test_public_names_are_there_and_nothing_else() -> None:
    assert set(explicate.__all__) <= set(dir(explicate))
    for name in explicate.__all__:
        assert getattr(explicate, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'rnu'"):
        explicate.rnu  # noqa: B018


def test_every_command_has_its_parts() -> None:
    for name, summary in commands.SUMMARIES.items():
        module = commands.module(name)
        assert summary
        assert module.EXAMPLES
        assert all(line.startswith(f"explicate {name}") for line in module.EXAMPLES)
        for example in module.EXAMPLES:
            line = re.split(r"  | > | && | \| ", example.replace("$SLURM_ARRAY_TASK_ID", "7"))[0]
            assert build_parser().parse_args(
                line.split("  ")[0].split(" > ")[0].split(" && ")[0].split(" | ")[0].split()[1:]
            )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "did you mean `run`?"),
        (["fly", "away"], "the commands are: run, compare"),
        (["run", "x.toml", "--sed", "3"], "did you mean --seed?"),
        (["sweep", "x.toml", "--seeds", "4"], "did you mean --runs?"),
        (["run", "x.toml", "--repetitions=4"], "did you mean --runs?"),
        (["run", "x.toml", "-n", "4"], "did you mean --runs?"),
        (["run", "x.toml", "--out", "o"], "did you mean --output?"),
        (["report", "out", "--out_dir", "o"], "did you mean --output?"),
        (["compare", "x.toml", "--protocols", "a,b", "--proto", "xcp"], "did you mean --protocols?"),
        (["run", "x.toml", "--protocol", "xcp"], "did you mean --set flows.0.protocol=xcp?"),
        (["run", "x.toml", "--duration", "3"], "did you mean --set duration=3s?"),
        (["run", "x.toml", "--time=1.5min"], "did you mean --set duration=1.5min?"),
        (["run", "x.toml", "--rate", "1e7"], "did you mean --set topology.bottleneck.rate=1e7bit/s?"),
        (["run", "x.toml", "--rate", "10"], "did you mean --set topology.bottleneck.rate=10Mbit/s?"),
        (["run", "x.toml", "--rtt", "0.04"], "did you mean --set topology.bottleneck.delay=0.04s?"),
        (["run", "x.toml", "--delay", "40"], "did you mean --set topology.bottleneck.delay=20ms?"),
        (["run", "x.toml", "--cc", "cubic"], "did you mean --set flows.0.protocol=cubic?"),
        (["run", "x.toml", "--duration"], "did you mean --set duration=20s?"),
        (["bench", "--duraton", "3"], "did you mean --duration?"),
        (["columns", "--seeds", "3"], "unrecognized arguments: --seeds 3\n"),
        (["simulate", "x.toml"], "did you mean `run`?"),
        (["version"], "did you mean `--version`?"),
        (["compare", "x.toml", "--protocol", "xcp"], "required: --protocols"),
        (["protocols", "xpc"], "did you mean `xcp`?"),
        (["new", "dumbell"], "no template or example is called `dumbell`; did you mean `dumbbell`?"),
        (["run", "x.toml", "--set", "link.r1-"], "write link.A:B, or quote the argument"),
        (["run", "x.toml", "-q", "-v"], "not allowed with argument"),
    ],
)
def test_suggestions(arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    streams = capsys.readouterr()
    assert message in streams.err
    assert streams.err.startswith("explicate: ")
    assert streams.out == ""


def test_suggested_words_lead_to_one_name_that_exists() -> None:
    verbs = next(action for action in build_parser()._actions if action.dest == "verb")
    assert isinstance(verbs.choices, dict)
    options = {option for parser in verbs.choices.values() for option in parser._option_string_actions}
    assert {name.split()[0] for name in (*suggestions.OPTIONS, *suggestions.KEYS)} <= options
    assert set(suggestions.COMMANDS) <= {*commands.SUMMARIES, *build_parser()._option_string_actions}
    for table in (suggestions.OPTIONS, suggestions.KEYS, suggestions.COMMANDS):
        words = [word for several in table.values() for word in several]
        assert len(words) == len(set(words))
    assert not {word for several in suggestions.COMMANDS.values() for word in several} & set(commands.SUMMARIES)


@pytest.mark.parametrize("runs", [1, 2])
def test_one_is_no_plural(runs: int, scenario: Path, capsys: Capture) -> None:
    assert main(["compare", str(scenario), "--protocols", "xcp", "--runs", str(runs)]) == 0
    assert f": {'1 run' if runs == 1 else '2 runs'}, 1 point, seed " in capsys.readouterr().out


def test_an_unknown_protocol_is_an_error_of_its_option(
    native_real: ModuleType, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(engine.template("geo"), encoding="utf-8")
    assert main(["compare", str(path), "--protocols", "xcp,xpc"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("explicate: --protocols: no protocol is called `xpc`")
    assert error.count("no protocol is called") == 1, "once for both groups of flows"
    assert "--set" not in error


def test_results_of_a_comparison_cannot_be_exported_whole(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(["compare", str(scenario), "--protocols", "xcp,vcp", "-q", "-o", str(out)]) == 0
    assert main(["export", "qlog", str(out)]) == 2
    assert "vary variant: export those of `explicate run -o`, or one point by select()" in capsys.readouterr().err


def test_quiet_and_verbose(scenario: Path, capsys: Capture) -> None:
    assert main(["run", str(scenario), "--set", "warmup=20s"]) == 0
    loud = capsys.readouterr()
    assert "warning: " in loud.err
    assert "no files written" in loud.out
    for arguments in (["-q", "run", str(scenario)], ["run", str(scenario), "--quiet"]):
        assert main([*arguments, "--set", "warmup=20s"]) == 0
        quiet = capsys.readouterr()
        assert quiet.err == ""
        assert "no files written" not in quiet.out
        assert "Jain" in quiet.out
    assert main(["run", str(scenario), "-v"]) == 0
    assert re.search(r"2 runs in .* s", capsys.readouterr().err)


def test_output_that_cannot_show_a_character(process: Command, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("sweep", scenario, "--vary", "flows.0.count=1,2", "--runs", "3")
    assert "±" in process(*arguments).stdout
    for encoding in ("latin-1", "cp1252", "ascii"):
        monkeypatch.setenv("PYTHONIOENCODING", encoding)
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name("fake_explicate.py"), *arguments],
            capture_output=True, check=False, timeout=PATIENCE_S,
            env={**child_environment(), "PYTHONIOENCODING": encoding},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        shown = done.stdout.decode(encoding)
        assert ("+-" if encoding == "ascii" else "±") in shown
        json_out = subprocess.run(
            [sys.executable, Path(__file__).with_name("fake_explicate.py"), *arguments[:2], "--json", *arguments[2:]],
            capture_output=True, check=True, timeout=PATIENCE_S,
            env={**child_environment(), "PYTHONIOENCODING": encoding},
        )  # fmt: skip
        assert {row["group"] for row in json.loads(json_out.stdout.decode("ascii"))["flows"]} == {"near", "far & away"}


def test_numbers_are_plain(capsys: Capture) -> None:
    console.show(console.table(["a", "n"], [["x", text.number(1234567.0)]]))
    assert capsys.readouterr().out == "a        n\nx  1234567\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [50, 80, 200])
def test_tables_fit_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", _Terminal())
    head = ["protocol", *(f"links.queue_mean_{n}.max" for n in range(6))]
    shown = console.table(head, [["xcp", *(f"{n}.25 ± 0.125" for n in range(6))]])
    assert not re.search("\x1b\\[[0-9;]*3", shown), "a colour"
    shown = re.sub("\x1b\\[[0-9;]*m", "", shown)
    assert max(map(len, shown.splitlines())) <= width
    for n in range(6):
        assert f"{n}.25 ± 0.125" in shown
        assert f"links.queue_mean_{n}.max" in shown


def test_compare_uses_its_jobs_for_protocols(native_real: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(explicate.template("dumbbell").replace('"30s"', '"12s"'), encoding="utf-8")
    protocols = ["xcp", "newreno", "cubic"]
    one, three = (explicate.compare(path, protocols, jobs=jobs, runs=2) for jobs in (1, 3))
    for name, frame in one.tables().items():
        assert frame.equals(three.tables()[name]), name


def test_runs_of_protocols_go_on_at_the_same_time(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE_S)
    run = explicate.engine._native.run  # type: ignore[attr-defined]

    def together(*args: object) -> object:
        meeting.wait()  # passes only if two runs are here
        return run(*args)

    monkeypatch.setattr("explicate.engine._native.run", together)
    assert main(["compare", str(scenario), "--protocols", "xcp,vcp", "--jobs", "2", "--json"]) == 0


def test_an_interrupt_says_what_is_kept(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    stopped = ["--set", "name=interrupt"]
    assert main(["sweep", str(scenario), *stopped, "--vary", "seed=1,2"]) == 130
    assert "nothing was kept; with -o DIR" in capsys.readouterr().err
    assert main(["compare", str(scenario), *stopped, "--protocols", "xcp,vcp"]) == 130
    assert "interrupted; nothing was written" in capsys.readouterr().err
    assert issubclass(StoppedError, KeyboardInterrupt)


def test_an_interrupted_comparison_ends_at_once(native_real: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    # Long, but its tables fit into the memory of a machine that does other things, too.
    path.write_text(explicate.template("dumbbell").replace('"30s"', '"20000s"'), encoding="utf-8")
    command = [sys.executable, "-m", "explicate", "compare", str(path), "--protocols", "xcp,cubic", "--jobs", "2", "-v"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=child_environment()) as process:
        assert process.stderr is not None
        while process.stderr.readline() != "running\n":
            assert process.poll() is None
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (130, "explicate: interrupted; nothing was written\n")


def _bad_run() -> None:
    explicate.run({"name": "x", "duration": "1h"})


def test_errors_can_be_pickled(native_real: ModuleType) -> None:
    error = explicate.ScenarioError("x.toml:1:1: wrong")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (explicate.ScenarioError, str(error))
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(explicate.ScenarioError, match="no unit `h`"),
    ):
        pool.submit(_bad_run).result()


def test_names_of_links_that_a_shell_leaves_alone(native_real: ModuleType, capsys: Capture) -> None:
    words = ["sweep", "-", "--vary", "link.r1:r2.delay=1ms,2ms", "--measure", "links.r1:r2.utilisation"]
    content = explicate.template("dumbbell").replace('"30s"', '"12s"')
    done = subprocess.run(
        [sys.executable, "-m", "explicate", *words], input=content, text=True, capture_output=True, check=True,
        env=child_environment(),
    )  # fmt: skip
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"[12] ", line)]
    assert len(rows) == 2
    assert all(0.9 < float(row[-1]) <= 1 for row in rows), done.stdout


def test_examples_come_with_the_package(
    native_real: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = Path(__file__).resolve().parents[2] / "scenarios"
    assert examples.names() == sorted(path.stem for path in sources.glob("*.toml"))
    for path in sources.iterdir():
        packaged = Path(examples.__file__).with_name("scenarios") / path.name
        assert packaged.read_bytes() == path.read_bytes(), f"ln -s ../../../scenarios/{path.name} {packaged}"
    monkeypatch.chdir(tmp_path)
    assert main(["new", "traces"]) == 0
    assert (tmp_path / "steps.trace").read_bytes() == (sources / "steps.trace").read_bytes()


def test_every_template_and_example_is_listed(native_real: ModuleType, capsys: Capture) -> None:
    assert main(["new", "--list"]) == 0
    listed = capsys.readouterr().out
    for name in ("dumbbell", "wifi", "geo", "cellular", "xcp_i", "parking_lot", "datacentre", *examples.names()):
        assert re.search(rf"^  {name} +\S", listed, re.MULTILINE), name


def test_a_template_goes_into_a_file_of_its_own(native_real: ModuleType, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "study" / "mine.toml"
    assert main(["new", "traces", "-o", str(path)]) == 0
    streams = capsys.readouterr()
    assert (streams.out, path.read_text(encoding="utf-8")) == ("", examples.text("traces"))
    assert main(["check", "-q", str(path)]) == 0, "the traces that it reads are beside it"
    path.write_text("mine", encoding="utf-8")
    assert main(["new", "traces", "-o", str(path)]) == 2
    assert "mine.toml: exists already" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: Capture) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "--protocols" in script or "protocols" in script
    assert "compare-lab" in script


def test_doctor(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLICATED", "/nowhere/explicated")
    assert main(["doctor"]) == 0
    assert "does not run" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    found = {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert found["polars"]["found"]
    assert {"matplotlib", "xarray", "pandas"} <= found.keys(), "all that is optional"
    assert found["engine"]["found"].startswith("0.1.0")


def test_demo(tmp_path: Path, native_real: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    shorter = examples.text("long-fat-pipe").replace('"40s"', '"4s"').replace('"15s"', '"1s"')
    monkeypatch.setattr(examples, "text", lambda _: shorter)
    out = tmp_path / "demo"
    monkeypatch.setattr(sys, "argv", [".venv/bin/explicate", "demo"])
    monkeypatch.setenv("PATH", "")
    assert main(["demo", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"then .venv/bin/explicate run {out}" in said, "as the shell finds it"
    assert "newreno" in said
    assert 'TCP: stack = "linux"; ' in said
    assert (out / "report.html").stat().st_size > 10_000
    assert (out / "long-fat-pipe.toml").read_text(encoding="utf-8") == shorter


def test_colours_are_for_terminals_that_want_them(scenario: Path) -> None:
    def shown(**more: str) -> str:
        main_end, process_end = pty.openpty()
        command = [sys.executable, str(Path(__file__).with_name("fake_explicate.py")), "run", "nowhere.toml"]
        environment = {**child_environment(), "TERM": "xterm-256color", **more}
        environment.pop("NO_COLOR", None) if not more else None
        subprocess.run(command, stderr=process_end, check=False, env=environment, timeout=PATIENCE_S)
        os.close(process_end)
        said = os.read(main_end, 10_000).decode()
        os.close(main_end)
        return said

    assert "\x1b[" in shown()
    plain = shown(NO_COLOR="1")
    assert "\x1b[3" not in plain
    assert "nowhere.toml: No such file or directory" in plain


def test_hints_keep_the_quantity(native_real: ModuleType) -> None:
    made = explicate.Scenario(duration=60).topology("dumbbell", bottleneck={"rate": 10_000_000, "delay": 0.02})
    with pytest.raises(explicate.ScenarioError) as refused:
        explicate.run(made.flows("one", "newreno", packet=1500, size=1_000_000))
    for hint in ('duration = "60s"', 'rate = "10Mbit/s"', 'delay = "20ms"', 'packet = "1500B"', 'size = "1MB"'):
        assert f"`{hint}`" in str(refused.value)
