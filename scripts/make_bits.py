"""Write docs/study-bits.md and its figures: the study "How many bits does feedback need?".

It reads tests/study-bits.json, the record that `explicate study bits --quick -o tests/study-bits.json` writes, and the
study's tables. Run it after either of them changed; with --check it writes nothing, and fails if a file is old.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pictures import picture

from explicate.charts import Axes, Series, round_up
from explicate.studies import bits
from explicate.studies.bits import FIRST_SEEDS, Record, Verdict
from explicate.studies.tables import Law, Network, tables
from explicate.studies.verdict import MEASURES, Finding, Values, Word, bits_of, interval

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "study-bits.json"
PAGE = ROOT / "docs" / "study-bits.md"
IMAGES = "img/bits"
BESIDE = 0.13
"""Distance of the two blocks' dots from a law's place."""

HEAD = """\
# How many bits does feedback need?

<!-- Made by `scripts/make_bits.py`. -->

A network can say much or little to senders: nothing, a mark (one bit), a region of load (two bits), now and then a rate
(seven bits), a rate or a change of rate in each packet (32 bits). Between 2002 and 2026 each amount had its protocol,
and each paper compares with other laws on other networks. This study puts all of them on the same {networks} networks,
beside laws that act from end to end, and asks of each further bit: what does it buy?
"""
METHOD = """\
## Method

| law | bits | feedback of the network | queue |
| --- | --: | --- | --- |
{laws}

Hosts have the TCP of Linux ([`stack`](scenarios.md#flows)), explicit protocols included as far as it applies to them.
Every law has the constants of its [page](reference/index.md), published ones where there are any. Four depend on the
path and follow their sources' rules: DCTCP's threshold is C RTT / 7, at least 3 packets; ABC's delta is 0.7 of the
longest round trip, at least 133 ms; VCP's interval is 1.25 of it, at least 200 ms; CoDel's interval is that round
trip, at least 100 ms. Drop-tail and marking queues hold one bandwidth-delay product, at least 20 packets, where the
question does not say otherwise; FQ-CoDel and DualPI2 have Linux's limits.

Measured after a warm-up:

{measures}

Each law runs on each network with two disjoint blocks of {seeds} seeds (from {first}). **The rule, written before the
first run:** in one measure a law is better than another if, in each block, its mean is better by at least a tenth of
the larger mean, and by the least difference below, and the two 95 % intervals (Student's t) do not overlap. The bits
of a law

- **buy** something if, against each law with fewer bits, it is better in a measure and worse in none;
- **trade** if it is better than each of these in a measure, and worse than one of them in another;
- buy **nothing** if a law with fewer bits is at least as good in every measure.

The least differences are {floors}, and of a delay a twentieth of the round trip or the time of a packet, whichever is
more. Laws with equally many bits are not compared. Questions and rule are in `python/explicate/studies/`.
"""
IS = {
    "use": "payload that arrived, over the bytes that the network can carry. Headers count against a law: 72 bytes of "
    "1500 for RCP and XCP, 52 for the others",
    "delay p50, p99": "quantiles over time of what waits in the queue, in ms of the line",
    "Jain": "Jain's index of the long flows' goodput, each over its max-min fair share",
    "drops": "data packets that queues dropped, in percent of those sent; losses of the air do not count",
    "slowdown": "completion time over that in an empty network: the median and the 99th percentile up to 15 kB, the "
    "mean to 150 kB and beyond; of a burst that of its last byte",
}
"""What each measure is."""
THREATS = """\
## Threats to validity

- **"As good" includes "not decided".** An interval of {seeds} seeds is wide. A difference that the rule does not find
  may be there. One that it finds is hardly chance: of equal laws whose values are normal, both pairs of intervals part
  in the same direction about once in 100,000 comparisons, and there are {comparisons} here.
- **A tenth is coarse, and the rule is strict.** A use of 0.89 is as good as one of 0.95. A law that is better by far in
  delay, and worse by a tenth in use than a single rival, trades.
- **Bits are not all that differs.** RCP's and XCP's packets also say the sender's round trip to routers. Their feedback
  field counts as 32 bits; our RCP's has 64. The routers of ABC, VCP, RCP and XCP know the capacity, which is right
  on all networks but `cellular-mean` and `wifi`. What a law does after a loss is a separate choice: `geo-keep`.
- **Constants are not tuned.** DCTCP was made for data centres, ABC, VCP and XCP for the Internet; here each meets a
  satellite and a switch of a data centre with the constants that it has.
- **FQ-CoDel is another kind of help.** It isolates flows. The delay of its queue is that of all flows together, so a
  packet of a short flow waits less.
- **One law at a time.** All flows of a network have the same law, and all routers speak, except in `half`. Cohabitation
  is another question: the codes of ABC and VCP are those of L4S.
- **Our implementations.** Each [page of the reference](reference/index.md) lists its deviations, those of
  ABC, Prague and RCP what could not be read; [how far to believe it](explanation/how-far.md) has the evidence for the
  simulator.
- **Networks are small**: at most 35 hosts. The cellular trace is synthetic, and its steps are half a second long.
- **SCONE is no congestion control.** Its 7 bits come some times a minute, and the lowest of 67 s counts, most of a run
  here; beneath is CUBIC, over drop-tail. Elements advise a fair share of the capacity of a router of RCP, by counting
  flows ([how](protocols/scone.md)); no draft says how an element finds a rate.
"""
REPEAT = """\
## Repeat it

```bash
explicate study bits --list
explicate study bits --quick --jobs 2 -o bits.json                # resumable; finished runs stay in explicate-study/
make bits                                                         # in a clone: the record, this page and its figures
explicate study bits --only web,incast --laws cubic,abc,xcp       # a part of it
explicate study bits --jobs 2 -o full.json                        # the full form
explicate study bits --only trace --trace lte.down wlan.up        # your recordings of cellular links
```

The quick form takes three minutes of processor time. The full form has eleven rates, from 1 Mbit/s to 10 Gbit/s (5 s at
that one), and 20 seeds a block: {runs:,} runs, about {hours:.1f} h of processor time by the speed of the quick form.
The command says at its start what it has to do and about how long that takes, and shows the time left in a terminal. It
keeps each run that ends; interrupted, the same command goes on from there. The record has the value of each seed.
Another law is another row of `[[law]]` in `python/explicate/studies/bits.toml`.

With `--trace` each recording becomes a network, `trace-` and the name of its file, beside the others or, with
`--only trace`, alone. A recording has a line for each chance to deliver 1500 bytes: its time in milliseconds, as
mahimahi has it ([more](howto/cellular.md)). Its first minute is played as it is, a shorter one again and again; routers
have the mean rate of the present half second, and the buffer is that of `cellular`. Recordings and what was measured
over them stay in your own files (`explicate-study/` and what `-o` names). This page has the study's own networks alone.
"""


def networks(record: Record) -> list[Network]:
    """The networks on record, in the order of the tables; those of recordings are their owner's."""
    return [one for one in tables().networks if record.values.get(one.name)]


def page(record: Record) -> str:
    """The page."""
    shown = networks(record)
    verdicts = {one.name: bits.verdict(one, record.values[one.name]) for one in shown}
    floors = ", ".join(
        f"{one.floor:g}{' %' if one.unit == '%' else ''} of {one.head}"
        for name, one in MEASURES.items()
        if one.floor is not None and name not in ("short", "short99", "middle", "large", "burst")
    )
    first = " and ".join(map(str, FIRST_SEEDS))
    laws = "\n".join(law_row(law) for law in tables().laws)
    measures = "\n".join(["| measure | is |", "| --- | --- |", *(f"| {name} | {what} |" for name, what in IS.items())])
    runs = len(FIRST_SEEDS) * bits.SEEDS["full"] * len(tables().laws) * len(tables().networks)
    work = runs / len(tables().networks) * sum(one.capacity_mbps * one.duration for one in tables().networks)
    parts = [
        HEAD.format(networks=len(shown)),
        *answer(shown, verdicts),
        METHOD.format(
            laws=laws, measures=measures, seeds=record.seeds, first=first, floors=f"{floors}, 0.1 of a slowdown"
        ),
        "## Networks and results\n",
        *left_out(record, shown),
        *(part for one in shown for part in of_network(one, record.values[one.name], verdicts[one.name], shown)),
        THREATS.format(seeds=record.seeds, comparisons=comparisons(shown, record)),
        REPEAT.format(runs=runs, hours=work / bits.SPEED / 3600),
    ]
    return "\n".join(parts)


def law_row(law: Law) -> str:
    """A law in the table of laws."""
    return f"| {law.label} | {law.bits} | {law.carried} | {law.queue['kind']} |"


def left_out(record: Record, shown: Sequence[Network]) -> Iterator[str]:
    """What the record lacks."""
    run = {law for found in record.values.values() for law in found}
    laws = [law.label for law in tables().laws if law.name not in run]
    quick = record.effort == "quick"
    lacking = [one.name for one in tables().chosen_networks([], quick=quick) if one not in shown]
    parts = [", ".join(laws), f"networks {', '.join(lacking)}" if lacking else ""]
    if any(parts):
        yield f"Not on record: {'; '.join(filter(None, parts))}. Figures follow with the next run.\n"
    known = {one.name for one in tables().networks}
    for name, reasons in record.failed.items():
        for law, reason in reasons.items():
            if name in known:
                yield f"{law} on {name} failed ({reason}), and is left out there.\n"


def comparisons(shown: Sequence[Network], record: Record) -> int:
    """How many pairs of laws are compared in how many measures."""
    found = 0
    for one in shown:
        counts = [law.bits for law in tables().laws if law.name in record.values[one.name]]
        found += len(one.measures) * sum(few < many for few in counts for many in counts)
    return found


def answer(shown: Sequence[Network], verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """The answer in short: what each number of bits buys, by network."""
    labels = {law.name: law.label for law in tables().laws}
    counts = sorted({count for one in verdicts.values() for count in one.rungs})
    yield "## The answer\n"
    yield "| network | " + " | ".join(bits_of(count) for count in counts) + " |"
    yield "| --- |" + " --- |" * len(counts)
    for one in shown:
        cells = []
        for count in counts:
            best = verdicts[one.name].rungs.get(count, [])
            who = ", ".join(labels[found.law] for found in best)
            cells.append(
                "–" if not best else "nothing" if best[0].word is Word.NOTHING else f"**{best[0].word.value}** ({who})"
            )
        yield f"| [{one.title}](#{anchor(one)}) | " + " | ".join(cells) + " |"
    yield ""
    for count in counts:
        yield f"- {in_short(count, shown, verdicts)}"
    yield ""


def in_short(count: int, shown: Sequence[Network], verdicts: Mapping[str, Verdict]) -> str:
    """What a number of bits buys, over all networks."""
    where = {
        word: [one for one in shown if (best := verdicts[one.name].rungs.get(count)) and best[0].word is word]
        for word in Word
    }
    total = sum(map(len, where.values()))
    said = {Word.BUYS: "buys something", Word.TRADES: "trades", Word.NOTHING: "buys nothing"}
    parts = [
        f"{said[word]} on {len(found)}"
        + (f" ({', '.join(one.name for one in found)})" if word is not Word.NOTHING else "")
        for word, found in where.items()
        if found
    ]
    gains = Counter(
        name for one in (*where[Word.BUYS], *where[Word.TRADES]) for name in ahead(verdicts[one.name].rungs[count])
    )
    order = sorted(gains, key=lambda name: (-gains[name], list(MEASURES).index(name)))
    more = ", ".join(f"{MEASURES[name].words} on {gains[name]}" for name in order)
    return f"**{bits_of(count)}**, beside laws with fewer, on {total} networks: {'; '.join(parts)}." + (
        f" One of these laws is better than every law with fewer bits in {more}." if more else ""
    )


def named(found: Sequence[Network]) -> str:
    """The names of networks."""
    return ", ".join(one.name for one in found)


def ahead(best: Sequence[Finding]) -> set[str]:
    """The measures in which one of several laws is better than every law with fewer bits."""
    return {name for one in best for name in MEASURES if all(name in other.better for other in one.against)}


def anchor(network: Network) -> str:
    """The anchor of a network's heading."""
    kept = "".join(char for char in network.title.lower() if char.isalnum() or char in " -")
    return kept.replace(" ", "-")


def of_network(network: Network, values: Values, found: Verdict, shown: Sequence[Network]) -> Iterator[str]:
    """A network: question, what was wanted, table, verdict, figure. Those of a family have one question."""
    head, body = bits.table(network, values)
    first = next(one for one in shown if one.family == network.family)
    asked = f"{network.question}\n\n*Wanted:* {network.wanted}" if network is first else "The same question."
    yield f"### {network.title}\n"
    yield f"`{network.name}`. {asked} Of a delay at least {network.floor('p99'):.3g} ms count.\n"
    yield "| " + " | ".join(head) + " |"
    yield "| --- | --: |" + " --: |" * len(network.measures) + " --- |"
    yield from ("| " + " | ".join(row) + " |" for row in body)
    yield ""
    yield from (f"- {one}" for one in found.sentences)
    drawn = " and ".join(_axis(name) for name in network.drawn)
    yield f"\n![{network.title}: {drawn}, by law]({IMAGES}-{network.name}.svg)\n"


def figure(network: Network, values: Values, seeds: int) -> str:
    """The SVG of a network."""
    names = {law.name: f"{law.label}\n{law.bits}" for law in tables().laws if law.name in values}
    return by_law(network, names, values, seeds, "law, and its bits")


def by_law(network: Network, names: Mapping[str, str], values: Values, seeds: int, what: str) -> str:
    """An SVG: a panel for each measure, a place for each of `names`, a dot with its interval for each block."""
    panels = []
    for name in network.drawn:
        series = []
        for place, first in enumerate(FIRST_SEEDS):
            spans = [interval(values[law][name][place]) for law in names]
            x = [at + (2 * place - 1) * BESIDE for at in range(1, len(names) + 1)]
            y, low, high = ([span[i] for span in spans] for i in range(3))
            series.append(Series(f"seeds {first} to {first + seeds - 1}", place, x, y, low, high, dots=True))
        tops = [value for one in series for value in (*one.y, *one.high) if math.isfinite(value)]
        most = 1.05 * max(tops, default=1.0)
        top = max(1.05, most) if name in ("use", "jain") else round_up(most)
        label = _axis(name)
        places = list(names.values())
        panels.append((Axes(label, what, label, (0.5, len(names) + 0.5), (0.0, top), x_names=places), series))
    return picture(network.title, panels, len(names))


def _axis(name: str) -> str:
    measure = MEASURES[name]
    if name in ("short", "short99", "middle", "large"):
        return f"slowdown {measure.head}"
    return f"{measure.words} ({measure.unit})" if measure.unit else measure.words


def files(record: Record) -> dict[Path, str]:
    """All files that are made from a record."""
    figures = {image(one): figure(one, record.values[one.name], record.seeds) for one in networks(record)}
    return {PAGE: page(record), **figures}


def image(network: Network) -> Path:
    """The file of a network's figure."""
    return PAGE.parent / f"{IMAGES}-{network.name}.svg"


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file is not what it should be")
    args = parser.parse_args()
    made = files(Record.read(RECORD))
    old = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    old += sorted(set((PAGE.parent / IMAGES).parent.glob(f"{Path(IMAGES).name}-*.svg")) - set(made))
    if args.check:
        for path in old:
            print(f"{path.relative_to(ROOT)} is old: python scripts/make_bits.py", file=sys.stderr)
        return 1 if old else 0
    for path in old:
        if path in made:
            path.write_text(made[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
