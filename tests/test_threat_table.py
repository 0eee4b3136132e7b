"""Every row of the threat tables in docs names a test, and the tests that it names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TABLES = {
    "docs/linux.md": ("## What can go wrong on purpose", 14),
    "docs/files.md": ("## What can go wrong on purpose", 20),
    "docs/gateway.md": ("## Threats", 12),
}
"""Pages, the titles of their tables, and how many rows these have at least."""


def rows(page: str, title: str) -> list[tuple[str, list[str]]]:
    """The threats, and the names in the last column."""
    text = (ROOT / page).read_text(encoding="utf-8").split(title)[1].split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(row[0], re.findall(r"`([^`\s]+)`", row[2]) if len(row) > 2 else []) for row in cells[2:]]


def names_of_tests() -> set[str]:
    """Names of tests and of files of tests, of the crates."""
    files = [*ROOT.glob("crates/*/tests/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs")]
    found = re.compile(r"#\[test\]\n(?:\s*#\[[^\n]*\]\n)*\s*fn (\w+)")
    texts = [file.read_text(encoding="utf-8") for file in files]
    names = {name for text in texts for name in found.findall(text)}
    for file in ROOT.glob("python/tests/*.py"):
        names |= set(re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    return names | {file.stem for file in ROOT.glob("crates/*/tests/**/*")}


@pytest.mark.parametrize("page", TABLES)
def test_every_threat_names_a_test_that_exists(page: str) -> None:
    known = names_of_tests()

    def exists(name: str) -> bool:
        return name in known or (name.endswith("...") and any(test.startswith(name[:-3]) for test in known))

    title, least = TABLES[page]
    assert len(rows(page, title)) >= least
    wrong = {threat: names for threat, names in rows(page, title) if not names or not all(map(exists, names))}
    assert not wrong, wrong
