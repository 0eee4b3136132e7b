"""The plots of docs/performance.md come from its tables."""

from pathlib import Path

import cost_million
import cost_scaling
import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


@pytest.mark.parametrize(("name", "module"), [("cost", cost_scaling), ("million", cost_million)])
def test_a_plot_shows_the_table_of_the_page(name, module):
    assert module.drawing(module.read(PAGE)) == PAGE.with_name(f"{name}.svg").read_text(encoding="utf-8")


def test_rows_in_another_order_are_refused(tmp_path):
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith("| flows | 10 |"))
    lines[row], lines[row + 1] = lines[row + 1], lines[row]
    page = tmp_path / "page.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match="a row for flows 100, where flows 10 belongs"):
        cost_scaling.read(page)
