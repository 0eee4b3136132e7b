"""All cases."""

from __future__ import annotations

from dataclasses import replace

from .case import KERNEL, Case, Wanted, at_least, at_most, beside, page
from .measures import changing, fade, interactive, many, transfer, unshaped
from .net import Line

MIB, MB = 1 << 20, 1_000_000
GEO = Line("20Mbit/s", "2Mbit/s", "300ms")
LOSSY = Line("20Mbit/s", "2Mbit/s", "300ms", "1%")
HUB = Line("50Mbit/s", "10Mbit/s", "50ms", share=0.96)
FADES = ((30.0, 20e6), (45.0, 5e6), (60.0, 20e6))
LTE = ("Verizon-LTE-short.down", "Verizon-LTE-short.up")
# kcptun needs windows of one bandwidth-delay product, which a recorded capacity does not have.
SPLIT = (*KERNEL, "haproxy bbr", "haproxy cubic")
KEYS = {
    "keys, p99, ms over idle": at_most(20, "20"),
    "pings, p99, ms over idle": at_most(20, "20"),
    "voice, p99, ms over idle": at_most(20, "20"),
    "voice, lost": at_most(0, "0"),
}
FAST: dict[str, Wanted] = {
    "Gbit/s": at_least(1.0, "1"),
    "most memory of a gateway, MiB": at_most(64, "64"),
}
SHARED = {
    "Jain's index": at_least(0.97, "0.97"),
    "use of the line": at_least(0.95, "95 %"),
    "mean queue of the link, packets": at_most(5, "5"),
    "mean queue of the port, packets": at_most(5, "5"),
}


CASES = [
    Case(
        "geo-lossy-10MiB",
        LOSSY,
        transfer,
        {
            "share of the line": at_least(0.70, "70 %"),
            "seconds": beside("cubic", 0.2, "a fifth of cubic's"),
        },
        files=(("10MiB", 10 * MIB),),
    ),
    Case("geo-lossy-100MB", LOSSY, transfer, {"share of the line": at_least(0.85, "85 %")}, (("100MB", 100 * MB),)),
    Case("geo-lossy-page", LOSSY, transfer, {"seconds": beside("bbr", 0.5, "half of bbr's")}, page()),
    Case("geo-clean-10MiB", GEO, transfer, {}, (("10MiB", 10 * MIB),)),
    Case(
        "etosat-clean",
        Line("250Mbit/s", "3Mbit/s", "300ms", limit=64 * MIB),
        transfer,
        {"seconds": at_most(5.0, "5.0")},
        (("100MB", 100 * MB),),
    ),
    Case(
        "etosat-lossy",
        Line("250Mbit/s", "3Mbit/s", "300ms", "1.5625%", limit=64 * MIB),
        transfer,
        {"seconds": at_most(5.6, "5.6")},
        (("100MB", 100 * MB),),
    ),
    Case(
        "connections-200",
        HUB,
        many,
        SHARED,
        connections=200,
    ),
    Case(
        "sites-3",
        HUB,
        many,
        SHARED,
        ways=KERNEL,
        sites=3,
    ),
    Case(
        "fade",
        Line("20Mbit/s", "2Mbit/s", "300ms"),
        fade,
        {
            "losses by overflow": at_most(0, "0"),
            "round trips to 95 % of the wide line": at_most(3, "3"),
        },
        steps=FADES,
    ),
    Case(
        "interactive",
        replace(GEO, share=0.98),
        interactive,
        KEYS,
        ways=KERNEL,
    ),
    Case(
        "unshaped",
        Line(),
        unshaped,
        FAST,
        seconds=8,
    ),
    Case(
        "lte",
        Line(delay="20ms", traces=LTE, queue=500_000, parity=False),
        changing,
        {
            "Mbit/s": beside("bbr", 0.95, "95 % of bbr's", less=False),
            "ping beside it, p95, ms over the empty path": beside("bbr", 1 / 3, "a third of bbr's"),
        },
        ways=SPLIT,
        seconds=40,
    ),
]

# Connections at a time of the cases below: the gateway's alone, and short, for they are measured more often.
COUNTS = (1, 10, 100)


def counted(count: int) -> dict[str, Case]:
    """Cases with so many connections, by what they are about."""
    files = tuple((f"part{i}", 10 * MIB // count) for i in range(count))
    share = {"share of the line": at_least(0.70, "70 %")}
    cases = {
        "10 MiB": Case("", LOSSY, transfer, share, files),
        "shares": Case("", HUB, many, SHARED, seconds=10),
        "interactive": Case("", replace(GEO, share=0.98), interactive, KEYS, seconds=15),
        "unshaped": Case("", Line(), unshaped, FAST, seconds=5),
    }
    return {
        name: replace(case, name=f"{name}, {count}", ways=("gateway",), connections=count)
        for name, case in cases.items()
    }


# Of each kind those with each number of connections.
COUNTED = {name: [counted(count)[name] for count in COUNTS] for name in counted(1)}
