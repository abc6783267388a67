"""`python -m ricordo` is the command line."""

import sys

from ricordo.doors.cli import run

sys.exit(run())
