"""The documentation site that `make site` has built, in a real Chromium, opened from the disk."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from chromium import DESK, PHONE, Open
from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "out" / "site"
PLAYGROUND = SITE / "playground"
AXE = ROOT / "target" / "site" / "npm" / "axe-core" / "package" / "axe.min.js"
PAGES = (
    "index.html",
    "howto/satellite.html",
    "labs/3-router.html",
    "reference/protocol-xcp.html",
    "validation.html",
    "frictions.html",
)

pytestmark = pytest.mark.browser


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and does not print requests."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the base class)
        pass


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


def test_the_commands_of_a_step_belong_to_its_item(open_page: Open) -> None:
    opened = open_page(SITE / "gateway.html", viewport=DESK)
    steps = opened.page.locator("article ol").first.locator("> li")
    assert steps.count() == 5
    assert [steps.nth(number).locator("pre").count() for number in range(5)] == [1, 2, 1, 1, 1]


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(
    ("page", "window"),
    [
        ("index.html", DESK),
        ("labs/3-router.html", DESK),
        ("reference/protocol-xcp.html", DESK),
        ("reference/protocol-xcp.html", PHONE),
        ("frictions.html", PHONE),
        ("explanation/explicit-control.html", PHONE),
    ],
)
def test_axe_finds_nothing_serious(page: str, window: dict[str, int], mode: str, open_page: Open) -> None:
    opened = open_page(SITE / page, color_scheme=mode, viewport=window)
    opened.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = opened.page.evaluate("axe.run()")["violations"]
    worst = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
    assert worst == []


def test_a_scene_runs_in_the_page_where_a_server_serves_it(browser: Browser, open_page: Open) -> None:
    page = SITE / "explanation" / "explicit-control.html"
    assert open_page(page).page.locator(".scene iframe").count() == 0, "the disk serves no modules"
    handler = partial(QuietHandler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        served = browser.new_page()
        served.goto(f"http://127.0.0.1:{server.server_port}/explanation/explicit-control.html")
        frames = served.locator(".scene iframe")
        assert frames.count() == (2 if PLAYGROUND.is_dir() else 0), "only a site with the playground has scenes"
        if not PLAYGROUND.is_dir():
            return
        frames.first.scroll_into_view_if_needed()
        served.frame_locator(".scene iframe >> nth=0").locator("canvas").first.wait_for()
        served.close()
        server.shutdown()


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


def test_deviations_are_a_list_and_names_in_tables_are_whole(open_page: Open) -> None:
    opened = open_page(SITE / "reference" / "protocol-xcp.html", viewport=PHONE)
    deviations = opened.page.locator("p:text-is('Deviations:') + ol > li")
    assert deviations.count() == 7
    lines = "all => all.filter(code => !/[ -]/.test(code.textContent) && code.getClientRects().length > 1).length"
    assert opened.page.locator("td code").evaluate_all(lines) == 0
