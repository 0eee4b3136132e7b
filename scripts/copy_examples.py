"""Copies scenarios/ into the package, for checkouts in which its links to them are no links (Windows)."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGED = ROOT / "python" / "explicate" / "scenarios"

for path in sorted((ROOT / "scenarios").iterdir()):
    place = PACKAGED / path.name
    place.unlink(missing_ok=True)
    shutil.copy(path, place)
