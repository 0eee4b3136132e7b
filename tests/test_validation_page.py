"""docs/validation.md: its list of contents."""

import importlib.util
import re
import subprocess
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


def test_making_it_keeps_what_other_scripts_write() -> None:
    """In another process, since bench/ has modules of the same names."""
    sections = "xcp_targets", "tcp_targets", "equilibrium", "capacity_error", "figure_2"
    stubs = "; ".join(f"make.{name} = lambda: ''" for name in sections)
    code = f"import make; {stubs}; make.cellular = lambda traces: None; print(make.document(make.Path()))"
    folder = shared.DOCUMENT.parents[1] / "validation"
    made = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True).stdout
    parts = re.findall(r"<!-- (\S+):begin -->\n(.*?)<!-- \1:end -->", shared.DOCUMENT.read_text(encoding="utf-8"), re.S)
    assert {"compared", "peers", "dcf"} <= {name for name, _ in parts}
    for name, text in parts:
        assert name == "contents" or f"<!-- {name}:begin -->\n{text}" in made, f"{name} is lost"
