"""Builds the documentation site into out/site, which reads from the disk without a network.

    scripts/make_site.py [-o FOLDER]

1. *Stage.* The pages of docs/ and those of the project's root go to target/site/pages. A link to any other file of the
   repository becomes a link to a page that shows that file, so that no link leaves the site.
2. *Build.* Zensical in strict mode, by zensical.toml: a link without a target ends the build.
   Where the playground is built (`make playground`), the site includes it, and each protocol's page links to it.
3. *Check.* lychee follows every link and anchor of the result; nothing in it may load from another host; every page
   has a place in the navigation (docs/SUMMARY.md).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "target" / "site"
PAGES = BUILD / "pages"
RESULT = ROOT / "out" / "site"

PLAYGROUND = ROOT / "playground" / "dist"

BESIDE = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changes.md",
    "README.md": "project/readme.md",
    "papers/README.md": "project/papers.md",
    "validation/peers/README.md": "project/peers.md",
}
"""Pages outside docs/, and where the site has them."""

SCENE = re.compile(r"<!-- scene: (\S+) (.+?) -->")
"""A place for a scene of the playground: its address, and what it is called (assets/site.js puts it into the page)."""
LIST = re.compile(r"^((?!\d+\. |[-*|>#<] |\s)\S.*\n)(?=1\. )", re.MULTILINE)
"""A line of text right above a numbered list, which Zensical takes for more of the text."""
ITEM = re.compile(r"^(\d+\. |- )\S.*\n(?:(?:[ ]{2,}\S.*)?\n)+", re.MULTILINE)
"""An item of a list and the indented lines below it. Zensical wants four spaces before these."""
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
WORDS = {".rs": "rust", ".py": "python", ".toml": "toml", ".lua": "lua", ".service": "ini", ".svg": "xml"}
"""How the kinds of files are highlighted."""

PACKAGES = {
    "iframe-worker@1.0.4": "roeaaI+Lg1LJNfgpCjoRe/+WzEjy9+Z08LoEvu85MCPbBjwm+qXz8Ag5U05lHa6V1CysZyGzE0SOkAtSUA5q7Q==",
    "axe-core@4.14.1": "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
}
"""Packages of npm with their SHA-512: the first for the search in pages opened from the disk, the other for tests."""


def home_of(path: str) -> str:
    """Where the site has a file of the repository."""
    if path in BESIDE:
        return BESIDE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"source/{path}.md"


def invited(path: str, text: str) -> str:
    """A page with its scenes; below the title, a link that opens the playground if it is about that or a protocol."""
    home = os.path.relpath("playground/index.html", PurePosixPath(home_of(path)).parent)
    scene = rf'<p class="scene"><a href="{home}?\1">\2</a></p>'
    text = SCENE.sub(scene if PLAYGROUND.is_dir() else "", text)
    protocol = re.fullmatch(r"docs/reference/protocol-(.+)\.md", path)
    if not PLAYGROUND.is_dir() or not (protocol or path == "docs/playground.md"):
        return text
    up, query = ("../", f"?run={protocol[1]}") if protocol else ("", "")
    words = "Run it in the playground" if protocol else "Open the playground"
    title, rest = text.split("\n\n", 1)
    return f'{title}\n\n<a href="{up}playground/index.html{query}">{words}</a>\n\n{rest}'


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a page, and whether links in them count."""
    end = 0
    for fence in FENCE.finditer(text):
        yield text[end : fence.start()], True
        yield fence.group(), False
        end = fence.end()
    yield text[end:], True


def indented(item: re.Match[str]) -> str:
    """An item with what belongs to it indented by four spaces, for CommonMark wants only the marker's width."""
    first, *rest = item[0].splitlines(keepends=True)
    width = len(item[1])
    return first + "".join(" " * (4 - width) + line if line.startswith(" " * width) else line for line in rest)


def placed(summary: str) -> str:
    """The navigation without the patterns that no page matches, and without a place in the search."""
    lines = ["---", "search:", "  exclude: true", "---", ""]
    for line in summary.splitlines():
        pattern = line.strip().removeprefix("* ")
        if "*" not in pattern or any((ROOT / "docs").glob(pattern)):
            lines.append(line)
    return "\n".join(lines) + "\n"


UNSEARCHED = "---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n"
"""The head of a page that shows a source."""


class Stage:
    """The pages that Zensical reads."""

    def __init__(self) -> None:
        shutil.rmtree(PAGES, ignore_errors=True)
        PAGES.mkdir(parents=True)
        self.shown: set[str] = set()

    def all(self) -> None:
        """Stage everything."""
        shutil.copytree(ROOT / "docs", PAGES, dirs_exist_ok=True)
        for path in sorted((ROOT / "docs").rglob("*.md")):
            self.page(path.relative_to(ROOT).as_posix())
        for path in BESIDE:
            self.page(path)

    def page(self, path: str) -> None:
        """Stage a page, its links turned to where the site has their targets."""
        text = invited(path, (ROOT / path).read_text(encoding="utf-8"))
        parts = (
            LINK.sub(
                lambda found: found[1] + self.turned(path, found[2]) + found[3],
                ITEM.sub(indented, LIST.sub(r"\1\n", part)),
            )
            if links
            else part
            for part, links in outside_fences(text)
        )
        text = "".join(parts)
        self.write(home_of(path), placed(text) if path == "docs/SUMMARY.md" else text)

    def turned(self, path: str, target: str) -> str:
        """A link of the page at `path`, for the site."""
        name, hash_, anchor = target.partition("#")
        if not name or "://" in name or name.startswith("mailto:"):
            return target
        found = os.path.normpath(PurePosixPath(path).parent / name)
        if not (ROOT / found).exists():
            sys.exit(f"{path}: a link has no target: {target}")
        home = home_of(found)
        if home.startswith("source/") and found not in self.shown:
            (self.show_folder if (ROOT / found).is_dir() else self.show)(found)
        return os.path.relpath(home, PurePosixPath(home_of(path)).parent) + hash_ + anchor

    def show(self, path: str) -> None:
        """Stage a page that shows a file of the repository."""
        self.shown.add(path)
        text = (ROOT / path).read_text(encoding="utf-8")
        fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=2) + 1)
        word = WORDS.get(Path(path).suffix, "text")
        head = f"{UNSEARCHED}# `{path}`\n\n"
        self.write(home_of(path), f"{head}{fence}{word}\n{text}\n{fence}\n")

    def show_folder(self, path: str) -> None:
        """Stage a page that lists the files of a folder, and one for each of them."""
        self.shown.add(path)
        listed = subprocess.run(["git", "ls-files", path], cwd=ROOT, check=True, capture_output=True, text=True)
        home = home_of(path)
        lines = []
        for file in listed.stdout.splitlines():
            if home_of(file).startswith("source/") and file not in self.shown:
                self.show(file)
            lines.append(f"- [`{file}`]({os.path.relpath(home_of(file), PurePosixPath(home).parent)})")
        self.write(home, UNSEARCHED + f"# `{path}`\n\n" + "\n".join(lines) + "\n")

    def write(self, home: str, text: str) -> None:
        """Write a page."""
        path = PAGES / home
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def unpack() -> None:
    """Fetch the packages of npm, and put the worker among the assets of the site."""
    folder = BUILD / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    for package, wanted in PACKAGES.items():
        packed = folder / (package.replace("@", "-") + ".tgz")
        if not packed.exists():
            if shutil.which("npm") is None:
                sys.exit("the site needs two packages of npm: apt-get install npm")
            run("npm", "pack", "--silent", package, "--pack-destination", str(folder))
        found = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
        if found != wanted:
            packed.unlink()
            sys.exit(f"{package} has another hash than expected: {found}")
        with tarfile.open(packed) as archive:
            archive.extractall(folder / package.split("@")[0], filter="data")
    worker = folder / "iframe-worker" / "package"
    (PAGES / "assets").mkdir(exist_ok=True)
    shutil.copyfile(worker / "shim" / "index.js", PAGES / "assets" / "iframe-worker.js")
    shutil.copyfile(worker / "LICENSE", PAGES / "assets" / "iframe-worker.LICENSE")


class Loads(HTMLParser):
    """What a page loads without being asked: scripts, styles, pictures, frames."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the element loads."""
        values = dict(attrs)
        loads = tag != "a" and values.get("rel") not in {"canonical", "prev", "next", "alternate"}
        self.found += [value for key in ("src", "href") if loads and (value := values.get(key))]


def foreign() -> Iterator[str]:
    """What pages and styles of the result load from other hosts."""
    for path in sorted(RESULT.rglob("*.html")):
        loads = Loads()
        loads.feed(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(RESULT)}: loads {url}" for url in loads.found if re.match(r"(\w+:)?//", url))
    for path in sorted(RESULT.rglob("*.css")):
        found = re.findall(r"url\(['\"]?((?:https?:)?//[^)'\"]+)", path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(RESULT)}: loads {url}" for url in found)


class Navigation(HTMLParser):
    """The pages that the navigation of a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.named: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link of the navigation."""
        values = dict(attrs)
        if tag == "a" and "md-nav__link" in (values.get("class") or "") and values.get("href"):
            self.named.add(posixpath.normpath((values["href"] or "").split("#")[0]))


def unplaced() -> Iterator[str]:
    """Pages that the navigation does not name."""
    navigation = Navigation()
    navigation.feed((RESULT / "index.html").read_text(encoding="utf-8"))
    for path in sorted(RESULT.rglob("*.html")):
        name = path.relative_to(RESULT).as_posix()
        apart = name.startswith(("source/", "playground/"))
        if name not in navigation.named | {"404.html", "index.html"} and not apart:
            yield f"{name}: not in docs/SUMMARY.md"


def run(*command: str) -> None:
    """Run a command, and end with its status if it fails."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}")


def tool(name: str) -> str:
    """A program of the environment that runs this script."""
    return str(Path(sys.executable).parent / name)


def main() -> None:
    """Stage, build, check."""
    argparse.ArgumentParser(description="Build the documentation site.").parse_args()
    Stage().all()
    unpack()
    shutil.rmtree(RESULT, ignore_errors=True)
    run(tool("zensical"), "build", "--clean", "--strict")
    (RESULT / "SUMMARY.html").unlink()
    if PLAYGROUND.is_dir():
        shutil.copytree(PLAYGROUND, RESULT / "playground")
    problems = [*foreign(), *unplaced()]
    if problems:
        sys.exit("\n".join(problems))
    run(
        tool("lychee"), "--offline", "--no-progress", "--include-fragments=full", "--root-dir", str(RESULT),
        f"{RESULT}/**/*.html",
    )  # fmt: skip
    print(f"{RESULT.relative_to(ROOT)}/index.html")


if __name__ == "__main__":
    main()
