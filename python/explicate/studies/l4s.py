"""What may share the two queues of L4S? One flow beside CUBIC, and one beside TCP Prague, at a port with DualPI2.

Runs and records are those of the study of bits (`bits`); a network is a path with one neighbour. Paths, flows and the
criterion were written before the first run.

*Criterion.* Flows that share a queue have less than alone, so less is no harm. What counts is less than a neighbour has
beside the flows that these queues are made for: the harm that is there already is the bound for more of it (R. Ware,
M. K. Mukerjee, S. Seshan, J. Sherry, "Beyond Jain's Fairness Index", HotNets 2019). So `CUBIC` and `Prague` are the
references: in the place of the flow, and beside the same neighbour. Something is *worse* if it is worse than beside
both, in both blocks of seeds, by a tenth of the larger mean (`SHARE`, the least difference of the other studies) and by
a least amount, and if the 95 % intervals do not overlap. It is *not worse* if in no block the means differ so much;
else it is *undecided*.

- A flow **harms** if the neighbour's goodput or the p99 delay of the neighbour's queue is worse.
- It **is harmed** if its own goodput is worse than that of both references in its place.
- It **wastes the line** if both flows together carry less than either reference and the neighbour: what neither has is
  no harm by the definition above, but an operator pays for it.
- They **live together** if nothing is worse and nothing is undecided.

The least amount of a goodput is that of `use` in the other studies, 2 % of the line. That of a delay is what the queue
allows itself: for L the threshold beyond which it marks every packet, 1 ms, but at least the time of a packet; for C
the target, 15 ms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from string import Template
from typing import Any, ClassVar

import polars as pl

from explicate import text
from explicate.errors import BadInputError
from explicate.results import Results
from explicate.studies import bits
from explicate.studies.tables import PACKET_KBIT, Law, Network
from explicate.studies.verdict import MEASURES, SHARE, Blocks, Values, interval
from explicate.suggestions import instead

NAME = "l4s"
NOTE = f"worse is by {SHARE:.0%} than beside CUBIC and than beside Prague, in both blocks"
PATHS = ((40, 20), (10, 50), (100, 10), (40, 100))
"""The line's rate, Mbit/s, and the round trip of an empty path, ms."""
NEIGHBOURS = {"cubic": "CUBIC", "prague": "TCP Prague"}
REFERENCES = tuple(NEIGHBOURS)
DURATION_S, WARMUP_S, EVERY_MS = 80.0, 20.0, 7.0
"""Growth over 100 ms takes tens of seconds. The time between samples divides no round trip."""
ACCESS_MS = 1.0
"""One way over a host's link; there is one on each side of the bottleneck."""
PORT, ONE, OTHER = "r1->r2", "one", "other"
OWN_QUEUE = {"cubic": "classic99", "prague": "low99"}
"""The p99 delay of a neighbour's queue."""
LEAST_MS = {"cubic": 15.0, "prague": 1.0}
FIELDS = (ONE, OTHER, "use", "low", "low99", "classic", "classic99")
"""Goodputs of the flow and of its neighbour, Mbit/s, use of the line, and waits in L and C, ms: mean and p99."""
SCENARIO = """
[topology]
kind = "dumbbell"
pairs = 2
access = { rate = "1Gbit/s", delay = "${access}ms", router = $router }
bottleneck = { rate = "${rate}Mbit/s", delay = "${delay}ms", queue = $queue, router = $router }

[[flows]]
name = "one"
start = { uniform = "1s" }
$law

[[flows]]
name = "other"
protocol = "$neighbour"
start = { uniform = "1s" }
"""


@dataclass(frozen=True)
class Pair(Network):
    """A path with a neighbour."""

    SAMPLED: ClassVar[Sequence[str]] = ("router",)

    neighbour: str = ""

    def more(self, results: Results, /) -> Mapping[str, float]:
        """Return goodputs and waits; not a number for those of a queue that had no packet after the warm-up.

        Its sample is the wait of the last packet, if there was one.
        """
        goodputs = dict(zip(results.flows["group"], results.flows["goodput_bps"], strict=True))
        made = {name: (goodputs[name] or 0.0) / bits.MBIT for name in (ONE, OTHER)}
        samples = results.samples.filter(pl.col("time_s") > self.warmup, pl.col("object").cast(pl.String) == PORT)
        for queue in ("low", "classic"):
            waits = samples.filter(pl.col("variable").cast(pl.String) == f"{queue}_delay_ms")["value"]
            if waits.n_unique() > 1:
                made[queue] = float(waits.mean())  # type: ignore[arg-type]
                made[f"{queue}99"] = float(waits.quantile(0.99, "linear") or 0.0)
        return made


def _law(name: str, label: str, protocol: str, router: str = "none", **params: Any) -> Law:
    flows = {"protocol": protocol, **({"params": params} if params else {})}
    return Law(name, label, 0, "", flows, {"kind": "dualpi2", "limit": "10000pkt"}, router)


LAWS = (
    _law("cubic", "CUBIC", "cubic"),
    _law("cubic-ecn", "CUBIC with ECN", "cubic", ecn=True),
    _law("prague", "TCP Prague", "prague"),
    _law("dctcp", "DCTCP", "dctcp"),
    _law("xcp", "XCP", "xcp"),
    _law("xcp-off", "XCP without its guard", "xcp", guard="off"),
    _law("xcp-router", "XCP with its router", "xcp", "auto"),
    _law("vcp", "VCP", "vcp"),
    _law("vcp-off", "VCP without its guard", "vcp", guard="off"),
    _law("vcp-router", "VCP with its router", "vcp", "auto"),
    _law("abc", "ABC", "abc"),
    _law("abc-off", "ABC without its guard", "abc", guard="off"),
    _law("abc-router", "ABC with its router", "abc", "auto"),
)
"""The flows. Where no router answers, an explicit one has its guard or is without it; `-router`: all ports have its
controller, beside DualPI2 at the bottleneck."""
LABELS = {law.name: law.label for law in LAWS}


@cache
def pairs() -> tuple[Pair, ...]:
    """Return each path with each neighbour."""
    return tuple(_pair(rate, rtt, neighbour) for rate, rtt in PATHS for neighbour in NEIGHBOURS)


def _pair(rate: float, rtt: float, neighbour: str) -> Pair:
    path = f"{rate:g}-{rtt:g}"
    own = {"access": f"{ACCESS_MS:g}", "delay": f"{rtt / 2 - 2 * ACCESS_MS:g}", "neighbour": neighbour}
    return Pair(
        name=f"{path}-{neighbour}", family=path, title=f"{rate:g} Mbit/s, {rtt:g} ms, beside {NEIGHBOURS[neighbour]}",
        question="", wanted="", rate=rate, rtt=rtt, measures=FIELDS, drawn=(), links={PORT: 1.0}, duration=DURATION_S,
        warmup=WARMUP_S, every=EVERY_MS, scenario=Template(SCENARIO).safe_substitute(own), neighbour=neighbour,
    )  # fmt: skip


def chosen(
    only: Sequence[str],
    laws: Sequence[str],
    *,
    quick: bool,  # noqa: ARG001 (all paths are in the quick form)
    traces: Sequence[str] = (),  # noqa: ARG001 (no path of this study is a recording)
) -> tuple[list[Pair], list[Law]]:
    """Return the pairs and flows with these names, or all; raise BadInputError for an unknown name.

    A path's name stands for it with each neighbour.
    """
    names = [name for one in pairs() for name in (one.family, one.name)]
    _check("network", only, list(dict.fromkeys(names)))
    _check("law", laws, list(LABELS))
    networks = [one for one in pairs() if not only or {one.name, one.family} & set(only)]
    return networks, [law for law in LAWS if not laws or law.name in laws]


def _check(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInputError(f"there is no {kind} {name!r}; {instead(name, known)}")


def listing(networks: Sequence[Pair]) -> str:
    """Return the pairs and all flows as two tables."""
    shown_ = text.table(["network", "what"], [[one.name, one.title] for one in networks], left=2)
    return f"{shown_}\n\n{text.table(['law', 'what'], [[law.name, law.label] for law in LAWS], left=2)}"


def shown(network: Pair, values: Values) -> str:
    """Return a pair's table; without both references it has no verdicts, and says so."""
    made = text.table(*table(network, values))
    return made if _judged(values) else f"{made}\nno verdict without {' and '.join(REFERENCES)}: add them to --laws"


# --------------------------------------------------------------------------------------------- criterion

GOODPUT, DELAY, OWN, LINE = "goodput", "delay", "own goodput", "line"
HARM = (GOODPUT, DELAY)
LIVES = "lives together"


@dataclass(frozen=True)
class Judged:
    """What is worse than with both references in the place of a flow, and what the seeds do not decide."""

    worse: tuple[str, ...]
    undecided: tuple[str, ...]

    def words(self) -> str:
        """Return the verdict in words."""
        harm = ", ".join(part for part in HARM if part in self.worse)
        said = [f"harms ({harm})"] if harm else []
        said += ["is harmed"] if OWN in self.worse else []
        said += ["wastes the line"] if LINE in self.worse else []
        said += [f"undecided ({', '.join(self.undecided)})"] if self.undecided else []
        return ", ".join(said) or LIVES


def judge(network: Pair, values: Values, law: str) -> Judged | None:
    """Return what the criterion says of a flow; nothing if it or a reference was not run."""
    if law not in values or not _judged(values):
        return None
    share = MEASURES["use"].floor or 0.0
    own, delay = OWN_QUEUE[network.neighbour], max(LEAST_MS[network.neighbour], PACKET_KBIT / network.rate)
    parts = {
        GOODPUT: _worse(OTHER, values, law, share * network.rate),
        DELAY: _worse(own, values, law, delay, high=False),
        OWN: _worse(ONE, values, law, share * network.rate),
        LINE: _worse("use", values, law, share),
    }
    return Judged(
        tuple(part for part, said in parts.items() if said is True),
        tuple(part for part, said in parts.items() if said is None),
    )


def _judged(values: Values) -> bool:
    return all(one in values for one in REFERENCES)


def _worse(measure: str, values: Values, law: str, least: float, *, high: bool = True) -> bool | None:
    """Return whether a measure is worse with a flow than with each reference; None if the blocks do not say."""
    references = [values[one][measure] for one in REFERENCES]
    said = {
        _worse_in_block(mine, theirs, least, high=high)
        for mine, *theirs in zip(values[law][measure], *references, strict=True)
    }
    return said.pop() if len(said) == 1 else None


def _worse_in_block(mine: Sequence[float], references: Blocks, least: float, *, high: bool) -> bool | None:
    mean, low, most = interval(mine)
    sure = True
    for one in references:
        theirs, its_low, its_most = interval(one)
        if not math.isfinite(mean) or not math.isfinite(theirs):
            return None
        if (theirs - mean if high else mean - theirs) < max(SHARE * max(mean, theirs), least):
            return False
        sure &= most < its_low or low > its_most
    return True if sure else None


def table(network: Pair, values: Values) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a pair's table."""
    neighbour = NEIGHBOURS[network.neighbour]
    head = ["flow", "its Mbit/s", f"{neighbour}'s Mbit/s", "use", "L, ms", "L p99, ms", "C, ms", "C p99, ms", "verdict"]
    body = []
    for law in LAWS:
        if law.name in values:
            cells = [bits.cell([one for block in values[law.name][name] for one in block]) for name in FIELDS]
            found = judge(network, values, law.name)
            body.append([law.label, *cells, found.words() if found else ""])
    return head, body


# -------------------------------------------------------------------------------------------------- rule


class Where(Enum):
    """On how many pairs a claim says that something is worse; of each of its flows."""

    NOWHERE = "on none"
    SOMEWHERE = "on one or more"
    EVERYWHERE = "on all"


@dataclass(frozen=True)
class Claim:
    """What the operators' rule rests on: for each of `flows` one of `parts` is worse, on so many pairs."""

    words: str
    flows: tuple[str, ...]
    parts: tuple[str, ...]
    where: Where

    def counts(self, recorded: Mapping[str, Values]) -> dict[str, tuple[int, int]]:
        """Return by flow the number of pairs on which a part is worse, and of those where this is undecided."""
        made = {}
        for law in self.flows:
            found = [said for one in pairs() if (said := judge(one, recorded.get(one.name, {}), law))]
            worse = sum(any(part in said.worse for part in self.parts) for said in found)
            either = sum(any(part in said.worse + said.undecided for part in self.parts) for said in found)
            made[law] = (worse, either - worse)
        return made

    def holds(self, recorded: Mapping[str, Values]) -> bool:
        """Return whether the record says so; what is undecided speaks against each claim."""
        said = self.counts(recorded).values()
        if self.where is Where.NOWHERE:
            return all(count == (0, 0) for count in said)
        least = 1 if self.where is Where.SOMEWHERE else len(pairs())
        return all(worse >= least for worse, _ in said)


CLAIMS = (
    Claim("XCP harms none while its guard is on", ("xcp",), HARM, Where.NOWHERE),
    Claim("XCP without its guard harms", ("xcp-off",), HARM, Where.EVERYWHERE),
    Claim("DCTCP harms", ("dctcp",), HARM, Where.EVERYWHERE),
    Claim("VCP is harmed, in each form", ("vcp", "vcp-off", "vcp-router"), (OWN,), Where.EVERYWHERE),
    Claim("ABC is harmed, in each form", ("abc", "abc-off", "abc-router"), (OWN,), Where.EVERYWHERE),
    Claim("VCP's router harms, or wastes the line", ("vcp-router",), (*HARM, LINE), Where.SOMEWHERE),
    Claim("ABC's router harms, or wastes the line", ("abc-router",), (*HARM, LINE), Where.SOMEWHERE),
)
"""What the rule of the page says, from the runs on one path; where a claim fails, the rule has to change."""
