"""The report in Chromium: no errors, complete, legible on a desktop, a phone, in dark mode and in print.

Screenshots are kept in the folder of ``--screenshots=DIR``, else in the test's temporary directory.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from chromium import DESK, PHONE, Open, Opened
from PIL import Image
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


def _pixels(page: Page, figure: str, place: int) -> int:
    """How many pixels of a figure's first chart have the colour of a place."""
    return int(
        page.evaluate(
            """([figure, place]) => {
                const canvas = document.querySelector(`#${figure} canvas`), ctx = canvas.getContext("2d");
                ctx.save();
                ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--s${place}`);
                const wanted = [1, 3, 5].map(i => parseInt(ctx.fillStyle.slice(i, i + 2), 16));
                ctx.restore();
                const { data } = ctx.getImageData(0, 0, canvas.width, canvas.height);
                let found = 0;
                for (let i = 0; i < data.length; i += 4) found += wanted.every((v, k) => Math.abs(v - data[i + k]) < 8);
                return found;
            }""",
            [figure, place],
        )
    )


def test_silent_and_complete(single: explicate.Results, open_report: Open, keep: Callable[[str], str]) -> None:
    opened = open_report(single)
    page = opened.page
    page.screenshot(path=keep("desk.png"), full_page=True)
    assert opened.complaints == []
    assert [url.partition(":")[0] for url in opened.requests if not url.startswith("data:")] == ["file"]
    assert page.title() == "small · explicate"
    assert page.locator(".chart canvas:visible").count() == page.locator(".chart").count() == 8
    for figure, colours in (("delay", 2), ("queue", 1), ("throughput", 5), ("goodput", 2), ("tradeoff", 2)):
        for place in range(colours):
            assert _pixels(page, figure, place) > 30, f"{figure} has a mark of colour {place}"
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
    widths = page.eval_on_selector_all(
        ".chart", "boxes => boxes.map(box => [box.clientWidth, box.querySelector('.uplot').offsetWidth])"
    )
    assert all(chart <= box for box, chart in widths)
    heights = page.eval_on_selector_all(
        ".chart canvas", "all => all.map(canvas => canvas.getBoundingClientRect().height)"
    )
    assert min(heights) >= 150


def test_long_names_do_not_widen_a_page(single: explicate.Results, open_report: Open) -> None:
    """A legend on a phone: one name that is wider than the screen."""
    flows = single.flows.with_columns(pl.col("group").replace("near", "x" * 60))
    found = explicate.Results(flows, single.links, single.samples, single.run)
    page = open_report(found, viewport=PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_dark_and_light(single: explicate.Results, open_report: Open, keep: Callable[[str], str]) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = open_report(single, color_scheme=scheme).page
        page.screenshot(path=keep(f"{scheme}.png"), full_page=True)
        ground = _colour(page, "body")
        colours[scheme] = (ground, _colour(page, ".line.s0", "stroke"))
        assert _contrast(ground, _colour(page, "body", "color")) >= 7
        assert _contrast(ground, _colour(page, ".about", "color")) >= 4.5, "the colour of the axes, too"
        for place in range(8):
            page.evaluate(f"document.querySelector('.legend .line').setAttribute('class', 'line s{place}')")
            assert _contrast(ground, _colour(page, ".legend .line", "stroke")) >= 3
        assert _pixels(page, "delay", 0) > 30, "charts have the colours of the page"
    assert colours["light"][0] != colours["dark"][0]
    assert colours["light"][1] != colours["dark"][1]


def test_the_toggle_wins_over_the_system_and_is_remembered(single: explicate.Results, open_report: Open) -> None:
    page = open_report(single, color_scheme="dark").page
    dark = _colour(page, "body")
    page.get_by_role("button", name="Light").click()
    light = _colour(page, "body")
    assert light != dark
    assert _pixels(page, "delay", 0) > 30, "lines have the new colours"
    assert _pixels(page, "goodput", 0) > 30, "so do bars"
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
    assert page.evaluate("document.documentElement.dataset.theme") == "light", "charts are drawn for white paper"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == 3
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def _values(page: Page, figure: str) -> dict[str, float]:
    """The chart's text for the place under its cursor."""
    rows = page.eval_on_selector_all(
        f"{figure} .u-legend tr:not(.edge)", "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    return {name: float(value) for name, value in rows if value not in {"–", "--"}}


def test_values_under_the_pointer(single: explicate.Results, open_report: Open, keep: Callable[[str], str]) -> None:
    page = open_report(single).page
    chart = page.locator("#queue .u-over")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.screenshot(path=keep("hover.png"))
    values = _values(page, "#queue")
    assert values["time (s)"] == pytest.approx(10, abs=0.5)
    samples = single.samples.filter(pl.col("variable") == "queue_packets", pl.col("time_s") == values["time (s)"])
    assert values["r1->r2"] == pytest.approx(samples["value"].mean(), rel=1e-3)
    assert page.locator("#queue .u-legend").is_visible()
    page.mouse.move(2, 2)
    assert not page.locator("#queue .u-legend").is_visible()


def test_a_dragged_span_fills_the_charts(single: explicate.Results, open_report: Open) -> None:
    page = open_report(single).page
    chart = page.locator("#delay .u-over")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    x, y = box["x"], box["y"] + box["height"] / 2
    page.mouse.move(x + box["width"] * 0.5, y)
    page.mouse.down()
    page.mouse.move(x + box["width"] * 0.75, y, steps=4)
    page.mouse.up()
    page.mouse.move(x + 1, y)
    assert _values(page, "#delay")["time (s)"] == pytest.approx(10, abs=0.6), "10 s to 15 s of 20 s fill the chart"
    page.mouse.move(x + box["width"] - 1, y)
    assert _values(page, "#delay")["time (s)"] == pytest.approx(15, abs=0.6)
    reset = page.locator("#queue .reset")
    assert reset.is_visible(), "charts over time are zoomed together"
    page.evaluate("document.getElementById('theme').click()")
    page.mouse.move(x + box["width"] / 2, y)
    page.mouse.move(x + box["width"] - 1, y)
    assert _values(page, "#delay")["time (s)"] == pytest.approx(15, abs=0.6), "another theme keeps the span"
    reset.click()
    assert not reset.is_visible()
    page.mouse.move(x + box["width"] - 1, y)
    assert _values(page, "#queue")["time (s)"] == pytest.approx(20, abs=0.6)


def test_downloads(single: explicate.Results, open_report: Open, tmp_path: Path) -> None:
    page = open_report(single).page
    saved = {}
    for kind in ("CSV", "PNG"):
        with page.expect_download() as download:
            page.locator("#queue .tools").get_by_text(kind).click()
        saved[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[kind])
    table = pl.read_csv(saved["CSV"])
    assert table.columns == ["panel", "series", "x", "y", "low", "high"]
    assert table.height == 40
    assert table["x"].max() == 20.0
    with Image.open(saved["PNG"]) as picture:
        assert picture.width > 600
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 10


def test_keyboard_alone(single: explicate.Results, open_report: Open) -> None:
    page = open_report(single).page
    chart = page.locator("#throughput .chart")
    chart.focus()
    page.keyboard.press("ArrowRight")
    first = _values(page, "#throughput")
    page.keyboard.press("ArrowRight")
    second = _values(page, "#throughput")
    assert second["time (s)"] > first["time (s)"]
    assert set(first) == {"time (s)", *single.flows["flow"].unique()}
    page.keyboard.press("+")
    assert page.locator("#throughput .reset").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#throughput .reset").is_visible()
    button = page.locator("#throughput .legend button").nth(1)
    button.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator("#throughput .u-legend tr.u-off").count() == 1
    button.press("Space")
    assert page.locator("#throughput .u-legend tr.u-off").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("kind", ["single", "both"])
def test_accessible(
    kind: str, viewport: dict[str, int], scheme: str, request: pytest.FixtureRequest, open_report: Open
) -> None:
    page = open_report(request.getfixturevalue(kind), viewport=viewport, color_scheme=scheme).page
    found = Axe().run(page).response
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == []
    assert len(found["passes"]) > 20


def test_without_the_library_the_page_says_so(
    single: explicate.Results, open_report: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explicate.report._library", lambda _: "")
    opened = open_report(single)
    assert opened.complaints == []
    assert opened.page.get_by_text("built without uPlot").is_visible()
    assert opened.page.locator(".chart canvas, .tools").count() == 0
    assert opened.page.locator("#groups").is_visible()


def test_without_scripts_tables_are_readable(single: explicate.Results, open_report: Open) -> None:
    page = open_report(single, java_script_enabled=False).page
    assert page.get_by_text("Charts need scripts").is_visible()
    assert page.locator("#groups").is_visible()
    assert not page.locator("#theme").is_visible()
    assert not page.locator(".copy").is_visible()


def test_a_chart_shows_its_whole_range_from_the_start(scenario: Path, open_report: Open) -> None:
    """Even where its first point lies at zero of an axis, at which no zoom is known yet."""
    swept = explicate.sweep(scenario, {"topology.bottleneck.delay": ["0ms", "5ms", "20ms"]}, runs=2)
    page = open_report(swept).page
    shown = page.evaluate(
        "[...charts.all.values()].map(({ data, plot: { scales: { x, y } } }) => "
        "[...data.x.range, ...data.y.range, x.min, x.max, y.min, y.max])"
    )
    assert len(shown) > 5
    assert [one[4:] for one in shown] == [one[:4] for one in shown]


def test_names_of_rows_stay_in_view_on_a_phone(both: explicate.Results, open_report: Open) -> None:
    page = open_report(both, viewport=PHONE).page
    place = """() => {
        const cell = document.querySelector("#links tbody th"), box = cell.closest(".scroll");
        box.scrollLeft = 150;
        return [box.scrollLeft, cell.getBoundingClientRect().left - box.getBoundingClientRect().left];
    }"""
    assert page.evaluate(place) == [150, 0]
