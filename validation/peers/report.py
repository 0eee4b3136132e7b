"""The comparison as tables: for a terminal and for the documents."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from footing import Footing
from simulators import Case, Outcome, PeerError, Spent

NOTHING = "-"

SYSTEMS = {"xcp": "XCP", "sack": "TCP SACK"}

Outcomes = Mapping[str, Outcome]  # by the simulator's name

MEASURES: Sequence[tuple[str, Callable[[Outcome], str]]] = [
    ("utilisation, %", lambda o: f"{100 * o.utilisation:.2f}"),
    ("queue mean", lambda o: f"{o.queue_mean_packets:.1f}"),
    ("queue p95", lambda o: f"{o.queue_p95_packets:.0f}"),
    ("queue max", lambda o: f"{o.queue_max_packets:.0f}"),
    ("peak queue, whole run", lambda o: f"{o.queue_peak_packets:.0f}"),
    ("drops", lambda o: str(o.drops)),
    ("drops, whole run", lambda o: str(o.drops_whole_run)),
    ("Jain index", lambda o: f"{o.jain:.4f}"),
    ("time to 90 %, s", lambda o: "never" if o.time_to_90_s is None else f"{o.time_to_90_s:.1f}"),
]


@dataclass(frozen=True)
class Price:
    """Cost of a packet-hop in one simulator; one rate for each repetition."""

    instructions_per_hop: float | None
    hops_per_cpu_s: Sequence[float]

    @property
    def rate(self) -> float:
        return statistics.median(self.hops_per_cpu_s)


Prices = Mapping[str, Price]


def per_hop(short: Spent, long: Spent) -> float:
    """Instructions per packet-hop between the ends of a short and of a long run."""
    if short.instructions is None or long.instructions is None:
        raise ValueError("a run without an instruction count")
    return (long.instructions - short.instructions) / (long.hops - short.hops)


def per_cpu_second(short: Spent, long: Spent) -> float:
    """Packet-hops per CPU second between the ends of a short and of a long run."""
    if long.cpu_s <= short.cpu_s or long.hops <= short.hops:
        raise PeerError("the longer run did not cost more: lengthen the timed runs")
    return (long.hops - short.hops) / (long.cpu_s - short.cpu_s)


def ratios(prices: Prices, ours: str, theirs: str) -> list[float]:
    """Ours over theirs, repetition by repetition."""
    if ours not in prices or theirs not in prices:
        return []
    pairs = zip(prices[ours].hops_per_cpu_s, prices[theirs].hops_per_cpu_s, strict=False)
    return [our / their for our, their in pairs]


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Columns in line: the first to the left, the rest to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return "\n".join([line(rows[0]), "  ".join("-" * w for w in widths), *map(line, rows[1:])])


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["--:"] * (len(rows[0]) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]])


def case_rows(outcomes: Outcomes, names: Sequence[str]) -> list[list[str]]:
    """One case: a row for each measure, a column for each simulator."""
    rows = [["after warm-up unless said", *names]]
    for label, show in MEASURES:
        rows.append([label, *(show(outcomes[n]) if n in outcomes else NOTHING for n in names)])
    return rows


def system_rows(results: Mapping[Case, Outcomes], system: str, names: Sequence[str]) -> list[list[str]]:
    """One system: a row for each case, the simulators side by side in each cell."""
    rows = [["case", *(label for label, _ in MEASURES)]]
    for case, outcomes in results.items():
        if case.system != system:
            continue
        cells = [" / ".join(show(outcomes[n]) if n in outcomes else NOTHING for n in names) for _, show in MEASURES]
        rows.append([case.name.removeprefix(f"{system} "), *cells])
    return rows


def cost_rows(prices: Mapping[Case, Prices], footings: Mapping[str, Footing], ours: str) -> list[list[str]]:
    """A row for each case and simulator, then one for the set-up of a flow in each."""
    rows = [["one core, nothing watched", "simulator", "instructions per packet-hop"]]
    rows[0] += [
        "million packet-hops per CPU second",
        f"{ours} over it",
        "set-up of a flow, us",
        "memory of a flow, bytes",
    ]
    for case, of in prices.items():
        for name, price in of.items():
            counted = price.instructions_per_hop
            found = ratios(of, ours, name) if name != ours else []
            rows.append([
                case.name, name, NOTHING if counted is None else f"{counted:,.0f}", f"{price.rate / 1e6:.3g}",
                f"{statistics.median(found):.1f}" if found else NOTHING, NOTHING, NOTHING,
            ])  # fmt: skip
    for name, one in footings.items():
        what = f"sack 1000 Mbit/s, {one.flows} flows, before they send"
        rows.append([what, name, NOTHING, NOTHING, NOTHING, f"{one.setup_us:,.3g}", f"{one.bytes_per_flow:,.0f}"])
    return rows


def validation_fragment(results: Mapping[Case, Outcomes], names: Sequence[str]) -> str:
    parts = [f"Cells have {' / '.join(names)}; queues in packets, without the packet in service."]
    for system, title in SYSTEMS.items():
        rows = system_rows(results, system, names)
        if len(rows) > 1:
            parts += [f"**{title}**", markdown_table(rows)]
    return "\n\n".join(parts)


def place(document: Path, fragment: str, name: str = "peers") -> None:
    """Put a fragment between the markers of that name in a document, or start one with it."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    block = f"{begin}\n{fragment}\n{end}"
    if not document.exists():
        document.parent.mkdir(parents=True, exist_ok=True)
        document.write_text(f"{block}\n", encoding="utf-8")
        return
    text = document.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise PeerError(f"{document}: no `{begin}` ... `{end}`")
    document.write_text(f"{before}{block}{after}", encoding="utf-8")


def recorded(document: Path, name: str) -> dict[str, list[str]]:
    """The rows of the last table between the markers of that name in a document, by their first cells.

    Raise PeerError if there is no table.
    """
    text = document.read_text(encoding="utf-8")
    section = text.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    if not lines:
        raise PeerError(f"{document}: section `{name}` has no table")
    cells = [line.strip("| ").split(" | ") for line in lines]
    return {first: rest for first, *rest in cells}


def of_row(rows: Mapping[str, Sequence[str]], name: str) -> Sequence[str]:
    """The row of this name; raise PeerError if it is not recorded."""
    if name not in rows:
        raise PeerError(f"no figures of ns-2 are recorded for {name!r}: run without --recorded")
    return rows[name]
