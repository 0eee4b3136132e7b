"""``python -m explicate`` is the command ``explicate``."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends the process without a traceback while modules are imported

from explicate.cli import main

if __name__ == "__main__":
    sys.exit(main())
