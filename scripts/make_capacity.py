"""Write docs/study-measured-capacity.md and its figure: XCP with a capacity that is measured.

It reads tests/study-capacity.json, the record that `explicate study capacity --quick -o tests/study-capacity.json`
writes, tests/study-capacity-traces.json, the same with `--only trace --trace FILE...`, and the study's hops. Run it
after one of them changed; with --check it writes nothing, and fails if a file is old. It needs no recording.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from pictures import picture

from explicate.charts import Axes, Series
from explicate.studies import capacity
from explicate.studies.bits import FIRST_SEEDS, Record
from explicate.studies.capacity import GRID, PER_OCTAVE, RIVALS, Hop, Judged, Word
from explicate.studies.recordings import FAMILY
from explicate.studies.verdict import Values
from explicate.text import number

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "study-capacity.json"
TRACES = ROOT / "tests" / "study-capacity-traces.json"
PAGE = ROOT / "docs" / "study-measured-capacity.md"
IMAGE = PAGE.parent / "img" / "capacity.svg"

HEAD = """\
# XCP with a capacity that is measured

<!-- Made by `scripts/make_capacity.py`. -->

XCP's routers compare the traffic with the capacity of the link. Over 802.11 no number is right: paper N configures 54
Mbit/s, the rate of the radio, finds 24 better, sees XCP oscillate below and fill queues above, and ends with a wish,
a wireless XCP that estimates the capacity (sections V-C and VII). A port can now measure it, by the service of its
frames: `capacity = { measured = "air_time" }` at a link or a medium. How, and what follows from it, is in
`crates/explicate-core/src/estimate/hop_capacity.rs`: acknowledged bytes over the time in which their frames were
first in the queue; others' share of the air; the part on the air at the radio's present rate.

**The claim:** with this, and no configured number, XCP carries what it carries with the best number, at about the
same delay.
"""
READING = """\
## What to make of it

Written after the runs.

- **It holds, but not everywhere is that much.** Over two and three hops the rule for the best configured capacity
  takes numbers far above what the chain carries: the receiver's window of 90 packets bounds the queue, nothing is
  dropped, and the last percent of goodput outweighs the delay. There controls pass that should fail, and the
  criterion says little. What the tables say is that the measured capacity carries 99 % of it with less than two
  thirds of the delay at p99. Power says more.
- **By power it fails over two and three hops and with two stations** (0.82, 0.72, 0.82), and there every control
  fails, too. With the measured capacity the air of the chains is filled to 99 % of what it carries, at a median delay
  of 14 and 27 ms; the constant with the most power fills 94 %, at 5.5 and 7.0 ms. XCP's law wants all of the
  capacity. Where service is even, as on a line, that costs nothing; where stations contend, it varies, and each port
  that measures the same air has a queue of its own. A controller that aims below the measured capacity would be the
  remedy; we have not tried it.
- **Others' share of the air decides where others send data**: with two stations, and behind an access point without
  RTS and CTS, the estimator without it fails. On a single hop only acknowledgements share the air; there it passes,
  too, so the control shows nothing.
- **Against a constant on the cellular link** the measured capacity is far ahead: the constants that carry most have
  a standing queue there. Against a router that knows each new rate at once it loses 3 % of the goodput, and the p99
  delay is longer by what a window of 100 ms takes to forget.
- **ABC with the same measurement carries 1 to 4 % more than XCP, with more delay**: its law allows a queue of 20 ms.
  By this criterion it fails on four of the hops. What its paper claims, that it beats XCP on links that vary, becomes a
  trade once XCP measures, too: on the cellular link 4 % more goodput for 21 ms more at p99.
- **Shares of stations are not part of the criterion, and they can be unequal.** Each station measures its own
  capacity, so one that uses the air leaves less to measure for the other. Where stations sense each other, 802.11
  evens that out. Where they do not, it does not: with hidden terminals one sender takes nearly all (Jain's index
  0.5 of two), and RTS and CTS help little (0.59), while a configured number that is low enough keeps them equal.
- **Who loses with RTS and CTS is chance; why it stays so is not known.** In runs with seeds 1 to 3 the one sender
  carries 3.6 to 3.7 Mbit/s, the other 0.28 to 0.40; once the first to start won, twice the second. The loser sends
  no more than its own port measures: 0.50 to 0.68 Mbit/s, since the other holds the air for 76 to 80 % of its frames'
  service; the winner measures 4.0 to 4.1, with 14 to 16 %. We thought that collisions cost the loser more than the
  winner's use of the air. Loads of constant rate do not show it: beside 3.5 Mbit/s a sender of 0.3 measures 3.8, and
  3.9 if both sense each other.
- **Over recordings it holds in 6 of 12 cases**, with 0.74 to 0.95 of the best's goodput, at a fraction of the best's
  delays. The first runs failed in all 12, with 0.26 to 0.74: recordings have whole milliseconds, many chances share
  one, and the estimator left out the bytes of a packet that leaves in the same millisecond as the one before, whose
  service takes no time. It counts them now. That was mended after the verdicts were known; no constant moved, and the
  hops' figures are what they were.
- **What it still lacks there we think is what it cannot see.** Chances that come while the queue is empty are lost,
  and no estimator in the queue can count them. XCP keeps the queue short, so of a burst of chances it uses the first
  ones and measures those. ABC, whose queue is longer, carries 3 to 5 % more on four of the six, and as much on
  TMobile's downlink and ATT's uplink. This is a reading of the tables; no run tests it.
"""
METHOD = """\
## Criterion

Written before the first run, with all constants of the estimator. They were not changed after it; what the estimator
counts was mended once, after the first runs over recordings ([why](#what-to-make-of-it)).

- **The best configured capacity** of a hop comes from a grid: {points} numbers, each a fifth above the one before
  (2^(1/4)), from {low:.2f} to {high:.2f} times a guess of what the hop carries. Of those that carry at least
  {knee:.0%} of the most, it is the one with the least p99 delay. It is chosen with all seeds and for this hop
  alone, so it knows more than an operator does.
- **Goodput** is at least {share:.0%} of that of the best.
- **Delay** in the queues, at the median and at the 99th percentile over time, is at most twice that of the best, or
  at most {beside} of the empty round trip above it, whichever is more. The number is what XCP's own law makes of an
  error of 10 %, the part of the goodput that the criterion gives away: a queue of 1.77 e / (1 - 1.77 e) of a
  bandwidth-delay product (the test `capacity_error` measures it), {beside} for e = 0.1. The factor of two is for
  hops whose best has a long queue already, of bursts and of waits for the air, which the law does not know.
- All three in each of two blocks of {seeds} seeds (from {first}): it *holds*; in neither block: it *fails*; else it
  is *undecided*.

**Controls**, which must fail, or the criterion says nothing: half and twice the best configured capacity; the
estimator with others' share of the air switched off (`own_time`), where others use the air; the rate of the radio
(`phy_rate`), where there is a radio.

**ABC** runs on the same hops, with the guess as its configured capacity and with the same measurement. Its paper says
that it is better than XCP on links that vary. It is judged by the same criterion, against XCP's best.

**Recordings.** Each recording of a cellular link is two hops, `cellular` and `cellular-constant` with its air: against
routers that have a factor of the mean rate of the present half second, and against constants around its mean rate from
5 s to 60 s. Written before the first run over one: the recordings are all six of
[Recorded cellular links](validation.md#recorded-cellular-links), of each network both directions, because that page
has them already and none is left out; their first minute is played; buffer, round trip, flows, seeds, grid, criterion
and controls are those of the two hops.

**Power, a second criterion.** It was written after the runs on the hops, with their tables known, and before the first
run over a recording. Over two and three hops controls pass the first one, because its best configured capacity may pay
for the last percent of goodput with any delay. Kleinrock's power (ICC 1979), goodput over round trip, has its most
where a percent of the one costs a percent of the other, and no constant to choose. The round trip is the empty one
with the median delay in the queues. The best configured capacity is the one with the most power; a system holds if in
each block its power is at least {share:.0%} of that, the tenth of the first criterion. Controls are the same.

Hidden terminals are reported apart: their collisions depend on the load, so no capacity is a property of the hop.

Radios have 802.11a's timing and queues of 100 packets, drop-tail; on paper N's hops hosts have ns-2's TCP below XCP,
the others Linux's. A run takes 20 s, 60 on lines; measured after 5 s (20 on the satellite).
"""
THREATS = """\
## Threats to validity

- **The simulator's 802.11** counts others' use of the medium exactly. A card's driver reports it coarsely, as the
  time of the channel's survey, and some report nothing. Without it only a change of rate is mistaken: while rates
  are constant, the estimate is acknowledged bytes over service time whatever the share is.
- **The driver has to say when a frame's service ends.** A card that takes many packets ahead, as most do, hides the
  queue from the router; then neither the queue nor the service time is the port's.
- **No aggregates.** Frames of 802.11n and later carry many packets. The estimator takes a frame's bytes and time,
  so it should serve there, too; nothing here shows it.
- **The guess is ours**, and so is the grid: a finer one might find a better number, by less than a tenth.
- **The hops' cellular trace is synthetic**, and its steps are half a second long. The recordings are six, of three
  networks. Chances to send come there in bursts; the delay is that of a queue that leaves at the mean
  rate of each half second.
- **Our implementations.** Paper N's are lost; ABC's page lists what of it could not be verified, its own
  measurement of a Wi-Fi link among that.
"""
REPEAT = """\
## Repeat it

```bash
explicate study capacity --list
explicate study capacity --quick --jobs 2 -o capacity.json        # resumable; finished runs stay in explicate-study/
make capacity                                                     # in a clone: the record, this page and its figure
explicate study capacity --only hop-54,adapting                   # a part of it
explicate study capacity --jobs 2                                 # 20 seeds a block
explicate study capacity --quick --only trace --trace lte.down wlan.up   # your recordings of cellular links
```

The record has the value of each seed. With `--trace` each recording becomes two hops, `trace-` and the name of its
file, and the same with `-constant`, as in the [study of bits](study-bits.md#repeat-it). Recordings stay in your own
files; `tests/study-capacity-traces.json` has what was measured over those of this page.
"""
MOST = 4.0
"""Ratios of delays above are drawn there."""
DRAWN = (capacity.MEASURED, capacity.OWN, capacity.PHY, capacity.ABC_MEASURED, capacity.ABC_TOLD)


AGAINST = ("the rate of the moment", "a constant")
"""The rivals of a recording."""
COLUMNS = (
    "measured",
    "own time only",
    "rate of the radio",
    "half of the best",
    "twice the best",
    "ABC, measured",
    "ABC, configured",
)
"""Of the tables of answers; `judged` has the systems."""


@dataclass(frozen=True)
class Rule:
    """A criterion: the best configured capacity by it, and what it says of a system beside that."""

    best: Callable[[Hop, Values], str | None]
    judge: Callable[[Hop, Values, str, str], Judged]


FIRST = Rule(lambda _, values: capacity.best(values), capacity.judge)
POWER = Rule(capacity.most_power, capacity.judge_power)


@dataclass(frozen=True)
class Shown:
    """A hop on record: its values, and its name in lists and in tables."""

    hop: Hop
    values: Values
    name: str
    link: str


def hops(record: Record) -> list[Shown]:
    """The hops on record, in their order."""
    return [
        Shown(one, values, one.name, f"[{one.title}](#{anchor(one)})")
        for one in capacity.hops()
        if (values := record.values.get(one.name))
    ]


def recordings(record: Record, *, follows: bool) -> list[Shown]:
    """The recordings on record, against a router that follows the rate or against a constant."""
    found = []
    for name, values in record.values.items():
        title = name.removeprefix(f"{FAMILY}-").removesuffix("-constant").replace(".", " ")
        base = next(one for one in capacity.hops() if one.name == RIVALS[name.endswith("-constant")])
        if base.follows is follows:
            found.append(Shown(replace(base, name=name), values, title, title))
    return found


def page(record: Record, traces: Record) -> str:
    """The page."""
    shown = hops(record)
    factors = [2 ** (i / PER_OCTAVE) for i in GRID]
    method = METHOD.format(
        points=len(factors), low=factors[0], high=factors[-1], knee=capacity.KNEE, share=capacity.SHARE,
        beside=capacity.BESIDE, seeds=record.seeds, first=" and ".join(map(str, FIRST_SEEDS)),
    )  # fmt: skip
    parts = [
        HEAD,
        *answer(shown, traces),
        *over_recordings(traces),
        *by_power(shown, traces),
        READING,
        method,
        "## Hops and results\n",
        *(line for one in shown if not one.hop.apart for line in of_hop(one)),
        "## Hidden terminals\n",
        *(line for one in shown if one.hop.apart for line in of_hop(one)),
        THREATS,
        REPEAT,
    ]
    return "\n".join(parts)


def judged(one: Shown, rule: Rule) -> list[tuple[str, str, Judged | None, bool]]:
    """The systems of `COLUMNS`: name, label, what the rule says, and whether it is a control.

    The rule says nothing of what did not run, and of the best itself.
    """
    rival = rule.best(one.hop, one.values)
    wrong = capacity.wrong(rival) if rival else {}
    labels = {one.name: one.label for one in capacity.SYSTEMS}
    found = [
        (capacity.MEASURED, labels[capacity.MEASURED], False),
        (capacity.OWN, labels[capacity.OWN], one.hop.others),
        (capacity.PHY, labels[capacity.PHY], one.hop.air),
        *((wrong.get(words, ""), f"XCP, {words}", True) for words in ("half of it", "twice as much")),
        *((name, labels[name], False) for name in (capacity.ABC_MEASURED, capacity.ABC_TOLD)),
    ]
    return [
        (name, label, rule.judge(one.hop, one.values, name, rival) if rival and name in one.values else None, control)
        for name, label, control in found
    ]


def cells(one: Shown, rule: Rule) -> list[str]:
    """The cells of a table of answers."""
    made = []
    for _, _, found, _ in judged(one, rule):
        failed = f" ({', '.join(found.failed)})" if found and found.failed else ""
        made.append(f"{found.word.value}, {found.share:.2f}{failed}" if found else "–")
    return made


def answers(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with the columns of answers behind `head`."""
    yield "| " + " | ".join([*head, *COLUMNS]) + " |"
    yield "| " + " | ".join("---" for _ in (*head, *COLUMNS)) + " |"
    yield from ("| " + " | ".join(row) + " |" for row in rows)


def summary(shown: Sequence[Shown], rule: Rule) -> str:
    """On which hops the rule holds of the measured capacity, and on which not."""
    said = []
    for word in Word:
        names = [one.name for one in shown if (found := judged(one, rule)[0][2]) and found.word is word]
        if names:
            said.append(f"{word.value} on {len(names)} ({', '.join(names)})")
    return "; ".join(said)


def controls(shown: Sequence[Shown], rule: Rule) -> str:
    """Which controls did not fail."""
    made = [
        (label, one.name, found.word)
        for one in shown
        for _, label, found, control in judged(one, rule)
        if control and found
    ]
    passed = [f"{label} on {name} ({word.value})" for label, name, word in made if word is not Word.FAILS]
    said = f"Of {len(made)} controls {len(made) - len(passed)} fail, as they must."
    return said + (f" Not so: {'; '.join(passed)}.\n" if passed else "\n")


def answer(shown: Sequence[Shown], traces: Record) -> Iterator[str]:
    """The answer in short."""
    yield "## The answer\n"
    judged_here = [one for one in shown if not one.hop.apart]
    said = summary(judged_here, FIRST)
    yield f"On {len(judged_here)} hops, XCP with a measured capacity: the criterion {said}.\n"
    pairs = [one for follows in (True, False) for one in recordings(traces, follows=follows)]
    held = sum((found := judged(one, FIRST)[0][2]) is not None and found.word is Word.HOLDS for one in pairs)
    yield (
        f"Over [recordings of cellular links](#recordings-of-cellular-links) it holds in {held} of {len(pairs)} cases. "
        f"By [power](#by-power), on the hops, it {summary(judged_here, POWER)}.\n"
    )
    yield from answers(["hop"], [[one.link, *cells(one, FIRST)] for one in shown])
    yield (
        "\nA number is the goodput over that of the best configured capacity; in brackets what of the criterion does "
        "not hold.\n"
    )
    yield controls(judged_here, FIRST)
    yield "![Goodput and p99 delay over those of the best configured capacity, by hop](img/capacity.svg)\n"
    yield f"Ratios of delays above {MOST:g} are drawn there.\n"


def over_recordings(traces: Record) -> Iterator[str]:
    """What came out over recordings, in short, and the numbers."""
    yield "## Recordings of cellular links\n"
    moment, constant = (recordings(traces, follows=follows) for follows in (True, False))
    yield f"Against a router that knows the rate of the moment the criterion {summary(moment, FIRST)}.\n"
    yield f"Against the best constant it {summary(constant, FIRST)}.\n"
    pairs = zip(moment, constant, strict=True)
    rows = [(one, words) for pair in pairs for one, words in zip(pair, AGAINST, strict=True)]
    yield from answers(["recording", "against"], [[one.link, words, *cells(one, FIRST)] for one, words in rows])
    yield "\n" + controls([one for one, _ in rows], FIRST)
    head = ["recording", "best, of the moment", "best, constant", "XCP, measured", "ABC, measured"]
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" for _ in head) + " |"
    for one, other in zip(moment, constant, strict=True):
        made = [numbers(one, capacity.best(one.values)), numbers(other, capacity.best(other.values)),
                *(numbers(one, name) for name in (capacity.MEASURED, capacity.ABC_MEASURED))]  # fmt: skip
        yield f"| {one.link} | " + " | ".join(made) + " |"
    yield (
        "\nGoodput, Mbit/s, at delays p50 / p99, ms: means over all seeds. In brackets the configured capacity over "
        "the rate of the moment, or over the mean.\n"
    )


def numbers(one: Shown, system: str | None) -> str:
    """Goodput and delays of a system."""
    if system is None or system not in one.values:
        return "–"
    use, *delays = (mean(one.values[system][name]) for name in ("use", "p50", "p99"))
    told = next(known.told for known in capacity.SYSTEMS if known.name == system)
    return f"{number(use)} at {' / '.join(map(number, delays))}" + (f" ({told:.3g})" if told else "")


def by_power(shown: Sequence[Shown], traces: Record) -> Iterator[str]:
    """What the second criterion says."""
    yield "## By power\n"
    judged_here = [one for one in shown if not one.hop.apart]
    moment, constant = (recordings(traces, follows=follows) for follows in (True, False))
    yield f"[Power](#criterion), the second criterion, {summary(judged_here, POWER)}.\n"
    yield controls(judged_here, POWER)
    said = [summary(one, POWER) for one in (moment, constant)]
    yield f"Over recordings, against the rate of the moment, it {said[0]}; against constants it {said[1]}.\n"
    yield controls([*moment, *constant], POWER)
    yield from answers(["hop"], [[one.link, *cells(one, POWER)] for one in shown])
    yield "\nA number is the power over the most of a configured capacity.\n"


def anchor(hop: Hop) -> str:
    """The anchor of a hop's heading."""
    kept = "".join(char for char in hop.title.lower() if char.isalnum() or char in " -")
    return kept.replace(" ", "-")


def of_hop(shown: Shown) -> Iterator[str]:
    """A hop: what it is, and its table."""
    hop = shown.hop
    head, body = capacity.table(hop, shown.values)
    yield f"### {hop.title}\n"
    yield f"`{hop.name}`. {hop.question} Empty round trip {hop.rtt:g} ms.\n"
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " --: |" * (len(head) - 2) + " --- |"
    yield from ("| " + " | ".join(row) + " |" for row in body)
    yield ""


def figure(record: Record) -> str:
    """The SVG: a panel for goodput over the best's, and one for the p99 delay; a dot for each system and hop."""
    shown = [one for one in hops(record) if capacity.best(one.values)]
    labels = {one.name: one.label for one in capacity.SYSTEMS}
    share, delay = [], []
    for place, system in enumerate(DRAWN):
        at = [(i, one) for i, one in enumerate(shown, 1) if system in one.values]
        x = [i + (place - 2) * 0.13 for i, _ in at]
        values = [(one.values, one.values[capacity.best(one.values) or ""]) for _, one in at]
        shares = [mean(mine[system]["use"]) / mean(best["use"]) for mine, best in values]
        delays = [min(MOST, mean(mine[system]["p99"]) / mean(best["p99"])) for mine, best in values]
        share.append(Series(labels[system], place, x, shares, dots=True))
        delay.append(Series(labels[system], place, x, delays, dots=True))
    names = [one.name.replace("-", "\n") for one in shown]
    span = (0.5, len(shown) + 0.5)
    ratio, p99 = "goodput over the best's", "p99 delay over the best's"
    panels = [
        (Axes(ratio, "hop", ratio, span, (0.0, 1.4), x_names=names), share),
        (Axes(p99, "hop", p99, span, (0.0, 1.05 * MOST), x_names=names), delay),
    ]
    return picture("XCP with a capacity that is measured", panels, len(shown), legend=share)


def mean(blocks: Sequence[Sequence[float]]) -> float:
    """The mean over all seeds."""
    return fmean(value for block in blocks for value in block)


def files(record: Record, traces: Record) -> dict[Path, str]:
    """All files that are made from the records of the hops and of recordings."""
    return {PAGE: page(record, traces), IMAGE: figure(record)}


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file is not what it should be")
    args = parser.parse_args()
    made = files(*(Record.read(path, capacity.NAME) for path in (RECORD, TRACES)))
    old = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in old:
        if args.check:
            print(f"{path.relative_to(ROOT)} is old: python scripts/make_capacity.py", file=sys.stderr)
        else:
            path.write_text(made[path], encoding="utf-8")
    return 1 if args.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
