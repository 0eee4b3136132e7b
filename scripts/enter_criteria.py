"""Enter the criteria of newly written predicates in python/tests/criteria.json; those that are there stay."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from explicate.papers.plan import studies
from explicate.papers.register import predicates

PATH = Path(__file__).resolve().parent.parent / "python" / "tests" / "criteria.json"


def main() -> None:
    """Write the file."""
    known = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
    for study in studies().values():
        for key, rule in study.rules.items():
            text = predicates()[key].criterion
            entry = {"criterion": hashlib.sha256(text.encode()).hexdigest()[:12], "bounds": dict(rule.bounds)}
            known.setdefault(key, entry)
    PATH.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
