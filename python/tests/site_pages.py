"""The documentation site that `make site` has built, in a real Chromium, opened from the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import DESK, PHONE, Open

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "out" / "site"
AXE = ROOT / "target" / "site" / "npm" / "axe-core" / "package" / "axe.min.js"
PAGES = (
    "index.html",
    "howto/satellite.html",
    "labs/3-router.html",
    "reference/protocol-xcp.html",
    "validation.html",
)

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("window", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_nothing_from_the_network_and_fits(
    page: str, mode: str, window: dict[str, int], open_page: Open
) -> None:
    opened = open_page(SITE / page, viewport=window, color_scheme=mode)
    opened.page.wait_for_load_state("load")
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    assert opened.complaints == []
    wider = opened.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0
    ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(","))
    assert (brightness > 600) if mode == "light" else (brightness < 200)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", "labs/3-router.html", "reference/protocol-xcp.html"])
def test_axe_finds_nothing_serious(page: str, mode: str, open_page: Open) -> None:
    opened = open_page(SITE / page, color_scheme=mode)
    opened.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = opened.page.evaluate("axe.run()")["violations"]
    worst = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
    assert worst == []


def test_the_search_works_without_a_server(open_page: Open) -> None:
    opened = open_page(SITE / "labs" / "index.html")
    opened.page.get_by_role("button", name="Search").first.click()
    opened.page.locator("input[aria-label=Search]").type("gilbert")
    opened.page.locator("a[href*='channel-gilbert_elliott.html?h=']").first.click()
    opened.page.wait_for_url("**/reference/channel-gilbert_elliott.html*")
    assert [url for url in opened.requests if not url.startswith("file:")] == []


def test_every_figure_of_a_page_is_there(open_page: Open) -> None:
    opened = open_page(SITE / "reference" / "protocol-xcp.html")
    assert opened.page.evaluate("[...document.images].filter(i => !i.complete || i.naturalWidth === 0).length") == 0
    assert opened.page.evaluate("document.images.length") >= 1
