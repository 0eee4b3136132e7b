"""The compiled engine: conversions only, every policy is in Python or in the crates below.

Structured values cross the border as JSON text, tables through the Arrow C stream interface.
"""

from collections.abc import Callable

class ScenarioError(ValueError):
    """A scenario that cannot be used.

    ``str(error)`` is one line or more of the form ``file:line:col: message; remedy``.
    """

class Table:
    """A table that hands its columns over through the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Output:
    """What one call of :func:`run` leaves behind."""

    @property
    def flows(self) -> Table: ...
    @property
    def links(self) -> Table: ...
    @property
    def samples(self) -> Table: ...
    @property
    def run(self) -> Table: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def trace(self) -> str: ...
    @property
    def timing(self) -> str: ...

def version() -> str: ...
def registry() -> str: ...
def schema() -> str: ...
def columns() -> str: ...
def template(kind: str) -> str: ...
def templates() -> str: ...
def companions(kind: str) -> str: ...
def check(text: str, origin: str, base: str, overrides: list[tuple[str, str]], fluid: bool = False) -> str: ...
def run(
    text: str,
    origin: str,
    base: str,
    overrides: list[tuple[str, str]],
    seed: int | None,
    runs: int | None,
    jobs: int,
    trace: str | None,
    pcap: str | None,
    progress: Callable[[float], None] | None,
    engine: str = "fast",
) -> Output: ...
def fluid(
    text: str,
    origin: str,
    base: str,
    overrides: list[tuple[str, str]],
    seed: int | None,
    runs: int | None,
    progress: Callable[[float], None] | None,
) -> Output: ...
def fluid_models() -> str: ...
def curves(
    text: str,
    origin: str,
    base: str,
    overrides: list[tuple[str, str]],
    link: str,
    lengths: list[int],
    acks: bool,
    trials: int,
    seed: int,
) -> str: ...
def bench_cases() -> list[str]: ...
def bench(case: str | None, duration: float | None) -> str: ...
def floor_cases() -> list[str]: ...
def floor(case: str, duration: float | None) -> str: ...
