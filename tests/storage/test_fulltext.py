"""Merging the parts of the full-text index does not change search results."""

from __future__ import annotations

from tests.storage.making import ME, closing, commit, said


def found(snapshot):
    """Return the postings of a frequent, a rare and an unknown word, and the number of parts."""
    terms = ["boat", "w7", "w70007", "gone"]
    postings = snapshot.postings(ME, ("k", "e"), terms, archived=False, most=10_000)
    parts = snapshot.connection.execute("SELECT count(DISTINCT segid) FROM nodes_fts_idx").get
    return [keys.tolist() for keys in postings], parts


async def filled(store):
    """Write a few batches with different words, and close one memory."""
    for lot in range(3):
        words = [f"boat w{lot * 50_000 + n}" for n in range(2_000)]
        await commit(store, add=tuple(said(text, minutes=n) for n, text in enumerate(words)))
    gone = said("gone with the boat")
    await commit(store, add=(gone,))
    await commit(store, close=(closing(gone),))


async def test_merging_index_parts_changes_no_result(store):
    await filled(store)
    before, parts = await store.read(found)
    assert parts > 1
    assert await store.read(lambda tx: tx.upkeep.is_due(least=1))
    steps = 1
    while await store.derive(lambda tx: tx.upkeep.step()):
        steps += 1
    assert steps < 50
    assert await store.read(found) == (before, 1)
    assert not await store.read(lambda tx: tx.upkeep.is_due(least=1))
    assert all(finding.ok for finding in (await store.doctor()).findings)


async def test_small_indexes_and_small_rests_are_not_merged(store):
    assert not await store.read(lambda tx: tx.upkeep.is_due(least=0))  # an empty index has no parts to merge
    await filled(store)
    assert not await store.read(lambda tx: tx.upkeep.is_due(least=10_000))
    while await store.derive(lambda tx: tx.upkeep.step()):
        pass
    await commit(store, add=(said("one more boat"),))
    assert not await store.read(lambda tx: tx.upkeep.is_due(least=1))
