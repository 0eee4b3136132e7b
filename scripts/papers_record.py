"""Repeat the papers' experiments quickly and compare the verdicts with those on record in tests/papers.json.

By default those of the record's ``shard`` are repeated, with `--every` all of them. A predicate that flips is an error,
whichever way: either something broke, or the record (and docs/reproduction.md) is out of date; `--write` renews it. So
is taking longer than `--budget`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from explicate.papers.command import Progress
from explicate.papers.judge import attempts
from explicate.papers.register import experiments
from explicate.papers.store import Store

RECORD = Path(__file__).resolve().parent.parent / "tests" / "papers.json"


def main() -> int:
    """Return 1 if a verdict differs from the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", action="store_true", help="repeat all experiments, not only the shard")
    parser.add_argument("--write", action="store_true", help="record the verdicts")
    parser.add_argument("--store", type=Path, help="keep finished runs here")
    parser.add_argument("--budget", type=float, help="most seconds that it may take (720, of --every 900)")
    args = parser.parse_args()
    budget = args.budget or (900.0 if args.every else 720.0)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(args.store or Path(scratch))
        chosen = experiments() if args.every else record["shard"]
        tried = attempts([experiments()[key] for key in chosen], "quick")
        with Progress() as told:
            store.perform([job for one in tried for job in one.jobs], os.cpu_count() or 1, told)
        now = {
            one.experiment.id: {verdict.predicate.id: verdict.holds for verdict in one.judge(store).verdicts}
            for one in tried
        }
    spent = time.monotonic() - began
    known = record["quick"]
    flips = [
        f"{key}: on record {known.get(name, {}).get(key)}, now {holds}"
        for name, verdicts in now.items()
        for key, holds in verdicts.items()
        if known.get(name, {}).get(key) != holds
    ]
    if args.write:
        record["quick"] = {key: {**known, **now}[key] for key in experiments() if key in {**known, **now}}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    held = sum(holds is True for verdicts in now.values() for holds in verdicts.values())
    judged = sum(holds is not None for verdicts in now.values() for holds in verdicts.values())
    print(f"{len(now)} experiments, {held} of {judged} judged predicates hold, {len(flips)} flipped, {spent:.0f} s")
    print("\n".join(flips))
    if spent > budget:
        print(f"it took longer than {budget:.0f} s: make experiments smaller or the shard", file=sys.stderr)
        return 1
    return 1 if flips and not args.write else 0


if __name__ == "__main__":
    sys.exit(main())
