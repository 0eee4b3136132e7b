"""Write docs/study-measured-capacity.md and its figure: XCP with a capacity that is measured.

It reads tests/study-capacity.json, the record that `explicate study capacity --quick -o tests/study-capacity.json`
writes, and the study's hops. Run it after either of them changed; with --check it writes nothing, and fails if a file
is old.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from pictures import picture

from explicate.charts import Axes, Series
from explicate.studies import capacity
from explicate.studies.bits import FIRST_SEEDS, Record
from explicate.studies.capacity import GRID, PER_OCTAVE, Hop, Judged, Word
from explicate.studies.verdict import Values

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "study-capacity.json"
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
  thirds of the delay at p99.
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
"""
METHOD = """\
## Criterion

Written before the first run, with all constants of the estimator. They were not changed after it.

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
- **The cellular trace is synthetic**, and its steps are half a second long.
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
```

The record has the value of each seed.
"""
MOST = 4.0
"""Ratios of delays above are drawn there."""
DRAWN = (capacity.MEASURED, capacity.OWN, capacity.PHY, capacity.ABC_MEASURED, capacity.ABC_TOLD)


def hops(record: Record) -> list[Hop]:
    """The hops on record, in their order."""
    return [one for one in capacity.hops() if record.values.get(one.name)]


def page(record: Record) -> str:
    """The page."""
    shown = hops(record)
    factors = [2 ** (i / PER_OCTAVE) for i in GRID]
    method = METHOD.format(
        points=len(factors), low=factors[0], high=factors[-1], knee=capacity.KNEE, share=capacity.SHARE,
        beside=capacity.BESIDE, seeds=record.seeds, first=" and ".join(map(str, FIRST_SEEDS)),
    )  # fmt: skip
    parts = [
        HEAD,
        *answer(record, shown),
        READING,
        method,
        "## Hops and results\n",
        *(line for one in shown if not one.apart for line in of_hop(one, record.values[one.name])),
        "## Hidden terminals\n",
        *(line for one in shown if one.apart for line in of_hop(one, record.values[one.name])),
        THREATS,
        REPEAT,
    ]
    return "\n".join(parts)


def judged(hop: Hop, values: Values, system: str) -> Judged | None:
    """What the criterion says of a system; nothing where it did not run, or is the best itself."""
    rival = capacity.best(values)
    return capacity.judge(hop, values, system, rival) if rival and system in values and system != rival else None


def words_of(hop: Hop, values: Values, system: str) -> str:
    """A cell of the table of answers."""
    found = judged(hop, values, system)
    if found is None:
        return "–"
    return f"{found.word.value}, {found.share:.2f}" + (f" ({', '.join(found.failed)})" if found.failed else "")


def answer(record: Record, shown: Sequence[Hop]) -> Iterator[str]:
    """The answer in short."""
    yield "## The answer\n"
    judged_here = [one for one in shown if not one.apart]
    found = {one.name: judged(one, record.values[one.name], capacity.MEASURED) for one in judged_here}
    by_word = {word: [name for name, one in found.items() if one and one.word is word] for word in Word}
    said = [f"{word.value} on {len(names)} ({', '.join(names)})" for word, names in by_word.items() if names]
    yield f"On {len(judged_here)} hops, XCP with a measured capacity: the criterion {'; '.join(said)}.\n"
    yield (
        "| hop | measured | own time only | rate of the radio | half of the best | twice the best | ABC, measured | "
        "ABC, configured |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for one in shown:
        values = record.values[one.name]
        rival = capacity.best(values)
        wrong = capacity.wrong(rival) if rival else {}
        half, twice = (wrong.get(words, "") for words in ("half of it", "twice as much"))
        names = [capacity.MEASURED, capacity.OWN, capacity.PHY, half, twice, capacity.ABC_MEASURED, capacity.ABC_TOLD]
        cells = [words_of(one, values, name) for name in names]
        yield f"| [{one.title}](#{anchor(one)}) | " + " | ".join(cells) + " |"
    yield (
        "\nA number is the goodput over that of the best configured capacity; in brackets what of the criterion does "
        "not hold.\n"
    )
    yield from controls(record, judged_here)
    yield "![Goodput and p99 delay over those of the best configured capacity, by hop](img/capacity.svg)\n"
    yield f"Ratios of delays above {MOST:g} are drawn there.\n"


def controls(record: Record, shown: Sequence[Hop]) -> Iterator[str]:
    """Which controls did not fail."""
    passed, total = [], 0
    for one in shown:
        values = record.values[one.name]
        for label, name, control in capacity.rows(one, values):
            found = judged(one, values, name) if control else None
            total += found is not None
            if found and found.word is not Word.FAILS:
                passed.append(f"{label} on {one.name} ({found.word.value})")
    yield f"Of {total} controls {total - len(passed)} fail, as they must." + (
        f" Not so: {'; '.join(passed)}.\n" if passed else "\n"
    )


def anchor(hop: Hop) -> str:
    """The anchor of a hop's heading."""
    kept = "".join(char for char in hop.title.lower() if char.isalnum() or char in " -")
    return kept.replace(" ", "-")


def of_hop(hop: Hop, values: Values) -> Iterator[str]:
    """A hop: what it is, and its table."""
    head, body = capacity.table(hop, values)
    yield f"### {hop.title}\n"
    yield f"`{hop.name}`. {hop.question} Empty round trip {hop.rtt:g} ms.\n"
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " --: |" * (len(head) - 2) + " --- |"
    yield from ("| " + " | ".join(row) + " |" for row in body)
    yield ""


def figure(record: Record) -> str:
    """The SVG: a panel for goodput over the best's, and one for the p99 delay; a dot for each system and hop."""
    shown = [one for one in hops(record) if capacity.best(record.values[one.name])]
    labels = {one.name: one.label for one in capacity.SYSTEMS}
    share, delay = [], []
    for place, system in enumerate(DRAWN):
        at = [(i, one) for i, one in enumerate(shown, 1) if system in record.values[one.name]]
        x = [i + (place - 2) * 0.13 for i, _ in at]
        values = [(found, found[capacity.best(found) or ""]) for found in (record.values[one.name] for _, one in at)]
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


def files(record: Record) -> dict[Path, str]:
    """All files that are made from a record."""
    return {PAGE: page(record), IMAGE: figure(record)}


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file is not what it should be")
    args = parser.parse_args()
    made = files(Record.read(RECORD, capacity.NAME))
    old = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in old:
        if args.check:
            print(f"{path.relative_to(ROOT)} is old: python scripts/make_capacity.py", file=sys.stderr)
        else:
            path.write_text(made[path], encoding="utf-8")
    return 1 if args.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
