"""The papers' experiments are a distribution of their own, which commands import when they run."""

from __future__ import annotations

import importlib

from explicate.errors import BadInputError

PACKAGE = "explicate_papers"


def require(command: str) -> None:
    """Raise BadInputError if the papers' distribution, which `command` needs, is not installed."""
    try:
        importlib.import_module(PACKAGE)
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise BadInputError(
            f"`explicate {command}` needs the papers' experiments: `pip install explicate-papers`; "
            "in a clone `make install` installs them"
        ) from error
