"""The gallery in a real Chromium: silent, complete, legible on a desk and a phone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chromium import PHONE, Open
from playwright.sync_api import Page

from explicate_papers import gallery
from explicate_papers.judge import Outcome, Verdict
from explicate_papers.plan import effort
from explicate_papers.register import experiments
from explicate_papers.statistics import Sample, at_least
from explicate_papers.study import Case, Line, Panel
from explicate_papers.verdicts import Block, Word

pytestmark = pytest.mark.browser

SCENARIO = 'name = "one"\n[[flows]]\nname = "mine"\nprotocol = "xcp"\n'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site about two experiments, one of them judged in each of the three ways and drawn with a logarithmic axis."""
    one, other = experiments()["I-fig2"], experiments()["D-fig3"]
    checks = (at_least("measured", Sample.of([1.0, 2.0]), 1.2),)
    words = [Word.HOLDS, Word.FAILS, Word.NOT_JUDGED, Word.DEPENDS, Word.CANNOT_FAIL, Word.UNDECIDED, Word.HOLDS]
    verdicts = tuple(
        Verdict(
            one.id,
            "quick",
            predicate,
            word,
            () if word is Word.NOT_JUDGED else (Block(1, True, checks, 4), Block(1001, False, checks, 4)),
            "" if word is Word.HOLDS else "because <of> this",
            instead="its square, because <it> is known" if word is Word.NOT_JUDGED else "",
        )
        for predicate, word in zip(one.predicates, words, strict=True)
    )
    trial = {"outcome": "flipped", "why": "share: 0.1"}
    control = {"kind": "off", "why": "no <router> speaks", "claims": {one.predicates[0].id: trial}}
    line = Line.of("rising <fast>", [1.0, 10.0, 1000.0], [Sample.of([1.0, 2.0]), Sample.of([3.0]), Sample.of([9.0])])
    printed = Line("paper", [1.0, 1000.0], [1.5, 8.0], points=True)
    panel = Panel("A panel", "loss rate", "share", [line, printed], log="x")
    series = Panel("Over time", "time (s)", "window (packets)", [Line("cwnd", [0.0, 1.0], [1.0, 2.0])])
    drawn = Outcome(one, effort(one, "quick"), verdicts, (panel, panel, series), {("a", 1.0): Case(SCENARIO)})
    later = tuple(
        Verdict(other.id, "quick", predicate, Word.NOT_JUDGED, note="later") for predicate in other.predicates
    )
    differs = {one.predicates[0].id: "fails"}
    other_buffer = {"experiments": 1, "differs": differs, "errors": {}}
    universes = {"I": {"chosen": {one.predicates[0].id: "holds"}, "alternatives": {"I-P3=1.0bdp": other_buffer}}}
    outcomes = [drawn, Outcome(other, effort(other, "quick"), later)]
    gallery.write(outcomes, tmp_path / "site", {one.id: {"controls": {"silence": control}}}, universes)
    return tmp_path / "site"


@pytest.mark.parametrize("settings", [{}, {"viewport": PHONE}], ids=["desk", "phone"])
@pytest.mark.parametrize("page", ["index", "I-fig2", "D-fig3"])
def test_pages_are_silent_and_fit(
    site: Path,
    open_page: Open,
    keep: Callable[[str], str],
    page: str,
    settings: dict[str, object],
) -> None:
    opened = open_page(site / f"{page}.html", **settings)
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    wide, room = opened.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room
    opened.page.screenshot(path=keep(f"gallery-{page}-{room}.png"), full_page=True)


def test_a_reader_finds_the_way(site: Path, open_page: Open) -> None:
    page = open_page(site / "index.html").page
    page.click("text=Sensitivity of plain XCP")
    assert page.url.endswith("I-fig2.html")
    assert page.locator(".predicates > li").count() == 7
    texts = page.locator(".verdict").all_inner_texts()
    assert texts[:6] == ["holds", "fails", "not judged", "depends on seeds", "cannot fail", "undecided"]
    first, _, third = (page.locator(".predicates > li").nth(place).inner_text() for place in range(3))
    assert "flipped under control “silence”" in first
    assert "seeds from 1001: fails" in first
    for fact in ("The sentence", "What we measure", "What decides it", "What would turn it"):
        assert fact in first
    assert "I-P3=1.0bdp (fails)" in first
    assert "the control “silence”" in first
    assert "Judged instead, because" in third
    assert "its square, because <it> is known" in third
    page.click("nav a")
    assert "index.html" in page.url


def _shown(page: Page) -> Any:
    """The data of the first chart."""
    return json.loads(page.locator(".chart").first.get_attribute("data-chart") or "")


def test_the_page_tells_the_facts_of_its_cases(site: Path, open_page: Open) -> None:
    page = open_page(site / "I-fig2.html").page
    facts = page.locator(".facts").inner_text()
    assert f"{effort(experiments()['I-fig2'], 'quick').seeds} a case in each of 2 blocks" in facts
    assert "20 s" in facts
    assert "Time series show seed 1 alone." in page.locator("section.figure").inner_text()
    charts = [json.loads(chart.get_attribute("data-chart") or "") for chart in page.locator(".chart").all()]
    assert sum(one["kind"] == "dots" for chart in charts for one in chart["series"]) == 2
    assert page.locator(".legend path.dots").count() == 2


def test_a_failing_check_is_first_and_the_long_rest_is_folded(tmp_path: Path, open_page: Open) -> None:
    one = experiments()["K-fig2"]
    met = [at_least(f"met {name}", Sample.of([1.0, 2.0]), 1.2) for name in "abcdefghijklmnop"]
    failing = at_least("not met", Sample.of([1.0, 2.0]), 1.7)
    blocks = tuple(Block(first, False, (*met, failing), 4) for first in (1, 1001))
    verdict = Verdict(one.id, "quick", one.predicates[0], Word.FAILS, blocks)
    gallery.write([Outcome(one, effort(one, "quick"), (verdict,))], tmp_path)
    page = open_page(tmp_path / "K-fig2.html").page
    shown = [item.inner_text() for item in page.locator(".predicates > li > ul > li").all()]
    assert shown[0].startswith("✗ not met: 1.5 ± ")
    assert len(shown) == 9
    assert page.locator(".predicates summary").inner_text() == "8 more that are met"
    assert "A reader of the paper looks for" in page.locator("main").inner_text()


def test_the_index_tells_what_other_choices_bring(site: Path, open_page: Open) -> None:
    page = open_page(site / "index.html").page
    page.click("text=Other choices, one at a time")
    texts = page.locator("tr", has_text="I-P3=1.0bdp").first.inner_text()
    assert "0" in texts.split()
    assert "I-fig2-a" in texts
    page.click("text=What the verdicts mean")
    assert "depends on seeds" in page.locator(".meaning").inner_text()


def test_scenarios_can_be_downloaded(site: Path, open_page: Open) -> None:
    page = open_page(site / "I-fig2.html").page
    page.click("summary")
    name = page.locator("details a").first.get_attribute("href")
    assert name is not None
    assert (site / name).is_file()


def test_a_logarithmic_axis_tells_its_value(site: Path, open_page: Open) -> None:
    page = open_page(site / "I-fig2.html").page
    data = _shown(page)
    low, high = data["x"]["range"]
    x = data["series"][0]["x"][0] * 1.01  # near the point, which is the closest one
    chart = page.locator(".u-over").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    chart.hover(position={"x": max(box["width"] * math.log(x / low) / math.log(high / low), 1), "y": box["height"] / 2})
    name, value = page.eval_on_selector(".u-legend tr", "row => [...row.children].map(cell => cell.textContent)")
    assert name == "loss rate"
    assert float(value) == pytest.approx(data["series"][0]["x"][0], rel=1e-3)


def test_small_values_of_a_logarithmic_axis_are_powers_of_ten(tmp_path: Path, open_page: Open) -> None:
    one = experiments()["Y-fig6"]
    panel = Panel("A fall", "SNR (dB)", "error rate", [Line("1x1", [1.0, 2.0, 3.0], [1.0, 1e-3, 1e-6])], log="y")
    gallery.write([Outcome(one, effort(one, "quick"), (), (panel,))], tmp_path)
    page = open_page(tmp_path / "Y-fig6.html").page
    texts = page.evaluate("[...charts.all.values()][0].plot.axes[1]._values")
    shown = [text for text in texts if text]
    assert "1e-4" in shown
    assert "0" not in shown


def test_a_panel_that_names_its_seed_is_not_said_to_show_the_first() -> None:
    line = Line("window", [0.0, 1.0], [1.0, 2.0])
    assert gallery._one_seed(Panel("Window", "time (s)", "packets", [line]))
    assert not gallery._one_seed(Panel("Window, seed 9", "time (s)", "packets", [line]))
    assert not gallery._one_seed(Panel("Throughput", "loss (%)", "Mbit/s", [line]))


def test_the_index_has_the_table_of_laws_by_claim(site: Path, open_page: Open) -> None:
    page = open_page(site / "index.html").page
    page.click("text=claim by claim")
    table = page.locator("details[open] table")
    assert table.locator("th").all_inner_texts()[:2] == ["claim", "paper (used)"]
    assert table.locator("tr", has_text="I-fig2-a").inner_text().split("\t") == ["I-fig2-a", "holds", *["not run"] * 3]
