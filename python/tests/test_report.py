"""The page without a browser: one file, correct numbers, bounded size, and a message if samples are missing."""

import json
import re
import tomllib
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import fake_native
import polars as pl
import pytest

import explicate
from explicate.charts import Axes, Bar
from explicate.cli import main
from explicate.figures import POINT, Panel, label_points
from explicate.report import _library, page, panel_html
from explicate.results import Results

VOID = {"meta", "link", "br"}


class _Outline(HTMLParser):
    """Checks that elements nest, and collects addresses and cells."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href", "action"}]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _cells(html: str, table: str) -> list[list[str]]:
    body = re.search(rf'<table id="{table}".*?<tbody>(.*?)</tbody>', html, re.DOTALL)
    assert body is not None
    return [
        [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", body[1])
    ]


def test_one_file_that_asks_for_nothing(scenario: Path) -> None:
    html = page(explicate.run(scenario))
    outline = _Outline()
    outline.feed(html)
    assert outline.open == []
    assert outline.addresses[0] == "data:,"
    assert [address[0] for address in outline.addresses[1:]] == ["#"] * (len(outline.addresses) - 1)
    assert {address[1:] for address in outline.addresses[1:]} <= set(outline.ids), (
        "every link of the contents leads somewhere"
    )
    assert len(outline.ids) == len(set(outline.ids))
    own = html.replace(_library("uPlot.iife.min.js"), "")  # whose first line names its home
    assert not re.search(r"@import|url\(|https?://", own)
    assert len(own.encode()) < 100_000
    assert "Permission is hereby granted" in html, "the licence goes where the library goes"
    assert "&lt;text&gt;" not in html
    assert "far &amp; away" in html
    assert "far & away" not in html


def test_the_same_results_give_the_same_page(scenario: Path, tmp_path: Path) -> None:
    folder = explicate.run(scenario, jobs=1).write(tmp_path / "out")
    assert page(Results.load(folder)) == page(explicate.run(scenario, jobs=2))
    assert str(tmp_path) not in page(Results.load(folder))


def test_numbers_of_the_tables(scenario: Path) -> None:
    results = explicate.run(scenario, set={"flows.0.protocol": "newreno"})
    near, far = _cells(page(results), "groups")
    mean = sum(fake_native.goodput("newreno", i, 7 + run) for i in range(3) for run in range(2)) / 6
    assert near[:4] == ["near", "newreno", "3", f"{mean / 1e3:.0f} kbit/s"]
    assert near[5] == f"{results.jain('near'):.3f}"
    assert near[6] == "21"
    assert far[0] == "far & away"
    (link,) = _cells(page(results), "links")
    assert link[:3] == ["r1->r2", "97.0 %", "2.50"]


def test_the_scenario_is_whole(scenario: Path) -> None:
    results = explicate.run(scenario, seed=11)
    html = page(results)
    text = re.search(r'<pre id="scenario-text"[^>]*>(.*?)</pre>', html, re.DOTALL)
    assert text is not None
    assert unescape(text[1]) == results.scenario
    assert tomllib.loads(unescape(text[1]))["seed"] == 11
    assert "<dt>Seeds</dt><dd>11, 12</dd>" in html
    assert "<dt>explicate</dt><dd>0.1.0</dd>" in html


def _charts(html: str, figure: str) -> list[dict[str, Any]]:
    """The data of each chart of a figure."""
    section = html[html.index(f'id="{figure}"') :].partition("</section>")[0]
    return [json.loads(unescape(text)) for text in re.findall(r"data-chart='([^']+)'", section)]


def test_every_figure_has_lines(scenario: Path) -> None:
    html = page(explicate.run(scenario))
    for figure, lines in (("throughput", 5), ("delay", 2), ("queue", 1), ("rtt", 2), ("fairness", 1)):
        (chart,) = _charts(html, figure)
        assert len(chart["series"]) == lines
        assert all(len(one["x"]) > 10 for one in chart["series"])
    assert len(_charts(html, "goodput")[0]["bars"]) == 5


def test_comparison_stands_side_by_side(scenario: Path) -> None:
    html = page(explicate.compare(scenario, ["xcp", "newreno"]))
    flows = ["near/0", "near/1", "near/2", "far & away/0", "far & away/1"]
    for figure, lines in (("delay", ["xcp", "newreno"]), ("throughput", flows)):
        charts = _charts(html, figure)
        assert len(charts) == 2
        assert all([one["name"] for one in chart["series"]] == lines for chart in charts)
        assert {tuple(chart["x"]["range"]) for chart in charts} == {(0, 20)}, "as long as the run"
        assert charts[0]["y"] == charts[1]["y"], "on equal axes"
    assert "What differs with newreno" in html
    assert "\n-protocol = &quot;xcp&quot;" in html or '\n-protocol = "xcp"' in html


def test_the_head_says_what_differs(scenario: Path) -> None:
    assert "<dt>Compared</dt><dd>xcp, newreno</dd>" in page(explicate.compare(scenario, ["xcp", "newreno"]))
    swept = page(explicate.sweep(scenario, {"flows.0.count": [2, 4]}))
    assert "<dt>Varied</dt><dd>flows.0.count</dd>" in swept
    assert '<th scope="col">flows count</th>' in swept, "columns have the names of the response curves"


def test_missing_samples_say_what_to_add(bare_scenario: Path, scenario: Path) -> None:
    html = page(explicate.run(bare_scenario))
    notice = unescape(html[html.index('id="missing"') :].partition("</section>")[0])
    assert '[sampling]\nevery = "100ms"\nof = ["throughput", "queue", "rtt", "cwnd"]' in notice
    assert 'id="goodput"' in html
    assert 'id="queue"' not in html
    partly = page(explicate.run(scenario, set={"sampling.of": ["queue", "rtt"]}))
    assert 'of = ["throughput", "cwnd"]' in unescape(partly)
    whole = page(explicate.run(scenario, set={"sampling.of": ["throughput", "queue", "rtt", "cwnd"]}))
    assert 'id="missing"' not in whole


def test_warnings_are_shown(scenario: Path) -> None:
    assert "the run is all warm-up" in page(explicate.run(scenario, set={"warmup": "20s"}))
    assert "<h2>Warnings" not in page(explicate.run(scenario))


@pytest.mark.parametrize("points", [1, 12])
def test_a_long_study_stays_under_two_megabytes(scenario: Path, points: int) -> None:
    few = explicate.run(scenario, runs=1)
    steps, groups = 60_000 // points, [f"group {i}" for i in range(12)]
    time = pl.int_range(steps, eager=True).cast(pl.Float64) / 10
    noise = ((time * 7919).sin() * 1e6 + 1e6).alias("value")
    flows = pl.concat([few.flows.head(1).with_columns(flow=pl.lit(f"f{g}"), group=pl.lit(g)) for g in groups])
    number = few.run["run"]
    samples = pl.concat(
        [
            pl.DataFrame({"time_s": time, "value": noise}).select(
                pl.lit(number[0], pl.UInt32).alias("run"), "time_s",
                pl.lit(f"f{g}" if variable != "queue_packets" else "r1->r2").alias("object"),
                pl.lit(variable).alias("variable"), "value",
            )
            for g in groups
            for variable in ("throughput_bps", "rtt_ms", "queue_packets")
            if variable != "queue_packets" or g == groups[0]
        ]
    )  # fmt: skip
    tables = {"flows": flows, "links": few.links, "samples": samples, "run": few.run}
    if points > 1:
        at = pl.DataFrame({"variant": [f"v{i}" for i in range(points)]})
        tables = {name: at.join(frame, how="cross") for name, frame in tables.items()}
    big = Results(**tables, axes=("variant",) if points > 1 else ())  # type: ignore[arg-type]
    html = page(big)
    assert 50_000 < len(html.encode()) < 2_000_000
    assert "are drawn" in html


def test_the_command(scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["run", str(scenario), "-o", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    assert f"written: {out}/report.html" in capsys.readouterr().out
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["report", str(out), "-o", str(tmp_path / "elsewhere" / "page.html")]) == 0
    assert (tmp_path / "elsewhere" / "page.html").stat().st_size > 10_000
    (out / "links.parquet").unlink()
    assert main(["report", str(out)]) == 2
    assert "links.parquet: missing from the results" in capsys.readouterr().err


def test_points_have_short_names_if_those_differ() -> None:
    frame = pl.DataFrame({"flows.0.count": [5], "link.a->b.rate": ["1%"], "flows.1.count": [6]})
    assert label_points(frame, ["flows.0.count", "link.a->b.rate"])[POINT][0] == "count = 5, rate = 1%"
    assert label_points(frame, ["flows.0.count", "flows.1.count"])[POINT][0] == "flows.0.count = 5, flows.1.count = 6"
    assert label_points(frame, [])[POINT][0] == ""


def test_names_that_do_not_fit_below_bars_are_numbered_and_listed() -> None:
    frame = Axes("losses and marks", "", "packets", (0, 4), (0, 10))
    bars = [Bar(f"{i}", 0, i) for i in range(4)]
    short = [(0.5 + i, f"p{i}") for i in range(4)]
    long = [(0.5 + i, f"delay = {i}ms, protocol = newreno") for i in range(4)]
    assert "<ol" not in panel_html(Panel("", frame, bars=tuple(bars), names=tuple(short)), 100)
    html = panel_html(Panel("", frame, bars=tuple(bars), names=tuple(long)), 100)
    assert '[0.5,"1"],[1.5,"2"]' in html.replace("&quot;", '"')
    assert html.count("<li>delay = ") == 4
