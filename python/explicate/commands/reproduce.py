"""``explicate reproduce``."""

from __future__ import annotations

import argparse
from pathlib import Path

from explicate.commands import delivery, distribution, options, values

EXAMPLES = (
    "explicate reproduce --list",
    "explicate reproduce D-fig3 -o papers",
    "explicate reproduce D K --quick --jobs 2",
    "explicate reproduce all --json > verdicts.json",
    "explicate reproduce D-fig7a --choice D-P16=newreno",
    "explicate reproduce K-fig4 --quick --stack linux -o papers",
    "explicate reproduce D --quick --seed 4001 -o papers",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "what", metavar="WHAT", nargs="*",
        help="experiments (D-fig3), papers (N, I, Y, D, K, or nychis, ikeda, ...), or all",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the experiments and which of them are implemented")
    efforts = parser.add_mutually_exclusive_group()
    efforts.add_argument("--quick", action="store_true", help="fewer seeds and shorter runs, all predicates")
    efforts.add_argument("--full", action="store_true", help="the papers' own numbers of runs; takes days")
    parser.add_argument("--jobs", type=values.positive, default=None, help="parallel runs (default: one per core)")
    parser.add_argument(
        "--choice", metavar="ID=VALUE", type=values.setting, action="append", default=[],
        help="set a parameter that a paper leaves open, such as D-P16=newreno; repeatable",
    )  # fmt: skip
    options.settings(parser, "override one key in every scenario")
    parser.add_argument(
        "--stack", metavar="NAME", default="",
        help="linux, rfc or ns2: replace all that a stack sets, explicit values too, and list it",
    )  # fmt: skip
    parser.add_argument(
        "--seed", metavar="N", type=values.positive, default=1,
        help="judge on blocks of seeds from N and N + 1000 on (default: 1 and 1001)",
    )  # fmt: skip
    parser.add_argument(
        "--enlarge", action="store_true",
        help="rerun experiments with an undecided claim once, with four times the seeds",
    )  # fmt: skip
    parser.add_argument(
        "--controls", action="store_true",
        help="first run the controls, changes under which claims must fail; label claims that none makes fail",
    )  # fmt: skip
    parser.add_argument(
        "--multiverse", action="store_true",
        help="count the claims that hold with each alternative of each choice of the papers WHAT (quick, resumable)",
    )  # fmt: skip
    parser.add_argument(
        "--law-table", action="store_true", help="as --multiverse, for the control laws of paper I's routers, by claim"
    )
    parser.add_argument(
        "--joint", action="store_true",
        help="compare pairs and triples of choices of the papers WHAT with the papers' numbers (quick, resumable)",
    )  # fmt: skip
    parser.add_argument(
        "--hours", metavar="H", type=values.hours, default=None, help="of --joint, for each paper (default: 3)"
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    options.output(
        parser,
        "write the gallery (index.html) here, with --stack in DIR/NAME, with --seed in DIR/seed-N, and keep finished "
        "runs in DIR/runs",
    )


def execute(args: argparse.Namespace) -> int:
    """Reproduce experiments of the papers; 1 if a predicate does not hold."""
    distribution.require("reproduce")
    from explicate_papers import command

    kept = f"finished runs are kept in {Path(args.out or command.DEFAULT_STORE) / 'runs'}; the same command resumes"
    with delivery.keeping(kept):
        return command.reproduce(args)
