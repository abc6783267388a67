"""Link texts to the known entities they mention, by rule and in any script. No entity is added here.

Names are matched by `text.names`. "My wife" is looked up among the owner's relations.
"""

from __future__ import annotations

from collections.abc import Sequence

from ricordo.model import Scope
from ricordo.storage import Snapshot, Store
from ricordo.storage.values import LinkText, RelationHolder
from ricordo.text.denied_names import without_denied_names
from ricordo.text.names import MAX_CHARS, NameIndex, candidates, entities_meant_by, relations_in, runs_in, stems_of
from ricordo.text.relations import is_owners_word
from ricordo.text.sentences import without_quotes

_BATCH = 500
_MAX_NODES = 100_000


def find_mentions(
    texts: Sequence[LinkText], known: NameIndex, *, holders: Sequence[RelationHolder], owner: str
) -> list[tuple[int, int]]:
    """Return a (node key, entity key) pair for each mention."""
    pairs: dict[tuple[int, int], None] = {}
    for text in texts:
        said = without_denied_names(text.text[:MAX_CHARS])
        for run in runs_in(said):
            pairs |= dict.fromkeys((text.key, entity) for entity in entities_meant_by(run, known, said))
        if holders and is_owners_word(text.role, text.origin, text.speaker, owner=owner):
            pairs |= dict.fromkeys((text.key, entity) for entity in _related(text, holders))
    return list(pairs)


def _related(text: LinkText, holders: Sequence[RelationHolder]) -> list[int]:
    """Return the entities that "my wife" and the like meant when the text was said; none if several people fit."""
    found: list[int] = []
    for predicate in relations_in(without_quotes(text.text[:MAX_CHARS])):
        at_the_time = [
            holder
            for holder in holders
            if holder.predicate == predicate
            and (holder.start is None or holder.start <= text.at)
            and (holder.end is None or text.at < holder.end)
        ]
        if len({holder.whole for holder in at_the_time}) == 1:
            found += [holder.entity for holder in at_the_time]
    return found


def links(snapshot: Snapshot, space: int, keys: Sequence[int]) -> list[tuple[int, int]]:
    """Return (node key, entity key) pairs of some nodes, by the names and relations in this snapshot."""
    return _links_in(snapshot, space, snapshot.mentions.texts(keys))


def _links_in(snapshot: Snapshot, space: int, texts: Sequence[LinkText]) -> list[tuple[int, int]]:
    names, sounds = candidates(text.text for text in texts)
    known = snapshot.mentions.known_names(space, names, sounds)
    holders, owner = snapshot.mentions.holders_of(space), snapshot.mentions.owner_of(space)
    return find_mentions(texts, known, holders=holders, owner=owner)


def count_unlinked(snapshot: Snapshot, most: int = 1) -> int:
    """Return how many memories were never searched for names, up to `most`; 1 if only other linking work is left."""
    found, count = snapshot.mentions, 0
    for space in found.spaces_with_names():
        count += len(found.unlinked(space, most - count))
        if count >= most:
            return count
    return count or int(bool(found.spaces_to_link() or found.new_names() or found.new_relations()))


def link_waiting(snapshot: Snapshot, scope: Scope) -> bool:
    """Link a batch of the caller's texts that wait for the background work; return whether more may wait.

    For a decision that rests on who is mentioned where: it must not depend on how far the background work is. Only
    inside `derive`.
    """
    found, visible = snapshot.mentions, set(snapshot.visible(scope))
    for space in visible.intersection(found.spaces_with_names()):
        if texts := found.unlinked(space, _BATCH):
            found.put_links(_links_in(snapshot, space, texts))
            found.mark_linked(space, texts[-1].key)
            return True
        if noted := found.to_link(space, _BATCH):
            keys = sorted({key for _, key in noted})
            found.put_links_again([note for note, _ in noted], keys, links(snapshot, space, keys))
            return True
    words = [(space, name) for space, _, name, _, _ in found.new_names()]
    words += [(space, stem) for space, predicate, _ in found.new_relations() for stem in stems_of(predicate)]
    for space, each in words:  # their marks count for the whole store, and stay for the background work
        if space in visible:
            again = found.texts_with(space, each, most=_MAX_NODES)
            pairs = _links_in(snapshot, space, again)
            found.drop_all_links([text.key for text in again])
            found.put_links(pairs)
    return False


class Linker:
    """Stores the mentions of known entities, batch by batch, in the background."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def step(self) -> bool:
        """Do one batch of each kind of linking in each space; return whether there was any."""
        fresh = await self._store.read(lambda tx: tx.mentions.spaces_with_names())
        done = [await self._link_new_nodes(space) for space in fresh]
        changed = await self._store.read(lambda tx: tx.mentions.spaces_to_link())
        done += [await self._link_changed_nodes(space) for space in changed]
        done += [await self._link_new_names(), await self._link_new_relations()]
        return any(done)

    async def _link_new_nodes(self, space: int) -> bool:
        """Link nodes that were never searched for names."""

        def read(tx: Snapshot) -> tuple[list[LinkText], list[tuple[int, int]]]:
            texts = tx.mentions.unlinked(space, _BATCH)
            return texts, _links_in(tx, space, texts) if texts else []

        def write(tx: Snapshot) -> None:
            tx.mentions.put_links(pairs)
            tx.mentions.mark_linked(space, texts[-1].key)

        texts, pairs = await self._store.read(read)
        if texts:
            await self._store.derive(write)
        return bool(texts)

    async def _link_changed_nodes(self, space: int) -> bool:
        """Link nodes again that were altered or restored, or that mentioned a name since removed."""

        def read(tx: Snapshot) -> tuple[list[int], list[int], list[tuple[int, int]]]:
            noted = tx.mentions.to_link(space, _BATCH)
            keys = sorted({key for _, key in noted})
            return [note for note, _ in noted], keys, links(tx, space, keys)

        notes, keys, pairs = await self._store.read(read)
        await self._store.derive(lambda tx: tx.mentions.put_links_again(notes, keys, pairs))
        return True

    async def _link_new_names(self) -> bool:
        """Search older memories for newly learnt names."""
        fresh = await self._store.read(lambda tx: tx.mentions.new_names())
        for space, _, name, _, _ in fresh:
            await self._link_nodes_with(space, name)
        if fresh:
            await self._store.derive(lambda tx: tx.mentions.mark_names(fresh[-1][4]))
        return bool(fresh)

    async def _link_new_relations(self) -> bool:
        """Search memories that mention "my wife" again, once a memory says who that is or was."""
        fresh = await self._store.read(lambda tx: tx.mentions.new_relations())
        for space, predicate, _ in fresh:
            for words in stems_of(predicate):
                await self._link_nodes_with(space, words)
        if fresh:
            await self._store.derive(lambda tx: tx.mentions.mark_relations(fresh[-1][2]))
        return bool(fresh)

    async def _link_nodes_with(self, space: int, words: str) -> None:
        """Link all nodes with these words again: a new name may also change which entity an old mention means."""
        texts = await self._store.read(lambda tx: tx.mentions.texts_with(space, words, most=_MAX_NODES))
        for start in range(0, len(texts), _BATCH):
            await self._link_again(space, texts[start : start + _BATCH])

    async def _link_again(self, space: int, texts: Sequence[LinkText]) -> None:
        def write(tx: Snapshot) -> None:
            tx.mentions.drop_all_links([text.key for text in texts])
            tx.mentions.put_links(pairs)

        pairs = await self._store.read(lambda tx: _links_in(tx, space, texts))
        await self._store.derive(write)
