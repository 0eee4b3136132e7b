"""Identity of a run: a hash of everything that determines its result, so that no run need be repeated."""

from __future__ import annotations

import hashlib
import json
import subprocess
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


def full_version() -> str:
    """Return the version, and the commit where it is known: from a package of a release, or from git in a clone."""
    found = commit()
    return f"{engine.version()} ({found})" if found else engine.version()


def commit() -> str:
    """Return the abbreviated commit that this was built from; empty if that is not known."""
    packaged = Path(__file__).with_name("commit.txt")
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8").strip()
    clone = Path(__file__).resolve().parents[2]
    if not (clone / ".git").exists():
        return ""
    asked = ["git", "-C", str(clone), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
