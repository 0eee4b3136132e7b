"""The scripts of the documentation: outputs of commands in pages, and the site's links, navigation and hosts."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import make_site  # noqa: E402
import pictures  # noqa: E402
import run_pages  # noqa: E402

from explicate.charts import Axes, Series  # noqa: E402

PAGE = """# A page

```text title="words.txt"
three blind mice
```

```sh
cat words.txt | wc -w
```

```text
4
```

```bash
false
```
"""


def test_a_page_gets_what_its_commands_print(tmp_path: Path) -> None:
    made = run_pages.renewed(PAGE, tmp_path)
    assert "```text\n3\n```" in made
    assert made.replace("```text\n3\n", "```text\n4\n") == PAGE


def test_an_output_that_differs_is_reported(tmp_path: Path) -> None:
    lines = run_pages.differences(ROOT / "docs" / "start.md", PAGE, run_pages.renewed(PAGE, tmp_path))
    assert "-4" in lines
    assert "+3" in lines


def test_a_command_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(run_pages.CommandError, match="status 3"):
        run_pages.renewed("```sh\nexit 3\n```\n", tmp_path)


@pytest.mark.parametrize(
    ("page", "target", "home"),
    [
        ("docs/start.md", "scenarios.md#flows", "scenarios.md#flows"),
        ("docs/howto/wifi.md", "../../CONTRIBUTING.md", "../project/contributing.md"),
        ("ARCHITECTURE.md", "docs/fluid.md", "../fluid.md"),
        ("docs/start.md", "https://rustup.rs", "https://rustup.rs"),
        ("docs/start.md", "../LICENSE-MIT", "source/LICENSE-MIT.md"),
        ("docs/start.md", "../.ci", "source/.ci.md"),
    ],
)
def test_links_lead_to_where_the_site_has_their_targets(
    page: str, target: str, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_site, "PAGES", tmp_path / "pages")
    stage = make_site.Stage()
    assert stage.turned(page, target) == home
    with pytest.raises(SystemExit, match=r"a link has no target: nothing\.md"):
        stage.turned(page, "nothing.md")


def test_numbered_lists_are_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_site, "ROOT", tmp_path)
    monkeypatch.setattr(make_site, "PAGES", tmp_path / "pages")
    page = tmp_path / "docs" / "a.md"
    page.parent.mkdir()
    page.write_text(
        "# A\n\nDeviations:\n1. One,\n   still one.\n2. Two.\n\n```\ncode\n1. x\n   y\n```\n", encoding="utf-8"
    )
    make_site.Stage().page("docs/a.md")
    staged = (tmp_path / "pages" / "a.md").read_text(encoding="utf-8")
    assert "Deviations:\n\n1. One,\n    still one.\n2. Two.\n" in staged
    assert "code\n1. x\n   y\n" in staged, "code is as it was"


def test_the_navigation_leaves_out_patterns_without_pages() -> None:
    lines = make_site.placed("* [Start](start.md)\n* no-such-page*.md\n* reference/protocol-*.md\n").splitlines()
    assert lines[-2:] == ["* [Start](start.md)", "* reference/protocol-*.md"]


def test_what_would_come_from_another_host_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_site, "RESULT", tmp_path)
    page = '<a href="https://here.is/fine"></a><script src="//cdn.example/x.js"></script><img src="a.svg">'
    (tmp_path / "a.html").write_text(page, encoding="utf-8")
    (tmp_path / "a.css").write_text("body{background:url(https://fonts.example/a.woff)}", encoding="utf-8")
    assert list(make_site.foreign()) == [
        "a.html: loads //cdn.example/x.js",
        "a.css: loads https://fonts.example/a.woff",
    ]


def test_a_page_that_the_navigation_lacks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_site, "RESULT", tmp_path)
    (tmp_path / "index.html").write_text('<a class="md-nav__link" href="./a.html#x">A</a>', encoding="utf-8")
    (tmp_path / "a.html").write_text("", encoding="utf-8")
    (tmp_path / "b.html").write_text("", encoding="utf-8")
    assert list(make_site.unplaced()) == ["b.html: not in docs/SUMMARY.md"]


def test_labels_of_axes_keep_their_digits() -> None:
    assert pictures.without_needless_digits('<text x="1.25">0.012</text>') == '<text x="1.2">0.012</text>'


def test_an_interval_is_drawn_through_its_dot() -> None:
    axes = Axes("t", "x", "y", (0.0, 2.0), (0.0, 4.0))
    bare, with_ends = (
        pictures.picture("t", [(axes, [Series("a", 0, [1.0], [2.0], low, high, dots=True)])], 10)
        for low, high in (((), ()), ([1.0], [3.0]))
    )
    assert with_ends.count("<path") == bare.count("<path") + 1
