"""The command line. `run` is the console script; what it needs is imported only then."""

from __future__ import annotations

import sys


def run() -> int:
    """Do what the command line says; return the exit status."""
    try:
        from ricordo.doors.cli.app import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:  # while modules were loading
        return 130
