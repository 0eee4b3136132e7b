"""docs/validation.md: its list of contents."""

import importlib.util
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("validation_shared", Path(__file__).parents[1] / "validation/shared.py")
assert spec is not None
assert spec.loader is not None
shared = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = shared  # bench/ has another module `shared`
spec.loader.exec_module(shared)

PAGE = """\
# Page

<!-- contents:begin -->
- [Gone](#gone)
<!-- contents:end -->

## 802.11a: Bianchi's model, ns-2

Text.

## Drop-tail
"""


def test_a_section_is_listed_under_its_anchor() -> None:
    listed = shared.with_contents(PAGE).split("<!-- contents:")[1].splitlines()[1:]
    assert listed == ["- [802.11a: Bianchi's model, ns-2](#80211a-bianchis-model-ns-2)", "- [Drop-tail](#drop-tail)"]
    assert shared.with_contents(shared.with_contents(PAGE)) == shared.with_contents(PAGE)
    assert shared.anchor("XCP: a full link") == "xcp-a-full-link"


def test_the_page_lists_its_sections() -> None:
    text = shared.DOCUMENT.read_text(encoding="utf-8")
    assert text == shared.with_contents(text)
