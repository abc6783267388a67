"""The command line. `run` is the console script; what it needs is imported only then."""

from __future__ import annotations

import sys


def run() -> int:
    """Do what the command line says; return the exit status."""
    try:
        if sys.argv[1:2] == ["mcp"]:
            from ricordo.doors.mcp import quick

            if (given := quick.options(sys.argv[1:])) is not None:
                return quick.run(given)
        from ricordo.doors.cli.app import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:  # while modules were loading
        return 130
