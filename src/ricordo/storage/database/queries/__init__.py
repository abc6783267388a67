"""The named statements of the `.sql` files beside this module."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def statements(package: str = __package__) -> dict[str, str]:
    """Every statement by name, of the `.sql` files of a package. A name used twice is a mistake and fails at first use.

    Source: the idea of procrastinate's `sql` package.
    """
    found: dict[str, str] = {}
    for path in sorted(files(package).iterdir(), key=lambda path: path.name):
        if path.name.endswith(".sql"):
            parts = _NAME.split(path.read_text(encoding="utf-8"))[1:]
            for name, sql in zip(parts[::2], parts[1::2], strict=True):
                if name in found:
                    raise ValueError(f"two statements are named {name}")
                found[name] = sql.strip()
    return found


def sql(name: str) -> str:
    """The statement of that name."""
    return statements()[name]
