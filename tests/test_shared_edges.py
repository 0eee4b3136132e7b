"""The table of XCP-i's laws for edges that share a bottleneck: scenes are scenarios, and the page has all of them."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import shared_edges

from explicate.source import Source


@pytest.mark.parametrize("law", shared_edges.LAWS)
def test_every_scene_is_a_scenario(law: str) -> None:
    for scene in shared_edges.SCENES:
        checked = Source.of(shared_edges.scenario(scene, law)).check([])
        assert checked["duration_s"] == scene.seconds
        assert not checked["warnings"]


def test_round_trips_are_those_of_the_page() -> None:
    scene = shared_edges.Scene(8, late=True, mixed=True)
    delays = {ends: delay for *ends, _, delay in shared_edges.links(scene) for ends in [tuple(ends)]}
    for path, rtt_ms in ((0, 36.0), (7, 276.0)):
        way = [f"s{path}", f"a{path}", "c1", "c2", f"b{path}", f"d{path}"]
        assert 2 * sum(delays[pair] for pair in pairwise(way)) == rtt_ms


def test_the_page_has_the_table() -> None:
    page = shared_edges.PAGE.read_text(encoding="utf-8")
    outcome = shared_edges.Outcome(jain=0.9, drops=3, mbps=28.5)
    lines = list(shared_edges.table([[outcome] * len(shared_edges.LAWS)] * len(shared_edges.SCENES)))
    assert lines[2] == "| 2 | together | 0.900, 3 | 0.900, 3 | 0.900, 3 | 28.50, 28.57 |"
    made = shared_edges.renewed(page, lines)
    assert [line.split("|")[1:3] for line in lines] == [
        line.split("|")[1:3] for line in page.split("<!-- shared-edges:begin -->\n")[1].splitlines()[: len(lines)]
    ]
    assert made.count(lines[2]) == 1
    with pytest.raises(SystemExit, match="0 tables"):
        shared_edges.renewed("# Another page", lines)
