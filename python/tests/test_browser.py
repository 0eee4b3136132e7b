"""The report in a real Chromium: silent, complete, legible on a desk, a phone, in the dark and on paper.

Screenshots are kept where ``--screenshots=DIR`` says, else in the test's temporary directory.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from chromium import DESK, PHONE, Open, Opened
from playwright.sync_api import Page

import explicate

pytestmark = pytest.mark.browser


@pytest.fixture
def open_report(open_page: Open, tmp_path: Path) -> Open:
    """Write a report and open it from the disk."""

    def open_it(results: explicate.Results, **settings: Any) -> Opened:
        return open_page(explicate.write_report(results, tmp_path / "report.html"), **settings)

    return open_it


@pytest.fixture
def single(scenario: Path) -> explicate.Results:
    return explicate.run(scenario)


@pytest.fixture
def both(scenario: Path) -> explicate.Results:
    return explicate.compare(scenario, ["xcp", "newreno", "vcp"])


def _colour(page: Page, of: str, what: str = "backgroundColor") -> str:
    return str(page.eval_on_selector(of, f"node => getComputedStyle(node).{what}"))


def _luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_silent_and_complete(single: explicate.Results, open_report: Open, keep: Callable[[str], str]) -> None:
    opened = open_report(single)
    page = opened.page
    page.screenshot(path=keep("desk.png"), full_page=True)
    assert opened.complaints == []
    assert [url.partition(":")[0] for url in opened.requests if not url.startswith("data:")] == ["file"]
    assert page.title() == "small · explicate"
    assert page.locator("svg.chart").count() == 4
    lengths = page.eval_on_selector_all(".chart .line", "lines => lines.map(line => line.getTotalLength())")
    assert len(lengths) == 5
    assert all(length > 100 for length in lengths)
    heights = page.eval_on_selector_all(
        ".bar[data-value]", "bars => bars.map(bar => bar.getBoundingClientRect().height)"
    )
    assert len(heights) == 5
    assert all(height > 50 for height in heights)
    assert page.locator("#groups tbody tr").count() == 2
    cells = page.locator("#groups tbody tr").first.locator("th, td").all_inner_texts()
    mean = single.summary()["goodput_bps"][0]
    assert cells[:4] == ["near", "xcp", "3", f"{mean / 1e3:.0f} kbit/s"]


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("kind", ["single", "both"])
def test_nothing_overflows_and_labels_are_legible(
    kind: str, viewport: dict[str, int], request: pytest.FixtureRequest, open_report: Open, keep: Callable[[str], str]
) -> None:
    page = open_report(request.getfixturevalue(kind), viewport=viewport).page
    page.screenshot(path=keep(f"{kind}-{viewport['width']}.png"), full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    sizes = page.eval_on_selector_all(".chart text", "texts => texts.map(text => text.getBoundingClientRect().height)")
    assert min(sizes) >= 9
    clipped = page.evaluate(
        """() => [...document.querySelectorAll(".chart text")].filter(text => {
            const inner = text.getBoundingClientRect(), outer = text.ownerSVGElement.getBoundingClientRect();
            return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1;
        }).map(text => text.textContent)"""
    )
    assert clipped == []
    overlapping = page.evaluate(
        """() => [...document.querySelectorAll(".chart")].filter(chart => {
            const ticks = [...chart.querySelectorAll(".tick.middle")].map(tick => tick.getBoundingClientRect());
            return ticks.some((tick, i) => i && tick.left < ticks[i - 1].right);
        }).length"""
    )
    assert overlapping == 0


def test_dark_and_light(single: explicate.Results, open_report: Open, keep: Callable[[str], str]) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = open_report(single, color_scheme=scheme).page
        page.screenshot(path=keep(f"{scheme}.png"), full_page=True)
        ground = _colour(page, "body")
        colours[scheme] = (ground, _colour(page, ".line.s0", "stroke"))
        assert _contrast(ground, _colour(page, "body", "color")) >= 7
        assert _contrast(ground, _colour(page, ".tick", "fill")) >= 4.5
        for place in range(8):
            page.evaluate(f"document.querySelector('.chart .line').setAttribute('class', 'line s{place}')")
            assert _contrast(ground, _colour(page, ".chart .line", "stroke")) >= 3
    assert colours["light"][0] != colours["dark"][0]
    assert colours["light"][1] != colours["dark"][1]


def test_the_toggle_wins_over_the_system_and_is_remembered(single: explicate.Results, open_report: Open) -> None:
    page = open_report(single, color_scheme="dark").page
    dark = _colour(page, "body")
    page.get_by_role("button", name="Light").click()
    light = _colour(page, "body")
    assert light != dark
    page.reload()
    assert _colour(page, "body") == light
    page.get_by_role("button", name="Dark").press("Enter")
    assert _colour(page, "body") == dark


def test_print(both: explicate.Results, open_report: Open, keep: Callable[[str], str]) -> None:
    page = open_report(both, color_scheme="dark").page
    page.get_by_role("button", name="Light").click()
    page.get_by_role("button", name="Dark").click()
    page.emulate_media(media="print")
    page.screenshot(path=keep("print.png"), full_page=True)
    assert _colour(page, "body") == "rgb(255, 255, 255)"
    assert _colour(page, "body", "color") == "rgb(0, 0, 0)"
    assert not page.locator("#theme").is_visible()
    assert page.locator(".legend").first.is_visible()
    page.pdf(path=keep("print.pdf"), format="A4")
    assert Path(keep("print.pdf")).stat().st_size > 10_000
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == 2


def test_values_under_the_pointer(single: explicate.Results, open_report: Open, keep: Callable[[str], str]) -> None:
    page = open_report(single).page
    chart = page.locator("#queue .chart")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.screenshot(path=keep("hover.png"))
    time_line, value_line = page.locator("#tip").inner_text().splitlines()
    at = float(time_line.removeprefix("time (s): "))
    samples = single.samples.filter(pl.col("variable") == "queue_packets", pl.col("run") == 0).sort("time_s")
    nearest = min(samples.iter_rows(named=True), key=lambda row: abs(row["time_s"] - at))
    assert float(value_line.removeprefix("r1->r2: ")) == pytest.approx(nearest["value"], abs=0.05)
    page.mouse.move(2, 2)
    assert not page.locator("#tip").is_visible()


def test_keyboard_alone(single: explicate.Results, open_report: Open) -> None:
    page = open_report(single).page
    bars = page.locator("#goodput .chart")
    bars.focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#tip").inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator("#tip").inner_text()
    assert re.match(r"near/\d|far & away/\d", first)
    assert first != second
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()
    lines = page.locator("#throughput .chart .line.s1")
    assert lines.is_visible()
    button = page.locator("#throughput .legend button").nth(1)
    button.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    assert not lines.is_visible()
    button.press("Space")
    assert lines.is_visible()


def test_readable_without_scripts(single: explicate.Results, open_report: Open) -> None:
    opened = open_report(single, java_script_enabled=False)
    assert opened.page.locator("svg.chart").count() == 4
    assert not opened.page.locator("#theme").is_visible()
    assert not opened.page.locator(".copy").is_visible()
    assert opened.page.locator(".bar title").count() == 5
