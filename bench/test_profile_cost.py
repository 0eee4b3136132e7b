"""The annotated profile finds functions by line and lets them say what they do."""

from collections import Counter

import profile_cost

FLOW = "crates/explicate-core/src/endpoint/sender.rs"


def test_a_sentence_ends_where_the_next_begins_and_has_no_links():
    assert (
        profile_cost.sentence([" [`Port::foresee`] where it is", " so. And more."]) == "`Port::foresee` where it is so."
    )
    assert (
        profile_cost.sentence([" The window (RFC 5681 sec. 3): it grows."]) == "The window (RFC 5681 sec. 3): it grows."
    )


def test_every_function_owns_the_lines_up_to_the_next():
    for (line, name, about), (after, *_) in zip(
        profile_cost.functions(FLOW), profile_cost.functions(FLOW)[1:], strict=False
    ):
        for inside in (line, after - 1):
            assert profile_cost.function_at((FLOW, inside)) == (name, about or profile_cost.of_trait(name))


def test_rows_add_up_to_the_whole():
    line = next(line for line, name, _ in profile_cost.functions(FLOW) if name == "handle_packet")
    cost = Counter({(FLOW, line): 10.0, (FLOW, line + 1): 2.5, ("", 0): 0.5})
    rows = list(profile_cost.rows({"xcp": cost, "sack": cost}))
    files = [row.split("|")[2].strip(" *") for row in rows if row.startswith("| **") and "the whole" not in row]
    assert sum(map(float, files)) == 13.0
    assert rows[-1].startswith("| **the whole** | **13.0** | **13.0** |")
    assert any(row.startswith("| `handle_packet` | 12.5 |") for row in rows)
