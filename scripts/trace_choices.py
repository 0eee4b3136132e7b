"""Write docs/reproduction-choices.md: four settings that decide claims, what speaks for each value, and what it gives.

An argument names no verdict: it is a sentence of the paper, its arithmetic, or the code that its authors ran. `--run`
makes the runs of the tables anew (about two minutes of processor time) and records them in tests/papers-choices.json.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import make_criteria

from explicate.files import write_text
from explicate.results import Results
from explicate_papers import agents, metrics
from explicate_papers.command import Progress
from explicate_papers.ikeda import base as vcp
from explicate_papers.ikeda import fig5
from explicate_papers.lopez_pacheco import fig2
from explicate_papers.nychis import base as radios
from explicate_papers.plan import choices, effort, studies
from explicate_papers.register import PAPERS, experiments
from explicate_papers.statistics import Sample, number
from explicate_papers.store import Job, Store
from explicate_papers.study import Case, Effort

DOCUMENT = make_criteria.ROOT / "docs" / "reproduction-choices.md"
RECORD = make_criteria.ROOT / "tests" / "papers-choices.json"
FIRST_SEED = 8001
"""Verdicts are judged on other seeds."""
HEAD = """\
# Four settings, traced

<!-- Made by `scripts/trace_choices.py`. -->

The papers leave settings open, and some decide claims. For four of them this page has what speaks for a value without
regard to any verdict: a sentence of the paper, its arithmetic, or the code that its authors ran. The tables have what
each value gives in the simulator, from seeds that no verdict uses. [The papers, figure by
figure](reproduction.md) has all settings with the values in use.
"""

Row = list[str]


class Runs:
    """Finished runs of cases, several seeds of each."""

    def __init__(self, store: Store, workers: int) -> None:
        self._store = store
        self._workers = workers

    def of(self, case: Case, seeds: int) -> list[Results]:
        """Make the runs of a case, and return them."""
        jobs = Job.of(case, range(FIRST_SEED, FIRST_SEED + seeds))
        with Progress() as told:
            self._store.perform(jobs, self._workers, told)
        return [self._store.load(job) for job in jobs]

    def mean(self, runs: Sequence[Results], measure: Callable[[Results], float]) -> str:
        """Return the mean of a measure with its margin."""
        return str(Sample.of(map(measure, runs)))


def plan(experiment: str, **changed: str) -> Effort:
    """Return the quick effort of an experiment, with these choices (N_P4 for N-P4)."""
    values = {key.replace("_", "-"): value for key, value in changed.items()}
    return effort(experiments()[experiment], "quick", values)


# ------------------------------------------------------------------------------------------- N-P4, one loss in XCP

LOSS = 1.0
ALPHA = 0.4


def carried(window: float) -> float:
    """Return the share that a window carries if one packet of 100 halves it and routers return ALPHA of what lacks.

    A loss costs w/2 (1 + 0.6 + 0.36 + ...) = 1.25 w packets.
    """
    return 100 / (100 + window / 2 / ALPHA)


def reactions(runs: Runs) -> Iterator[Row]:
    """One flow over a wire of 24 Mbit/s that its router knows, 1 % lost, with three round trips."""
    for rtt_ms in (2.0, 12.0, 40.0):
        window = 24e6 * rtt_ms / 1000 / 8 / 1500
        for reaction in ("halve", "rate halving", "keep"):
            chosen = plan("N-txt-24mbps", N_P4=reaction)
            lost = [radios.lost(chosen, LOSS)]
            case = radios.wired(chosen, radios.XCP, believed=24, rtt_ms=rtt_ms, channel=lost, seconds=60)
            rates = runs.mean(runs.of(case, 4), radios.kilobytes)
            by_hand = number(3000 * carried(window)) if reaction == "halve" else "3000 at most"
            yield [f"{rtt_ms:g} ms, {window:g} packets", reaction, rates, by_hand]


def after_a_repair(runs: Runs) -> Iterator[Row]:
    """XCP without SACK over 10 Mbit/s and 200 ms, 0.05 % lost: the queue before the link decides."""
    for queue in (100, 1000):
        for reaction in ("halve", "keep"):
            chosen = plan("N-txt-zh", N_P4=reaction, N_P17="200ms")
            lost = {"kind": "random_loss", "rate": "0.05%", "place": "air"}
            case = radios.wired(
                chosen, radios.XCP_NO_SACK, rate=10, rtt_ms=200, queue=queue, channel=[lost],
                params={"receiver_window": int(chosen.choices["N-P21"])}, seconds=120,
            )  # fmt: skip
            made = runs.of(case, 8)
            yield [
                f"{queue}", reaction, runs.mean(made, radios.wire_use),
                runs.mean(made, lambda results: metrics.link(results, radios.WIRE, "drops_channel")),
                runs.mean(made, radios.drops), runs.mean(made, lambda results: metrics.total(results, "timeouts")),
            ]  # fmt: skip


# ------------------------------------------------------------------------------------- K-P12, when is the link used


def of_k(chosen: Effort, system: str, **settings: Any) -> Case:
    """Return paper K's network with all of its choices, those about agents too."""
    return agents.chosen("K", lambda effort: {"": vcp.case(effort, system, **settings)})(chosen)[""]


def starts(runs: Runs) -> Iterator[Row]:
    """BISE's start with k = 0.33, by both meanings of utilisation."""
    chosen = plan("K-fig5")
    for mbps in (10.0, 20.0, 50.0, 100.0, 200.0):
        made = runs.of(of_k(chosen, vcp.PROPOSED, mbps=mbps, seconds=14, of=("router", "throughput")), 2)

        def by_rate(results: Results, mbps: float = mbps) -> float:
            return fig5.by_rate(mbps, results)

        yield [f"{mbps:g}", runs.mean(made, fig5.by_load), runs.mean(made, by_rate)]


# ---------------------------------------------------------------------------------- K-P17, recovery of VCP's losses


def recoveries(runs: Runs) -> Iterator[Row]:
    """The proposed scheme and VCP at two error rates."""
    for loss in (1e-4, 1e-3):
        for system in (vcp.PROPOSED, vcp.VCP):
            for recovery in ("newreno", "reno", "sack"):
                chosen = plan("K-fig7", K_P17=recovery)
                made = runs.of(of_k(chosen, system, loss=loss, of=("throughput",), every="1s"), 4)
                yield [
                    f"{loss:g}", system, recovery, runs.mean(made, vcp.goodput_mbps), runs.mean(made, vcp.timeouts),
                    runs.mean(made, lambda results: metrics.link(results, vcp.BOTTLENECK, "drops_channel")),
                ]  # fmt: skip


# ----------------------------------------------------------------------------- feedback of duplicate acknowledgements


def duplicates(runs: Runs) -> Iterator[Row]:
    """XCP over a plain bottleneck, and WLTE, with the feedback of all acknowledgements and of new ones alone."""
    for follow in ("all", "new"):
        case = studies()["I-fig2"].make_cases(plan("I-fig2", I_P26=follow))["c"]
        made = runs.of(case, 8)
        yield [
            "I-fig2 c: XCP, a plain router at the bottleneck", follow, f"{runs.mean(made, fig2.megabytes)} MB",
            runs.mean(made, fig2.widest),
        ]  # fmt: skip
    for follow in ("all", "new"):
        chosen = plan("K-fig7", K_P17="reno", K_P25=follow)
        made = runs.of(of_k(chosen, vcp.PROPOSED, loss=1e-4, of=("cwnd",), every="100ms"), 4)
        rate = f"{runs.mean(made, vcp.goodput_mbps)} Mbit/s"
        widest = runs.mean(made, lambda results: metrics.largest(vcp.cwnd(results)))
        yield ["K-fig7: BISE + WLTE over Reno's recovery, 1e-4 lost", follow, rate, widest]


ROWS: dict[str, Callable[[Runs], Iterator[Row]]] = {
    "loss": reactions,
    "burst": after_a_repair,
    "utilisation": starts,
    "recovery": recoveries,
    "duplicates": duplicates,
}
"""What makes the rows of each table."""


@cache
def traces() -> dict[str, Any]:
    """Return what is said of each setting: `ids` of choices, `title`, `head` of its table, `why`, and `then`."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def used(identifier: str) -> str:
    """Return a choice with the value in use."""
    choice = choices(PAPERS[identifier[0]])[identifier]
    return f"{identifier} ({choice.name}; used: {choice.used})"


def page(record: dict[str, Any]) -> str:
    """Return the page."""
    lines = [HEAD]
    for key, one in traces().items():
        lines += [f"## {one['title']}", "", f"{'; '.join(map(used, one['ids']))}.", "", one["why"], ""]
        lines += [*make_criteria.table(one["head"], record.get(key, [])), one["then"], ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Make the runs, or not, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="make the runs anew")
    parser.add_argument("--only", choices=ROWS, action="append", help="with --run: only these tables")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at a time")
    args = parser.parse_args()
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    if args.run:
        with tempfile.TemporaryDirectory() as scratch:
            runs = Runs(Store(Path(scratch)), args.jobs)
            for key in args.only or ROWS:
                record[key] = list(ROWS[key](runs))
                print(*("\t".join(row) for row in record[key]), sep="\n", flush=True)
        write_text(RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    write_text(DOCUMENT, page(record))


if __name__ == "__main__":
    main()
