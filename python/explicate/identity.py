"""What a run is known by: a hash of all that decides its result, so that none need be repeated."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from explicate import engine


def engine_digest() -> str:
    """Return a hash of the compiled engine: other code, other results."""
    return file_digest(engine.file())[:16]


@cache
def file_digest(path: str) -> str:
    """Return the hash of a file, which is read once."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def content_key(*parts: Any) -> str:
    """Return the hash of `parts`, which JSON can hold, and of the engine."""
    return hashlib.sha256(json.dumps([*parts, engine_digest()]).encode()).hexdigest()
