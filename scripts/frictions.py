"""Runs the command of each friction that new users reported, and makes docs/frictions.md of frictions.toml.

python scripts/frictions.py            # writes the page
python scripts/frictions.py --check    # 1 if a command does not show what it should, or the page is old
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = tomllib.loads((ROOT / "scripts" / "frictions.toml").read_text(encoding="utf-8"))
PAGE = ROOT / "docs" / "frictions.md"
HEAD = """\
# Reported frictions, and how they are now

People who knew nothing of Explicate tried it from its documents alone. This is what stopped them, and a command that
shows how it is today. The commands build on each other, in a folder where `repository` leads to the sources;
`python scripts/frictions.py --check` runs them all. (`scripts/frictions.py` makes this page.)
"""
SECTIONS = {"friction": "## Twenty frictions", "row": "## Twenty-eight things that such a tool should have"}


def said(command: str, folder: str) -> str:
    """What a command prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, text=True, check=False, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
    )  # fmt: skip
    return done.stdout


def wrong() -> list[str]:
    """Run every command; name those that do not show what they should."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "repository").symlink_to(ROOT)
        for entry in (one for section in SECTIONS for one in TABLE[section]):
            if entry["shows"] not in (output := said(entry["run"], folder)):
                found.append(f"{entry['was']}\n  $ {entry['run']}\n  lacks {entry['shows']!r}: {output[:500]}")
    return found


def page() -> str:
    """The page."""
    parts = [HEAD]
    for section, title in SECTIONS.items():
        entries = (item(i, one) for i, one in enumerate(TABLE[section], 1))
        parts.append(f"{title}\n\n" + "\n".join(entries))
    return "\n".join(parts)


def item(number: int, one: Mapping[str, str]) -> str:
    """A friction with how it is now, its command and a part of what that prints, as an item of a numbered list."""
    parts = [
        f"**{one['was']}.**\n{one['now']}.",
        f"```bash\n{one['run'].strip()}\n```",
        f"prints {quoted(one['shows'])}",
    ]
    text = "\n\n".join(parts)
    return f"{number}. {text}\n".replace("\n", "\n    ").replace("\n    \n", "\n\n").rstrip(" ")


def quoted(text: str) -> str:
    """Code within a line; more backquotes than it has stand around it."""
    fence = "``" if "`" in text else "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text.strip()}{pad}{fence}"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    problems = wrong()
    if check and PAGE.read_text(encoding="utf-8") != page():
        problems.append(f"{PAGE.relative_to(ROOT)} is old: python scripts/frictions.py")
    if not check:
        PAGE.write_text(page(), encoding="utf-8")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
