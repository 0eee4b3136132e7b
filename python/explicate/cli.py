"""The command ``explicate``: its arguments, and how errors are reported.

Exit status: 0 ok, 1 a run failed, 2 bad input (the message says where and what to do), 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from explicate import commands, engine
from explicate.errors import BadInputError
from explicate.lab import MOST_RUNS

OK, FAILED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

DESCRIPTION = "Simulate, compare and plot explicit congestion control."
EXAMPLES = """\
examples:
  explicate new dumbbell > mine.toml              a scenario to start from
  explicate run mine.toml -o out                  simulate it, keep the tables in out/
  explicate report out                            make out/report.html from them
  explicate compare mine.toml --protocols xcp,newreno -o both
  explicate protocols                             list everything that a scenario can name
  explicate reproduce I-fig2 -o papers            reproduce a figure of a paper, and judge its claims
"""


def _setting(text: str) -> engine.Override:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not key=value, such as flows.0.count=20")
    return key.strip(), value.strip()


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return value


def _runs(text: str) -> int:
    value = _positive(text)
    if value > MOST_RUNS:
        raise argparse.ArgumentTypeError(f"{text!r} is too many; {MOST_RUNS:,} is the most")
    return value


def _lengths(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("name one protocol or more, separated by commas")
    return names


def _axis(text: str) -> tuple[str, list[int | float | str]]:
    key, values = _setting(text)
    parts = commands.split_values(values)
    if not parts:
        raise argparse.ArgumentTypeError(f"{text!r} has no values; write key=v1,v2")
    return key, parts


def _common(parser: argparse.ArgumentParser, *, jobs: str) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario file (TOML); - reads standard input")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", type=_setting, action="append", default=[],
        help="override one key by its path, such as flows.0.count=20 or link.r1->r2.rate=10Mbit/s; repeatable",
    )  # fmt: skip
    parser.add_argument("--seed", type=_seed, help="seed of the first run (default: the scenario's)")
    parser.add_argument("--runs", type=_runs, help="number of runs, with consecutive seeds")
    parser.add_argument("--jobs", type=_positive, default=None, help=jobs)
    parser.add_argument("-o", "--out", metavar="DIR", help="write the tables (Parquet) and run.json here")
    parser.add_argument("--csv", action="store_true", help="write the tables as CSV too; needs -o")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")


def _fluid(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fluid", action="store_true",
        help=f"use a fluid model instead of simulating packets; available for {', '.join(engine.fluid_models())}",
    )  # fmt: skip


def _reproduce(verb: Callable[..., argparse.ArgumentParser]) -> None:
    again = verb(
        "reproduce",
        "reproduce experiments of the five papers and judge their claims",
        "explicate reproduce --list\nexplicate reproduce D-fig3 -o papers\nexplicate reproduce D K --quick --jobs 2\n"
        "explicate reproduce all --json > verdicts.json\nexplicate reproduce D-fig7a --choice D-P16=newreno",
    )
    again.add_argument(
        "what", metavar="WHAT", nargs="*",
        help="experiments (D-fig3), papers (N, I, Y, D, K, or nychis, ikeda, ...), or all",
    )  # fmt: skip
    again.add_argument("--list", action="store_true", help="list the experiments and which of them are implemented")
    efforts = again.add_mutually_exclusive_group()
    efforts.add_argument("--quick", action="store_true", help="fewer seeds and shorter runs, all predicates")
    efforts.add_argument("--full", action="store_true", help="the papers' own numbers of runs; takes days")
    again.add_argument("--jobs", type=_positive, default=None, help="parallel runs (default: one per core)")
    again.add_argument(
        "--choice", metavar="ID=VALUE", type=_setting, action="append", default=[],
        help="set a parameter that a paper leaves open, such as D-P16=newreno; repeatable",
    )  # fmt: skip
    again.add_argument(
        "--set", metavar="KEY=VALUE", type=_setting, action="append", default=[],
        help="override one key in every scenario",
    )  # fmt: skip
    again.add_argument(
        "--enlarge", action="store_true",
        help="rerun experiments with an undecided claim once, with four times the seeds",
    )  # fmt: skip
    again.add_argument(
        "--controls", action="store_true",
        help="first run the controls, changes under which claims must fail; label claims that none makes fail",
    )  # fmt: skip
    again.add_argument(
        "--multiverse", action="store_true",
        help="count the claims that hold with each alternative of each choice of the papers WHAT (quick, resumable)",
    )  # fmt: skip
    again.add_argument(
        "--law-table", action="store_true", help="as --multiverse, for the control laws of paper I's routers, by claim"
    )
    again.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    again.add_argument(
        "-o", "--out", metavar="DIR", help="write the gallery (index.html) here, and keep finished runs in DIR/runs"
    )


def _sweep(verb: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    sweep = verb(
        "sweep",
        "simulate many points and seeds: every combination of some settings, or a Latin hypercube",
        "explicate sweep mine.toml --vary flows.0.count=2,10,50 --runs 5 -o out\n"
        "explicate sweep mine.toml --vary link.r1->r2.delay=10ms,100ms --vary flows.0.protocol=xcp,vcp\n"
        "explicate sweep mine.toml --latin topology.bottleneck.rate=1Mbit/s..1000Mbit/s:log --points 50 -o out\n"
        "explicate sweep mine.toml                (only the scenario's own [sweep])\n"
        "explicate sweep study.toml -o out        (a sweep file: scenario, [grid], [latin], runs, measure)\n"
        "explicate sweep study.toml -o out        (resume after an interruption)\n"
        "explicate sweep study.toml -o out --executor dask:tcp://host:8786\n"
        "explicate sweep study.toml -o out --shard $SLURM_ARRAY_TASK_ID/100",
    )
    _common(sweep, jobs="threads or processes (default: one per core); results do not depend on it")
    sweep.add_argument(
        "--vary", metavar="KEY=V1,V2", type=_axis, action="append", default=[],
        help="one axis; repeatable; added to the file's axes, or replacing the one of that name",
    )  # fmt: skip
    sweep.add_argument(
        "--latin", metavar="KEY=LOW..HIGH", type=_setting, action="append", default=[],
        help="one axis of a Latin hypercube, logarithmic with a final :log; repeatable; needs --points",
    )  # fmt: skip
    sweep.add_argument("--points", type=_positive, help="number of points of the Latin hypercube")
    sweep.add_argument("--draw", metavar="N", type=_seed, help="seed of the Latin hypercube (default 1)")
    sweep.add_argument(
        "--measure", metavar="M,...", type=_names, action="extend", default=[],
        help="measures to report of each run, TABLE[.NAME].COLUMN[.STATISTIC], such as links.r1->r2.utilisation",
    )  # fmt: skip
    sweep.add_argument(
        "--executor", metavar="WHAT", default="threads",
        help="threads (default), processes, loky, or dask:ADDRESS (a scheduler's address or its file)",
    )  # fmt: skip
    sweep.add_argument(
        "--shard", metavar="I/N", type=_shard,
        help="run only part I of N (from 1) into -o DIR; without it, run what is missing and write the tables",
    )  # fmt: skip
    _fluid(sweep)


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part of the whole, such as 1/8 ... 8/8")
    return int(index), int(count)


def _curves(verb: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    curves = verb(
        "curves",
        "print the loss statistics of a channel, in closed form and by Monte Carlo",
        "explicate curves fading --vary snr=0dB,10dB,20dB --vary antennas=1x1,2x2 --bytes 40,1040\n"
        "explicate curves fading --vary snr=5dB,15dB --set fec_data=1 --trials 1000000 --csv > figure1.csv\n"
        "explicate curves gilbert_elliott --set clock=time --vary bad_time=5ms,50ms --json",
    )
    curves.add_argument("kind", metavar="CHANNEL", help="a channel, such as fading; an unknown name lists them all")
    curves.add_argument(
        "--set", metavar="KEY=VALUE", type=_setting, action="append", default=[], help="one parameter of the channel"
    )
    curves.add_argument(
        "--vary", metavar="KEY=V1,V2", type=_axis, action="append", default=[], help="one parameter over several values"
    )
    curves.add_argument(
        "--bytes", metavar="N,...", type=_lengths, default=[40, 520, 1040], help="IP lengths (default 40,520,1040)"
    )
    curves.add_argument("--acks", action="store_true", help="for acknowledgements, which may have another code")
    curves.add_argument("--trials", metavar="N", type=_positive, default=0, help="also simulate N packets")
    curves.add_argument("--seed", type=_seed, default=1, help="seed of the Monte Carlo packets (default 1)")
    curves.add_argument("--csv", action="store_true", help="print the table as CSV")
    curves.add_argument("--json", action="store_true", help="print the table as JSON")


def build_parser() -> argparse.ArgumentParser:
    """Return the whole command line."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="explicate", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=form, allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"explicate {engine.version()}")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)

    def verb(name: str, summary: str, examples: str) -> argparse.ArgumentParser:
        return verbs.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", formatter_class=form,
            epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.splitlines()), allow_abbrev=False,
        )  # fmt: skip

    run = verb(
        "run",
        "simulate a scenario",
        "explicate run mine.toml\nexplicate run mine.toml --seed 7 --runs 5 -o out\n"
        "explicate run mine.toml --set flows.0.protocol=vcp --json\nexplicate run mine.toml --trace flow=3 | less\n"
        "explicate run mine.toml --fluid",
    )
    _common(run, jobs="parallel runs (default 1); results do not depend on it")
    run.add_argument(
        "--trace", metavar="WHAT", help="print a trace of every packet of flow=N (to DIR/trace.txt with -o)"
    )
    run.add_argument("--pcap", metavar="DIR", help="write pcapng captures here")
    run.add_argument(
        "--engine", choices=engine.KINDS, default="fast",
        help="reference: one event for each departure, as in a textbook; the same results, more slowly",
    )  # fmt: skip
    _fluid(run)

    compare = verb(
        "compare",
        "simulate a scenario once per protocol, under the same conditions",
        "explicate compare mine.toml --protocols xcp,vcp,newreno\n"
        "explicate compare mine.toml --protocols xcp,newreno -o both && explicate report both",
    )
    _common(compare, jobs="parallel runs (default 1); results do not depend on it")
    compare.add_argument(
        "--protocols", metavar="A,B,...", type=_names, required=True, help="protocols, each set for all flow groups"
    )
    _fluid(compare)

    both = verb(
        "compare-lab",
        "simulate a scenario and run it on real sockets and queues, side by side (needs root)",
        "explicate compare-lab mine.toml\nexplicate compare-lab mine.toml -o both && explicate report both",
    )
    _common(both, jobs="ignored: lab runs take real time and run one after the other")
    old = verbs.add_parser("compare-worlds", description="Old name of compare-lab.", allow_abbrev=False)
    _common(old, jobs="ignored")

    _sweep(verb)

    _reproduce(verb)

    report = verb("report", "make one self-contained HTML page from a result directory", "explicate report out")
    report.add_argument("directory", metavar="DIR", help="a directory that `run`, `compare` or `sweep` wrote with -o")
    report.add_argument("-o", "--out", metavar="FILE", help="output file (default: DIR/report.html)")

    check = verb(
        "check",
        "check a scenario and print it with all defaults",
        "explicate check mine.toml --set runs=3",
    )
    check.add_argument("scenario", metavar="FILE", help="a scenario file (TOML); - reads standard input")
    check.add_argument(
        "--set", metavar="KEY=VALUE", type=_setting, action="append", default=[], help="override one key"
    )
    check.add_argument("--json", action="store_true", help="print the result of the check as JSON")

    new = verb("new", "print a scenario to start from", "explicate new dumbbell > mine.toml")
    new.add_argument("kind", metavar="KIND", help="such as dumbbell; an unknown name lists them all")

    protocols = verb(
        "protocols",
        "list protocols, recoveries, queue disciplines, channels and their parameters",
        "explicate protocols\nexplicate protocols xcp\nexplicate protocols --json",
    )
    protocols.add_argument("name", metavar="NAME", nargs="?", help="show this one with its parameters")
    protocols.add_argument("--json", action="store_true", help="print the whole registry as JSON")

    columns = verb("columns", "list the columns of the result tables with units", "explicate columns")
    columns.add_argument("--json", action="store_true", help="print them as JSON")
    verb("schema", "print the JSON Schema of scenario files", "explicate schema > scenario.schema.json")

    _curves(verb)
    bench = verb("bench", "benchmark the engine on this machine", "explicate bench --json")
    bench.add_argument("--case", metavar="NAME", help="only this case")
    bench.add_argument("--duration", metavar="S", type=_seconds, help="simulated seconds per case")
    bench.add_argument(
        "--floor", action="store_true", help="compare the engine with minimal programs that only move packets"
    )
    bench.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def _complain(message: object) -> None:
    for line in str(message).splitlines() or [type(message).__name__]:
        print(f"explicate: {line}", file=sys.stderr)


def _defect(error: BaseException) -> int:
    if os.environ.get("EXPLICATE_DEBUG"):
        traceback.print_exception(error)
    _complain(f"internal error: {type(error).__name__}: {error}")
    _complain("this is a defect in explicate; EXPLICATE_DEBUG=1 shows where")
    return FAILED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (by default the process's) and return the exit status."""
    try:
        args = build_parser().parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    status = _guarded(args)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    return status


def _guarded(args: argparse.Namespace) -> int:
    try:
        return commands.COMMANDS[args.verb](args) or OK
    except BrokenPipeError:
        return _pipe_closed()
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except (BadInputError, engine.ScenarioError) as error:
        _complain(error)
        return BAD_INPUT
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error)
        return BAD_INPUT
    except RuntimeError as error:
        _complain(f"the run failed: {error}")
        return FAILED
    except Exception as error:  # the user gets a sentence, a developer the traceback
        return _defect(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic of the engine is no Exception
            raise
        return _defect(error)


def _pipe_closed() -> int:
    """Discard the interpreter's final flush: the reader of the output has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED
