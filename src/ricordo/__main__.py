"""`python -m ricordo` is the command line."""

import sys

from ricordo.interfaces.cli import run

sys.exit(run())
