"""Names in a question, as the store knows them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import Entity, Scope
from ricordo.storage import Snapshot
from ricordo.text import index_terms
from ricordo.text.kinship import relations_in, stems_of
from ricordo.text.names import meant, runs_in

if TYPE_CHECKING:
    from ricordo.storage.candidates import Naming

# Names are looked for in the first 2,000 characters of a question. A question names at most eight entities, and a name
# means at most eight.
_NAMED_CHARS = 2_000
_ENTITIES = 8


def entity_key(snapshot: Snapshot, scope: Scope, name: str) -> int:
    """Return the key of the entity a name means: a name or alias in any script, a case of it, "my wife", or an id.

    Raises:
        NotFoundError: no entity has that name.
        InvalidError: several do.
    """
    return entity_meant(snapshot, scope, name).key


def entity_meant(snapshot: Snapshot, scope: Scope, name: str) -> Entity:
    """Return the entity a name means. Raises like `entity_key`."""
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


def namings(snapshot: Snapshot, scope: Scope, question: str) -> tuple[Naming, ...]:
    """Return how a question names entities, in any form or as "my wife", with those that were merged into them."""
    if not snapshot.graph.kinds().names:  # the owner's wife has a name, too
        return ()
    from ricordo.storage.candidates import Naming  # it needs numpy

    text = question[:_NAMED_CHARS]
    found: dict[frozenset[str], dict[int, None]] = {}
    if known := snapshot.graph.known_names(scope, text):
        wholes = {bearer.entity: bearer.whole for bearers in known.values() for bearer in bearers}
        for run in runs_in(text):
            if those := [wholes[key] for key in meant(run, known, text)]:
                found.setdefault(frozenset(index_terms(run.written)), {}).update(dict.fromkeys(those))
    for predicate in relations_in(text):
        if those := [entity.key for entity in snapshot.entities.related_as(scope, predicate)]:
            terms = frozenset(term for word in stems_of(predicate) for term in index_terms(word))
            found.setdefault(terms, {}).update(dict.fromkeys(those))
    return tuple(
        Naming(terms, tuple(snapshot.graph.entity_keys(list(those)[:_ENTITIES])))
        for terms, those in islice(found.items(), _ENTITIES)
    )
