"""Closed forms of channels: the call, the command, and the paper's numbers."""

from __future__ import annotations

import json

import polars as pl
import pytest

import explicate
from explicate import cli

pytestmark = pytest.mark.usefixtures("native_real")


def test_axes_become_columns() -> None:
    frame = explicate.channel_curves("fading", snr=[10, 20], antennas=["1x1", "2x2"], bytes=[40, 1040], code="ideal")
    assert frame.height == 8
    assert frame.columns[:4] == ["channel", "snr", "antennas", "bytes"]
    row = frame.filter(pl.col("snr") == 20, pl.col("antennas") == "1x1", pl.col("bytes") == 1040).row(0, named=True)
    assert row["symbol_error_good"] == pytest.approx(2.481405e-3, rel=1e-6)
    assert row["code_symbol_error"] == pytest.approx(0.0212, rel=5e-3)
    assert row["packet_loss"] == pytest.approx(2.18e-9, rel=5e-3)
    assert row["packet_loss_independent"] == pytest.approx(1.56e-9, rel=5e-3)
    assert row["wire_bytes"] == 1156
    assert row["lost_bytes"] == pytest.approx(1040 * row["code_symbol_error"])


def test_drawn_packets_agree() -> None:
    frame = explicate.channel_curves("fading", snr=15, fec_data=1, bytes=[100], trials=20_000)
    row = frame.row(0, named=True)
    for what in ("lost_bytes", "packet_loss"):
        assert abs(row[f"observed_{what}"] - row[what]) < 4 * row[f"observed_{what}_error"]
    again = explicate.channel_curves("fading", snr=15, fec_data=1, bytes=[100], trials=20_000)
    assert frame.equals(again)


def test_acknowledgements_have_their_own_code() -> None:
    ack = explicate.channel_curves("fading", snr="10dB", bytes=[40], acks=True).row(0, named=True)
    assert ack["wire_bytes"] == 80
    assert ack["packet_loss"] == pytest.approx(4.03e-2, rel=5e-3)


def test_other_channels() -> None:
    assert explicate.channel_curves("burst_loss", rate="2%", bytes=[1000])["packet_loss"].to_list() == [0.02]
    assert explicate.channel_curves("jitter", bytes=[1000]).columns == ["channel", "bytes"]


def test_mistakes_are_named() -> None:
    with pytest.raises(explicate.ScenarioError, match=r"^no channel is called `fadign`; did you mean `fading`.$"):
        explicate.channel_curves("fadign")
    with pytest.raises(explicate.ScenarioError, match="antennas"):
        explicate.channel_curves("fading", antennas="4x4")
    with pytest.raises(ValueError, match="lengths of packets"):
        explicate.channel_curves("fading", bytes=[0])
    with pytest.raises(ValueError, match="up to 100,000,000, not 100000000000000"):
        explicate.channel_curves("fading", trials=10**14)
    assert cli.main(["curves", "random_loss", "--trials", "100000000000000"]) == 2


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["curves", "fading", "--vary", "snr=10dB,20dB", "--set", "fec_data=1", "--bytes", "40"]
    assert cli.main([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["snr"] for row in rows] == ["10dB", "20dB"]
    assert cli.main([*command, "--csv"]) == 0
    assert capsys.readouterr().out.startswith("channel,snr,bytes,")
    assert cli.main(command) == 0
    assert "packet_loss" in capsys.readouterr().out
    assert cli.main(["curves", "fading", "--set", "snr=loud"]) == 2
    assert "decibels" in capsys.readouterr().err
