"""What decides a claim: what is not met comes first, each with one interval over all blocks; what would turn it."""

from __future__ import annotations

import pytest

from explicate_papers.evidence import MET_SHOWN, decides, listed, merged, quantities, turns
from explicate_papers.statistics import Check, Sample, above, at_least, fact, falling, in_most, number
from explicate_papers.study import Empty
from explicate_papers.verdicts import Block, Word, wilson

LOW, HIGH = Sample.of([1.0, 1.2]), Sample.of([3.0, 3.4])


def block(*checks: Check, first: int = 1) -> Block:
    return Block(first, all(check.holds for check in checks), checks, runs=len(checks))


def both(*checks: Check) -> list[Block]:
    return [block(*checks), block(*checks, first=1001)]


def test_what_is_not_met_comes_first_and_none_of_it_is_cut() -> None:
    met = [at_least(f"met {name}", HIGH, 2.0) for name in "abcdefghijkl"]
    not_met = [at_least(f"not met {name}", LOW, 2.0) for name in "abcdefghij"]
    made = quantities(both(*met[:9], *not_met, *met[9:]))
    assert [one.met for one in made] == [False] * 10 + [True] * 12
    said = listed((one.text, one.met) for one in made)
    assert [line.startswith("✗ not met") for line in said] == [True] * 10 + [False] * (MET_SHOWN + 1)
    assert said[-1] == f"… and {12 - MET_SHOWN} more that are met"
    assert decides(Word.FAILS, made).startswith("10 of 22 checks are not met")


def test_a_quantity_has_one_interval_over_the_seeds_of_both_blocks() -> None:
    one, other = Sample.of([1.0, 1.2, 1.1]), Sample.of([2.0, 2.1, 2.3])
    (made,) = quantities([block(at_least("rate", one, 1.5)), block(at_least("rate", other, 1.5), first=1001)])
    assert made.text.startswith(f"rate: {Sample((*one.values, *other.values))} (wanted ≥ 1.5)")
    assert made.text.count("±") == 1
    assert made.text.endswith("; not met on seeds from 1, met on seeds from 1001")
    assert made.seeds == 6


def test_of_two_samples_the_difference_is_pooled() -> None:
    checks = [above("XCP over TCP (mean 5 ± 1)", Sample.of(high), LOW) for high in ((3.0, 3.4), (0.8, 1.4))]
    (made,) = quantities([block(checks[0]), block(checks[1], first=1001)])
    difference = Sample.of([2.0, 2.2, -0.2, 0.2])
    assert f"what is judged: {difference}, bound 0" in made.text
    assert made.text.count("±") == 1
    assert "in 100 | 50% of the seeds" in made.text
    assert not made.met


def test_a_proportion_has_its_own_interval() -> None:
    (made,) = quantities(both(in_most("it is so", Sample.of([1.0, 1.0, 0.0]))))
    low, high = wilson([True, True, False] * 2)
    assert f"in 67% of 6 seeds ({low:.0%} to {high:.0%})" in made.text


def test_checks_of_different_quantities_stay_apart() -> None:
    made = quantities([block(at_least("packets", HIGH, 2)), block(at_least("bytes", LOW, 2), first=1001)])
    assert [one.text.partition(":")[0] for one in made] == ["seeds from 1001", "seeds from 1"]
    assert [one.met for one in made] == [False, True]


def test_what_could_not_be_compared_is_not_met() -> None:
    made = quantities([Block(1, False, note="no run has a timeout"), block(at_least("rate", HIGH, 2.0), first=1001)])
    assert [one.text for one in made if not one.met] == ["seeds from 1: no run has a timeout"]
    (empty,) = quantities([block(Empty.of("time", "no run"))])
    assert not empty.met


def test_a_claim_that_holds_is_decided_by_what_is_nearest_to_its_bound() -> None:
    made = quantities(both(at_least("far", Sample.of([9.0, 9.1]), 2.0), at_least("near", Sample.of([3.0, 3.1]), 2.8)))
    said = decides(Word.HOLDS, made)
    assert "nearest to its bound" in said
    assert "near: " in said
    assert "far: " not in said
    exact = quantities(both(fact("packets", holds=True, measured="3")))
    assert decides(Word.HOLDS, exact) == "all checks are met, and none compares a mean that varies"
    assert decides(Word.NOT_JUDGED, quantities([Block(1, None, note="no judge")])) == ""


def test_an_open_claim_says_how_many_seeds_would_end_it() -> None:
    open_ = at_least("rate", Sample.of([0.0, 1.0, 2.0, 3.4]), 1.0)
    made = quantities([block(open_)])
    assert made[0].is_open
    assert made[0].distance < 1
    said = decides(Word.UNDECIDED, made)
    assert "the interval contains the bound of 1 of 1 checks: rate" in said
    assert f"About {made[0].more_seeds()} seeds in all would end the doubt" in said
    assert made[0].more_seeds() == pytest.approx(4 / made[0].distance ** 2, abs=1)


def test_the_worst_step_is_pooled() -> None:
    steps = falling("rate", [Sample.of([3.0, 3.2]), Sample.of([3.5, 3.7])], 0.1)
    (made,) = quantities(both(steps))
    assert f"what is judged: {Sample.of([0.5, 0.5, 0.5, 0.5])}, bound {number(0.1)}" in made.text


def test_texts_of_blocks_are_merged() -> None:
    assert merged(["3 ± 1 of 4", "3 ± 2 of 4"]) == "3 of 4"
    assert merged(["3 of 4", "5 of 4"]) == "3 | 5 of 4"
    assert merged(["3 of 4", "none"]) == "3 of 4 | none"
    assert merged(["a"]) == "a"


def test_what_would_turn_a_claim_is_what_turned_it() -> None:
    universe = {
        "alternatives": {
            "N-P4=halve": {"differs": {"N-fig1-a": "holds", "N-fig1-b": "fails"}},
            "N-P1=20ms": {"differs": {"N-fig1-b": "holds"}},
        }
    }
    (said,) = turns("N-fig1-a", "fails", "fails", universe, [])
    assert said == "one other choice alone, first block of seeds: N-P4=halve (holds)"
    assert list(turns("N-fig1-c", "fails", "fails", universe, [])) == ["none of 2 other choices alone"]
    used = {"alternatives": {"N-P4=keep": {"differs": {"N-fig1-a": "holds"}}}}
    assert list(turns("N-fig1-a", "fails", "fails", used, [])) == [], "in use today, so it is no remedy"
    assert list(turns("N-fig1-a", "holds", "holds", universe, ["no loss"])) == [
        "none of 2 other choices alone",
        "the control “no loss”",
    ]
    assert list(turns("N-fig1-a", "holds", "holds", {}, [])) == []
    (said,) = turns("N-fig1-b", "undecided", "holds", universe, [])
    assert said.endswith(": N-P4=halve (fails)"), "other choices have one block, so none is undecided"


def test_to_fail_one_check_is_enough() -> None:
    near, far = (at_least(name, Sample.of([0.0, 2.0, 1.0, mean]), 1.2) for name, mean in (("near", 1.0), ("far", 0.5)))
    made = quantities([block(near, far)])
    assert all(one.is_open and not one.met for one in made)
    fewest = min(one.more_seeds() for one in made)
    assert fewest < max(one.more_seeds() for one in made)
    assert f"About {fewest} seeds" in decides(Word.UNDECIDED, made)
