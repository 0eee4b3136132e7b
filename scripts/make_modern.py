"""Write docs/study-papers.md and its figures: the study "Are the papers' protocols still ahead?".

It reads tests/study-papers.json, the record that `explicate study papers --quick -o tests/study-papers.json` writes,
and the study's topologies. Run it after either of them changed; with --check it writes nothing, and fails if a file is
old.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from make_bits import IS, anchor, by_law

from explicate.files import write_text
from explicate.studies.bits import FIRST_SEEDS, Record
from explicate.studies.verdict import MEASURES, Values, against
from explicate.text import number
from explicate_papers.modern import study, verdict
from explicate_papers.modern.topologies import TODAY, Topology, law_named, topologies
from explicate_papers.modern.verdict import OWN, PAPER, THEN, Finding, Word
from explicate_papers.register import PAPERS, experiments

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "study-papers.json"
PAGE = ROOT / "docs" / "study-papers.md"
IMAGES = "img/papers"
LETTERS = 10
"""The most letters of a line below a figure."""

USE = (
    "goodput: the payload that arrived, over the bytes that the network can carry. Headers count against a law: 72 "
    "bytes of a packet for XCP, 80 for XCP-i, 52 for the others"
)
SLOWDOWN = (
    "completion time of short flows over that in an empty network: the median and the 99th percentile up to 15 kB, the "
    "mean to 150 kB"
)
HEAD = """\
# Are the papers' protocols still ahead?

<!-- Made by `scripts/make_modern.py`. -->

The five papers end in 2010. They compare XCP, XCP-i, VCP and their relatives with the TCP of that time: Reno, NewReno
or SACK, over drop-tail queues or REM. This study keeps their topologies and replaces their baselines with what an
engineer would use in 2026: CUBIC over FQ-CoDel, BBRv3, TCP Prague with DualPI2, and ABC. Where are the papers'
protocols still ahead, and where not?
"""
READING = """\
### Where are they still ahead?

- **Around a bottleneck that stays as it is.** The four topologies on which a paper's protocol is ahead are
  paper I's clouds. The queue of a plain router is shorter under XCP-i than any law of today can keep it from outside:
  {I-clouds/own/p99} ms at the 99th percentile of figure 6, beside {I-clouds/abc/p99} to {I-clouds/bbr3/p99}. Two
  things decide this. The deployment is XCP-i's, so laws of today have no queue at the bottleneck; and XCP-i's routers
  get the cloud's free capacity from an oracle, as in the paper, where real ones would have to measure it. If the
  operator replaces the routers in the cloud, XCP, CUBIC over FQ-CoDel, Prague and ABC are the same.
- **In part, where losses say nothing about congestion.** The loss monitors of paper D are fair to flows that lose 5 %
  (Jain's index {D-xcp/own/jain}); no law of today is (at most {D-xcp/prague/jain}). Over the fading radio XCP carries
  more than CUBIC and Prague; over lossy 802.11 it does so, too, but with a longer queue. On a long fat pipe with losses
  BISE with WLTE has a use of {K-lossy/own/use}, more than ABC ({K-lossy/abc/use}), which has the shorter queue, and
  than CUBIC ({K-lossy/cubic-fq/use}) and Prague. BBRv3 has {K-lossy/bbr3/use}, but fills the queue.

### Where not?

- **Where all routers speak and no packet is lost on the air**, one bit does what 32 do: Prague and ABC are the same
  as XCP on `I-chain`, `I-upgraded` and `N-flows`. ABC is ahead of BISE on `K-start`: a p99 delay of
  {K-start/abc/p99} ms beside {K-start/own/p99}. On paper Y's direct link Prague has {Y-direct/prague/p99} ms, XCP
  {Y-direct/own/p99}.
- **Over 802.11 with a wrong capacity.** Routers configured with twice the hop's capacity let XCP and ABC fill the
  queues of radios: {N-hop/own/p99} and {N-hop/abc/p99} ms over one hop, beside {N-hop/bbr3/p99} of BBRv3, which needs
  no router and is ahead there. With two stations FQ-CoDel and DualPI2, which need no capacity, have less delay than XCP
  with a capacity that is right for one.
- **For short flows** CUBIC over FQ-CoDel is best: isolation helps them more than feedback.
- **Over long paths.** ABC, whose constants follow the round trip, is ahead of VCP over two satellite links, where VCP
  has the reproduction's interval of 200 ms for a round trip of 2 s, and of LR-LMXTCP before a short queue.

Prague has the shortest queues of today's laws, and pays for them on long or lossy paths (a use of {D-long/prague/use}
on `D-long`, {Y-satellite/prague/use} on `Y-satellite`).
"""
METHOD = """\
## Method

Each topology is a case of an experiment of the [reproduction](reproduction.md), taken from its file: nodes, links,
rates, delays, channels, media, queue lengths, packets, starts, sessions, configured capacities. It runs with

| row | hosts | queues and routers |
| --- | --- | --- |
| the paper's baseline | the paper's ([ns-2's TCP](explanation/which-tcp.md)) | the paper's |
| the paper's protocol | the paper's | the paper's |
| the paper's protocol | Linux's | the paper's |
{laws}

A law of today gets its queue and its router at each port at which the paper's protocol has a router, and at no other:
the deployment is the same. BBRv3 and ABC keep the paper's drop-tail queue and its length, RED's included; FQ-CoDel and
DualPI2 have Linux's. Their constants are those of the [study of bits](study-bits.md). Under Linux's hosts the
paper's protocol keeps its control law and its constants, and gets today's timer, repair of losses and queue in the
host ([as in the reproduction with Linux's TCP](papers-today.md)); a repair that gives the protocol its name, such as
the loss monitor's, stays. Receive windows do not limit today's hosts.

What each needs:

| law | hosts | routers |
| --- | --- | --- |
| CUBIC+FQ | what they have | FQ-CoDel at the bottleneck |
| BBRv3 | senders | nothing |
| Prague | senders and receivers (accurate ECN) | DualPI2 at the bottleneck |
| ABC | senders and receivers | every bottleneck, which knows its capacity, in an ECN domain of its own |
| XCP, LR-LMXCP | senders and receivers, a congestion header | every bottleneck, which knows its capacity |
| XCP-i | the same | those around a cloud, which measure it |
| VCP, BISE | senders and receivers | every bottleneck, which knows its capacity, in an ECN domain of its own |
| LR-LMXTCP | senders and receivers | every bottleneck, which flags as many packets as it drops |

Measured after the warm-up, in paper K from the first packet on:

| measure | is |
| --- | --- |
{measures}

Each row runs on each topology with two disjoint blocks of {seeds} seeds (from {first}).

**The rule, written before the first run.** In one measure one of two is better if, in each block, its mean is better by
at least a tenth of the larger mean, and by the least difference below, and the two 95 % intervals (Student's t) do not
overlap. Beside one law of today, the paper's protocol with Linux's hosts is

- **ahead** if it is better in a measure and worse in none;
- **behind** if it is worse in a measure and better in none;
- **mixed** if it is better in one and worse in another;
- the **same** if it is neither better nor worse in any.

On a topology it is ahead if it is ahead of all four; behind if it is behind one of them; mixed if it is behind none and
mixed beside one; the same otherwise. With the paper's hosts it is compared with the paper's baseline in the same way
(column *then*). *Behind none* lists those of the five contestants of today that are behind no other one.

The least differences are {floors}, 0.1 of a slowdown, and of a delay a twentieth of the round trip or the time of a
packet, whichever is more. Rule and topologies are in `papers/explicate_papers/modern/`.
"""
THREATS = """\
## Threats to validity

- **"The same" includes "not decided".** With {seeds} seeds a block intervals are wide. A difference that the rule does
  not find may be there.
- **A rule without weights.** A protocol that is better by far in delay and worse by a tenth in use is mixed. The
  tables serve readers who care for one measure alone.
- **One case of each figure.** The papers sweep losses, signals and numbers of flows; this study takes one point of a
  sweep, where the paper's protocol is said to gain.
- **All hops have the paper's routers.** Except for paper I's clouds, every hop of these topologies has a router of the
  paper's protocol, so it has FQ-CoDel, DualPI2 or ABC, too. In a network that is upgraded bit by bit this favours all
  that need routers: FQ-CoDel and DualPI2 help only at the bottleneck, ABC, XCP and VCP only if every bottleneck speaks,
  and BBRv3 needs none. Paper I's clouds are the case in which the bottleneck stays plain; the path of figure 6 is there
  with both.
- **One law at a time.** No topology has two of them in one queue. ABC's and VCP's codes are
  [those of L4S](l4s.md).
- **Guard.** The papers' protocols run without the guard that makes explicit senders behave as TCP where routers do
  not answer, as in the papers. ABC has it, so in the clouds it has TCP's window once the plain router is the
  bottleneck.
- **Losses of the air.** Each protocol reacts to a loss as its authors have it, or as the paper's reproduction does:
  ABC, and XCP in paper N, reduce the window. [The study of bits](study-bits.md) has a satellite with both reactions.
- **Drops of a sender's own radio.** In paper N's topologies senders are stations. Linux makes a sender wait for its own
  queue; our radios drop. The reproduction's receive window of 90 packets prevents that over one hop, as the rows with
  the paper's hosts show; without it XCP and ABC drop a fifth of their packets and more. Where a verdict on `N-hop` or
  `N-chain` rests on drops alone, it is that of this model.
- **Configured capacities.** XCP and ABC have the paper's configured capacity on 802.11, which is wrong on purpose in
  figures 3 and 5 of paper N (54 Mbit/s over a hop of 24). ABC's own estimate of a Wi-Fi link's capacity is not used.
- **Constants.** Those of today's laws follow the path (FQ-CoDel's interval, ABC's `delta`), as in the study of bits.
  The papers' protocols have those of the reproduction, such as VCP's interval of 200 ms over the satellites, and their
  starts, such as one packet in paper K, where today's TCP begins with ten.
- **An oracle.** XCP-i's routers get the free capacity of a cloud exactly, once per control interval. Figure 13 of the
  paper, with errors of this estimate, is not here.
- **Our implementations.** Each [page of the reference](reference/index.md) lists its deviations;
  [how far to believe it](explanation/how-far.md) has the evidence for the simulator.
- **Sessions of paper Y** stop after six timeouts in a row, also those of today's laws.
"""
REPEAT = """\
## Repeat it

```bash
explicate study papers --list
explicate study papers --quick --jobs 2 -o papers.json             # resumable; finished runs stay in explicate-study/
explicate study papers --quick --only K,I-clouds                   # a paper, or a topology
make modern                                                        # in a clone: the record, this page and its figures
explicate study papers --jobs 2                                    # 20 seeds a block
```

The command needs the papers' experiments (`pip install explicate-papers`). The study is part of them, since it takes
its topologies from their files; `explicate` itself does not depend on them.
"""


def shown(record: Record) -> list[Topology]:
    """The topologies on record, in the order of the papers."""
    return [one for one in topologies() if record.values.get(one.name)]


def page(record: Record) -> str:
    """The page."""
    there = shown(record)
    found = {one.name: made for one in there if (made := study.finding(one, record.values[one.name]))}
    floors = ", ".join(
        f"{one.floor:g}{' %' if one.unit == '%' else ''} of {one.head}"
        for name, one in MEASURES.items()
        if name in ("use", "jain", "loss")
    )
    is_ = IS | {"use": USE, "slowdown": SLOWDOWN}
    measures = [f"| {name} | {what} |" for name, what in is_.items() if name != "delay p50, p99"]
    delay = "99th percentile over time of what waits in the queues that count, in ms of the line"
    measures.insert(1, f"| delay p99 | {delay} |")
    parts = [
        HEAD,
        *answer(there, found, record),
        *reading(record),
        METHOD.format(
            laws="\n".join(law_row(name) for name in TODAY), measures="\n".join(measures), seeds=record.seeds,
            first=" and ".join(map(str, FIRST_SEEDS)), floors=floors,
        ),
        "## Topologies and results\n",
        *left_out(record, there),
        *(part for one in there for part in of_topology(one, record.values[one.name])),
        THREATS.format(seeds=record.seeds),
        REPEAT,
    ]  # fmt: skip
    return "\n".join(parts)


def reading(record: Record) -> Iterator[str]:
    """The answer in words, with the means that it mentions; nothing if the record is not complete.

    A test checks that the verdicts are those on which these words rest.
    """

    def mean(found: re.Match[str]) -> str:
        one, row, measure = found[1].split("/")
        return number(fmean([each for block in record.values[one][row][measure] for each in block]))

    if list(record.values) == [one.name for one in topologies()] and not record.failed:
        yield re.sub(r"\{([^}]*)\}", mean, READING)


def law_row(name: str) -> str:
    """A law of today in the table of rows."""
    law = law_named(name)
    kind = {"droptail": "the paper's length, drop-tail"}.get(law.queue["kind"], law.queue["kind"])
    router = f", ABC's routers (`delta` {law.router['delta']})" if isinstance(law.router, Mapping) else ""
    return f"| {law.label} | Linux's | {kind}{router} |".replace("${delta}ms", "0.7 of the round trip, at least 133 ms")


def left_out(record: Record, there: Sequence[Topology]) -> Iterator[str]:
    """What the record lacks."""
    if missing := [one.name for one in topologies() if one not in there]:
        yield f"Not on record: {', '.join(missing)}.\n"
    for name, reasons in record.failed.items():
        for law, reason in reasons.items():
            yield f"{law} on {name} failed ({reason}), and is left out there.\n"


def answer(there: Sequence[Topology], found: Mapping[str, Finding], record: Record) -> Iterator[str]:
    """The answer: a row for each topology, and counts."""
    yield "## The answer\n"
    labels = [law_named(name).label for name in TODAY]
    head = ["topology", "source", "protocol", "baseline", "then", *labels, "today", "behind none"]
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" * 1 + " --- |" * (len(head) - 1)
    for one in there:
        if made := found.get(one.name):
            beside = [verdict.word(made.beside[name]).value if name in made.beside else "–" for name in TODAY]
            then = verdict.word(made.then).value if made.then else "–"
            best = ", ".join(study.names(one)[name] for name in unbeaten(one, record.values[one.name]))
            cells = [
                f"[{one.title}](#{anchor(one)})", f"{one.experiment[0]}, {experiments()[one.experiment].figure}",
                one.names[OWN], one.names[THEN], then, *beside, f"**{made.word.value}**", best or "none",
            ]  # fmt: skip
            yield "| " + " | ".join(cells) + " |"
    yield ""
    yield from (f"- {line}" for line in in_short(there, found, record))
    yield ""


def in_short(there: Sequence[Topology], found: Mapping[str, Finding], record: Record) -> Iterator[str]:
    """Counts over all topologies, each a sentence or two."""
    by_word = {word: [one for one in there if one.name in found and found[one.name].word is word] for word in Word}
    parts = [f"{word.value} on {len(ones)} ({listed(ones)})" for word, ones in by_word.items() if ones]
    yield f"**Today**, over {len(found)} topologies, the papers' protocols are {'; '.join(parts)}."
    then = Counter(verdict.word(made.then) for made in found.values() if made.then)
    parts = [f"{word.value} on {then[word]}" for word in Word if then[word]]
    yield f"**Then**, beside the papers' own baselines with the papers' hosts, they are {'; '.join(parts)}."
    for name in TODAY:
        words = Counter(verdict.word(made.beside[name]) for made in found.values() if name in made.beside)
        ahead = tally(made.beside[name].better for made in found.values() if name in made.beside)
        worse = tally(made.beside[name].worse for made in found.values() if name in made.beside)
        parts = [f"{word.value} on {words[word]}" for word in Word if words[word]]
        said = f"Beside **{law_named(name).label}** they are {'; '.join(parts)}."
        said += f" They are better in {ahead}." if ahead else ""
        yield said + (f" They are worse in {worse}." if worse else "")
    counts = Counter(row for one in there for row in unbeaten(one, record.values[one.name]))
    called = {OWN: "the paper's protocol", **{name: law_named(name).label for name in TODAY}}
    parts = [f"{called[row]} on {counts[row]}" for row in (OWN, *TODAY)]
    yield f"**Behind none of the other four** is {', '.join(parts)}."


def tally(rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    """Measures with the number of topologies, the most frequent first."""
    counts = Counter(name for row in rows for name in row)
    order = sorted(counts, key=lambda name: (-counts[name], list(MEASURES).index(name)))
    return ", ".join(f"{MEASURES[name].words} on {counts[name]}" for name in order)


def listed(ones: Sequence[Topology]) -> str:
    """The names of topologies."""
    return ", ".join(one.name for one in ones)


def unbeaten(one: Topology, values: Values) -> list[str]:
    """The contestants of today, the paper's protocol among them, that are behind no other."""
    rows = [row for row in (OWN, *TODAY) if row in values]
    floors = {name: one.floor(name) for name in one.measures}
    return [
        row
        for row in rows
        if not any(verdict.word(against(values, row, other, floors)) is Word.BEHIND for other in rows if other != row)
    ]


def of_topology(one: Topology, values: Values) -> Iterator[str]:
    """A topology: source, question, the paper's statement, table, verdict, figure."""
    head, body = study.table(one, values)
    source = experiments()[one.experiment]
    least = f"Of a delay at least {one.floor('p99'):.3g} ms count."
    yield f"### {one.title}\n"
    yield (
        f"`{one.name}`: paper {source.paper.letter} ({source.paper.authors}), {source.figure} "
        f"([{one.experiment}](reproduction.md)), {one.duration:g} s. {one.question} {least}\n"
    )
    yield f"*The paper says:* {one.wanted}\n"
    yield "| " + " | ".join(head) + " |"
    yield "| --- | --- |" + " --: |" * len(one.measures) + " --- |"
    yield from ("| " + " | ".join(row) + " |" for row in body)
    yield ""
    yield from (f"- {line}" for line in study.sentences(one, values))
    drawn = " and ".join(MEASURES[name].words for name in one.drawn)
    yield f"\n![{one.title}: {drawn}, by law]({IMAGES}-{one.name}.svg)\n"


def figure(one: Topology, values: Values, seeds: int) -> str:
    """The SVG of a topology."""
    called, when = study.names(one), {THEN: "\nthen", PAPER: "\nthen", OWN: "\nnow"}
    rows = [row.name for row in study.rows() if row.name in values]
    labels = {row: textwrap.fill(called[row], LETTERS) + when.get(row, "") for row in rows}
    return by_law(one, labels, values, seeds, "law")


def files(record: Record) -> dict[Path, str]:
    """All files that are made from a record."""
    figures = {image(one): figure(one, record.values[one.name], record.seeds) for one in shown(record)}
    return {PAGE: page(record), **figures}


def image(one: Topology) -> Path:
    """The file of a topology's figure."""
    return PAGE.parent / f"{IMAGES}-{one.name}.svg"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file is not what it should be")
    args = parser.parse_args(arguments)
    made = files(Record.read(RECORD, study.NAME))
    old = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    known = {f"{Path(IMAGES).name}-{letter}-" for letter in PAPERS}
    mine = [path for path in sorted((PAGE.parent / IMAGES).parent.glob("*.svg")) if path.name.startswith(tuple(known))]
    old += [path for path in mine if path not in made]
    if args.check:
        for path in old:
            print(f"{path.relative_to(ROOT)} is old: python scripts/make_modern.py", file=sys.stderr)
        return 1 if old else 0
    for path in old:
        if path in made:
            write_text(path, made[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
