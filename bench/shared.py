"""What the measurements share: the root of the repository, and what puts tables and pictures into its pages."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))

from pages import replace_between  # noqa: E402
from pictures import picture  # noqa: E402

__all__ = ["ROOT", "picture", "replace_between"]
