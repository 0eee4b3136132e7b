"""What a run is known by: a hash of all that decides its result, so that none need be repeated."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from explicate import engine


@cache
def engine_digest() -> str:
    """Return a hash of the compiled engine: other code, other results."""
    return hashlib.sha256(Path(engine.file()).read_bytes()).hexdigest()[:16]


def content_key(*parts: Any) -> str:
    """Return the hash of `parts`, which JSON can hold, and of the engine."""
    return hashlib.sha256(json.dumps([*parts, engine_digest()]).encode()).hexdigest()
