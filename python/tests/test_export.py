"""Exports, read by their target tools: tshark, tc, and the engine's own reader of mahimahi's traces."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
from patience import PATIENCE_S

import explicate
from explicate.cli import main
from explicate.export import convert, mahimahi, netem, qlog
from explicate.export.tcp import read

LOSSY = """\
duration = "6s"
seed = 3
[topology]
kind = "dumbbell"
pairs = 2
access = { rate = "100Mbit/s", delay = "1ms" }
bottleneck = { rate = "4Mbit/s", delay = "20ms", queue = { kind = "droptail", limit = "20pkt" } }
[[flows]]
name = "web"
count = 2
protocol = "reno/sack"
size = "300050B"
[sampling]
every = "100ms"
of = ["throughput", "cwnd", "rtt"]
"""


def tool(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"the tests of exports need {name}: apt-get install {package}")
    return found


def _fields(capture: Path, wanted: str, *names: str) -> list[list[str]]:
    """The fields of the packets that a display filter of tshark's finds."""
    options = [option for name in names for option in ("-e", name)]
    command = [tool("tshark", "tshark"), "-r", str(capture), "-Y", wanted, "-T", "fields", *options]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return [line.split("\t") for line in found.stdout.splitlines()]


@pytest.fixture
def lossy(native_real: object, tmp_path: Path) -> tuple[explicate.Results, Path]:
    """Two transfers over a short queue, and their capture."""
    results = explicate.run(LOSSY, pcap=tmp_path)
    (capture,) = tmp_path.glob("*.pcapng")
    return results, capture


@pytest.mark.parametrize(
    ("name", "file"),
    [("", "text"), ('name = "a/b: <c>?"\n', "a-b- -c"), ('name = "?"\n', "capture"), ('name = "对比"\n', "对比")],
)
def test_captures_have_names_that_windows_allows(native_real: object, tmp_path: Path, name: str, file: str) -> None:
    explicate.run(name + LOSSY, set={"duration": "1s"}, pcap=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{file}.pcapng"]


def test_tcp_analysis_by_tshark(lossy: tuple[explicate.Results, Path], tmp_path: Path) -> None:
    results, capture = lossy
    out = tmp_path / "tcp.pcapng"
    count = convert(capture, out)
    assert len(_fields(out, "tcp", "frame.number")) == count
    assert _fields(out, "_ws.malformed || ip.checksum.status == 0", "frame.number") == []
    assert {row[0] for row in _fields(out, "tcp", "tcp.stream")} == {"0", "1"}, "a connection for each flow"
    for number, flow in enumerate(results.flows.sort("flow").iter_rows(named=True)):
        of = f"ip.addr == 10.1.0.{number}"
        sent = _fields(out, f"{of} && tcp.len > 0", "tcp.seq", "tcp.len")
        ends = {int(sequence) + int(length) for sequence, length in sent}
        assert max(ends) == 1 + 300_050, "every byte of the transfer, from 1"
        again = _fields(out, f"{of} && tcp.analysis.retransmission", "tcp.seq")
        assert flow["retransmissions"] > 0
        resent = len(sent) - len({tuple(row) for row in sent})
        assert resent == flow["retransmissions"]
        assert len(again) + len(_fields(out, f"{of} && tcp.analysis.out_of_order", "tcp.seq")) == resent
        (last,) = _fields(out, f"{of} && tcp.ack == 300051", "tcp.ack")[:1]
        assert last == ["300051"], "and acknowledged to its end"
        (first,) = _fields(out, f"{of} && tcp.flags.syn == 1 && tcp.flags.ack == 1", "tcp.time_relative")
        # Seen before the last link's delay of 1 ms: 22 ms there, 21 ms back, and 0.1 ms for 52 bytes on each line.
        assert float(first[0]) == pytest.approx(0.0432, abs=0.0005)
        assert len(_fields(out, f"{of} && tcp.analysis.ack_rtt", "frame.number")) > 50
    assert len(_fields(out, "tcp.options.sack_le", "tcp.options.sack_le")) > 10
    assert len(_fields(out, "tcp.analysis.bytes_in_flight > 10000", "frame.number")) > 10


def test_the_receivers_side(lossy: tuple[explicate.Results, Path], tmp_path: Path) -> None:
    _, capture = lossy
    links, packets = read(capture)
    assert links[packets[0].link] in {"s0->r1", "s1->r1"}
    assert convert(capture, tmp_path / "there.pcapng", "receiver") > 0
    seen = _fields(
        tmp_path / "there.pcapng", "tcp.stream == 0 && tcp.flags.syn == 1", "frame.time_relative", "tcp.flags.ack"
    )
    assert [ack for _, ack in seen] == ["0", "1"] or [ack for _, ack in seen] == ["False", "True"]
    assert float(seen[1][0]) < 0.003, "the answer leaves the receiver where the request came to it"


def test_what_is_no_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pcapng"
    for contents, words in ((b"", "not a capture"), (b"garbage" * 9, "not a capture")):
        path.write_bytes(contents)
        assert main(["export", "tcp", str(path), "-o", str(tmp_path / "y.pcapng")]) == 2
        assert words in capsys.readouterr().err
    assert main(["export", "tcp", str(path), "-o", str(path)]) == 2
    assert "cannot replace itself" in capsys.readouterr().err
    assert main(["export", "tcp", str(tmp_path / "none"), "-o", str(path)]) == 2
    assert "none: No such file" in capsys.readouterr().err


def test_a_damaged_capture_is_an_error(lossy: tuple[explicate.Results, Path], tmp_path: Path) -> None:
    data = lossy[1].read_bytes()
    cut = tmp_path / "cut.pcapng"
    for end in (13, 29, len(data) // 2 | 1, len(data) - 3):
        cut.write_bytes(data[:end])
        with pytest.raises(ValueError, match=r"ends within a block|no packets of flows"):
            convert(cut, tmp_path / "out.pcapng")


def test_mahimahi_by_hand() -> None:
    rows = [
        (0.5, "throughput_bps", 6e5),
        (0.5, "utilisation", 0.25),
        (1.0, "throughput_bps", 0.0),
        (1.0, "utilisation", 0.0),
    ]
    samples = pl.DataFrame(
        [{"run": 0, "time_s": t, "object": "l", "variable": v, "value": x} for t, v, x in rows], orient="row"
    )
    run = pl.DataFrame({"run": [0], "name": ["x"], "seed": [1], "version": ["0"], "scenario": [""]})
    results = explicate.Results(pl.DataFrame(), pl.DataFrame(), samples, run)
    lines = mahimahi(results, "l").splitlines()
    assert lines[:3] == ["5", "10", "15"], "2.4 Mbit/s are 1500 bytes every 5 ms, also while the link is idle"
    assert len(lines) == 200
    with pytest.raises(ValueError, match="m: no samples of its throughput and utilisation; sampled links are l"):
        mahimahi(results, "m")


def hand_made(samples: list[tuple[int, float, str, float]]) -> explicate.Results:
    """Results of runs 3 and 4 with these samples of the link `l`."""
    frame = pl.DataFrame(
        [{"run": run, "time_s": t, "object": "l", "variable": name, "value": x} for run, t, name, x in samples]
    )
    run = pl.DataFrame({"run": [3, 4], "name": "x", "seed": [8, 9], "version": "0", "scenario": ""})
    flows = pl.DataFrame({"run": [3, 4], "flow": "l", "group": "l", "protocol": "xcp"})
    return explicate.Results(flows, pl.DataFrame(), frame, run)


def test_samples_without_a_value_are_left_out() -> None:
    results = hand_made(
        [
            *((3, 0.5, "throughput_bps", 2.4e6), (3, 0.5, "utilisation", 1.0)),
            *((3, 1.0, "throughput_bps", math.nan), (3, 1.0, "utilisation", math.nan)),
            *((3, 1.5, "throughput_bps", 2.4e6), (3, 1.5, "utilisation", 1.0)),
        ]
    )
    assert len(mahimahi(results, "l").splitlines()) == 300, "2.4 Mbit/s in 1.5 s"
    nothing = hand_made([(3, 0.5, "throughput_bps", math.nan), (3, 0.5, "utilisation", math.nan)])
    with pytest.raises(ValueError, match="l: no samples of its throughput and utilisation"):
        mahimahi(nothing, "l")


def test_the_run_is_found_by_its_number() -> None:
    results = hand_made([(3, 0.5, "cwnd", 4.0), (4, 0.5, "cwnd", 5.0)])
    assert qlog(results)["description"] == "explicate 0, run 3, seed 8"
    log = qlog(results, 4)
    assert log["description"] == "explicate 0, run 4, seed 9"
    assert log["traces"][0]["events"][0]["data"] == {"congestion_window": 7500}
    for export in (lambda run: qlog(results, run), lambda run: mahimahi(results, "l", run)):
        with pytest.raises(ValueError, match="no run 0; they are numbered from 3 to 4"):
            export(0)


@pytest.mark.usefixtures("native_real")
def test_a_trace_gives_the_same_link_again(tmp_path: Path) -> None:
    """The engine reads the export: a trace of 4 Mbit/s carries as much as the link of 4 Mbit/s."""
    long = LOSSY.replace('size = "300050B"\n', "")
    first = explicate.run(long)
    (tmp_path / "link.trace").write_text(mahimahi(first, "r1->r2"), encoding="utf-8")
    path = tmp_path / "again.toml"
    path.write_text(
        long.replace('limit = "20pkt" }', 'limit = "20pkt" }, channel = [{ kind = "trace", file = "link.trace" }]')
    )
    again = explicate.run(path)
    rates = [results.flows["throughput_bps"].sum() for results in (first, again)]
    assert rates[1] == pytest.approx(rates[0], rel=0.02)


@pytest.mark.usefixtures("native_real")
def test_a_trace_gives_the_same_changes_again(tmp_path: Path) -> None:
    """A rate that changes every second comes back as a trace, in every second and after the trace has wrapped."""
    steps = ", ".join(f'{{ at = "{t}s", rate = "{rate}Mbit/s" }}' for t, rate in enumerate((4, 9, 2, 6)))
    link = '[[link]]\nname = "r1->r2"\nchannel = [{}]\n'
    varied = LOSSY.replace('size = "300050B"\n', "").replace('"6s"', '"8s"').replace('"reno/sack"', '"greedy"')
    varied = varied.replace("[sampling]", '[flows.params]\nrate = "20Mbit/s"\n[sampling]')
    first = explicate.run(varied + link.format(f'{{ kind = "rate_steps", steps = [{steps}], period = "4s" }}'))
    half = explicate.run(
        varied + link.format(f'{{ kind = "rate_steps", steps = [{steps}], period = "4s" }}'), set={"duration": "4s"}
    )
    (tmp_path / "link.trace").write_text(mahimahi(half, "r1->r2"), encoding="utf-8")
    path = tmp_path / "again.toml"
    path.write_text(varied + link.format('{ kind = "trace", file = "link.trace" }'), encoding="utf-8")
    seconds = [
        results.samples.filter(pl.col("object") == "r1->r2", pl.col("variable") == "throughput_bps")
        .group_by((pl.col("time_s") - 0.05).floor().alias("second"), maintain_order=True)
        .agg(pl.col("value").mean())["value"]
        .to_list()
        for results in (first, explicate.run(path))
    ]
    assert len(seconds[0]) == 8
    assert max(seconds[0]) > 8e6
    assert seconds[1] == pytest.approx(seconds[0], rel=0.02)


@pytest.mark.usefixtures("native_real")
def test_the_hint_names_a_link_that_was_sampled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    star = {"topology.kind": "star", "duration": "3s", "sampling.of": ["throughput"], "sampling.every": "1s"}
    out = explicate.run('[[flows]]\nname = "f"\nprotocol = "newreno"\n', set=star).write(tmp_path / "out")
    assert main(["export", "mahimahi", str(out)]) == 2
    hint = capsys.readouterr().err.rpartition("--link ")[2].strip()
    assert hint == "r1:h0"
    assert main(["export", "mahimahi", str(out), "--link", hint]) == 0


@pytest.mark.usefixtures("native_real")
def test_qlog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = explicate.run(LOSSY)
    log = qlog(results)
    assert (log["qlog_version"], [trace["title"] for trace in log["traces"]]) == ("0.3", ["web.0", "web.1"])
    event = log["traces"][0]["events"][4]
    assert event["name"] == "recovery:metrics_updated"
    own = results.samples.filter(pl.col("object") == "web.0", (pl.col("time_s") * 1000 - event["time"]).abs() < 1e-3)
    values = dict(own.with_columns(pl.col("variable").cast(pl.String)).select("variable", "value").rows())
    assert event["data"]["latest_rtt"] == values["rtt_ms"]
    assert event["data"]["congestion_window"] == round(values["cwnd"] * 1500)
    folder = results.write(tmp_path / "out")
    assert main(["export", "qlog", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out) == log
    assert main(["export", "qlog", str(folder), "--run", "7"]) == 2
    assert "no run 7" in capsys.readouterr().err


@pytest.mark.usefixtures("native_real")
def test_netem_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lossy.toml"
    channels = '[{ kind = "gilbert_elliott", good = 200, bad = 5 }, { kind = "duplication", rate = 0.001 }]'
    path.write_text(LOSSY.replace('"20pkt" }', f'"20pkt" }}, channel = {channels}'), encoding="utf-8")
    assert main(["export", "netem", str(path), "--link", "r1:r2", "--dev", "eth 1"]) == 0
    name, *comments, command = capsys.readouterr().out.splitlines()
    assert name == "# r1->r2"
    assert all(comment.startswith("# ") for comment in comments)
    words = "netem rate 4000000bit -14 delay 20000us loss gemodel 0.5% 20% 100% 0% duplicate 0.1% limit 27"
    assert command == f"tc qdisc replace dev 'eth 1' root {words}", "20 wait, 1 is sent, 6 of 1500 bytes in 80 kbit"
    assert main(["export", "netem", str(path), "--link", "bottleneck"]) == 0
    assert capsys.readouterr().out.count("tc qdisc") == 2, "the packets on the way back are shorter"
    for link, hint in (("core", "there are bottleneck, access, r1->r2"), ("botleneck", "did you mean `bottleneck`?")):
        assert main(["export", "netem", str(path), "--link", link]) == 2
        assert f"no link `{link}`; {hint}" in capsys.readouterr().err
    assert netem(path, "r1->r2", "eth 1").splitlines()[-1] == command


def test_capacities_that_make_no_trace() -> None:
    for rate, message in ((1.0, "less than one packet"), (1e15, "lines are too many; the maximum is 50000000")):
        results = hand_made([(3, 1.0, "throughput_bps", rate), (3, 1.0, "utilisation", 1.0)])
        with pytest.raises(ValueError, match=message):
            mahimahi(results, "l")
    idle = hand_made([(3, 1.0, "throughput_bps", 0.0), (3, 1.0, "utilisation", 0.0)])
    with pytest.raises(ValueError, match="l: carried nothing in run 3, so its capacity is unknown"):
        mahimahi(idle, "l")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mahimahi", "{out}"], "name the link: --link r1:r2"),
        (["qlog", "{bare}"], 'nothing to write: put of = ["cwnd", "rtt"]'),
        (["qlog", "{out}", "--run", "9"], "no run 9; they are numbered from 0 to 1"),
        (["tcp", "{scenario}"], "name the capture to write: -o tcp.pcapng"),
        (["tcp", "/dev/zero", "-o", "{out}.pcapng"], "/dev/zero: is not a file; name a capture"),
        (["netem", "nowhere.toml"], "nowhere.toml: No such file or directory; `explicate new dumbbell"),
        (["netem", "{out}"], "Is a directory"),
        (["flent", "{out}"], "argument FORMAT: invalid choice: 'flent'"),
    ],
)
def test_requests_that_cannot_be_met(
    arguments: list[str], message: str, scenario: Path, bare_scenario: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    places = {"out": explicate.run(scenario).write(tmp_path / "out"), "scenario": scenario}
    places["bare"] = explicate.run(bare_scenario).write(tmp_path / "bare")
    assert main(["export", *(word.format(**places) for word in arguments)]) == 2
    assert message in capsys.readouterr().err
