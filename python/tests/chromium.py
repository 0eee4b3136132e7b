"""A real Chromium for the tests of pages: fixtures, loaded by conftest.py."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from playwright.sync_api import Browser, Page, sync_playwright

SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.fail("the tests of pages need Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page, with its network requests and its errors."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


Open = Callable[..., Opened]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a file in a new window; keyword arguments are the window's."""
    contexts = []

    def open_it(path: Path, **settings: Any) -> Opened:
        context = browser.new_context(**{"viewport": DESK, **settings})
        contexts.append(context)
        context.set_default_timeout(1e3 * PATIENCE_S)
        opened = Opened(context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.goto(path.as_uri())
        return opened

    yield open_it
    for context in contexts:
        context.close()


@pytest.fixture
def keep(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Return where to keep a picture."""
    folder = Path(request.config.getoption("--screenshots") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return lambda name: str(folder / name)
