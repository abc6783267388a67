"""The command line. `run` is the console script; it imports the program only when it is called."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the command in `sys.argv`; return the exit status."""
    try:
        from ricordo.interfaces.cli.app import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:  # while modules were loading
        return 130
