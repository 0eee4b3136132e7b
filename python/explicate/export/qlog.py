"""Samples of flows as qlog 0.3 (draft-ietf-quic-qlog-main-schema-02, JSON): a trace for each flow of a run.

Windows and round trips become events ``recovery:metrics_updated``, which viewers such as qvis draw. A segment counts
as a whole packet of its flow.
"""

from __future__ import annotations

import tomllib
from typing import Any

import polars as pl

from explicate.errors import BadInputError
from explicate.export.exported import some
from explicate.export.selection import one_run, samples_of
from explicate.export.units import BYTES, quantity
from explicate.results import Results

VERSION = "0.3"
METRICS = {
    "rtt_ms": ("latest_rtt", "ms"),
    "srtt_ms": ("smoothed_rtt", "ms"),
    "base_rtt_ms": ("min_rtt", "ms"),
    "rtt_min_ms": ("min_rtt", "ms"),
    "cwnd": ("congestion_window", "segments"),
    "in_flight": ("bytes_in_flight", "segments"),
    "ssthresh": ("ssthresh", "segments"),
    "pacing_bps": ("pacing_rate", "bit/s"),
}
MOST_SEGMENTS = 1e15
"""A threshold beyond is no number, and is left out as qlog wants it: slow start has none."""


def qlog(results: Results, run: int | None = None) -> dict[str, Any]:
    """Return the traces of one run (by default the first) as a JSON document.

    The configuration of the first trace has the scenario with all defaults, and what has no place in the traces. Raise
    BadInputError if the results vary something, or if neither windows nor round trips of flows were sampled.
    """
    number = one_run(results, run)
    every = samples_of(results, number)
    samples = every.filter(pl.col("variable").is_in(list(METRICS)))
    flows = results.flows.filter(pl.col("run") == number).with_columns(pl.col("flow", "group").cast(pl.String))
    sizes = _packets(results.scenario)
    parts = samples.sort("time_s", maintain_order=True).partition_by("object", as_dict=True, maintain_order=True)
    seed = results.run.filter(pl.col("run") == number)["seed"][0]
    traces, silent = [], list[str]()
    for flow, group, protocol in flows.select("flow", "group", "protocol").rows():
        part = parts.get((flow,))
        if part is None:
            silent.append(flow)
        else:
            traces.append(_trace(flow, protocol, part, sizes.get(group, PACKET)))
    if not traces:
        raise BadInputError('nothing to write: put of = ["cwnd", "rtt"] and every = "100ms" under [sampling]')
    traces[0]["configuration"] = {
        "scenario": results.scenario, "lost": _lost(every, flows, number, results, silent),
    }  # fmt: skip
    return {
        "qlog_version": VERSION,
        "qlog_format": "JSON",
        "title": results.name,
        "description": f"explicate {results.version}, run {number}, seed {seed}",
        "traces": traces,
    }


PACKET = 1500.0


def left_out(document: dict[str, Any]) -> list[str]:
    """Return what a document of `qlog` leaves out."""
    lost: list[str] = document["traces"][0]["configuration"]["lost"]
    return lost


def _lost(samples: pl.DataFrame, flows: pl.DataFrame, number: int, results: Results, silent: list[str]) -> list[str]:
    """Return what the traces leave out: other runs, flows without samples, and samples that qlog has no event for."""
    lost = []
    others = results.run.height - 1
    if others:
        lost.append(f"{others} other runs: a qlog has one, here run {number}")
    if silent:
        lost.append(f"flows without samples: {some(silent)}")
    of_flow = pl.col("object").is_in(flows["flow"].implode())
    known = pl.col("variable").is_in(list(METRICS))
    variables = samples.filter(of_flow, ~known)["variable"].unique(maintain_order=True).to_list()
    if variables:
        lost.append(f"samples of flows: {', '.join(variables)}: no metric of recovery:metrics_updated")
    objects = samples.filter(~of_flow)["object"].unique(maintain_order=True).to_list()
    if objects:
        lost.append(f"samples of links, classes and agents: {some(objects)}: qlog is about connections")
    return lost


def _packets(scenario: str) -> dict[str, float]:
    """Return the packet lengths of the flow groups in bytes."""
    try:
        groups = tomllib.loads(scenario).get("flows", [])
    except tomllib.TOMLDecodeError:
        groups = []
    found = {str(group.get("name")): quantity(group.get("packet", ""), BYTES) for group in groups}
    return {name: size for name, size in found.items() if size}


def _trace(flow: str, protocol: str, samples: pl.DataFrame, packet: float) -> dict[str, Any]:
    events = []
    for (time_s,), part in samples.group_by("time_s", maintain_order=True):
        data: dict[str, float | int] = {}
        for variable, value in part.select("variable", "value").rows():
            name, unit = METRICS[variable]
            if unit == "segments":
                if value < MOST_SEGMENTS:
                    data[name] = round(value * packet)
            else:
                data[name] = round(value) if unit == "bit/s" else value
        if data:
            at = round(float(time_s) * 1000, 6)
            events.append({"time": at, "name": "recovery:metrics_updated", "data": data})
    return {
        "title": flow,
        "description": protocol,
        "vantage_point": {"name": flow, "type": "client"},
        "common_fields": {
            "group_id": flow, "protocol_type": [protocol], "time_format": "relative", "reference_time": 0,
        },
        "events": events,
    }  # fmt: skip
