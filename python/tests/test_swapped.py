"""No verdict is hard-wired: another protocol in a figure's scenario changes it. One experiment of a paper each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from explicate_papers.judge import attempts
from explicate_papers.register import experiments
from explicate_papers.store import Store

PLAIN_VCP: Mapping[str, Any] = {
    "flows.bulk.protocol": "vcp/newreno",
    "flows.bulk.params": {"initial_window": 1, "min_rto": "1s"},
    "topology.access.router": {"kind": "vcp"},
    "topology.bottleneck.router": {"kind": "vcp"},
}

RENO_IN_THE_AIR: Mapping[str, Any] = {
    "flows.bulk.protocol": "reno",
    "flows.bulk.params": {"receiver_window": 20, "clock_tick": "10ms", "ack_every": 2},
}
RENO_OVER_SATELLITES: Mapping[str, Any] = {"flows.long.protocol": "reno", "flows.long.params": {"ecn": True}}

RENO_BESIDE_RENO: Mapping[str, Any] = {"flows.lossy.protocol": "reno", "flows.lossy.params": {"receiver_window": 200}}


def verdicts(experiment: str, settings: Mapping[str, Any], folder: Path) -> dict[str, bool | None]:
    (attempt,) = attempts([experiments()[experiment]], "quick", settings=settings)
    finished = os.environ.get("EXPLICATE_PAPERS_STORE")  # of the same engine: `make papers` has just run the shard
    kept = Store(folder, Store(Path(finished)) if finished else None)
    kept.perform(attempt.block_jobs(0), 2, lambda _done, _all: None)
    return {key: block.holds for key, block in attempt.judge_block(kept, 0).items()}


@pytest.mark.papers
@pytest.mark.usefixtures("native_real")
@pytest.mark.parametrize(
    ("experiment", "predicate", "settings"),
    [
        pytest.param("N-fig7", "N-fig7-a", RENO_IN_THE_AIR, id="N: XCP for Reno"),
        pytest.param(
            "I-fig2", "I-fig2-b", {"flows.bulk.protocol": "reno", "flows.bulk.params": {}}, id="I: XCP for Reno"
        ),
        pytest.param("Y-txt-intro", "Y-txt-intro-a", RENO_OVER_SATELLITES, id="Y: XCP and VCP for Reno"),
        pytest.param("D-fig7a", "D-fig7a-b", RENO_BESIDE_RENO, id="D: XTCP for Reno"),
        pytest.param("K-fig4", "K-fig4-c", PLAIN_VCP, id="K: TCP for VCP"),
    ],
)
def test_another_protocol_changes_the_verdict(
    experiment: str, predicate: str, settings: Mapping[str, Any], tmp_path: Path
) -> None:
    assert verdicts(experiment, {}, tmp_path)[predicate] is True
    assert verdicts(experiment, settings, tmp_path)[predicate] is False
