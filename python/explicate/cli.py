"""The command ``explicate``: its parser, and how errors are reported."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from explicate import commands, console, suggestions
from explicate.errors import BadInputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing, to standard output unless they name a file."""

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
STATUS = """\
exit status:
  0    success
  1    a run failed, a claim of a paper does not hold, or an installation is incomplete (doctor)
  2    bad input: the message says where it is and what to do
  130  interrupted: the message says what was kept
  141  the reader of the output has closed the pipe
"""


class Parser(argparse.ArgumentParser):
    """A parser whose error is one sentence that suggests a similar name."""

    def __init__(self, prog: str, **texts: str) -> None:
        super().__init__(prog=prog, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **texts)  # type: ignore[arg-type]

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """Parse, and name the option nearest to an unknown one."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(unknown)}")
        return parsed  # type: ignore[no-any-return]

    def error(self, message: str) -> NoReturn:
        """Print the sentence and a hint at the help, and exit."""
        console.complain(f"{message}\n`{self.prog} --help` lists the options")
        self.exit(BAD_INPUT)

    def _hint(self, words: Sequence[str]) -> str:
        pairs = zip(words, [*words[1:], ""], strict=True)
        near = [
            suggestions.option(word.partition("=")[0], self._option_string_actions, word.partition("=")[2] or after)
            for word, after in ((word, "" if next_.startswith("-") else next_) for word, next_ in pairs)
            if word.startswith("-")
        ]
        found = next((name for name in near if name), None)
        return f"; did you mean {found}?" if found else ""


def command_parser(name: str) -> Parser:
    """Return the parser of one command."""
    return _declared(name, Parser(prog=f"explicate {name}", **_about(name)))


def _about(name: str) -> dict[str, str]:
    summary = commands.SUMMARIES[name]
    examples = "examples:\n" + "\n".join(f"  {line}" for line in commands.module(name).EXAMPLES)
    return {"description": f"{summary[0].upper()}{summary[1:]}.", "epilog": examples}


def _declared(name: str, parser: Parser) -> Parser:
    commands.module(name).arguments(parser)
    _verbosity(parser)
    return parser


def _verbosity(parser: argparse.ArgumentParser) -> None:
    levels = parser.add_mutually_exclusive_group()
    hide = argparse.SUPPRESS  # no default: the command's parser would replace what stands before its name
    levels.add_argument(
        "-q", "--quiet", dest="level", action="store_const", const=console.QUIET, default=hide,
        help="print results and errors only",
    )  # fmt: skip
    levels.add_argument(
        "-v", "--verbose", dest="level", action="store_const", const=console.VERBOSE, default=hide,
        help="also print what is done, on standard error",
    )  # fmt: skip


class _Version(argparse.Action):
    """Prints the version; the engine is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from explicate.identity import full_version  # noqa: PLC0415

        print(f"explicate {full_version()}")
        parser.exit()


def _top() -> tuple[Parser, Any]:
    parser = Parser(prog="explicate", description=DESCRIPTION, epilog=f"{EXAMPLES}\n{STATUS}")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version, with the commit if known")
    _verbosity(parser)
    return parser, parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)


def build_parser() -> argparse.ArgumentParser:
    """Return the whole command line."""
    parser, verbs = _top()
    for name, summary in commands.SUMMARIES.items():
        _declared(name, verbs.add_parser(name, help=summary, **_about(name)))
    for old, name in commands.OLD_NAMES.items():
        _declared(name, verbs.add_parser(old, **_about(name)))
    return parser


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; imports the module of one command only."""
    parser, verbs = _top()
    for name, summary in commands.SUMMARIES.items():
        verbs.add_parser(name, help=summary, add_help=False)
    known = [*commands.SUMMARIES, *commands.OLD_NAMES]
    at = next((i for i, word in enumerate(argv) if not word.startswith("-")), None)
    if not argv:
        parser.print_help(sys.stderr)
        parser.exit(BAD_INPUT)
    if at is None:
        return parser.parse_args(argv)  # --help, --version, or an error
    name = argv[at]
    if name not in known:
        near = suggestions.command(name, known)
        hint = f"did you mean `{near}`?" if near else f"the commands are: {', '.join(commands.SUMMARIES)}"
        parser.error(f"invalid choice: there is no command {name!r}; {hint}")
    before = parser.parse_args([*argv[:at], "columns"]) if at else argparse.Namespace()
    namespace = argparse.Namespace(**{**vars(before), "verb": commands.OLD_NAMES.get(name, name)})
    if name in commands.OLD_NAMES:
        new = commands.OLD_NAMES[name]
        console.warning(f"`{name}` is now called `{new}`; the old name works for one more release")
    return command_parser(namespace.verb).parse_args(argv[at + 1 :], namespace)


def _defect(error: BaseException) -> int:
    if os.environ.get("EXPLICATE_DEBUG"):
        _print_traceback(error)
    console.complain(f"internal error: {type(error).__name__}: {error}")
    # The module of a crate has the author's protocols too.
    module = os.environ.get("EXPLICATE_ENGINE")
    others = f" or in the protocols of {module}" if module else ""
    console.complain(f"this is a defect in explicate{others}; EXPLICATE_DEBUG=1 shows where")
    return FAILED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (by default the process's arguments) and return the exit status."""
    console.prepare()
    status = _guarded(lambda: _parsed_and_performed(sys.argv[1:] if argv is None else argv))
    return _guarded(_flushed) or status


def _parsed_and_performed(argv: Sequence[str]) -> int:
    try:
        args = parsed(argv)
    except SystemExit as stop:  # the parser has printed the error
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    console.set_level(getattr(args, "level", console.NORMAL))
    return _performed(args)


def _flushed() -> int:
    """Write what is buffered of standard output; that it is a full disk may be known only now."""
    sys.stdout.flush()
    return OK


def _guarded(action: Callable[[], int]) -> int:
    """Return the exit status of `action`; its errors are reported in a sentence."""
    try:
        return action()
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except KeyboardInterrupt as stop:
        console.complain(f"interrupted; {stop}" if str(stop) else "interrupted")
        return INTERRUPTED
    except OSError as error:
        console.complain(_place(error))
        return BAD_INPUT
    except RuntimeError as error:
        console.complain(f"the run failed: {error}")
        return FAILED
    except Exception as error:  # users get a sentence, developers the traceback
        if isinstance(error, (BadInputError, *_scenario_error())):
            console.complain(error)
            return BAD_INPUT
        return _defect(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic of the engine is no Exception
            raise
        return _defect(error)


def _performed(args: argparse.Namespace) -> int:
    for what in getattr(args, "load", []):
        from explicate import protocols  # noqa: PLC0415

        protocols.load(what)
    try:
        return commands.module(args.verb).execute(args) or OK
    except Exception as error:
        where = _raised_in(error)
        if where is None:
            raise
        _print_traceback(error)
        console.complain(f"the run failed {where}")
        return FAILED


def _print_traceback(error: BaseException) -> None:
    import traceback  # noqa: PLC0415 (not needed for `--help`)

    traceback.print_exception(error)


def _raised_in(error: Exception) -> str | None:
    """Return the callback of a protocol in Python that raised an exception; None if none did."""
    protocols = sys.modules.get("explicate.protocols")
    return None if protocols is None else protocols.raised_in(error)


def _scenario_error() -> tuple[type[Exception], ...]:
    """Return the engine's error, if the engine was imported: no other module raises it."""
    engine = sys.modules.get("explicate.engine")
    return () if engine is None else (engine.ScenarioError,)


def _place(error: OSError) -> object:
    """Return the sentence for an error of a file, or of standard output if it names none."""
    if error.errno in FULL and error.filename is None:
        _discard_output()
        return f"standard output: {error.strerror}"
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error


def _discard_output() -> None:
    """Discard what is buffered, which the interpreter would try to write at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
