"""The papers' experiments are a distribution of their own, which commands import when they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from explicate.errors import BadInputError

PACKAGE = "explicate_papers"


@contextmanager
def needed_by(command: str) -> Iterator[None]:
    """Import modules of the papers' distribution inside; raise BadInputError if it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise BadInputError(
            f"`explicate {command}` needs the papers' experiments: `pip install explicate-papers`; "
            "in a clone `make install` installs them"
        ) from error
