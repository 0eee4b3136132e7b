"""Keeps versions and addresses equal in all files that repeat them.

    python scripts/metadata.py            # lists what differs or is empty; 1 if any differs
    python scripts/metadata.py --write    # renews the files

The version stands in Cargo.toml ([workspace.package]), addresses stand in packaging/project.toml.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADDRESSES = ("homepage", "repository", "documentation")


def version() -> str:
    """The version of everything."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    return str(workspace["package"]["version"])


def project() -> dict[str, str]:
    """The addresses, empty ones too."""
    return tomllib.loads((ROOT / "packaging" / "project.toml").read_text(encoding="utf-8"))


def empty() -> list[str]:
    """What is not filled in."""
    return [key for key, value in project().items() if not value]


def cargo(text: str) -> str:
    """Versions of the crates among each other, and the addresses of all."""
    text = re.sub(r'(path = "crates/[a-z-]+", version = )"[^"]*"', rf'\g<1>"{version()}"', text)
    text = re.sub(r'(?m)^(?:homepage|repository|documentation) = ".*"\n', "", text)
    filled = "".join(f'{key} = "{project()[key]}"\n' for key in ADDRESSES[:2] if project()[key])
    return text.replace('readme = "packaging/readme.md"\n', f'readme = "packaging/readme.md"\n{filled}', 1)


def crate(text: str) -> str:
    """The addresses that a crate takes from the workspace."""
    text = re.sub(r"(?m)^(?:homepage|repository)\.workspace = true\n", "", text)
    filled = "".join(f"{key}.workspace = true\n" for key in ADDRESSES[:2] if project()[key])
    return text.replace("readme.workspace = true\n", f"readme.workspace = true\n{filled}", 1)


def python(text: str) -> str:
    """The links on the package's page."""
    text = re.sub(r"(?m)^\[project\.urls\]\n(?:[A-Za-z]+ = .*\n)*\n?", "", text)
    links = "".join(f'{key.capitalize()} = "{project()[key]}"\n' for key in ADDRESSES if project()[key])
    return text.replace("[project.scripts]", f"[project.urls]\n{links}\n[project.scripts]") if links else text


def papers(text: str) -> str:
    """The version of the papers' distribution, which needs the same of the simulator."""
    text = re.sub(r'(?m)^version = ".*"$', f'version = "{version()}"', text, count=1)
    return re.sub(r'"explicate==[^"]*"', f'"explicate=={version()}"', text)


def citation(text: str) -> str:
    """Version, date and address of the citation."""
    text = re.sub(r"(?m)^(?:date-released|url|repository-code): .*\n", "", text)
    filled = {"date-released": "released", "url": "homepage", "repository-code": "repository"}
    lines = "".join(f"{key}: {project()[source]}\n" for key, source in filled.items() if project()[source])
    return re.sub(r"(?m)^version: .*\n", f"version: {version()}\n{lines}", text)


RELATIVE = re.compile(r"(!?)\[((?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
"""A link or picture of a page whose target is a file of the repository: mark of a picture, text, target."""


def packaged(page: Path) -> str:
    """A page of the repository as the page of a package: there, only addresses of the repository lead anywhere.

    Without an address, links are plain text, and pictures are left out.
    """

    def turned(found: re.Match[str]) -> str:
        picture, text, target = found[1], RELATIVE.sub(turned, found[2]), found[3]
        if not (repository := project()["repository"]):
            return "" if picture else text
        path = (page.parent / target).resolve().relative_to(ROOT)
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/v{version()}/{path})"

    text = RELATIVE.sub(turned, page.read_text(encoding="utf-8"))
    return re.sub(r"\n{3,}", "\n\n", text)


def readme(_: str) -> str:
    """The page of the packages."""
    return packaged(ROOT / "README.md")


FILES: dict[str, Callable[[str], str]] = {
    "Cargo.toml": cargo,
    **{f"crates/explicate-{name}/Cargo.toml": crate for name in ("core", "scenario", "build", "sim", "fluid", "net")},
    "pyproject.toml": python,
    "papers/pyproject.toml": papers,
    "CITATION.cff": citation,
    "packaging/readme.md": readme,
}


def stale() -> dict[Path, str]:
    """The files that differ from what they should be, with their new contents."""
    found = {}
    for name, renew in FILES.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if (new := renew(text)) != text:
            found[path] = new
    return found


def main() -> int:
    """Check or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="renew the files")
    args = parser.parse_args()
    differing = stale()
    for path, text in differing.items():
        print(f"{'renewed' if args.write else 'differs'}: {path.relative_to(ROOT)}")
        if args.write:
            path.write_text(text, encoding="utf-8")
    for key in empty():
        print(f"empty: {key} in packaging/project.toml")
    return 1 if differing and not args.write else 0


if __name__ == "__main__":
    sys.exit(main())
