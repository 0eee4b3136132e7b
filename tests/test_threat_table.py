"""Every row of the threat table in docs/linux.md names a test, and the tests that it names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TITLE = "## What can go wrong on purpose"


def rows() -> list[tuple[str, list[str]]]:
    """The threats, and the names in the last column."""
    text = (ROOT / "docs/linux.md").read_text(encoding="utf-8").split(TITLE)[1].split("\n## ")[0]
    cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(row[0], re.findall(r"`([^`]+)`", row[2]) if len(row) > 2 else []) for row in cells[2:]]


def names_of_tests() -> set[str]:
    """Names of tests and of files of tests, of the crates."""
    files = [*ROOT.glob("crates/*/tests/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs")]
    found = re.compile(r"#\[test\]\n(?:\s*#\[[^\n]*\]\n)*\s*fn (\w+)")
    by_both = re.compile(r"by_both! \{\n(.*?)\n\}", re.DOTALL)  # tests by two transports
    texts = [file.read_text(encoding="utf-8") for file in files]
    names = {name for text in texts for name in found.findall(text)}
    names |= {name for text in texts for block in by_both.findall(text) for name in block.split()}
    return names | {file.stem for file in ROOT.glob("crates/*/tests/**/*")}


def test_every_threat_names_a_test_that_exists() -> None:
    known = names_of_tests()

    def exists(name: str) -> bool:
        return name in known or (name.endswith("...") and any(test.startswith(name[:-3]) for test in known))

    assert len(rows()) >= 40
    wrong = {threat: names for threat, names in rows() if not names or not all(map(exists, names))}
    assert not wrong, wrong
