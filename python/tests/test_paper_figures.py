"""Figures of the papers have what a reader lays beside the paper's: one scale, references of the text, totals, 0 %."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from explicate_papers.gallery import common_range
from explicate_papers.judge import Attempt
from explicate_papers.plan import effort, studies
from explicate_papers.register import experiments
from explicate_papers.statistics import Sample
from explicate_papers.store import Store
from explicate_papers.study import Data, Panel


class Made(Data):
    """Data of no run: every measure is 1 in both seeds."""

    def __init__(self, name: str) -> None:
        one = experiments()[name]
        super().__init__(effort(one, "quick"), Attempt(one, "quick").cases, lambda _: [])

    def measure(self, label: Any, metric: Any) -> Sample:
        return Sample.of([1.0, 1.0])


def drawn(name: str, data: Data) -> Sequence[Panel]:
    make = studies()[name].make_panels
    assert make is not None
    return make(data)


def short(name: str, folder: Path, duration: str) -> Sequence[Panel]:
    """The panels of an experiment whose runs are cut, of the first seed alone."""
    attempt = Attempt(experiments()[name], "quick", settings={"duration": duration})
    store, jobs = Store(folder), [job for job in attempt.block_jobs(0) if job.seed == 1]
    store.perform(jobs, 1, lambda done, all_of: None)
    by_label = dict(zip(attempt.cases, jobs, strict=True))
    return drawn(name, Data(attempt.effort, attempt.cases, lambda label: [store.load(by_label[label])]))


@pytest.mark.parametrize("name", ["Y-fig3", "Y-fig4", "Y-fig5", "Y-fig6", "K-fig5"])
def test_panels_of_systems_have_one_scale(name: str) -> None:
    panels = drawn(name, Made(name))
    assert len(panels) > 1
    assert all(panel.compared for panel in panels)
    assert common_range(panels) is not None


@pytest.mark.parametrize("name", ["N-fig3", "N-fig4", "N-fig5", "N-fig6", "N-txt-zh"])
def test_no_loss_has_a_place(name: str) -> None:
    for panel in drawn(name, Made(name)):
        assert panel.zero is not None
        assert panel.log == "x"
        least = min(x for line in panel.lines for x in line.x if x)
        assert 0 < panel.zero < least
        assert sum(0.0 in line.x for line in panel.lines) == sum(not line.points for line in panel.lines)


@pytest.mark.usefixtures("native_real")
def test_figures_of_paper_i_show_xcp_everywhere(tmp_path: Path) -> None:
    for name, senders in (("I-fig6", ["bulk"]), ("I-fig8", ["i", "j"])):
        window, throughput = short(name, tmp_path, "2s")
        wanted = {f"{one}, {where}" for one in senders for where in ("clouds", "all XCP")}
        assert {line.name for line in window.lines} == wanted
        assert wanted < {line.name for line in throughput.lines}
    assert {"paper, i", "paper, j", "i, gamma = 0"} < {line.name for line in throughput.lines}


@pytest.mark.usefixtures("native_real")
def test_the_total_of_figure_2_is_drawn(tmp_path: Path) -> None:
    for panel in short("D-fig2b", tmp_path, "30s"):
        clean, lossy, total, bottleneck = panel.lines
        assert total.name == "total"
        assert list(total.y) == pytest.approx([a + b for a, b in zip(clean.y, lossy.y, strict=True)])
        assert set(bottleneck.y) == {5.0}
        assert panel.compared


@pytest.mark.usefixtures("native_real")
def test_utilisations_over_satellites_have_one_scale(tmp_path: Path) -> None:
    panels = short("Y-fig7", tmp_path, "100s")
    assert [panel.title.partition(",")[0] for panel in panels] == ["XCP", "VCP", "TCP+REM"]
    assert all(panel.compared for panel in panels)
