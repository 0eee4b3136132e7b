"""Paper I's figure 2 under either simulator: one flow of a minute over a chain whose third link is narrow.

Case a is TCP over plain routers, b XCP over XCP routers, c XCP where the narrow link's router is a plain one.
`chain.tcl` is the ns-2 half; the scenario is that of `scenarios/`, with other delays and buffers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simulators import INITIAL_WINDOW, PACKET_BYTES, PROCESSING, XCP_PARAMS, XCP_ROUTER, PeerError, clock

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
PROTOCOLS = {"a": "newreno", "b": "xcp/reno", "c": "xcp/reno"}


@dataclass(frozen=True)
class Figure2:
    """One case: `delay_ms` of each link, `buffer_bdp` of each router's port, in products of its own rate."""

    case: str
    delay_ms: float = 10.0
    buffer_bdp: float = 1.0
    duration_s: float = 60.0
    warmup_s: float = 0.0
    seed: int = 1

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"{self.case}, {self.delay_ms:g} ms a link, buffers of {self.buffer_bdp:g} BDP"

    @property
    def protocol(self) -> str:
        """Explicate's name of the sender."""
        return PROTOCOLS[self.case]

    def ns2(self, command: str) -> list[str]:
        """The command that runs it under ns-2."""
        options = {
            "case": self.case,
            "delay": self.delay_ms,
            "buffer": self.buffer_bdp,
            "duration": self.duration_s,
            "warmup": self.warmup_s,
            "packet": PACKET_BYTES,
            "seed": self.seed,
        }
        pairs = [text for key, value in options.items() for text in (f"-{key}", f"{value}")]
        return [command, str(Path(__file__).with_name("chain.tcl")), *pairs]

    def scenario(self) -> str:
        """The project's scenario with this case's delay, buffers, span and seed."""
        text = (SCENARIOS / f"paper-001-fig2-{self.case}.toml").read_text(encoding="utf-8").partition("[sampling]")[0]
        head = f'duration = "{self.duration_s:g}s"\nwarmup = "{self.warmup_s:g}s"\nseed = {self.seed}'
        ours = f'protocol = "{self.protocol}"'
        own, text = parameters(text)
        own = [one for one in own if not one.startswith("rtt_resolution")]
        rules = [XCP_PARAMS] if self.case != "a" else []
        given = ", ".join([f"initial_window = {INITIAL_WINDOW}", *own, clock(self.protocol, time_stamps=True), *rules])
        for old, new, times in (
            ('duration = "60s"', head, 1),
            ('delay = "10ms"', f'delay = "{self.delay_ms:g}ms"', 4),
            ('limit = "1.0bdp"', f'limit = "{self.buffer_bdp:g}bdp"', 3),
            (ours, f"{ours}\nparams = {{ {given} }}\n{PROCESSING}", 1),
        ):
            text, found = re.subn(re.escape(old), new.replace("\\", r"\\"), text)
            if found != times:
                raise PeerError(f"paper-001-fig2-{self.case}.toml: `{old}` stands there {found} times, not {times}")
        return controlled(text) if self.case != "a" else text


def parameters(text: str) -> tuple[list[str], str]:
    """Return the parameters that the scenario gives its flow, if any, and the scenario without them."""
    line = re.compile(r"^params = \{ (.*?) \}.*\n", re.MULTILINE)
    found = line.search(text)
    return (found[1].split(", ") if found else []), line.sub("", text)


def controlled(text: str) -> str:
    """Return the scenario with ns-2's rule at every port that has a controller."""
    head, *links = text.split("[[link]]\n")
    line = f"router = {XCP_ROUTER}\n"
    return "[[link]]\n".join([head, *(link if "router =" in link else line + link for link in links)])


CASES = {
    one.name: one
    for one in (
        Figure2(case, delay, buffer) for case in PROTOCOLS for delay in (5.0, 10.0, 20.0) for buffer in (0.5, 1.0, 2.0)
    )
}
