"""The command line. `run` is the console script; what it needs is imported only then."""

from __future__ import annotations

import sys


def run() -> int:
    """Do what the command line says; return the exit status."""
    try:
        if sys.argv[1:2] == ["mcp"]:
            from ricordo.interfaces.mcp import fast_start

            if (given := fast_start.options(sys.argv[1:])) is not None:
                return fast_start.run(given)
        from ricordo.interfaces.cli.app import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:  # while modules were loading
        return 130
