"""The command `explicate` in a separate process, with the synthetic engine."""

import sys

import fake_native

if __name__ == "__main__":
    fake_native.install()
    from explicate.cli import main

    sys.exit(main())
