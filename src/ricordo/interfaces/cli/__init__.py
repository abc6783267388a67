"""The command line. `run` is the console script; it imports the program only when it is called."""

from __future__ import annotations

import gc
import sys

_OBJECTS_BETWEEN_COLLECTIONS = 200_000


def run() -> int:
    """Run the command in `sys.argv`; return the exit status."""
    # Imports create many objects but no garbage; the default threshold of 700 objects would cost 60 ms.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        from ricordo.interfaces.cli.app import main

        return main(sys.argv[1:])
    except KeyboardInterrupt:  # during imports
        return 130
