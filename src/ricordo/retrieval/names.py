"""Names in a question, as the store knows them."""

from __future__ import annotations

from ricordo.errors import NotFoundError
from ricordo.model import Scope
from ricordo.store import Snapshot
from ricordo.words import name_key


def entity_key(snapshot: Snapshot, scope: Scope, name: str) -> int:
    """Raises:
    NotFoundError: nobody and nothing goes by that name.
    """
    known = snapshot.entities(scope, [name_key(name)])
    if not known:
        raise NotFoundError(f"entity: nobody and nothing is known as {name!r}")
    return known[0].key
