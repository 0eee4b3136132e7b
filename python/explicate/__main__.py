"""``python -m explicate`` is the command ``explicate``."""

import sys

from explicate.cli import main

if __name__ == "__main__":
    sys.exit(main())
