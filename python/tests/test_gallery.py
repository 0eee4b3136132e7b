"""The gallery in a real Chromium: silent, complete, legible on a desk and a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chromium import PHONE, Open

from explicate.papers import gallery
from explicate.papers.judge import Outcome, Verdict
from explicate.papers.plan import effort
from explicate.papers.register import experiments
from explicate.papers.statistics import Sample, at_least
from explicate.papers.study import Case, Line, Panel

pytestmark = pytest.mark.browser

SCENARIO = 'name = "one"\n[[flows]]\nname = "mine"\nprotocol = "xcp"\n'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site about two experiments, one of them judged in each of the three ways and drawn with a logarithmic axis."""
    one, other = experiments()["I-fig2"], experiments()["D-fig3"]
    checks = (at_least("measured", Sample.of([1.0, 2.0]), 1.2),)
    verdicts = tuple(
        Verdict(
            one.id,
            "quick",
            predicate,
            holds,
            checks if holds is not None else (),
            4,
            "" if holds else "because <of> this",
        )
        for predicate, holds in zip(one.predicates, [True, False, None, True, True, True, True], strict=True)
    )
    line = Line.of("rising <fast>", [1.0, 10.0, 1000.0], [Sample.of([1.0, 2.0]), Sample.of([3.0]), Sample.of([9.0])])
    panel = Panel("A panel", "loss rate", "share", [line], log="x")
    drawn = Outcome(one, effort(one, "quick"), verdicts, (panel, panel), {("a", 1.0): Case(SCENARIO)})
    open_ = tuple(Verdict(other.id, "quick", predicate, None, note="later") for predicate in other.predicates)
    gallery.write([drawn, Outcome(other, effort(other, "quick"), open_)], tmp_path / "site")
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
    assert texts[:3] == ["holds", "fails", "not judged"]
    page.click("nav a")
    assert "index.html" in page.url


def test_scenarios_can_be_downloaded(site: Path, open_page: Open) -> None:
    page = open_page(site / "I-fig2.html").page
    page.click("summary")
    name = page.locator("details a").first.get_attribute("href")
    assert name is not None
    assert (site / name).is_file()


def test_a_logarithmic_axis_tells_its_value(site: Path, open_page: Open) -> None:
    page = open_page(site / "I-fig2.html").page
    chart = page.locator(".chart").first
    box = chart.bounding_box()
    assert box is not None
    # The middle of the plot between 1 and 1000, which is 31.6.
    chart.hover(position={"x": box["width"] * (52 + (460 - 52 - 12) / 2) / 460, "y": box["height"] / 2})
    assert "loss rate: 31." in page.locator("#tip").inner_text()
