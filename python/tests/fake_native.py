"""An engine without a simulator: synthetic tables with the shape, and the errors, of the compiled one.

Every number is a closed form of its row, so that tests can know it. `install()` replaces
``explicate._native`` by the module; executors use it as the initializer of their workers.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
import tomllib
from collections.abc import Callable
from typing import Any

import polars as pl

PROTOCOLS = ("xcp", "newreno", "vcp", "xcp/loss_monitor")
RATE_BPS = 8e6
SAMPLE_S = 0.5


class ScenarioError(ValueError):
    pass


def _bad(message: str) -> ValueError:
    """The error that the loaded `explicate` catches, whichever engine it was imported with."""
    engine = sys.modules.get("explicate.engine")
    kind: type[ValueError] = ScenarioError if engine is None else engine.ScenarioError
    return kind(message)


class Table:
    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


class Output:
    def __init__(self, tables: dict[str, pl.DataFrame], warnings: list[str], trace: str, timing: str) -> None:
        self.flows, self.links, self.samples, self.run = (
            Table(tables[name]) for name in ("flows", "links", "samples", "run")
        )
        self.warnings, self.trace, self.timing = warnings, trace, timing
        self.unused: list[tuple[str, str]] = []


FLOW_COLUMNS: dict[str, Any] = {
    "run": pl.UInt32, "flow": pl.String, "group": pl.String, "protocol": pl.String, "start_s": pl.Float64,
    "size_bytes": pl.UInt64, "goodput_bps": pl.Float64, "throughput_bps": pl.Float64, "sent_packets": pl.UInt64,
    "retransmissions": pl.UInt64, "timeouts": pl.UInt64, "rtt_mean_ms": pl.Float64, "completion_s": pl.Float64,
}  # fmt: skip
LINK_COLUMNS: dict[str, Any] = {
    "run": pl.UInt32, "link": pl.String, "utilisation": pl.Float64, "queue_mean_packets": pl.Float64,
    "queue_mean_nonempty": pl.Float64, "queue_p95_packets": pl.Float64, "queue_max_packets": pl.UInt64,
    "queue_mean_ms": pl.Float64, "queue_mean_bytes": pl.Float64, "queue_peak_packets": pl.UInt64,
    "drops_overflow": pl.UInt64, "drops_early": pl.UInt64, "drops_channel": pl.UInt64, "drops_total": pl.UInt64,
    "marks": pl.UInt64, "time_to_90_s": pl.Float64,
}  # fmt: skip
SAMPLE_COLUMNS: dict[str, Any] = {
    "run": pl.UInt32, "time_s": pl.Float64, "object": pl.String, "variable": pl.String, "value": pl.Float64,
}  # fmt: skip
RUN_COLUMNS: dict[str, Any] = {
    "run": pl.UInt32, "name": pl.String, "seed": pl.UInt64, "version": pl.String, "scenario": pl.String,
}  # fmt: skip
SCHEMAS = {"flows": FLOW_COLUMNS, "links": LINK_COLUMNS, "samples": SAMPLE_COLUMNS, "run": RUN_COLUMNS}


def version() -> str:
    return "0.1.0"


def registry() -> str:
    parameter = {
        "name": "alpha",
        "default": "0.4",
        "unit": "",
        "source": "section 3.5",
        "doc": "gain of spare bandwidth",
    }
    entries: list[dict[str, Any]] = [
        {"kind": "protocol", "name": name, "summary": f"about {name}", "source": "a paper", "parameters": []}
        for name in PROTOCOLS
    ]
    entries[0]["parameters"] = [parameter]
    entries.append({"kind": "qdisc", "name": "droptail", "summary": "a queue", "source": "", "parameters": []})
    return json.dumps(entries)


def schema() -> str:
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"})


def columns() -> str:
    return json.dumps(
        {
            table: [{"name": name, "unit": name.rsplit("_", 1)[-1], "doc": f"the {name}"} for name in names]
            for table, names in SCHEMAS.items()
        }
    )


def templates() -> str:
    return json.dumps({"dumbbell": "Pairs of hosts share one bottleneck"})


def companions(kind: str) -> str:
    return "{}"


def template(kind: str) -> str:
    if kind != "dumbbell":
        raise _bad(f"no template {kind!r}; the kinds are: dumbbell")
    return 'name = "dumbbell"\nduration = "10s"\n[[flows]]\nname = "all"\nprotocol = "xcp"\n'


LINKS = ("r1->r2", "r2->r1", "s0->r1", "r2->d0")


def _resolve(text: str, origin: str, overrides: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        scenario = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad(f"{origin}:1:1: {error}; correct the TOML") from None
    for key, value in overrides:
        parsed: Any = value
        with contextlib.suppress(tomllib.TOMLDecodeError):
            parsed = tomllib.loads(f"v = {value}")["v"]
        node: Any = scenario
        *path, last = key.split(".")
        for part in path:
            node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
        node[last] = parsed
    if "durration" in scenario:
        line = 1 + text[: max(text.find("durration"), 0)].count("\n")
        raise _bad(f"{origin}:{line}:1: unknown key `durration`; did you mean `duration`?")
    for flow in scenario.get("flows", []):
        if flow["protocol"] not in PROTOCOLS:
            line = 1 + text[: text.find("protocol")].count("\n")
            raise _bad(
                f"{origin}:{line}:1: unknown protocol `{flow['protocol']}`; the protocols are: {', '.join(PROTOCOLS)}"
            )
    defaults = {"name": "untitled", "duration": "20s", "warmup": "0s", "runs": 1, "seed": 1}
    return {**defaults, **scenario}


def _seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def _toml(scenario: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{json.dumps(k)} = {text(v)}" for k, v in value.items()) + " }"
        return json.dumps(value, ensure_ascii=False)

    lines = [f"{key} = {text(value)}" for key, value in scenario.items() if not isinstance(value, dict | list)]
    for key, value in scenario.items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]", *(f"{text(k)} = {text(v)}" for k, v in value.items())]
        if isinstance(value, list):
            for item in value:
                lines += ["", f"[[{key}]]", *(f"{k} = {text(v)}" for k, v in item.items())]
    return "\n".join(lines) + "\n"


def _warnings(scenario: dict[str, Any], origin: str) -> list[str]:
    if _seconds(scenario["warmup"]) >= _seconds(scenario["duration"]):
        return [f"{origin}:1:1: the run is all warm-up; make `duration` longer"]
    return []


def check(text: str, origin: str, base: str, overrides: list[tuple[str, str]], fluid: bool = False) -> str:
    scenario = _resolve(text, origin, overrides)
    return json.dumps(
        {
            "resolved": _toml(scenario),
            "warnings": _warnings(scenario, origin),
            "unused": [],
            "runs": scenario["runs"],
            "seed": scenario["seed"],
            "duration_s": _seconds(scenario["duration"]),
            "warmup_s": _seconds(scenario["warmup"]),
            "name": scenario["name"],
            "sweep": [[key, values] for key, values in scenario.get("sweep", {}).items()],
            "flows": [
                {
                    "name": flow.get("name", f"flows{i}"),
                    "count": flow.get("count", 1),
                    "protocol": flow["protocol"],
                }
                for i, flow in enumerate(scenario.get("flows", []))
            ],
            "links": 4,
        }
    )


def link_names(text: str, origin: str, base: str, overrides: list[tuple[str, str]], fluid: bool) -> list[str]:
    return list(LINKS)


def goodput(protocol: str, index: int, seed: int) -> float:
    """The goodput, in bit/s, of the synthetic flow number `index`."""
    uneven = {"newreno": 0.35, "vcp": 0.15}.get(protocol, 0.01)
    return RATE_BPS / 10 * (1 + uneven * math.sin(1.7 * index + seed))


def _rtt(protocol: str, time_s: float, index: int) -> float:
    standing = {"newreno": 25.0, "vcp": 6.0}.get(protocol, 1.5)
    return 42 + standing * (1 + math.sin(time_s * (1.3 if protocol == "newreno" else 0.2) + index)) / 2


def _queue(protocol: str, time_s: float) -> float:
    top = {"newreno": 100.0, "vcp": 20.0}.get(protocol, 5.0)
    return round(top * (1 - math.exp(-time_s)) * (0.5 + 0.5 * ((time_s / 4) % 1)))


def _one_run(scenario: dict[str, Any], number: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    flows: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []
    variables = set(scenario.get("sampling", {}).get("of", []))
    steps = int(_seconds(scenario["duration"]) / SAMPLE_S)
    index, protocol = 0, "xcp"
    for group in scenario.get("flows", []):
        protocol = group["protocol"]
        for member in range(group.get("count", 1)):
            name = f"{group.get('name', 'all')}/{member}"
            bps = goodput(protocol, index, seed)
            flows.append(
                dict(zip(FLOW_COLUMNS, (
                    number, name, group.get("name", "all"), protocol, 0.1 * index, None, bps, bps * 1.04, 10_000,
                    7 * index if protocol == "newreno" else 0, index % 2 if protocol == "newreno" else 0,
                    _rtt(protocol, 0, index), math.nan,
                ), strict=True))
            )  # fmt: skip
            for step in range(1, steps + 1):
                at = step * SAMPLE_S
                ramp = 1 - math.exp(-at)
                wave = 1 + (0.5 if protocol == "newreno" else 0.02) * math.sin(at * 1.5 + index)
                values = {
                    "throughput": ("throughput_bps", bps * ramp * wave),
                    "rtt": ("rtt_ms", _rtt(protocol, at, index)),
                    "cwnd": ("cwnd", 40 * ramp * wave),
                }
                samples += [
                    dict(zip(SAMPLE_COLUMNS, (number, at, name, *values[key]), strict=True))
                    for key in values
                    if key in variables
                ]
            index += 1
    links = []
    for link in LINKS:
        busy = link == "r1->r2"
        queue = {"newreno": 55.0, "vcp": 11.0}.get(protocol, 2.5) if busy else 0.0
        drops = 120 if busy and protocol == "newreno" else 0
        links.append(
            dict(zip(LINK_COLUMNS, (
                number, link, 0.97 if busy else 0.1, queue, queue * 1.1, queue * 1.8, int(queue * 2), queue * 1.04,
                queue * 1040, int(queue * 2), drops, 0, 0, drops, 0, 1.5,
            ), strict=True))
        )  # fmt: skip
    if "queue" in variables:
        samples += [
            dict(zip(SAMPLE_COLUMNS, (number, s * SAMPLE_S, "r1->r2", "queue_packets", _queue(protocol, s * SAMPLE_S)),
                     strict=True))
            for s in range(1, steps + 1)
        ]  # fmt: skip
    about = dict(zip(RUN_COLUMNS, (number, scenario["name"], seed, version(), _toml(scenario)), strict=True))
    return {"flows": flows, "links": links, "samples": samples, "run": [about]}


def run(
    text: str,
    origin: str,
    base: str,
    overrides: list[tuple[str, str]],
    seed: int | None,
    runs: int | None,
    jobs: int,
    trace: str | None,
    pcap: str | None,
    progress: Callable[[float], None] | None,
    engine: str = "fast",
) -> Output:
    scenario = _resolve(text, origin, overrides)
    scenario["seed"] = scenario["seed"] if seed is None else seed
    scenario["runs"] = scenario["runs"] if runs is None else runs
    fault = {
        "crash": RuntimeError("run 0 failed: packets not conserved on r1->r2"),
        "interrupt": KeyboardInterrupt(),
    }
    if scenario["name"] in fault:
        raise fault[scenario["name"]]
    started = time.perf_counter()
    if scenario["name"] == "slow":
        time.sleep(0.05)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for number in range(scenario["runs"]):
        for name, new in _one_run(scenario, number, scenario["seed"] + number).items():
            rows[name] += new
        if progress is not None:
            progress((number + 1) / scenario["runs"])
    tables = {name: pl.DataFrame(rows[name], schema=SCHEMAS[name]) for name in SCHEMAS}
    timing = json.dumps([{"run": 0, "wall_s": time.perf_counter() - started, "events": 1000, "hops": 1000}])
    lines = f"0.000000 {trace} enqueue r1->r2 packet 1\n" if trace else ""
    return Output(tables, _warnings(scenario, origin), lines, timing)


def fluid(
    text: str,
    origin: str,
    base: str,
    overrides: list[tuple[str, str]],
    seed: int | None,
    runs: int | None,
    progress: Callable[[float], None] | None,
) -> Output:
    done = run(text, origin, base, overrides, seed, runs, 1, None, None, progress)
    classes = (
        pl.DataFrame(done.flows).group_by("run", "group", maintain_order=True).agg(pl.all().first(), count=pl.len())
    )
    done.flows = Table(classes.select(*FLOW_COLUMNS, pl.col("count").cast(pl.UInt64)))
    done.timing = json.dumps(
        {"runs": [{"set_up_s": 0, "wall_s": 1, "steps": 9, "classes": 1, "class_hops": 6, "bytes": 800}]}
    )
    return done


def fluid_models() -> str:
    return json.dumps([{"protocol": "xcp", "summary": "by intervals"}])


def bench_cases() -> list[str]:
    return ["dumbbell"]


def bench(case: str | None, duration: float | None) -> str:
    if case not in (None, "dumbbell"):
        raise ValueError(f"no case {case!r}; the cases are: dumbbell")
    return json.dumps(
        {
            "cases": [
                {
                    "name": "dumbbell", "hops": 4_000_000, "cpu_seconds": 0.1, "hops_per_cpu_second": 4e7,
                    "instructions_per_hop": None, "bytes_per_flow": 900.0,
                }
            ]
        }
    )  # fmt: skip


def floor_cases() -> list[str]:
    return ["hops"]


def floor(case: str, duration: float | None) -> str:
    if case != "hops":
        raise ValueError(f"no floor is called {case!r}")
    told: dict[str, list[dict[str, object]]] = json.loads(bench(None, duration))
    told["cases"][0] |= {"name": case, "cpu_seconds": 0.05, "hops_per_cpu_second": 8e7, "bytes_per_flow": None}
    return json.dumps(told)


def install() -> None:
    """Put this module where the compiled engine would be, before or after `explicate` was imported."""
    sys.modules["explicate._native"] = sys.modules[__name__]
    engine = sys.modules.get("explicate.engine")
    if engine is not None:
        engine._native = sys.modules[__name__]  # type: ignore[attr-defined]
