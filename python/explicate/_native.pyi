"""The compiled engine: conversions only, every policy is in Python or in the crates below.

Structured values cross the border as JSON text, tables through the Arrow C stream interface.
"""

from collections.abc import Callable
from typing import Any

class ScenarioError(ValueError):
    """A scenario that cannot be used.

    ``str(error)`` is one line or more of the form ``file:line:col: message; remedy``.
    """

class Table:
    """A table that hands its columns over through the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Header:
    """The congestion header of a packet: the fields of XCP's, or what a protocol reads and writes."""

    x: int
    """The time between two packets of the flow, in units of 2^-28 s; 0 is unknown."""
    rtt: int
    """In units of 2^-28 s; 0 is unknown."""
    reverse_feedback: int
    """Bytes/s."""
    delta_throughput: int
    """Bytes/s."""

    def read(self, format: int) -> bytes | None:  # noqa: A002
        """Return the 16 bytes of a protocol's own header, with a format from 4 to 15; None if it has another format."""
    def write(self, format: int, data: bytes) -> None:  # noqa: A002
        """Make it a protocol's own header, with this format and up to 16 bytes; nothing if there is no header."""
    @property
    def is_present(self) -> bool: ...
    @property
    def is_standard(self) -> bool: ...

class Packet:
    """A packet, while a callback has it: what is written into its congestion header and ECN field stays there."""

    ecn: int
    """The ECN field (RFC 3168), 0 to 3."""

    @property
    def congestion(self) -> Header: ...
    @property
    def ip_len(self) -> int:
        """Length of the IP datagram, bytes."""
    @property
    def is_ack(self) -> bool: ...
    @property
    def flow(self) -> int: ...
    @property
    def segment(self) -> int: ...
    @property
    def packet_number(self) -> int: ...
    @property
    def payload(self) -> int:
        """Bytes."""

class Ack:
    """An acknowledgement, after recovery has processed it. Times in seconds, counts in segments."""

    now: float
    newly_acked: int
    cumulative: int
    highest_sent: int
    duplicate: bool
    header: Header
    packet_number: int
    ece: bool
    rtt: float
    srtt: float
    in_flight: int
    recovering: bool
    app_limited: bool

class Loss:
    """A loss or mark, reported before the acknowledgement that revealed it."""

    now: float
    kind: str
    """"duplicates", "timeout" or "mark"."""
    in_flight: int
    srtt: float
    repeated: bool
    marked: bool

class Undo:
    """What was taken for a loss had arrived: window and threshold when it was reported, in segments."""

    now: float
    cwnd: float
    ssthresh: float
    """At least three quarters of the window; `math.inf` if the sender has no threshold."""
    srtt: float

class Sent:
    """A transmission."""

    now: float
    in_flight: int
    backlogged: bool

class PortView:
    """What a router sees of its port: the capacity in bytes/s, and what waits without the packet in service."""

    capacity: float
    backlog_bytes: int
    backlog_packets: int
    busy: bool

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
    def unused(self) -> list[tuple[str, str]]: ...
    @property
    def trace(self) -> str: ...
    @property
    def timing(self) -> str: ...

def register(protocol: dict[str, Any]) -> None: ...
def version() -> str: ...
def registry() -> str: ...
def schema() -> str: ...
def columns() -> str: ...
def stacks(text: str, origin: str, base: str, overrides: list[tuple[str, str]]) -> str: ...
def template(kind: str) -> str: ...
def templates() -> str: ...
def companions(kind: str) -> str: ...
def check(text: str, origin: str, base: str, overrides: list[tuple[str, str]], fluid: bool = False) -> str: ...
def link_names(text: str, origin: str, base: str, overrides: list[tuple[str, str]], fluid: bool) -> list[str]: ...
def links(text: str, origin: str, base: str, overrides: list[tuple[str, str]]) -> str: ...
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
