"""The engine of the tests: the synthetic one, unless a test uses `native_real`.

The compiled module, if it is there, is always the one that `explicate` is imported with: a broken one fails all tests.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
from patience import PATIENCE_S

HERE = Path(__file__).parent
pytest_plugins = ["chromium"]
# How fast examples come depends on how busy the machine is.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")
if importlib.util.find_spec("explicate") is None:
    sys.path.insert(0, str(HERE.parent))
PAPERS_PATH = str(HERE.parents[1] / "papers")
_package = importlib.util.find_spec("explicate")
assert _package is not None
assert _package.submodule_search_locations is not None
PACKAGE_PATH = str(Path(_package.submodule_search_locations[0]).parent)
NATIVE_BUILT = PathFinder.find_spec("explicate._native", _package.submodule_search_locations) is not None

import fake_native  # noqa: E402

if not NATIVE_BUILT:
    fake_native.install()

import explicate.engine  # noqa: E402

COMPILED: ModuleType = sys.modules["explicate._native"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--require-native", action="store_true", help="fail, not skip, if the compiled engine is missing")
    parser.addoption("--screenshots", metavar="DIR", help="keep the browser tests' pictures here")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of experiments is of one paper, whose letter its id begins with: `make papers-N` runs those of N."""
    for item in items:
        if item.get_closest_marker("papers") and not re.search(r"\[[A-Z]:", item.name):
            raise pytest.UsageError(
                f"{item.nodeid}: the id of a test of papers begins with a paper's letter, as in [N: …]"
            )


@pytest.fixture
def native_real(pytestconfig: pytest.Config) -> ModuleType:
    """The compiled engine."""
    if not NATIVE_BUILT:
        message = "the compiled engine is not built; `maturin develop --release` builds it"
        if pytestconfig.getoption("--require-native"):
            pytest.fail(message)
        pytest.skip(message)
    return COMPILED


@pytest.fixture(autouse=True)
def chosen_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the synthetic engine for tests that do not use the compiled one."""
    if "native_real" not in request.fixturenames:
        monkeypatch.setattr(explicate.engine, "_native", fake_native)


SCENARIO = """\
name = "small"
duration = "20s"
warmup = "5s"
runs = 2
seed = 7

[sampling]
every = "500ms"
of = ["throughput", "queue", "rtt"]

[[flows]]
name = "near"
count = 3
protocol = "xcp"

[[flows]]
name = "far & away"
count = 2
protocol = "xcp"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario file with two groups, two runs and all samples."""
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def bare_scenario(tmp_path: Path) -> Path:
    """The same without samples."""
    path = tmp_path / "bare.toml"
    head, _, rest = SCENARIO.partition("[sampling]")
    path.write_text(head + rest[rest.index("[[flows]]") :], encoding="utf-8")
    return path


def child_environment() -> dict[str, str]:
    """The environment in which a child process finds both the package and the synthetic engine."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE_PATH, PAPERS_PATH, str(HERE)])}


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def process() -> Command:
    """Run the command in a separate process, on the synthetic engine."""

    def command(*args: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, HERE / "fake_explicate.py", *args],
            capture_output=True, text=True, env=child_environment(), input=stdin, check=False, timeout=PATIENCE_S,
        )  # fmt: skip

    return command
