"""Shared spaces: who reads them, who changes them, and what is left after somebody left."""

from __future__ import annotations

from pathlib import Path

import pytest

from ricordo import Memory, Scope
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from ricordo.interfaces.serialize import json_text

CANARY = "The safe opens with Quetzal"


def of(memory: Memory, owner: str, space: str | None = None, **given: object) -> Memory:
    return memory.scoped(Scope(owner=owner, chat=space, **given))


async def found(memory: Memory, question: str = "Quetzal") -> list[tuple[str, str]]:
    return [(hit.content, hit.space) for hit in (await memory.search(question)).hits]


async def team_of(memory: Memory, **roles: str) -> str:
    """Create a space of Ann's with a memory in it; return the memory's id."""
    await of(memory, "ann").create_space("team")
    for owner, role in roles.items():
        await of(memory, "ann").set_member("team", owner, role)
    return (await of(memory, "ann", "team").remember(CANARY, shared=True)).id


async def test_a_member_finds_the_spaces_memories_beside_the_own_ones_and_nobody_else_does(memory):
    await team_of(memory, bob="reader")
    await of(memory, "bob").remember("Quetzal is a bird")
    assert sorted(await found(of(memory, "bob"))) == [("Quetzal is a bird", ""), (CANARY, "team")]
    for outsider in (of(memory, "cy"), of(memory, "cy", "team"), of(memory, "", "team"), memory):
        assert await found(outsider) == []
        assert await outsider.spaces() == []
    assert await found(of(memory, "ann")) == [(CANARY, "team")]


async def test_a_scope_may_name_the_spaces_that_it_reads(memory):
    await team_of(memory, bob="reader")
    assert await found(of(memory, "bob", spaces=())) == []
    assert await found(of(memory, "bob", spaces=("team",))) == [(CANARY, "team")]
    assert await found(of(memory, "bob", "team", spaces=())) == [(CANARY, "team")]
    assert await found(of(memory, "cy", spaces=("team",))) == []


async def test_a_reader_changes_nothing_and_a_writer_no_members(memory):
    id = await team_of(memory, bob="reader", eve="writer")
    reader, writer = of(memory, "bob", "team"), of(memory, "eve", "team")
    for change in (
        reader.correct(id, "The safe is empty"),
        reader.forget(id),
        reader.add("Quetzal again"),
        reader.remember("Quetzal again", shared=True),
        reader.off_record(),
        reader.set_member("team", "bob", "keeper"),
        reader.remove_member("team", "eve"),
        reader.undo((await reader.log())[0].seq),
        writer.set_member("team", "cy", "reader"),
        writer.remove_member("team", "bob"),
        writer.erase(id=id),
    ):
        with pytest.raises(DeniedError):
            await change
    await writer.correct(id, "The safe opens with Resplendent Quetzal")
    assert await found(of(memory, "bob")) == [("The safe opens with Resplendent Quetzal", "team")]


async def test_a_member_changes_a_space_only_where_it_is_named(memory):
    id = await team_of(memory)
    with pytest.raises(DeniedError, match="which you only read here"):
        await of(memory, "ann").forget(id)
    with pytest.raises(NotFoundError):
        await of(memory, "ann").erase(id=id)
    await of(memory, "ann", "team").erase(id=id)
    assert await found(of(memory, "ann")) == []


async def test_a_space_of_others_answers_like_one_that_does_not_exist(memory):
    id = await team_of(memory)
    refused = set()
    stranger = of(memory, "eve", "team")
    for call in (
        stranger.add("Quetzal"),
        stranger.erase(id=id),
        stranger.off_record(),
        of(memory, "eve").set_member("team", "eve", "keeper"),
        of(memory, "eve").set_member("nowhere", "eve", "keeper"),
    ):
        with pytest.raises(NotFoundError) as error:
            await call
        refused.add(str(error.value).replace("nowhere", "team"))
    assert len(refused) == 1


async def test_leaving_ends_reading_at_once_takes_nothing_along_and_leaves_what_was_written(memory):
    await team_of(memory, bob="writer")
    bob, there = of(memory, "bob"), of(memory, "bob", "team")
    own = (await there.remember("Quetzals moult in May", shared=True)).id
    assert len(await found(bob)) == len(await found(there)) == 2
    before = (await bob.log())[0].seq
    await bob.remove_member("team")
    for gone in (bob, there):
        assert await found(gone) == []
        assert list((await gone.search("Quetzal", as_of=before)).hits) == []
        assert [each.seq for each in await gone.log()] == []
        with pytest.raises(NotFoundError):
            await gone.get(own)
    with pytest.raises(NotFoundError, match="not a member"):
        await there.add("Quetzal, one more time")
    assert sorted(await found(of(memory, "ann"))) == [("Quetzals moult in May", "team"), (CANARY, "team")]
    await of(memory, "ann").set_member("team", "bob", "reader")
    assert len(await found(bob)) == 2


async def test_a_space_always_has_a_keeper(memory):
    await team_of(memory, bob="writer")
    ann = of(memory, "ann", "team")
    for change in (
        ann.remove_member("team"),
        ann.set_member("team", "ann", "reader"),
        ann.undo((await ann.log())[-1].seq),
    ):
        with pytest.raises(ConflictError):
            await change
    await ann.set_member("team", "bob", "keeper")
    await ann.remove_member("team")
    assert await found(of(memory, "ann")) == []
    (space,) = await of(memory, "bob").spaces()
    assert (space.name, space.role, [each.owner for each in space.members]) == ("team", "keeper", ["bob"])


async def test_only_a_keeper_undoes_a_change_of_members(memory):
    await team_of(memory, bob="writer")
    joined = next(each for each in await of(memory, "ann", "team").log() if each.origin == "set member")
    assert joined.reason == "bob as writer"
    with pytest.raises(DeniedError):
        await of(memory, "bob", "team").undo(joined.seq)
    await of(memory, "ann", "team").undo(joined.seq)
    assert await found(of(memory, "bob")) == []


async def test_a_keeper_decides_what_waits_in_a_space(memory):
    await team_of(memory, bob="writer")
    await of(memory, "bob", "team", propose=True).remember("Quetzal eats avocados", shared=True)
    (held,) = await of(memory, "bob", "team").review(kind="quarantine")
    with pytest.raises(DeniedError, match="approval"):
        await of(memory, "bob", "team").resolve(held.id, decision="approve")
    await of(memory, "ann", "team").resolve(held.id, decision="approve")
    assert ("Quetzal eats avocados", "team") in await found(of(memory, "bob"))


async def test_what_is_learnt_in_a_space_stays_in_it(memory):
    await team_of(memory, bob="writer")
    there = of(memory, "bob", "team")
    await there.add("My favourite bird is the quetzal", session="birds")
    await there.consolidate("birds")
    await of(memory, "bob").consolidate()
    await of(memory, "bob").remove_member("team")
    assert await found(of(memory, "bob")) == []
    assert list((await of(memory, "bob").list()).nodes) == []


async def test_a_chat_that_exists_becomes_a_space_only_for_the_opener(memory):
    await of(memory, "ann", "climbers").add("Quetzal, the crag")
    with pytest.raises(ConflictError, match="taken"):
        await of(memory, "bob").create_space("climbers")
    with pytest.raises(NotFoundError):
        await of(memory, "bob").set_member("climbers", "bob", "keeper")
    assert len(await found(of(memory, "bob", "climbers"))) == 1
    with pytest.raises(ConflictError, match="only its members could read it"):
        await memory.create_space("climbers")
    assert len(await found(of(memory, "bob", "climbers"))) == 1
    space = await memory.create_space("climbers", members=["ann", "me"])
    assert [(each.owner, each.role) for each in space.members] == [("me", "keeper"), ("ann", "writer")]
    assert await found(of(memory, "bob", "climbers")) == []
    await of(memory, "ann", "climbers").add("Quetzal, the hut")
    assert {text for text, _ in await found(of(memory, "ann"))} == {"Quetzal, the crag", "Quetzal, the hut"}
    await memory.remove_member("climbers", "ann")
    assert [each.reason for each in await of(memory, "me", "climbers").log()][:1] == ["ann"]
    assert len(await found(memory)) == 2


async def test_members_are_there_after_the_store_is_opened_again(open_memory):
    async with open_memory() as memory:
        await team_of(memory, bob="reader")
    async with open_memory() as memory:
        assert await found(of(memory, "bob")) == [(CANARY, "team")]
        assert [each.owner for each in (await of(memory, "bob").spaces())[0].members] == ["ann", "bob"]


async def test_a_standing_answer_says_nothing_of_a_space_any_more_after_leaving(memory):
    await team_of(memory, bob="reader")
    kept = await of(memory, "bob").keep_question("What opens the safe?")
    assert kept.answer is not None and "Quetzal" in kept.answer.text
    await of(memory, "bob").remove_member("team")
    (seen,) = await of(memory, "bob").questions()
    assert "Quetzal" not in json_text(seen)


async def test_what_a_keeper_erases_goes_from_the_answers_that_members_keep(open_memory, where):
    async with open_memory() as memory:
        id = await team_of(memory, bob="reader")
        await of(memory, "bob").keep_question("What opens the safe?")
        await of(memory, "ann", "team").erase(id=id)
        assert "Quetzal" not in json_text(await of(memory, "bob").questions())
    for file in Path(where).parent.rglob("*"):
        assert not file.is_file() or b"opens with Quetzal" not in file.read_bytes()


async def test_an_erased_member_is_no_longer_named_as_the_author_of_what_stays(memory):
    await erase_a_member(memory, has_own=True)


async def test_an_erased_member_who_wrote_only_in_groups_is_no_longer_named(memory):
    await erase_a_member(memory, has_own=False)


async def erase_a_member(memory, *, has_own):
    id = await team_of(memory, bob="writer")
    bobs = of(memory, "bob")
    if has_own:
        await bobs.remember("Quetzal is a bird")
    await of(memory, "bob", "team").remember("The windows come from Navarra", shared=True)
    await of(memory, "bob", "team").correct(id, "The safe opens with Quetzal and a key")
    await bobs.remove_member("team", "bob")
    dry = await bobs.erase(owner="bob", dry_run=True)
    report = await bobs.erase(owner="bob")
    assert report.is_done and (report.erased, report.kept) == (dry.erased, dry.kept)
    assert [each.kind for each in report.erased] == (["semantic"] if has_own else ["name"])
    assert [each.count for each in report.kept] == [2]
    assert "bob" not in {commit.author for commit in await of(memory, "ann", "team").log()}
    assert len((await of(memory, "ann", "team").list()).nodes) == 2
    assert (await memory.doctor()).ok
    if not has_own:
        with pytest.raises(NotFoundError, match="there is no memory of bob"):
            await bobs.erase(owner="bob")


async def test_a_keeper_erases_all_that_a_member_wrote_in_a_space(memory):
    await team_of(memory, bob="writer", eve="writer")
    keeper, bob, eve = (of(memory, owner, "team") for owner in ("ann", "bob", "eve"))
    await of(memory, "bob").remember("My own Quetzal")
    kept = await eve.remember("Eve feeds the Quetzal", shared=True)
    first = await bob.remember("Bob saw a Quetzal", shared=True)
    await bob.forget((await bob.remember("Quetzals are blue", shared=True)).id)
    await bob.remember("Quetzals are rare", shared=True)
    await bob.undo((await bob.log(limit=1))[0].seq)
    await bob.scoped(Scope(owner="bob", chat="team", trust="agent")).add("The Quetzal sleeps", session="s")
    await bob.add("I am afraid of Quetzals", speaker="eve", session="s")
    with pytest.raises(DeniedError):
        await bob.erase(writer="bob")
    with pytest.raises(InvalidError, match="no chat or space"):
        await of(memory, "ann").erase(writer="bob")
    with pytest.raises(NotFoundError, match="nothing in team was written by 'cy'"):
        await keeper.erase(writer="cy")
    dry = await keeper.erase(writer="bob", dry_run=True)
    assert first.id in {id for each in dry.erased for id in each.ids}
    report = await keeper.erase(writer="bob")
    assert (report.erased, {each.kind: each.count for each in report.erased}["semantic"]) == (dry.erased, 3)
    assert (await keeper.log(limit=1))[0].origin == "erase"
    found = await found_everywhere(memory)
    assert found == {CANARY, kept.content, "My own Quetzal"}


async def found_everywhere(memory):
    """Return all texts with the word that the members can find, archived ones included."""
    hits = [
        hit.content
        for owner in ("ann", "bob", "eve")
        for archived in (False, True)
        for hit in (await of(memory, owner, "team").search("Quetzal", archived=archived, type="any")).hits
    ]
    return set(hits)
