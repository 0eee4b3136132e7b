"""Builds what a release uploads into dist/: wheels, source distributions, the daemon, Debian packages, checksums.

    python scripts/dist.py                          # everything: x86_64 and aarch64, glibc and musl
    python scripts/dist.py daemon deb --arch x86_64 # some parts, for one architecture

Wheels are linked by zig, so that they run with glibc 2.17 and with musl 1.2; `explicated` is static. Needs rustup for
the targets, and the packages of requirements-dist.txt.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import metadata

ROOT = metadata.ROOT
DIST = ROOT / "dist"
PARTS = ("wheels", "sdist", "daemon", "deb", "sbom", "sums")
ARCHES = ("x86_64", "aarch64")
LIBCS = {"gnu": "manylinux2014", "musl": "musllinux_1_2"}
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
COMMIT_FILE = ROOT / "python" / "explicate" / "commit.txt"
DESCRIPTION = """\
explicit congestion control between Linux hosts
 Sends and receives files by protocols in which routers report the rate that
 they can grant (XCP, VCP and others), forwards between two interfaces as such
 a router, and runs scenarios on real sockets in network namespaces.
"""


def run(*command: str | Path, env: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output; end with its message if it fails."""
    words, around = list(map(str, command)), {**os.environ, **(env or {})}
    done = subprocess.run(words, cwd=ROOT, env=around, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"failed with {done.returncode}: {' '.join(words)}")
    return done.stdout


def commit() -> str:
    """The commit that is packaged."""
    return run("git", "describe", "--always", "--dirty", "--exclude=*").strip()


def target(arch: str, libc: str) -> str:
    """Name a target as Rust does, and have its standard library installed."""
    name = f"{arch}-unknown-linux-{libc}"
    if shutil.which("rustup"):
        run("rustup", "target", "add", name)
    return name


def wheels(arch: str, libcs: Sequence[str]) -> None:
    """Build the wheels of an architecture."""
    for libc in libcs:
        linked = ("--zig", "--target", target(arch, libc), "--compatibility", LIBCS[libc])
        run("maturin", "build", "--release", *linked, "--out", DIST)


def sdist() -> None:
    """Build the source distribution, and both of the papers."""
    run("maturin", "sdist", "--out", DIST)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", DIST, "./papers")


def daemon(arch: str) -> None:
    """Build the static program."""
    name = target(arch, "musl")
    # ring has C and assembler: zig compiles them for every target, and links.
    build = ("cargo", "zigbuild", "--release", "--package", "explicate-net", "--target", name)
    run(*build, env={"EXPLICATE_COMMIT": commit(), "CARGO_PROFILE_RELEASE_STRIP": "debuginfo"})
    DIST.mkdir(exist_ok=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / name / "release" / "explicated"
    shutil.copy(built, program(arch))


def program(arch: str) -> Path:
    """Where the static program of an architecture lies."""
    return DIST / f"explicated-{metadata.version()}-linux-{arch}"


def deb(arch: str) -> None:
    """Put the program, its units, man page, completions and default configuration into a Debian package."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for path, content, mode in contents(arch):
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(mode)
        name = f"explicated_{metadata.version()}_{DEBIAN[arch]}.deb"
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, DIST / name)


def contents(arch: str) -> Iterator[tuple[str, bytes, int]]:
    """Yield path, content and mode of every file of the Debian package."""
    binary = program(arch).read_bytes()
    yield "usr/bin/explicated", binary, 0o755
    for unit in sorted((ROOT / "packaging").glob("*.service")):
        yield f"usr/lib/systemd/system/{unit.name}", unit.read_bytes(), 0o644
    defaults = sorted((ROOT / "packaging" / "default").iterdir())
    for file in defaults:
        yield f"etc/default/{file.name}", file.read_bytes(), 0o644
    native = program(os.uname().machine)
    for what, path in {
        "bash": "usr/share/bash-completion/completions/explicated",
        "zsh": "usr/share/zsh/vendor-completions/_explicated",
        "fish": "usr/share/fish/vendor_completions.d/explicated.fish",
    }.items():
        yield path, run(native, "generate", what).encode(), 0o644
    yield "usr/share/man/man1/explicated.1.gz", packed(run(native, "generate", "man").encode()), 0o644
    yield "usr/share/doc/explicated/changelog.gz", packed((ROOT / "CHANGELOG.md").read_bytes()), 0o644
    for page in ("linux.md", "files.md", "gateway.md"):
        yield f"usr/share/doc/explicated/{page}", (ROOT / "docs" / page).read_bytes(), 0o644
    yield "usr/share/doc/explicated/gateway.toml", (ROOT / "packaging" / "gateway.toml").read_bytes(), 0o644
    dashboard = (ROOT / "packaging" / "grafana-gateway.json").read_bytes()
    yield "usr/share/doc/explicated/grafana-gateway.json", dashboard, 0o644
    yield "usr/share/doc/explicated/copyright", (ROOT / "LICENSE-MIT").read_bytes(), 0o644
    contact = metadata.project()["contact"]
    fields = {
        "Package": "explicated",
        "Version": metadata.version(),
        "Architecture": DEBIAN[arch],
        "Maintainer": f"The Explicate developers <{contact}>" if contact else "The Explicate developers",
        "Installed-Size": str(len(binary) // 1024 + 200),
        "Section": "net",
        "Priority": "optional",
        # The gateway calls `ip` and `nft`.
        "Recommends": "iproute2, nftables",
        **({"Homepage": page} if (page := metadata.project()["homepage"]) else {}),
        "Description": DESCRIPTION.rstrip(),
    }
    yield "DEBIAN/control", "".join(f"{key}: {value}\n" for key, value in fields.items()).encode(), 0o644
    yield "DEBIAN/conffiles", "".join(f"/etc/default/{file.name}\n" for file in defaults).encode(), 0o644
    for script in ("postinst", "postrm"):
        yield f"DEBIAN/{script}", (ROOT / "packaging" / "reload-units").read_bytes(), 0o755


def packed(content: bytes) -> bytes:
    """Compress without a time stamp."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def sbom() -> None:
    """Write what the program and the wheel consist of, as CycloneDX."""
    for crate in ("explicate-net", "explicate-py"):
        (DIST / f"{crate}-{metadata.version()}.cdx.json").write_text(bill(crate), encoding="utf-8")


def bill(crate: str) -> str:
    """Return the bill of materials of a crate: every package that its Linux build links or runs."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    tree = json.loads(
        run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu")
    )
    packages = {package["id"]: package for package in tree["packages"]}
    needs = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] != "dev" for kind in dep["dep_kinds"])]
        for node in tree["resolve"]["nodes"]
    }

    def component(name: str) -> Component:
        package = packages[name]
        return Component(
            type=ComponentType.LIBRARY, name=package["name"], version=package["version"], bom_ref=name,
            purl=PackageURL("cargo", None, package["name"], package["version"]),
        )  # fmt: skip

    root = next(name for name, package in packages.items() if package["name"] == crate)
    reached, waiting = {root}, [root]
    while waiting:
        new = set(needs[waiting.pop()]) - reached
        reached |= new
        waiting += new
    components = {name: component(name) for name in sorted(reached)}
    made = Bom(components=[part for name, part in components.items() if name != root])
    made.metadata.component = components[root]
    for name, part in components.items():
        made.register_dependency(part, [components[other] for other in needs[name]])
    return JsonV1Dot6(made).output_as_string(indent=1)


def sums() -> None:
    """Write the checksums of everything else."""
    files = sorted(path for path in DIST.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def defects() -> Iterator[str]:
    """What is wrong with the artefacts, as far as their files show it."""
    version = metadata.version()
    for path in DIST.glob("*.whl"):
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
            about = next(name for name in names if name.endswith(".dist-info/METADATA"))
            text = file.read(about).decode()
        if f"\nVersion: {version}\n" not in text or "\nDescription-Content-Type: text/markdown" not in text:
            yield f"{path.name}: its metadata lack the version or the README"
        for link in metadata.RELATIVE.finditer(text):
            yield f"{path.name}: its page has a link that leads nowhere: {link[3]}"
        if path.name.startswith("explicate-") and "explicate/assets/uplot/uPlot.iife.min.js" not in names:
            yield f"{path.name}: lacks uPlot, the charts of reports"
        if path.name.startswith("explicate-") and "explicate/scenarios/long-fat-pipe.toml" not in names:
            yield f"{path.name}: lacks the scenarios"
    for path in DIST.glob("*.tar.gz"):
        with tarfile.open(path) as file:
            names = [name.partition("/")[2] for name in file.getnames()]
        page = "packaging/data/data/share/man/man1/explicate.1"
        for wanted in ("packaging/readme.md", "python/explicate/scenarios/long-fat-pipe.toml", "Cargo.lock", page):
            if wanted not in names:
                yield f"{path.name}: lacks {wanted}"


def main() -> None:
    """Build the parts that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--arch", action="append", choices=ARCHES, help="default: both")
    parser.add_argument("--libc", action="append", choices=LIBCS, help="of wheels; default: both")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if metadata.stale():
        sys.exit("versions or addresses differ: python scripts/metadata.py --write")
    DIST.mkdir(exist_ok=True)
    wanted = args.parts or PARTS
    COMMIT_FILE.write_text(commit() + "\n", encoding="utf-8")
    try:
        for part in PARTS:
            if part not in wanted:
                continue
            build = {"sdist": sdist, "sbom": sbom, "sums": sums}.get(part)
            for arch in args.arch or ARCHES if build is None else ():
                if part == "wheels":
                    wheels(arch, args.libc or list(LIBCS))
                else:
                    {"daemon": daemon, "deb": deb}[part](arch)
            if build is not None:
                build()
    finally:
        COMMIT_FILE.unlink(missing_ok=True)
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1e6:8.2f} MB  {path.name}")
    for key in metadata.empty():
        print(f"left out, since packaging/project.toml has no {key}")
    if found := list(defects()):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
