"""The study "How many bits does feedback need?": its tables, its measures, its verdict, its page."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from explicate.cli import BAD_INPUT, main
from explicate.errors import BadInputError
from explicate.lab import run_source
from explicate.studies import bits, recordings
from explicate.studies.bits import Record
from explicate.studies.tables import Network, Tables, tables
from explicate.studies.verdict import MEASURES, Against, Finding, Word, compared, judge, rungs, sentence, word

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
TEXT = resources.files("explicate.studies").joinpath("bits.toml").read_text(encoding="utf-8")
ROW = """
[[law]]
name = "vegas"
label = "Vegas"
bits = 0
carried = "none"
flows = { protocol = "vegas", params = { alpha = 3 } }
queue = { kind = "droptail", limit = "${limit}pkt" }
"""


def network(name: str) -> Network:
    return next(one for one in tables().networks if one.name == name)


# --------------------------------------------------------------------------------------------------- tables


@pytest.mark.usefixtures("native_real")
def test_every_law_has_a_scenario_on_every_network() -> None:
    for one in tables().networks:
        for law in tables().laws:
            checked = one.source(law).check()
            assert checked["duration_s"] == one.duration
            assert checked["warmup_s"] == one.warmup < one.duration


def test_the_tables_are_complete() -> None:
    known = tables()
    assert {law.bits for law in known.laws} >= {0, 1, 2, 7, 32}
    assert [law.bits for law in known.laws] == sorted(law.bits for law in known.laws)
    assert all(len(law.label) <= 10 and law.carried for law in known.laws)
    quick = [one.name for one in known.chosen_networks([], quick=True)]
    assert {"dumbbell-1", "dumbbell-10", "dumbbell-100", "wifi", "web", "incast"} <= set(quick)
    spans = {one.rate: one.duration for one in known.networks if one.family == "dumbbell"}
    assert (spans[1.0], spans[1000.0], spans[10_000.0]) == (60, 60, 5)
    assert bits.SEEDS["full"] == 20
    for one in known.networks:
        assert one.question.endswith("?"), one.name
        assert one.wanted.endswith("."), one.name
        assert set(one.drawn) <= set(one.measures) <= set(MEASURES)
        assert all(one.floor(name) > 0 for name in one.measures)


@pytest.mark.usefixtures("native_real")
def test_a_row_adds_a_law() -> None:
    known = Tables.of(TEXT + ROW, "mine.toml")
    law = next(law for law in known.laws if law.name == "vegas")
    assert known.laws.index(law) < next(i for i, one in enumerate(known.laws) if one.bits)
    assert "alpha = 3" in network("wifi").source(law).check()["resolved"]


def test_the_air_changes_params_where_losses_are_no_sign() -> None:
    vcp = next(law for law in tables().laws if law.name == "vcp")
    assert '"on_loss" = "keep"' in network("geo-keep").text(vcp)
    assert '"on_loss"' not in network("geo").text(vcp)
    assert '"t_rho" = "750ms"' in network("geo-keep").text(vcp)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bits = 2\n", "", "[[law]] vcp: lacks `bits`"),
        ("bits = 2\n", "bits = 2\nqeue = 1\n", "[[law]] vcp: unknown key `qeue`; did you mean `queue`?"),
        ('name = "abc"', 'name = "xcp"', "two rows of [[law]] are called xcp"),
        ('flows = { protocol = "rcp" }', "flows = {}", "[[law]] rcp: `flows` lacks `protocol`"),
        ('measures = ["burst"', 'measures = ["bust"', "[[network]] incast: no measure 'bust'; the measures are: use, "),
        ("rates = [1000]", "rates = []", "[[network]] incast: lacks `rates`"),
        ("at = { 10000 =", "at = { 10 = {}, 7 =", "[[network]] dumbbell: `at` has 7, which is none of its `rates`"),
        ("{ duration = 5,", "{ duraton = 5,", "[[network]] dumbbell: unknown key `duraton`; did you mean `duration`?"),
        ('trace = "cellular"', 'trace = "lunar"', "[[network]] cellular: no trace 'lunar'; [trace] has cellular"),
        ("rtt = 0.1\n", "", "[[network]] incast: lacks `rtt`"),
        ("\n[[law]]\n", "\n[[law\n", "mine.toml: "),
    ],
)
def test_a_wrong_row_is_refused_by_its_name(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(BadInputError) as raised:
        Tables.of(TEXT.replace(old, new, 1), "mine.toml")
    assert str(raised.value).startswith("mine.toml: ")
    assert said in str(raised.value)


def test_a_name_stands_for_all_rates_of_a_network() -> None:
    known = tables()
    assert [one.name for one in known.chosen_networks(["dumbbell"], quick=True)] == [
        "dumbbell-1", "dumbbell-10", "dumbbell-100",
    ]  # fmt: skip
    assert [one.name for one in known.chosen_networks(["dumbbell-50", "geo"], quick=True)] == ["dumbbell-50", "geo"]
    assert len(known.chosen_networks(["dumbbell"], quick=False)) == 11
    assert [law.name for law in known.chosen_laws(["xcp", "cubic"])] == ["cubic", "xcp"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["bits", "--only", "dumbel"],
            "there is no network 'dumbel'; did you mean `dumbbell`?; the networks are: dumbbell, ",
        ),
        (["bits", "--laws", "tahoe"], "there is no law 'tahoe'; "),
        (["bits", "--laws", "tahoe"], "the laws are: cubic, cubic-fq, bbr, "),
        (["bits", "-o", "no/such/folder.json"], "no/such/folder.json: is no name for a file in a folder that exists"),
        (["bytes"], "there is no study 'bytes'; the studies are: bits"),
        (["bits", "--only", "trace"], "--only trace stands for recordings; add --trace FILE"),
        (["bits", "--trace", "no.trace"], "no.trace: there is no such file; a recording has one whole number per line"),
        (["bits", "--trace", "."], ".: is no file; a recording has one whole number per line"),
        (["capacity", "--only", "trace"], "--only trace stands for recordings; add --trace FILE"),
        (["capacity", "--trace", "no.trace"], "no.trace: there is no such file; a recording has one whole number per"),
        (["papers", "--trace", "a.trace"], "--trace adds recordings to the studies bits and capacity, not to papers"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_runs(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", *arguments]) == BAD_INPUT
    assert said in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------- measures


def frame(**columns: Sequence[Any]) -> pl.DataFrame:
    return pl.DataFrame(columns)


def test_a_changing_line_drains_by_its_rates() -> None:
    trace = [2.0, 4.0, 1.0]  # Mbit/s, half a second each
    assert bits._follow(trace, 0.0, 0.0) == 0.0
    assert bits._follow(trace, 0.25, 0.5e6) == pytest.approx(0.25)
    assert bits._follow(trace, 0.25, 1.5e6) == pytest.approx(0.25 + 0.25)
    assert bits._follow(trace, 0.75, 2e6) == pytest.approx(0.25 + 1.0), "the last rate lasts"


def test_use_counts_each_link_that_a_flow_crosses() -> None:
    flows = frame(group=["long", "beside"], goodput_bps=[10e6, 15e6])
    assert bits._use(network("parking"), flows) == pytest.approx((3 * 10 + 15) / 60)
    assert bits._use(network("rtts"), flows) == pytest.approx(25 / 20)


def test_fairness_is_that_of_shares() -> None:
    flows = frame(group=["long", "first"], goodput_bps=[3e6, 12e6], size_bytes=[None, None])
    assert bits._jain(network("half"), flows) == pytest.approx(1.0)
    assert bits._jain(network("rtts"), flows) == pytest.approx(15**2 / (2 * (9 + 144)))


def test_slowdowns_by_size() -> None:
    web = network("web")  # 20 Mbit/s, two round trips of 60 ms
    sizes = [14_480, 144_800, 1_448_000, 14_480, 14_480]  # 6, 60, 600 ms of the line
    flows = frame(
        group=["web"] * 5,
        size_bytes=sizes,
        start_s=[20.0, 20.0, 20.0, 5.0, 40.0],
        completion_s=[0.252, 0.36, 1.44, 9.0, None],
    )
    found = bits._slowdowns(web, flows)
    assert found["short"] == pytest.approx((2 + 20 / 0.126) / 2), "one took 20 s at least, one began in the warm-up"
    assert found["middle"] == pytest.approx(2)
    assert found["large"] == pytest.approx(2)
    assert bits._slowdowns(web, flows.head(0)) == {}


def test_a_burst_ends_with_its_last_byte() -> None:
    flows = frame(
        group=["a", "a", "b", "b"], size_bytes=[60_331, 60_331] * 2, start_s=[0.5, 0.5001, 1.5, 1.5],
        completion_s=[0.001, 0.0024, 0.001, 0.0012],
    )  # fmt: skip
    ideal = 0.0002 + 1e-9 * 8 * 2 * 60_331 / bits.PAYLOAD
    assert bits._slowdowns(network("incast"), flows)["burst"] == pytest.approx((0.0025 + 0.0012) / 2 / ideal)


# --------------------------------------------------------------------------------------------------- verdict


def two(mean: float, spread: float = 0.01) -> list[list[float]]:
    return [[mean * (1 - spread), mean, mean * (1 + spread)]] * 2


def test_a_difference_counts_if_both_blocks_have_it() -> None:
    assert compared("use", two(0.9), two(0.7), 0.02) == 1
    assert compared("use", two(0.7), two(0.9), 0.02) == -1
    assert compared("p99", two(10.0), two(20.0), 4.0) == 1, "less delay is better"
    assert compared("use", two(0.9), two(0.85), 0.02) == 0, "less than a tenth"
    assert compared("p99", two(1.0), two(3.0), 4.0) == 0, "less than the floor"
    assert compared("use", two(0.9, 0.2), two(0.7, 0.2), 0.02) == 0, "the intervals overlap"
    low, high = two(0.7)[0], two(0.9)[0]
    assert compared("use", [high, low], [low, high], 0.02) == 0, "the blocks contradict each other"
    assert compared("use", [high, high], [low, high], 0.02) == 0, "one block does not have it"
    assert compared("use", [[0.9], [0.9]], [[0.1], [0.1]], 0.02) == 0, "one seed has no interval"
    assert compared("use", [[math.nan] * 3] * 2, two(0.7), 0.02) == 0
    assert compared("loss", two(0.0), two(5.0), 0.1) == 1


BITS = {"end": 0, "queue": 0, "mark": 1, "rate": 32}
LABELS = {name: name.upper() for name in BITS}
FLOORS = {"use": 0.02, "p99": 1.0}


def values(**laws: tuple[float, float]) -> dict[str, dict[str, list[list[float]]]]:
    return {name: {"use": two(use), "p99": two(delay)} for name, (use, delay) in laws.items()}


def test_bits_buy_trade_or_buy_nothing() -> None:
    found = judge(values(end=(0.9, 80), queue=(0.9, 20), mark=(0.9, 10), rate=(0.7, 5)), BITS, FLOORS)
    assert set(found) == {"mark", "rate"}
    assert found["mark"].word is Word.BUYS
    assert found["rate"].word is Word.TRADES
    assert found["rate"].against[0] == Against("end", ("p99",), ("use",))
    again = judge(values(end=(0.9, 80), queue=(0.9, 20), mark=(0.9, 20), rate=(0.9, 5)), BITS, FLOORS)
    assert (again["mark"].word, again["rate"].word) == (Word.NOTHING, Word.BUYS)
    worse = judge(values(end=(0.9, 5), mark=(0.9, 20)), BITS, FLOORS)
    assert worse["mark"].word is Word.NOTHING
    assert word([Against("a", ("use",), ()), Against("b", (), ())]) is Word.NOTHING


def test_verdicts_in_words() -> None:
    found = judge(values(end=(0.9, 80), queue=(0.9, 20), mark=(0.9, 10), rate=(0.7, 5)), BITS, FLOORS)
    best = rungs(found, BITS)
    assert list(best) == [1, 32]
    delay = "p99 delay"
    assert sentence(1, best[1], LABELS, BITS) == (
        f"1 bit buys something: MARK is better than END and QUEUE in {delay}, and in nothing worse."
    )
    assert sentence(32, best[32], LABELS, BITS) == (
        f"32 bits trade: RATE is better than END, QUEUE and MARK in {delay}, but worse than END, QUEUE and MARK in use."
    )
    nothing = judge(values(end=(0.9, 5), queue=(0.9, 20), mark=(0.9, 20)), BITS, FLOORS)
    assert sentence(1, rungs(nothing, BITS)[1], LABELS, BITS) == (
        f"1 bit buys nothing: END (0 bits) is as good as MARK in every measure, and better in {delay}."
    )


def test_bits_buy_what_the_best_of_their_laws_buys() -> None:
    bought, traded = Finding("a", Word.BUYS, ()), Finding("b", Word.TRADES, ())
    none, other = Finding("c", Word.NOTHING, ()), Finding("d", Word.BUYS, ())
    counts = {"a": 1, "b": 1, "c": 2, "d": 1}
    found = rungs({"b": traded, "a": bought, "c": none, "d": other}, counts)
    assert found == {1: [bought, other], 2: [none]}


# ------------------------------------------------------------------------------------------------------ runs


def tiny() -> Network:
    return replace(network("dumbbell-1"), duration=3.0, warmup=1.0)


@pytest.mark.usefixtures("native_real")
def test_a_cell_runs_is_stored_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laws, shares = tables().chosen_laws(["cubic", "xcp"]), list[float]()
    store = tmp_path / "store"
    record = bits.perform([tiny()], laws, seeds=2, store=store, progress=shares.append)
    assert shares == [i / 8 for i in range(1, 9)]
    assert set(record.values["dumbbell-1"]) == {"cubic", "xcp"}
    for measures in record.values["dumbbell-1"].values():
        assert set(measures) == set(tiny().measures)
        assert all(
            len(block) == 2 and all(map(math.isfinite, block)) for blocks in measures.values() for block in blocks
        )
        assert all(0 < value < 2 for block in measures["use"] for value in block), "two seconds"
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json") == record
    verdict = bits.verdict(tiny(), record.values["dumbbell-1"])
    assert [one.split()[0] for one in verdict.sentences] == ["32"]
    head, body = bits.table(tiny(), record.values["dumbbell-1"])
    assert head[-3:] == ["Jain", "drops, %", "its bits"]
    assert [row[:2] for row in body] == [["CUBIC", "0"], ["XCP", "32"]]

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("no room")

    damaged = next(store.glob("*-cubic-1-*.json"))
    monkeypatch.setattr(bits, "run_source", refuse)
    assert bits.perform([tiny()], laws, seeds=2, store=store) == record, "nothing runs twice"
    damaged.write_text("{", encoding="utf-8")
    failed = bits.perform([tiny()], laws, seeds=2, store=store)
    assert failed.failed == {"dumbbell-1": {"cubic": "seed 1: no room"}}
    assert set(failed.values["dumbbell-1"]) == {"xcp"}


@pytest.mark.usefixtures("native_real")
def test_the_command_prints_tables_and_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = Tables(tables().laws, (tiny(),), frozenset({"dumbbell-1"}))
    for module in ("explicate.studies.tables", "explicate.studies.bits"):
        monkeypatch.setattr(f"{module}.tables", lambda: small)
    monkeypatch.setattr(bits, "SEEDS", {"quick": 2, "full": 3})
    out = tmp_path / "bits.json"
    words = ["study", "bits", "--quick", "--laws", "cubic,dctcp", "--store", str(tmp_path / "s"), "-o", str(out)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "dumbbell-1: One bottleneck of 1 Mbit/s" in shown
    assert "\n1 bit " in shown
    assert json.loads(out.read_text(encoding="utf-8"))["seeds"] == 2
    assert main(["study", "bits", "--list"]) == 0
    assert "accelerate or brake" in capsys.readouterr().out


@pytest.mark.usefixtures("native_real")
def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laws, run, runs, armed = tables().chosen_laws(["cubic"]), run_source, list[int](), [True]

    def stopped(*args: Any, **kwargs: Any) -> Any:
        runs.append(kwargs["seed"])
        if armed and len(runs) > 2:
            raise KeyboardInterrupt
        return run(*args, **kwargs)

    monkeypatch.setattr(bits, "run_source", stopped)
    extents = list[bits.Extent]()
    with pytest.raises(KeyboardInterrupt):
        bits.perform([tiny()], laws, seeds=3, store=tmp_path, begin=extents.append)
    assert len(list(tmp_path.glob("*.json"))) == 2
    armed.clear()
    runs.clear()
    record = bits.perform([tiny()], laws, seeds=3, store=tmp_path, begin=extents.append)
    assert [(one.runs, one.missing, one.work) for one in extents] == [(6, 6, 18.0), (6, 4, 12.0)], "1 Mbit/s, 3 s"
    assert all(len(block) == 3 for block in record.values["dumbbell-1"]["cubic"]["use"])
    assert len(runs) == 4


def test_what_is_to_do_in_words() -> None:
    hour = 3600 * bits.SPEED
    assert bits.Extent(400, 400, 4 * hour).words(2) == "400 of 400 runs to do; about 2.0 h (2 at a time)"
    assert bits.Extent(4000, 10, hour / 60).words(1) == (
        "10 of 4,000 runs to do, 3,990 are stored; about 1 min (1 at a time)"
    )
    assert bits.Extent(400, 0, 0.0).words(2) == "all 400 runs are stored"


# ------------------------------------------------------------------------------------------------ recordings


def test_a_recording_has_the_rates_of_its_half_seconds(tmp_path: Path) -> None:
    # A second: 500 chances up to 500 ms, 12 Mbit/s; 50 then, 1.2. It repeats.
    times = [*range(1, 501), *range(510, 1001, 10)]
    assert recordings.rates_of(times, 2.0) == (12.0, 1.2, 12.0, 1.2)
    assert recordings.rates_of([1200], 2.0) == (0.05, 0.05, 0.05, 0.05), "one chance in 1.2 s"
    file = tmp_path / "LTE $1.down"
    file.write_text("\n".join(map(str, times)) + "\n", encoding="ascii")
    known = recordings.with_recordings(tables(), [str(file), str(file)])
    one, two = known.networks[-2:]
    assert (one.name, two.name, one.family) == ("trace-LTE-1.down", "trace-LTE-1.down~2", "trace")
    assert known.chosen_networks(["trace"], quick=True) == [one, two]
    assert one.rate == one.mean_mbps == pytest.approx(6.6)
    assert one in known.chosen_networks([], quick=True)
    assert one not in tables().networks


@pytest.mark.usefixtures("native_real")
def test_a_recording_is_a_network_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "LTE $1.down", tmp_path / "mine.json"
    file.write_text("\n".join(str(ms) for ms in range(2, 9001, 2)), encoding="ascii")
    (made,) = recordings.with_recordings(tables(), [str(file)]).chosen_networks(["trace"], quick=True)
    for law in tables().laws:
        warned = [len(one.source(law).check()["warnings"]) for one in (made, network("cellular"))]
        assert warned[0] == warned[1], law.name
    monkeypatch.setattr(bits, "SEEDS", {"quick": 1, "full": 1})
    words = ["study", "bits", "--only", "trace", "--trace", str(file), "--laws", "cubic,abc"]
    assert main([*words, "--store", str(tmp_path / "s"), "-o", str(out)]) == 0
    shown, said = capsys.readouterr()
    assert "trace-LTE-1.down: The recording LTE $1.down" in shown
    assert "4 of 4 runs to do; about 1 min" in said
    record = Record.read(out)
    assert set(record.values) == {"trace-LTE-1.down"}
    assert all(0.5 < value < 1.01 for law in record.values[made.name].values() for (value,) in law["use"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no line above 0; a recording has one whole number per line"),
        ("0\n0\n", "has no line above 0"),
        ("1\n2.5\n", "mine.trace:2: '2.5' is no time; a recording has one whole number per line"),
        ("1\n\n3\n", "mine.trace:2: '' is no time"),
        ("# made by hand\n", "mine.trace:1: '# made by hand' is no time"),
        ("5\n4\n", "mine.trace:2: 4 comes after 5; sort the lines"),
        ("9" * 30, "mine.trace:1: '" + "9" * 30 + "' is no time"),
        ("\xfc", "mine.trace: is not text"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_its_line(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.trace").write_text(text, encoding="latin-1")
    for study in ("bits", "capacity"):
        assert main(["study", study, "--list", "--trace", "mine.trace"]) == BAD_INPUT
        assert said in capsys.readouterr().err


def test_the_page_has_no_network_of_a_user(script: Any) -> None:
    record = Record.read(script.RECORD)
    more = replace(record, values={**record.values, "trace-LTE.down": record.values["cellular"]})
    assert script.page(more) == script.page(record)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"values": 3}', '{"values": {"a": {"b": {"c": 1}}}}'])
def test_what_is_no_record_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match="is not a record of this study"):
        Record.read(path)


# ------------------------------------------------------------------------------------------------------ page


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_bits", SCRIPTS / "make_bits.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_bits", module)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_command_writes(script: Any) -> None:
    record = Record.read(script.RECORD)
    assert script.PAGE.read_text(encoding="utf-8") == script.page(record), "scripts/make_bits.py renews it"
    for one in script.networks(record)[:: len(record.values) - 1]:  # a figure takes half a second
        figure = script.figure(one, record.values[one.name], record.seeds)
        assert script.image(one).read_text(encoding="utf-8") == figure, "scripts/make_bits.py renews it"


def test_what_the_record_lacks_is_on_the_page(script: Any) -> None:
    record = Record.read(script.RECORD)
    for name, found in record.values.items():
        assert set(found) <= {law.name for law in tables().laws}, name
        for measures in found.values():
            assert set(measures) == set(network(name).measures)
            assert all(len(block) == record.seeds for blocks in measures.values() for block in blocks)
    laws = {law: one for law, one in record.values["web"].items() if law != "vcp"}
    fewer = replace(record, values={"web": laws}, failed={"web": {"vcp": "seed 1: no room"}})
    text = script.page(fewer)
    assert "vcp on web failed (seed 1: no room)" in text
    assert "Not on record: VCP" in text
    assert "; networks dumbbell-1, " in text
