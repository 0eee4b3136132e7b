"""Jain's index and the summaries, against their definitions."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explicate.summary import busy_links, group_summary, jain_index, margin_95

RATES = st.lists(st.floats(min_value=0, max_value=1e12), min_size=1, max_size=40).filter(lambda x: max(x) > 1e-300)


def test_known_values() -> None:
    assert jain_index([5, 5, 5]) == 1
    assert jain_index([1, 0, 0, 0]) == 0.25
    assert jain_index([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain_index([1e200, 1e200]) == 1
    assert jain_index([4, None, math.nan, 4]) == 1
    assert math.isnan(jain_index([]))
    assert math.isnan(jain_index([0, 0]))
    with pytest.raises(ValueError, match="not negative"):
        jain_index([1, -1])


@given(RATES)
def test_bounds(values: list[float]) -> None:
    assert 1 / len(values) * (1 - 1e-9) <= jain_index(values) <= 1 + 1e-9


@given(RATES, st.floats(min_value=1e-6, max_value=1e6), st.randoms())
def test_neither_scale_nor_order_matters(values: list[float], factor: float, random: object) -> None:
    scaled = sorted(value * factor for value in values)
    if max(scaled) > 1e-290:
        assert jain_index(scaled) == pytest.approx(jain_index(values), rel=1e-9)


@given(RATES)
def test_equal_shares_only_are_fair(values: list[float]) -> None:
    apart = max(values) - min(values) > 0.01 * max(values)
    assert (jain_index(values) < 1 - 1e-9 / len(values)) or not apart


def _flows(goodput: list[list[float | None]]) -> pl.DataFrame:
    rows = [
        {"run": run, "group": "g", "protocol": "p", "goodput_bps": value, "retransmissions": 2, "timeouts": 1,
         "rtt_mean_ms": math.nan if i == 0 else 40.0, "completion_s": None}
        for run, values in enumerate(goodput)
        for i, value in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"completion_s": pl.Float64, "goodput_bps": pl.Float64})


def test_a_run_counts_once() -> None:
    (row,) = group_summary(_flows([[10.0, 30.0], [50.0, 70.0, 90.0]])).to_dicts()
    assert row["goodput_bps"] == pytest.approx((20 + 70) / 2)
    assert row["goodput_sd_bps"] == pytest.approx(math.sqrt(2 * 25**2))
    assert row["jain"] == pytest.approx((jain_index([10, 30]) + jain_index([50, 70, 90])) / 2)
    assert row["retransmissions"] == (4 + 6) / 2
    assert row["timeouts"] == (2 + 3) / 2
    assert row["rtt_mean_ms"] == 40
    assert row["completion_s"] is None
    assert row["runs"] == 2
    assert margin_95(row["goodput_sd_bps"], row["runs"]) == pytest.approx(12.706 * 25)


def test_a_class_counts_as_many_flows() -> None:
    classes = _flows([[10.0, 30.0]]).with_columns(pl.Series("count", [3, 1]))
    flows = _flows([[10.0, 10.0, 10.0, 30.0]])
    (of_classes,), (of_flows,) = (group_summary(frame).to_dicts() for frame in (classes, flows))
    for name in ("flows", "goodput_bps", "jain", "retransmissions", "timeouts"):
        assert of_classes[name] == pytest.approx(of_flows[name])
    assert jain_index([10, 30], [3, 1]) == pytest.approx(jain_index([10, 10, 10, 30]))


def test_one_run_has_no_spread_and_nothing_sent_no_index() -> None:
    (row,) = group_summary(_flows([[0.0, 0.0]])).to_dicts()
    assert row["goodput_sd_bps"] is None
    assert row["jain"] is None


def _links(**rows: tuple[float, float, int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"link": name, "utilisation": u, "queue_mean_packets": q, "drops_total": d, "marks": m}
            for name, (u, q, d, m) in rows.items()
        ]
    )


def test_links_that_matter() -> None:
    links = _links(idle=(0.1, 0, 0, 0), queue=(0.9, 3, 0, 0), drops=(0.5, 0, 9, 0), marks=(0.5, 0, 0, 4))
    assert busy_links(links) == ["drops", "queue", "marks"]
    assert busy_links(_links(a=(0.1, 0, 0, 0), b=(0.3, 0.05, 0, 0))) == ["b"]
