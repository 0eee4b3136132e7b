"""The modules of the package import each other in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "explicate"


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run, in functions too; those for annotations alone do not run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from statements(ast.Module([other], []))
        elif isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from statements(child)


def imported(text: str, modules: Mapping[str, object]) -> set[str]:
    """Return which of the modules a text imports."""
    found: set[str] = set()
    for one in statements(ast.parse(text)):
        if isinstance(one, ast.Import):
            found.update(alias.name for alias in one.names)
        elif one.level == 0 and one.module:
            found.add(one.module)
            found.update(f"{one.module}.{alias.name}" for alias in one.names)
        else:
            raise AssertionError(f"line {one.lineno} imports by a relative name")
    # `from package import module` also runs the package, whose names are found when they are used.
    inner = {name for name in found if name in modules}
    return {name for name in inner if not any(other.startswith(f"{name}.") for other in inner)}


def order(texts: Mapping[str, str]) -> list[str]:
    """Return the modules, those that others import first. Raise CycleError if they import each other in a circle."""
    return list(TopologicalSorter({name: imported(text, texts) for name, text in texts.items()}).static_order())


def name(path: Path) -> str:
    """Return the name of the module in a file."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_imports_form_no_circle() -> None:
    texts = {name(path): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = order(texts)
    assert found.index("explicate.results") < found.index("explicate.figures") < found.index("explicate.plotting")
    assert set(found) == set(texts)


@pytest.mark.parametrize(
    ("of_b", "circle"),
    [
        ("import p.a", True),
        ("from p.a import name", True),
        ("from p import a", True),
        ("def late():\n    from p.a import name", True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a", False),
        ("import ast", False),
    ],
)
def test_a_circle_is_found(of_b: str, *, circle: bool) -> None:
    texts = {"p": "", "p.a": "from p.b import name", "p.b": of_b}
    if circle:
        with pytest.raises(CycleError, match="cycle"):
            order(texts)
    else:
        assert order(texts).index("p.b") < order(texts).index("p.a")
