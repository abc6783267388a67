"""The command line. `run` is the console script; it imports the program only when it is called."""

from __future__ import annotations

import gc
import sys

_OBJECTS_BETWEEN_COLLECTIONS = 200_000


def run() -> int:
    """Run the command in `sys.argv`; return the exit status."""
    # Loading modules makes many objects and no garbage; looking for some at every 700th object takes 60 ms.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        from ricordo.interfaces.cli.app import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:  # while modules were loading
        return 130
