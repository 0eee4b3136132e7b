"""``explicate completion``."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = (
    "explicate completion bash > ~/.local/share/bash-completion/completions/explicate",
    "explicate completion zsh > ~/.zfunc/_explicate",
    "explicate completion fish > ~/.config/fish/completions/explicate.fish",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" or ".join(SHELLS))


def execute(args: argparse.Namespace) -> None:
    """Print the script."""
    import shtab

    from explicate.cli import build_parser

    print(shtab.complete(build_parser(), shell=args.shell))
