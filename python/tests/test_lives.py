"""The analysis of a flow's packets from a record that was written by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from explicate.results import Results
from explicate_papers.de_vleeschouwer.lives import Life, life, most_in_a_round_trip


def replay(record: str, threshold: int = 1) -> Life:
    """Replay lines of time (ms), event, segment or first missing segment, and packet number."""
    words = {
        "sent": ("s5->n0  enqueue  ", "data"),
        "arrives": ("        delivered ", "data"),
        "answered": ("        delivered ", "ack"),
    }
    lines = []
    for line in record.split("\n"):
        if line.strip():
            ms, what, segment, packet = line.split()
            place, kind = words[what]
            lines.append(f"   {int(ms) / 1000:.9f}  {place} lossy.0 {kind} {segment} packet {packet} 1000 B")
    return life(cast("Results", SimpleNamespace(trace="\n".join(lines))), threshold, 8)


def test_a_reset_before_the_first_answer_is_seen() -> None:
    """Both first packets are lost; the recovery timer goes back, and the segments are sent in order again."""
    seen = replay("""
        0 sent 0 1
        1 sent 1 2
        400 sent 0 3
        450 arrives 0 3
        500 answered 1 3
        500 sent 1 4
        500 sent 2 5
        550 arrives 1 4
        551 arrives 2 5
        600 answered 2 4
        601 answered 3 5
    """)
    assert (seen.resets, seen.by_clock, seen.resent) == (1, 0, 0)
    assert (seen.early, seen.crowded, seen.hasty) == (0, 0, 0)


def test_retransmissions_are_counted_in_the_shortest_round_trip() -> None:
    """Packets 2 and 3 are lost; two acknowledgements release both within 1 ms; one is sent again 100 ms later."""
    seen = replay("""
        0 sent 0 1
        1 sent 1 2
        2 sent 2 3
        3 sent 3 4
        4 sent 4 5
        50 arrives 0 1
        53 arrives 3 4
        54 arrives 4 5
        100 answered 1 1
        103 answered 1 4
        103 sent 1 6
        104 answered 1 5
        104 sent 2 7
        153 arrives 1 6
        203 answered 2 6
        203 sent 5 8
        253 arrives 5 8
        303 answered 2 8
        303 sent 2 9
    """)
    assert (seen.resent, seen.round_trip_ns, seen.wrong) == (3, 100_000_000, 0)
    assert most_in_a_round_trip(seen) == 2
