"""The statements of the PostgreSQL backend without their owner conditions: then only the server keeps owners apart."""

from __future__ import annotations

import re

import pytest

_CONDITIONS = re.compile(
    r"(?:\b\w+\.)?space = ANY \(ints\(:spaces\)\)"
    r"|(?:\b\w+\.)?space (?:=|IS NOT DISTINCT FROM) :space\b"
    r"|\bowner = :owner AND chat (?:= (?::chat|'')|IN \('', :chat\))"
    r"|\bspaces = :spaces\b"
    r"|(?:\b\w+\.)?space IN \(SELECT space FROM nodes WHERE key = ANY \(ints\(:nodes\)\)\)"
    r"|\(space = :space OR actor IN \(:owner, :owner \|\| ' \(agent\)'\)\)"
)


def without_conditions(statement: str) -> str:
    """Return a statement that reads the rows of all owners."""
    return _CONDITIONS.sub("TRUE", statement)


def cut(patch: pytest.MonkeyPatch) -> list[str]:
    """Take the owner conditions out of all statements; return the names of those that had any."""
    from ricordo.storage.postgres import connection, snapshot

    whole = connection.statements()
    bare = {name: without_conditions(text) for name, text in whole.items()}
    fragments = {name: without_conditions(text) for name, text in snapshot._FRAGMENTS.items()}
    patch.setattr(connection, "statements", lambda: bare)
    patch.setattr(snapshot, "_FRAGMENTS", fragments)
    connection._worded.cache_clear()
    return [name for name, text in whole.items() if bare[name] != text]
