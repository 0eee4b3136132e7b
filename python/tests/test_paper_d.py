"""What paper D's experiments share: queues, mutations, bins."""

from __future__ import annotations

import polars as pl

from explicate_papers.de_vleeschouwer import base
from explicate_papers.plan import choices, effort
from explicate_papers.register import experiments
from explicate_papers.study import Effort


def quick() -> Effort:
    return effort(experiments()["D-fig3"], "quick")


def test_red_lies_under_xcp_alone_and_is_raised_for_the_persistent_queue() -> None:
    used = {key: choice.used for key, choice in choices(experiments()["D-fig3"].paper).items()}
    assert 'min_th = "5pkt", max_th = "15pkt"' in base.discipline(used, "LR-XCP_PA")
    assert 'min_th = "15pkt", max_th = "25pkt"' in base.discipline(used, "LR-XCPQ_PA")
    for other in ("LR-XTCP", "reno", "video_xtcp"):
        assert "droptail" in base.discipline(used, other)
    assert "droptail" in base.discipline({**used, "D-P11": "droptail"}, "LR-XCP_PA")


def test_another_protocol_takes_the_place_and_not_the_parameters_of_one() -> None:
    one = base.case(quick(), "LR-LMXTCP", 5.0, clean="reno")
    assert '"recount" = "after_window", "grow_on_duplicates" = true' in one.text
    other = base.instead_of("LR-LMXTCP", "LR-XCP").change("any", one)
    assert 'protocol = "LR-XCP"' in other.text
    assert not any(word in other.text for word in ("LR-LMXTCP", "recount", "grow_on_duplicates"))
    assert len(other.text.split("[[flows]]")[1]) == len(one.text.split("[[flows]]")[1]), "TCP stays as it was"


def test_losses_can_be_switched_off() -> None:
    for burst in (1, 4):
        one = base.case(quick(), "LR-XCP", 5.0, burst=burst)
        assert 'rate = "5%"' in one.text
        off = base.LOSSES_OFF.change("any", one).text
        assert 'rate = "5%"' not in off
        assert 'rate = "0%"' in off


def test_a_sample_falls_into_the_bin_that_it_ends_in() -> None:
    frame = pl.DataFrame({"time_s": [1.0, 2.0, 3.0, 4.0, 5.0], "value": [1.0, 3.0, 5.0, 7.0, 100.0]})
    assert base.in_bins(frame, 2, 4).rows() == [(2.0, 2.0), (4.0, 6.0)]
