"""Common code of paper D's experiments: queues, mutations, bins."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import polars as pl

from explicate_papers.de_vleeschouwer import base
from explicate_papers.plan import choices, effort
from explicate_papers.register import experiments
from explicate_papers.study import Case, Effort


def quick() -> Effort:
    return effort(experiments()["D-fig3"], "quick")


def test_red_lies_under_xcp_alone_and_is_raised_for_the_persistent_queue() -> None:
    used = {key: choice.used for key, choice in choices(experiments()["D-fig3"].paper).items()}
    assert thresholds(used, "LR-XCP_PA") == ("red", "5pkt", "15pkt")
    assert thresholds(used, "LR-XCPQ_PA") == ("red", "15pkt", "25pkt")
    for other in ("LR-XTCP", "reno", "video_xtcp"):
        assert base.discipline(used, other)["kind"] == "droptail"
    assert base.discipline({**used, "D-P11": "droptail"}, "LR-XCP_PA")["kind"] == "droptail"


def thresholds(used: Mapping[str, str], protocol: str) -> tuple[str, ...]:
    queue = base.discipline(used, protocol)
    return queue["kind"], queue["min_th"], queue["max_th"]


def test_another_protocol_takes_the_place_and_not_the_parameters_of_one() -> None:
    one = base.case(quick(), "LR-LMXTCP", 5.0, clean="reno")
    clean, lossy = tomllib.loads(one.text)["flows"]
    readings = {"recount": "after_window", "grow_on_duplicates": True}
    assert readings.items() <= lossy["params"].items()
    other = base.instead_of("LR-LMXTCP", "LR-XCP").change("any", one)
    same, changed = tomllib.loads(other.text)["flows"]
    assert same == clean, "TCP stays as it was"
    kept = {key: value for key, value in lossy["params"].items() if key not in readings}
    assert changed == {**lossy, "protocol": "LR-XCP", "params": kept}


def test_one_half_may_change_alone() -> None:
    one = base.case(quick(), "LR-XTCP", 0.0)
    other = base.instead_of("LR-XTCP", "reno", halves=["clean"]).change("any", one)
    assert [group["protocol"] for group in tomllib.loads(other.text)["flows"]] == ["reno", "LR-XTCP"]


def test_losses_can_be_switched_off() -> None:
    for burst in (1, 4):
        one = base.case(quick(), "LR-XCP", 5.0, burst=burst)
        assert rates(one) == ["5%"]
        assert rates(base.LOSSES_OFF.change("any", one)) == ["0%"]


def rates(case: Case) -> list[str]:
    links = tomllib.loads(case.text)["link"]
    return [channel["rate"] for link in links for channel in link.get("channel", ())]


def test_a_sample_falls_into_the_bin_that_it_ends_in() -> None:
    frame = pl.DataFrame({"time_s": [1.0, 2.0, 3.0, 4.0, 5.0], "value": [1.0, 3.0, 5.0, 7.0, 100.0]})
    assert base.in_bins(frame, 2, 4).rows() == [(2.0, 2.0), (4.0, 6.0)]
