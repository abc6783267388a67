"""Names in a question, as the store knows them."""

from __future__ import annotations

from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import Entity, Scope
from ricordo.storage import Snapshot


def entity_key(snapshot: Snapshot, scope: Scope, name: str) -> int:
    """The key of whom a name means: a name or alias in any script, a case of it, "my wife", or an id.

    Raises:
        NotFoundError: nobody and nothing goes by that name.
        InvalidError: it may be one of several.
    """
    return entity_meant(snapshot, scope, name).key


def entity_meant(snapshot: Snapshot, scope: Scope, name: str) -> Entity:
    """Like `entity_key`, with all that is known of it. Raises as it does."""
    found = snapshot.entities.named(scope, name)
    if not found.entities:
        entity = snapshot.entities.by_id(scope, name)
        if entity is None:
            raise NotFoundError(f"entity: nobody and nothing is known as {name!r}")
        return entity
    if found.by != "same" and not found.is_clear:
        several = ", ".join(entity.name for entity in found.entities)
        raise InvalidError(f"entity: {name!r} may be any of {several}", hint="give the name")
    return found.entities[0]
