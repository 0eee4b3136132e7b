"""How many bits does feedback need? Runs each law on each network with two blocks of seeds, and records the measures.

Laws and networks are rows of ``bits.toml`` (`tables`); the rule of the verdict is `verdict`'s. Runs, measures and
records serve other studies too, with networks and laws of their own.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from explicate import engine, text
from explicate.engine import Override
from explicate.errors import BadInputError
from explicate.files import write_text
from explicate.identity import content_key
from explicate.lab import Progress, run_source
from explicate.results import Results
from explicate.source import Source
from explicate.studies.recordings import check_family, with_recordings
from explicate.studies.tables import STEP_S, Law, Network, Tables, tables
from explicate.studies.verdict import MEASURES, Finding, Values, interval, judge, rungs, sentence
from explicate.summary import jain_index
from explicate.sweeps.work import units_of
from explicate.text import amount, number

NAME = "bits"
NOTE = "the bits of a law are judged against all laws with fewer bits"
FIRST_SEEDS = (1, 1001)
"""The first seed of each block."""
SEEDS = {"quick": 5, "full": 20}
"""Seeds of a block."""
VERSION = 1
"""Of the measures: a run that was measured by an older one is repeated."""
SHORT_BYTES, LONG_BYTES = 15_000, 150_000
PAYLOAD = 1448 / 1500
DIGITS = 6
MBIT = 1e6
SPEED = 15_000.0
"""Mbit of bottlenecks that a core simulates in a second: the quick form's time on two cores of 2.5 GHz. An estimate."""


# ------------------------------------------------------------------------------------------------- measures


def measured(network: Network, results: Results) -> dict[str, float]:
    """Return the measures of one run of `network`; not a number for what the run does not have."""
    made = {
        "use": _use(network, results.flows),
        "jain": _jain(network, results.flows),
        "loss": _loss(results),
        **_delays(network, results),
        **_slowdowns(network, results.flows),
        **network.more(results),
    }
    return {name: made.get(name, math.nan) for name in network.measures}


def _use(network: Network, flows: pl.DataFrame) -> float:
    """Return the payload that arrived, each flow's times its links, over what the network could carry."""
    rates = zip(flows["group"], flows["goodput_bps"], strict=True)
    return sum((rate or 0.0) * network.crosses.get(group, 1.0) for group, rate in rates) / (
        network.capacity_mbps * MBIT
    )


def _jain(network: Network, flows: pl.DataFrame) -> float:
    """Return Jain's index of the long flows' goodputs, each over its fair share."""
    long = flows.filter(pl.col("size_bytes").is_null())
    rates = zip(long["group"], long["goodput_bps"], strict=True)
    return jain_index((rate or 0.0) / network.fair.get(group, 1.0) for group, rate in rates)


def _loss(results: Results) -> float:
    """Return the data packets that queues dropped, in % of those that were sent."""
    sent = float(results.flows["sent_packets"].sum())
    return 100.0 * float(results.links["drops_queue_data"].sum()) / sent if sent else math.nan


def _delays(network: Network, results: Results) -> dict[str, float]:
    """Return quantiles over time of the delay in the queues of the links that count, ms."""
    samples = results.samples.filter(
        pl.col("time_s") > network.warmup, pl.col("variable").cast(pl.String) == "queue_bytes"
    )
    samples = samples.with_columns(pl.col("object").cast(pl.String)).filter(pl.col("object").is_in(list(network.links)))
    if samples.is_empty():
        return {}
    carried = float(results.flows["throughput_bps"].sum())
    total: dict[float, float] = {}
    for time, link, waiting in samples.select("time_s", "object", "value").iter_rows():
        total[time] = total.get(time, 0.0) + _drain_s(network, link, time, 8.0 * (waiting or 0.0), carried)
    delays = pl.Series(total.values()) * 1e3
    return {"p50": float(delays.quantile(0.5, "linear") or 0.0), "p99": float(delays.quantile(0.99, "linear") or 0.0)}


def _drain_s(network: Network, link: str, time: float, bits: float, carried: float) -> float:
    """Return the seconds in which what waits at `time` leaves."""
    if network.trace:
        return _follow(tuple(network.trace), time, bits)
    rate = carried if network.served else network.links[link] * network.rate * MBIT
    return bits / rate if rate else (math.inf if bits else 0.0)


def _follow(trace: Sequence[float], time: float, bits: float) -> float:
    """Return the seconds in which a line of this trace sends so many bits from `time` on; its last rate lasts."""
    spent = 0.0
    while True:
        place = min(int((time + spent) / STEP_S + 1e-9), len(trace) - 1)
        left = math.inf if place == len(trace) - 1 else (place + 1) * STEP_S - (time + spent)
        rate = trace[place] * MBIT
        if bits <= rate * left:
            return spent + bits / rate
        bits, spent = bits - rate * left, spent + left


def _slowdowns(network: Network, flows: pl.DataFrame) -> dict[str, float]:
    """Return completion times over those in an empty network, by size, and those of groups that start at once."""
    sized = flows.filter(
        pl.col("size_bytes").is_not_null(),
        pl.col("start_s").is_between(network.warmup, network.duration - network.tail),
    ).with_columns(
        pl.col("completion_s").fill_nan(None).fill_null(network.duration - pl.col("start_s")).alias("took"),
        (8.0 * pl.col("size_bytes").cast(pl.Float64) / PAYLOAD / (network.rate * MBIT)).alias("sent"),
    )
    if sized.is_empty():
        return {}
    trips = 2e-3 * network.rtt
    slow = sized.select("size_bytes", (pl.col("took") / (trips + pl.col("sent"))).alias("slow"))
    short, large = (slow.filter(pl.col("size_bytes") <= SHORT_BYTES), slow.filter(pl.col("size_bytes") > LONG_BYTES))
    middle = slow.filter(pl.col("size_bytes").is_between(SHORT_BYTES, LONG_BYTES, closed="right"))
    bursts = sized.group_by("group").agg(
        ((pl.col("start_s") + pl.col("took")).max() - pl.col("start_s").min()).alias("took"), pl.col("sent").sum()
    )
    made = {
        "short": short["slow"].median(),
        "short99": short["slow"].quantile(0.99, "linear"),
        "middle": middle["slow"].mean(),
        "large": large["slow"].mean(),
        "burst": bursts.select((pl.col("took") / (trips + pl.col("sent"))).mean()).item(),
    }
    return {name: float(value) for name, value in made.items() if isinstance(value, float)}


# ---------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Job:
    """One run; `key` is the name of its file in the store."""

    network: Network
    law: Law
    source: Source
    overrides: Sequence[Override]
    seed: int
    key: str

    @property
    def work(self) -> float:
        """What the bottleneck can carry in the whole run, Mbit: about in proportion to the time that a run takes."""
        return self.network.capacity_mbps * self.network.duration


def jobs_of(networks: Sequence[Network], laws: Sequence[Law], seeds: int) -> list[Job]:
    """Return all runs, network by network; raise ScenarioError if a scenario cannot be used."""
    made = []
    for network in networks:
        measuring = network.measuring()
        for law in laws:
            source, overrides = network.source(law), network.overrides(law)
            for first in FIRST_SEEDS:
                for unit in units_of(source, {}, overrides, first, seeds, {}):
                    key = content_key(unit.key, VERSION, measuring)
                    made.append(Job(network, law, source, overrides, unit.seed, key))
    return made


@dataclass(frozen=True)
class Extent:
    """How many runs there are, how many of them are still to do, and the Mbit of those."""

    runs: int
    missing: int
    work: float

    def words(self, jobs: int) -> str:
        """Return what is to do in words, with an estimate of the time that it takes with `jobs` runs at a time."""
        stored = f", {self.runs - self.missing:,} are stored" if self.missing < self.runs else ""
        if not self.missing:
            return f"all {self.runs:,} runs are stored"
        seconds = self.work / SPEED / jobs
        about = f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{math.ceil(seconds / 60)} min"
        return f"{self.missing:,} of {self.runs:,} runs to do{stored}; about {about} ({jobs} at a time)"


def perform(
    networks: Sequence[Network],
    laws: Sequence[Law],
    *,
    effort: str = "quick",
    seeds: int | None = None,
    store: Path | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    begin: Callable[[Extent], None] | None = None,
    study: str = NAME,
) -> Record:
    """Run what `store` lacks, `jobs` runs at the same time, and return the record of all.

    `seeds` are those of a block, by default those of `effort`. `begin` learns before the first run what there is to do.
    A run that fails removes its law from its network, with the reason in `Record.failed`. Raise ScenarioError, before
    anything runs, if a scenario cannot be used; OSError if the store cannot be written.
    """
    count = seeds or SEEDS[effort]
    wanted = jobs_of(networks, laws, count)
    there = {job.key: found for job in wanted if (found := _stored(store, job)) is not None}
    missing = [job for job in wanted if job.key not in there]
    if store is not None:
        store.mkdir(parents=True, exist_ok=True)
    failed: dict[str, dict[str, str]] = {}
    work, done = sum(job.work for job in missing), 0.0
    if begin is not None:
        begin(Extent(len(wanted), len(missing), work))
    for job, outcome in _finished(missing, store, jobs):
        if isinstance(outcome, str):
            failed.setdefault(job.network.name, {})[job.law.name] = f"seed {job.seed}: {outcome}"
        else:
            there[job.key] = outcome
        done += job.work
        if progress is not None:
            progress(done / work)
    values: dict[str, dict[str, dict[str, list[list[float]]]]] = {}
    for job in wanted:
        if job.law.name in failed.get(job.network.name, {}):
            continue
        by_measure = values.setdefault(job.network.name, {}).setdefault(job.law.name, {})
        for name, value in there[job.key].items():
            blocks = by_measure.setdefault(name, [[] for _ in FIRST_SEEDS])
            blocks[job.seed >= FIRST_SEEDS[1]].append(value)
    return Record(effort, count, engine.version(), values, failed, study)


def _finished(missing: Sequence[Job], store: Path | None, jobs: int) -> Iterator[tuple[Job, dict[str, float] | str]]:
    """Yield each run with its measures, or with the reason for its failure, as they finish."""
    stop = threading.Event()
    left = iter(missing)
    pending: dict[Future[dict[str, float]], Job] = {}
    with ThreadPoolExecutor(jobs) as threads:
        try:
            while True:
                while len(pending) < 2 * jobs and (job := next(left, None)) is not None:
                    pending[threads.submit(_run, job, store, stop)] = job
                if not pending:
                    return
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    job = pending.pop(future)
                    try:
                        yield job, future.result()
                    except RuntimeError as error:
                        yield job, str(error)
        except BaseException:
            stop.set()
            threads.shutdown(cancel_futures=True)
            raise


def _run(job: Job, store: Path | None, stop: threading.Event) -> dict[str, float]:
    def look(_: float) -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    results = run_source(job.source, job.overrides, seed=job.seed, runs=1, progress=look)
    made = {name: _rounded(value) for name, value in measured(job.network, results).items()}
    if store is not None:
        write_text(_place(store, job), json.dumps({"law": job.law.name, "measures": _without_nan(made)}) + "\n")
    return made


def _stored(store: Path | None, job: Job) -> dict[str, float] | None:
    """Return the measures of a stored run; nothing if there is none, or if its file is damaged."""
    if store is None or not _place(store, job).is_file():
        return None
    try:
        found = json.loads(_place(store, job).read_text(encoding="utf-8"))["measures"]
        return {name: math.nan if found[name] is None else float(found[name]) for name in job.network.measures}
    except (ValueError, KeyError, TypeError):
        return None


def _place(store: Path, job: Job) -> Path:
    return store / f"{job.network.name}-{job.law.name}-{job.seed}-{job.key[:16]}.json"


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _without_nan(values: Any) -> Any:
    """Return values for JSON, with null for what is not a number."""
    if isinstance(values, Mapping):
        return {key: _without_nan(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_without_nan(value) for value in values]
    return values if not isinstance(values, float) or math.isfinite(values) else None


# -------------------------------------------------------------------------------------------------- record


@dataclass(frozen=True)
class Record:
    """What a study measured: `values` by network, law and measure, a list for each block of `seeds` seeds.

    `failed` has the reasons for which laws are missing, by network and law.
    """

    effort: str
    seeds: int
    version: str
    values: Mapping[str, Values]
    failed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    study: str = NAME

    def write(self, path: Path) -> None:
        """Write the record as JSON, a line for each law of a network; raise OSError if that is not possible."""
        about = {key: getattr(self, key) for key in ("study", "effort", "seeds", "version", "failed")}
        rows = [
            f"  {json.dumps(name)}: {{\n"
            + ",\n".join(f"   {json.dumps(law)}: {json.dumps(_without_nan(one))}" for law, one in laws.items())
            + "\n  }"
            for name, laws in self.values.items()
        ]
        head = json.dumps(about, indent=1, ensure_ascii=False).removesuffix("\n}")
        write_text(path, f'{head},\n "values": {{\n' + ",\n".join(rows) + "\n }\n}\n")

    @classmethod
    def read(cls, path: Path, study: str = NAME) -> Record:
        """Read what `write` wrote; raise BadInputError if it is not of `study`, OSError if it cannot be read."""
        remedy = f"`explicate study {study} --quick -o {path}` writes one"
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            values = {
                network: {
                    law: {
                        name: [[math.nan if one is None else float(one) for one in block] for block in blocks]
                        for name, blocks in measures.items()
                    }
                    for law, measures in laws.items()
                }
                for network, laws in given["values"].items()
            }
            record = cls(
                given["effort"], given["seeds"], given["version"], values, given["failed"], given["study"]
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInputError(f"{path}: is not a record of this study ({error}); {remedy}") from error
        if record.study != study:
            raise BadInputError(f"{path}: is not a record of this study, but of {record.study}; {remedy}")
        return record


@dataclass(frozen=True)
class Verdict:
    """What came out on a network: the findings of each law, and a sentence for each number of bits."""

    findings: Mapping[str, Finding]
    rungs: Mapping[int, Sequence[Finding]]
    sentences: Sequence[str]


def chosen(
    only: Sequence[str], laws: Sequence[str], *, quick: bool, traces: Sequence[str] = ()
) -> tuple[list[Network], list[Law]]:
    """Return the networks and laws with these names, or all; raise BadInputError for an unknown name.

    `traces` are recordings, each a network more.
    """
    check_family(only, traces)
    known = with_recordings(tables(), traces) if traces else tables()
    return known.chosen_networks(only, quick=quick), known.chosen_laws(laws)


def listing(networks: Sequence[Network]) -> str:
    """Return `networks` and all laws as two tables."""
    rows = [[law.name, str(law.bits), law.carried] for law in tables().laws]
    shown = text.table(["network", "what"], [[one.name, one.title] for one in networks])
    return f"{shown}\n\n{text.table(['law', 'bits', 'feedback of the network'], rows)}"


def shown(network: Network, values: Values) -> str:
    """Return what came out on a network: its table and the verdicts in words."""
    return "\n".join([text.table(*table(network, values)), *verdict(network, values).sentences])


def verdict(network: Network, values: Values, known: Tables | None = None) -> Verdict:
    """Return the verdict on a network from its values."""
    laws = {law.name: law for law in (known or tables()).laws}
    bits = {name: laws[name].bits for name in values}
    labels = {name: laws[name].label for name in values}
    findings = judge(values, bits, {name: network.floor(name) for name in network.measures})
    best = rungs(findings, bits)
    return Verdict(findings, best, [sentence(count, found, labels, bits) for count, found in best.items()])


def table(network: Network, values: Values, known: Tables | None = None) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a network's table: a law, its bits, each measure over all seeds, its word."""
    findings = verdict(network, values, known).findings
    head = ["law", "bits", *heads(network)]
    body = []
    for law in (known or tables()).laws:
        if law.name in values:
            cells = [cell([one for block in values[law.name][name] for one in block]) for name in network.measures]
            found = findings.get(law.name)
            body.append([law.label, str(law.bits), *cells, found.word.value if found else ""])
    return [*head, "its bits"], body


def heads(network: Network) -> list[str]:
    """Return the heads of the columns of a network's measures."""
    made = (MEASURES[name] for name in network.measures)
    return [f"{one.head}, {one.unit}" if one.unit else one.head for one in made]


def cell(values: Sequence[float]) -> str:
    """Return a mean with half of its interval, as tables have it."""
    mean, low, high = interval(values)
    return number(mean) if math.isnan(low) else f"{number(mean)} ± {amount((high - low) / 2)}"
