"""ARCHITECTURE.md names every folder at the root, and no file or folder that is not there."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_every_folder_at_the_root_has_a_line():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    folders = {path.split("/")[0] for path in listed.splitlines() if "/" in path and not path.startswith(".")}
    assert set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE)) == folders


def test_every_path_of_the_code_map_exists():
    named = re.findall(r"`((?:crates|examples|papers|python|playground|tests)/[\w./-]+)`", PAGE)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
