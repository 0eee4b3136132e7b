"""The check of the registry's rows can fail, and names the row; callgrind's output is parsed correctly."""

import json
from pathlib import Path

import callgrind
import cost_rows
import pytest
from cost_rows import Row, judge

from explicate import engine

KEPT = json.loads(Path(__file__).with_name("costs.json").read_text(encoding="utf-8"))["x86_64"]
"""As the gate has it: every row's count in our own code and in libraries."""


def rows(changed="", own=1.0, library=0.0):
    for name, (inside, outside) in KEPT.items():
        kind, _, entry = name.partition(" ")
        if name == changed:
            yield Row(kind, entry, inside * own, outside + library)
        else:
            yield Row(kind, entry, inside, outside)


def test_what_was_accepted_passes():
    assert list(judge(list(rows()), KEPT)) == []


@pytest.mark.parametrize("name", KEPT)
def test_growth_of_any_row_by_more_than_five_percent_fails_and_names_it(name):
    assert list(judge(list(rows(name, own=1.049)), KEPT)) == []
    (told,) = judge(list(rows(name, own=1.051)), KEPT)
    assert told.startswith(f"{name}: ")
    assert "+5.1%" in told


def test_work_in_libraries_counts_too():
    (told,) = judge(list(rows("queue red".replace("queue", "qdisc"), library=40.0)), KEPT)
    assert told.startswith("qdisc red: ")
    assert "allocate" in told


def test_a_new_entry_and_one_that_has_gone_are_named():
    newcomer = Row("qdisc", "blue", 300.0, 0.0)
    assert [t.partition(":")[0] for t in judge([*rows(), newcomer], KEPT)] == ["qdisc blue"]
    assert [t.partition(":")[0] for t in judge(list(rows())[1:], KEPT)] == [next(iter(KEPT))]


def test_every_entry_of_the_registry_has_a_count():
    entries = {f"{e['kind']} {e['name']}" for e in engine.registry() if e["kind"] in cost_rows.KINDS}
    assert entries == set(KEPT)


def test_every_scenario_of_a_row_is_understood():
    for entry in engine.registry():
        if entry["kind"] in cost_rows.KINDS:
            text = cost_rows.KINDS[entry["kind"]].scenario(entry["name"])
            checked = engine.check(text, entry["name"], ".", [("duration", "8s")])
            assert entry["name"] in checked["resolved"]


OUTPUT = """\
fl=(1) a.rs
ob=(1) /x/engine_cost
fn=(1) steady
0x1000 10 5
+4 11 7
cfn=(2) memcpy
cob=(2) /lib/libc.so.6
calls=1 0x9000
* 11 100
-0x4 12 1
ob=(2)
fn=(2)
0x9000 0 100
ob=(1)
fn=(1)
* 3 2

totals: 115
"""


def test_callgrinds_own_costs_are_told_apart_from_what_calls_cost():
    told = list(callgrind.costs(OUTPUT.splitlines()))
    program, libc = "/x/engine_cost", "/lib/libc.so.6"
    assert told == [
        (program, 0x1000, 5), (program, 0x1004, 7), (program, 0x1000, 1), (libc, 0x9000, 100), (program, 0x9000, 2),
    ]  # fmt: skip
