"""Takes the pictures of docs/papers.md from pages that `explicate reproduce` has left, one experiment for each paper.

explicate reproduce N-fig3 I-fig2 Y-fig3 D-fig3 K-fig4 -o out/papers
scripts/picture_papers.py out/papers...
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "img"
EXPERIMENTS = ("N-fig3", "I-fig2", "Y-fig3", "D-fig3", "K-fig4")


def main() -> None:
    """Open each page, light and dark, and keep its first figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="searched in this order")
    folders = parser.parse_args().folders
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in EXPERIMENTS:
            page = next((path for folder in folders if (path := folder / f"{name}.html").exists()), None)
            if page is None:
                sys.exit(f"{name}.html is in none of the folders: explicate reproduce {name} -o out/papers")
            for mode in ("light", "dark"):
                window = browser.new_page(viewport={"width": 760, "height": 900}, color_scheme=mode)
                window.goto(page.resolve().as_uri())
                window.locator("section.figure").first.screenshot(path=PICTURES / f"{name}-{mode}.png")
                window.close()


if __name__ == "__main__":
    main()
