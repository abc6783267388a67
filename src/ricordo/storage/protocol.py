"""The storage port: what the rest of Ricordo may ask of a store, whatever its backend.

A `Store` provides snapshots and applies changes; a `Snapshot` answers questions, grouped by subject (see `groups`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import GUESSED_TYPE, BackupFile, Change, Conversation, Entity, Node, Reason, Report, Scope
from ricordo.ports import Progress
from ricordo.storage.groups import (
    EmbeddingModels,
    Entities,
    Erasure,
    Evidence,
    Export,
    Graph,
    History,
    Leases,
    Lifecycle,
    Members,
    Mentions,
    Nodes,
    Proposals,
    Receipts,
    Reviews,
    Runs,
    Sessions,
    Statistics,
    Suppression,
    Upkeep,
    Vectors,
)
from ricordo.storage.values import (
    NOBODY,
    NOTHING_FORESEEN,
    ChangeEvent,
    Cleaned,
    Foreseen,
    FormerText,
    Named,
    When,
    check_encodable,
    voices_of,
    voices_of_name,
)
from ricordo.text.canonical import in_owners_words
from ricordo.text.names import folded_name, name_words, relation_named, words_for
from ricordo.text.relations import is_persons_word, own_name_stems, stated_own_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ricordo.storage.candidates import CandidateQuery, CandidateSet, Shortlist

    Keys = NDArray[np.int64]
T = TypeVar("T")


class Snapshot(Protocol):
    """A store at one moment, in one transaction. Use it only inside the function that received it."""

    @property
    def nodes(self) -> Nodes: ...
    @property
    def members(self) -> Members: ...
    @property
    def entities(self) -> Entities: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def reviews(self) -> Reviews: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def history(self) -> History: ...
    @property
    def lifecycle(self) -> Lifecycle: ...
    @property
    def mentions(self) -> Mentions: ...
    @property
    def suppression(self) -> Suppression: ...
    @property
    def models(self) -> EmbeddingModels: ...
    @property
    def statistics(self) -> Statistics: ...
    @property
    def export(self) -> Export: ...
    @property
    def evidence(self) -> Evidence: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def proposals(self) -> Proposals: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def erasure(self) -> Erasure: ...

    @property
    def generation(self) -> int:
        """The identity of the database. Whatever was read from a database of another generation is out of date."""
        ...

    @property
    def is_past(self) -> bool:
        """Whether this is a past state of the store, not the present one."""
        ...

    def current(self, now: int) -> int:
        """Return the instant that counts as now, in Unix milliseconds: `now`, or the instant of the past."""
        ...

    def until(self, moment: float, work: Callable[[], T]) -> T:
        """Return the result of `work`; raise TimeoutError at `moment` on the clock of `time.monotonic`, in seconds."""
        ...

    def together(self, *reads: Callable[[], Any]) -> list[Any]:
        """Return the results of independent reads. A server answers them in as many round trips as the longest needs:
        it may run a read again from its start, so a read has no side effects.
        """
        ...

    def space(self, owner: str, chat: str) -> int | None:
        """Return the key of a space; None if nothing was ever written to it."""
        ...

    def visible(self, scope: Scope) -> tuple[int, ...]:
        """Return the spaces a caller sees: their own, that of the present chat, and the shared ones they are a member
        of. A chat that is a shared space is seen by its members only.
        """
        ...

    def candidates(self, query: CandidateQuery) -> CandidateSet:
        """Return the candidates of a search, with all that ranking needs to know of them."""
        ...

    def shortlist(self, scope: Scope, keys: Sequence[int], *, archived: bool, now: int, model: int = 0) -> Shortlist:
        """Return details of the best candidates.

        Args:
            now: Unix milliseconds.
            model: key of the model whose vectors of knowledge are wanted, 0 for none.
        """
        ...

    def load_vectors(self, scope: Scope, shelves: Sequence[str]) -> None:
        """Load the vectors that a caller's first search needs. A backend without such a cache does nothing."""
        ...

    def load_more_vectors(self) -> bool:
        """Load more of the vectors that searches still read one by one; return whether any are left."""
        ...

    def load_turns(self, scope: Scope, *, ahead: bool = False) -> bool:
        """Load all turns of a caller into the backend's cache.

        Args:
            ahead: do not evict other callers' turns; return False if there is no room.
        """
        ...


class PastSnapshot(Snapshot, Protocol):
    """The store as it was right after a commit. Vectors and indexes are those of today."""

    @property
    def today(self) -> Snapshot:
        """The present state of the store."""
        ...

    @property
    def commit_number(self) -> int: ...

    @property
    def at(self) -> int:
        """The instant that counts as now, in Unix milliseconds."""
        ...

    @property
    def altered(self) -> Mapping[int, FormerText]:
        """The then texts of nodes that were altered or removed since, by node: today's indexes lack them."""
        ...

    def holders(self, scope: Scope, term: str) -> set[int]:
        """Return the nodes that then held an index term, live or not."""
        ...

    def closed_since(self, keys: Keys) -> Keys:
        """Return which of the nodes are closed today."""
        ...

    def similar(
        self,
        scope: Scope,
        vectors: Mapping[int, NDArray[np.float32]],
        *,
        among: Keys,
        shelves: Sequence[str],
        most: int,
    ) -> dict[int, float]:
        """Return the memories most like a question, by cosine after today's mean is subtracted from both vectors.

        Memories that are live today are found by today's index, and those closed since by their vectors. Texts that
        were altered since have no vector any more.

        Args:
            vectors: by model, the question's vector, float32[dimension].
            among: keys of the memories that existed then, ascending.
            shelves: the shelves whose mean is subtracted.
            most: upper bound for each model.
        """
        ...


Links = Callable[[Snapshot, int, Sequence[int]], Iterable[tuple[int, int]]]
"""Finds mentions by rule: (snapshot, space, node keys) to (node key, entity key) pairs."""

Decide = Callable[[Snapshot], tuple[Change, T]]
"""Reads the store and decides without side effects; returns the change, and the result for the caller."""


Gate = Callable[[Snapshot, Change, Reason], tuple[Change, Reason]]
"""Screens every change and its reason inside the transaction, and returns what may be stored."""


class Store(Protocol):
    """An open store. It can be used from any thread and any event loop."""

    @property
    def path(self) -> Path:
        """The file of the database."""
        ...

    @property
    def erases_in_one_commit(self) -> bool:
        """Whether it is best to erase many rows in one commit, because each erasing commit is expensive."""
        ...

    @property
    def has_plain_files(self) -> bool:
        """Whether the truth is plain files in a folder, which `copy_files` and `rebuild` need."""
        ...

    @property
    def reads_at_once(self) -> bool:
        """Whether a first search reads the vectors of a caller together with the rest, so that loading them beside it
        would only repeat this.
        """
        ...

    def holds_turns(self, scope: Scope) -> bool:
        """Return whether it is known, without reading, that all turns of a caller are in memory."""
        ...

    def seen_by(self, scope: Scope) -> Self:
        """Return this store restricted to what a caller sees: a backend that can hides other owners' rows from each
        transaction, besides the conditions of each query. The unrestricted store is for maintenance.
        """
        ...

    def check_writable(self) -> None:
        """Raise StoreError if the store is on a disk that cannot be written, and so can only be read."""
        ...

    async def write(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> T:
        """Decide and apply as one commit; return when it is durable.

        Raises:
            StoreError: the disk is full or failing; nothing of the change was kept.
            UnavailableError: the store is closing, or was busy for longer than its patience.
        """
        ...

    def write_nowait(self, decide: Decide[T], *, scope: Scope, reason: Reason, at: datetime) -> None:
        """Write without waiting. A failure is logged, and counted by `doctor`."""
        ...

    async def derive(self, work: Callable[[Snapshot], T]) -> T:
        """Write derived rows. They are durable but have no commit, since they can be computed again."""
        ...

    async def read(self, ask: Callable[[Snapshot], T], foreseen: Foreseen = NOTHING_FORESEEN) -> T:
        """Run a short query on one snapshot, in a reader thread. Nothing may be awaited inside."""
        ...

    async def read_past(self, ask: Callable[[PastSnapshot], T], *, scope: Scope, when: When, links: Links) -> T:
        """Query a past state of the store, in a reader thread.

        Args:
            scope: the caller. An instant means the caller's last commit that is not later.
            links: finds the entities named in texts, if texts or names have changed since.
        """
        ...

    async def look(self, ask: Callable[[Snapshot], T]) -> T:
        """Run a long query with a connection and a thread of its own, so that other readers do not wait for it."""
        ...

    async def doctor(self) -> Report:
        """Look for damage. Changes nothing."""
        ...

    async def mend(self, report: Report) -> None:
        """Repair what `doctor` found, as far as that is safe. Deletes nothing."""
        ...

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Rebuild the database from plain files. Return how many lines were read. Raises InvalidError."""
        ...

    async def compact(self) -> int:
        """Rewrite plain files with many outdated lines. Return how many lines were dropped; 0 without such files."""
        ...

    async def clean(self, *, patience_s: float | None = None) -> Cleaned:
        """Rewrite the database so that no byte of deleted rows is left. Takes about a second per 100 MB.

        Args:
            patience_s: how long to wait for other processes, in seconds; by default as long as a write does.

        Raises:
            StoreError: the disk is full.
            UnavailableError: another process kept writing.
        """
        ...

    def copy_to(self, target: Path) -> int:
        """Copy the store to a new single file, even while others write. Return its size in bytes.

        Raises:
            InvalidError: the target exists.
            StoreError: the copy cannot be written; nothing of it remains.
        """
        ...

    def copy_files(self, target: Path, look: Callable[[Snapshot], T]) -> tuple[T, dict[str, BackupFile]]:
        """Copy the plain files as of one moment to an empty folder, even while others write.

        Returns:
            What `look` returned at that moment, and the copies by name.

        Raises:
            InvalidError: the store has no plain files.
            OSError, StoreError: the files cannot be read or written.
            UnavailableError: the files were edited meanwhile.
        """
        ...

    def close(self) -> None:
        """Write what is queued, then release the store. It may be closed twice."""
        ...


_POLL_S = 0.1
"""Seconds between two looks for new commits. Only the store is asked, so that processes need not know each other."""

_AT_ONCE = 500
_MOST_NAMING = 20
"""How many of the latest facts with a word such as "name" are searched for the owner's name."""


def owner_names(snapshot: Snapshot, owner: str) -> tuple[str, ...]:
    """Return the names that live personal facts give the owner: "The user's name is Katrin"."""
    if not owner:
        return ()
    found = snapshot.nodes.facts_with(owner, "", [(stem,) for stem in own_name_stems()], most=_MOST_NAMING)
    named = (name for _, (said, speaker) in sorted(found.items()) if speaker is None for name in stated_own_names(said))
    return tuple(dict.fromkeys(named))


def names_of_owner_alone(snapshot: Snapshot, owner: str, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the owner's names that nobody else has who is known: a statement with another one need not be about the
    owner.

    Args:
        names: the names of the owner, if they are known already.
    """
    names = owner_names(snapshot, owner) if names is None else names
    return tuple(name for name in names if not (owner and _is_anothers(snapshot, owner, name)))


def _is_anothers(snapshot: Snapshot, owner: str, name: str) -> bool:
    """Return whether somebody who is related to the owner, or was added on purpose, has a name."""
    named = snapshot.entities.named(Scope.of(owner, ""), name)
    others = named.entities if named.by == "same" else ()
    return any(each.type == "person" and (each.relation or not each.attributes.get(GUESSED_TYPE)) for each in others)


def by_owner(node: Node, names: Sequence[str]) -> Node:
    """Return a fact that calls the owner by name as the owner would state it: "Clara works" is "I work".

    Args:
        names: the owner's names, the full one first.
    """
    if not names or node.speaker is not None:
        return node
    own = {folded_name(name) for name in names}
    about = tuple(name for name in node.about if folded_name(name) not in own)
    return replace(node, content=in_owners_words(node.content, names), about=about)


def possible_voices(snapshot: Snapshot, node: Node) -> tuple[str, ...]:
    """Return the voices in which a memory may have been said before: that of its speaker; for the owner, those of all
    their names, under which a chat may have been imported once; for nobody, any.
    """
    if said_by := voices_of(node):
        return said_by
    if not is_persons_word(node.role, node.origin):
        return (NOBODY,)
    return tuple(word for name in owner_names(snapshot, node.owner) for word in voices_of_name(name))


def entity_meant(snapshot: Snapshot, scope: Scope, name: str, *, by_part: bool = False) -> Entity:
    """Return the entity with an id or a name: a name or alias in any script or inflected form, or "my wife".

    Args:
        by_part: also accept a part of the name, such as the first name, for looking something up.

    Raises:
        NotFoundError: no entity has that name.
        InvalidError: the name may mean several entities.
    """
    if (entity := snapshot.entities.by_id(scope, name)) is not None:
        return entity
    named = snapshot.entities.named(scope, name)
    if not named.entities and by_part:
        named = Named(by="part", entities=_named_in_part(snapshot, scope, name))
    if not named.entities:
        raise NotFoundError(f"no person or thing is known as {name!r}")
    if named.by != "same" and not named.is_clear:
        several = told_apart(named.entities)
        raise InvalidError(f"entity: {name!r} may be any of {several}", hint="give the name or the id")
    return named.entities[0]


def told_apart(entities: Iterable[Entity]) -> str:
    """Return entities of one name with their ids and what tells them apart: as what, where and since when known."""

    def marks(entity: Entity) -> Iterator[str]:
        yield entity.relation or entity.type
        if entity.chat:
            yield f"in {entity.chat}"
        yield f"since {entity.first_seen:%Y-%m-%d}"

    return ", ".join(f"{entity.name} ({', '.join(marks(entity))}: {entity.id})" for entity in entities)


def _called_by_relation(snapshot: Snapshot, scope: Scope, predicate: str) -> tuple[Entity, ...]:
    """Return the person whose name is a relation, such as the contact "Mama" of a phone; empty if there are several."""
    words = [folded_name(word) for word in words_for(predicate)]
    found = tuple(each for each in snapshot.entities.by_folded_names(scope, words) if each.type == "person")
    return found if len(found) == 1 else ()


def _named_in_part(snapshot: Snapshot, scope: Scope, name: str) -> tuple[Entity, ...]:
    """Return the entities with a name that contains all words of a name, or is the relation that it tells."""
    if predicate := relation_named(name):
        return _called_by_relation(snapshot, scope, predicate)
    words = set(name_words(name))
    keys = {each.entity for each in snapshot.entities.all_names(scope) if words and words < set(name_words(each.name))}
    return snapshot.entities.by_key(scope, keys) if keys else ()


_MOST_TITLES = 20_000
_NAMED_SESSIONS = 10
_OPENING, _OPENING_READ = 200, 1_000


def with_openings(snapshot: Snapshot, scope: Scope, listed: Sequence[Conversation]) -> list[Conversation]:
    """Return conversations with the beginning of the first message of each that has neither title nor summary."""
    bare = [each.key for each in listed if not each.title and not each.summary]
    nodes = snapshot.nodes.by_key(scope, bare)
    cut = snapshot.suppression.shown(nodes)
    openings = {key: " ".join(cut.get(key, node.content)[:_OPENING_READ].split()) for key, node in nodes.items()}
    return [replace(each, opening=openings.get(each.key, "")[:_OPENING].rstrip() or None) for each in listed]


def session_meant(snapshot: Snapshot, scope: Scope, name: str) -> str:
    """Return the id of the session with an id or a title, such as the name of an imported chat; if none has it, `name`.

    Raises:
        InvalidError: several sessions have the title, and none the id; or the name is no valid text.
    """
    check_encodable(name, name="session")
    if snapshot.sessions.listed(scope, most=1, session_id=name):
        return name
    titled = [each.id for each in snapshot.sessions.listed(scope, most=_MOST_TITLES) if each.title == name]
    if len(titled) > 1:
        more = f" and {len(titled) - _NAMED_SESSIONS} more" if len(titled) > _NAMED_SESSIONS else ""
        several = ", ".join(titled[:_NAMED_SESSIONS])
        raise InvalidError(f"session: {name!r} is the title of {several}{more}", hint="give the id of one of them")
    return titled[0] if titled else name


async def changes(store: Store, *, after: int) -> AsyncIterator[ChangeEvent]:
    """Yield an event for each commit after a number, in order and exactly once; then wait for new commits forever.

    Args:
        after: the number of the last commit that the caller has processed; 0 for all.

    Raises:
        StoreError: the store cannot be read.
        UnavailableError: the store was closed.
    """
    while True:
        events = await store.read(lambda tx, after=after: tx.history.events(after=after, most=_AT_ONCE))  # type: ignore[misc]
        for event in events:
            yield event
            after = event.commit
        if not events:
            await asyncio.sleep(_POLL_S)
