"""Options that several commands have."""

from __future__ import annotations

import argparse

from explicate import engine
from explicate.commands import values


def simulation(parser: argparse.ArgumentParser, *, jobs: str) -> None:
    """Declare the scenario, how often it runs, and where results go."""
    scenario(parser)
    settings(parser, "override one key by its path, such as flows.0.count=20 or link.r1:r2.rate=10Mbit/s; repeatable")
    parser.add_argument("--seed", type=values.seed, help="seed of the first run (default: the scenario's)")
    parser.add_argument("--runs", type=values.runs, help="number of runs, with consecutive seeds")
    parser.add_argument("--jobs", type=values.positive, default=None, help=jobs)
    output(parser, "write the tables (Parquet) and run.json here")
    force(parser)
    parser.add_argument("--csv", action="store_true", help="write the tables as CSV too; needs -o")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    load(parser)


def resolved(parser: argparse.ArgumentParser, *, as_json: str) -> None:
    """Declare the scenario of a command that reads it and runs nothing; `as_json` is what ``--json`` prints."""
    scenario(parser, metavar="FILE")
    settings(parser, "override one key")
    parser.add_argument("--json", action="store_true", help=f"print {as_json} as JSON")
    load(parser)


def scenario(parser: argparse.ArgumentParser, *, metavar: str = "SCENARIO") -> None:
    """Declare the scenario."""
    parser.add_argument("scenario", metavar=metavar, help="a scenario file (TOML); - reads standard input")


def output(parser: argparse.ArgumentParser, meaning: str, *, metavar: str = "DIR", default: str | None = None) -> None:
    """Declare ``--output``."""
    parser.add_argument("-o", "--output", dest="out", metavar=metavar, default=default, help=meaning)


def force(parser: argparse.ArgumentParser) -> None:
    """Declare ``--force``."""
    parser.add_argument("--force", action="store_true", help="replace results of another scenario in DIR")


def load(parser: argparse.ArgumentParser) -> None:
    """Declare ``--load``, which is carried out before the command begins."""
    parser.add_argument(
        "--load", metavar="FILE.py", action="append", default=[],
        help="import a file or module that registers protocols of its own (docs/own-protocol.md); repeatable",
    )  # fmt: skip


def settings(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Declare ``--set``."""
    parser.add_argument(
        "--set", metavar="KEY=VALUE", type=values.setting, action="append", default=[], help=meaning
    )  # fmt: skip


def fluid(parser: argparse.ArgumentParser) -> None:
    """Declare ``--fluid``."""
    parser.add_argument(
        "--fluid", action="store_true",
        help=f"use a fluid model instead of simulating packets; available for {', '.join(engine.fluid_models())}",
    )  # fmt: skip


PARALLEL = "parallel runs (default: one per core); results do not depend on it"
