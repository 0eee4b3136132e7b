"""Enter the criteria of newly written predicates in python/tests/criteria.json; those that are there stay.

A bound that was wrong is entered anew with `--renew CLAIM`: the file's history then shows which, and its commit why.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from explicate_papers.plan import studies
from explicate_papers.register import predicates

PATH = Path(__file__).resolve().parent.parent / "python" / "tests" / "criteria.json"


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", metavar="CLAIM", nargs="+", default=[], help="claims whose bounds are entered anew")
    renew = set(parser.parse_args().renew)
    known = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
    for study in studies().values():
        for key, rule in study.rules.items():
            text = predicates()[key].criterion
            entry = {"criterion": hashlib.sha256(text.encode()).hexdigest()[:12], "bounds": dict(rule.bounds)}
            if known.setdefault(key, entry) != entry and key in renew:
                print(f"{key}: {known[key]['bounds']} before, now {entry['bounds']}")
                known[key] = entry
    PATH.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
