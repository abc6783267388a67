"""What is erased is in no answer, no version and no past; what is not its own stays; and it is not learnt again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ricordo import Memory, Message, Scope
from ricordo.clock import from_ms
from ricordo.errors import ConflictError, DeniedError, InvalidError, NotFoundError
from ricordo.forgetting import erase
from ricordo.model import Change, Edge, Reason
from ricordo.storage import faults
from ricordo.storage.values import Floor
from tests.contract.canonical import canonical

ANN, BOB = Scope(owner="ann"), Scope(owner="bob")
NOW = from_ms(1_767_261_600_000)


@pytest.fixture
async def anns(memory: Memory) -> Memory:
    """The memory of one of two owners of a store."""
    return memory.scoped(ANN)


async def small(memory: Memory) -> dict[str, str]:
    """A conversation and what is known from it, by name of a memory its id."""
    said = await memory.add("My wife is Mirabel. The code is Zuvinakob.", session="talk")
    fact = await memory.remember("Mirabel likes tea", about=["Mirabel"], session="other")
    lives = await memory.remember("Mirabel lives in Rome", about=["Mirabel"])
    await memory.settle(600)
    return {"said": said, "likes": fact.id, "lives": lives.id}


async def all_of(memory: Memory, ids: Any = ()) -> str:
    """All that a memory shows, now and after each commit, as one text."""
    last = (await memory.log(1))[0].seq
    return repr(await canonical(memory, ids=ids, names=("Mirabel",), points=range(1, last + 1)))


async def test_an_erased_memory_is_in_no_answer_version_or_past(anns):
    ids = await small(anns)
    await anns.update(ids["likes"], content="Mirabel likes coffee")
    await anns.correct(ids["likes"], "Mirabel likes cocoa")
    assert "cocoa" in await all_of(anns) and "coffee" in await all_of(anns)
    current = next(node for node in (await anns.list()).nodes if node.content == "Mirabel likes cocoa")
    report = await anns.erase(id=current.id)
    assert {each.kind: each.count for each in report.erased}["semantic"] == 2
    told = await all_of(anns)
    assert all(word not in told for word in ("cocoa", "coffee", "likes tea"))
    assert "lives in Rome" in told
    with pytest.raises(NotFoundError, match="was erased on 2026-01-01"):
        await anns.get(current.id)
    assert (await anns.doctor()).ok


async def measured(memory: Memory, scope: Scope) -> tuple[Any, Any]:
    """Return a caller's stored calibration and stored replay."""
    store = memory._opened.store.seen_by(scope)
    floor = await store.read(lambda tx: tx.statistics.floor(scope, model=0, rule=7))
    return floor, await store.read(lambda tx: tx.proposals.body(scope, f"run-{scope.owner}"))


async def test_an_erasure_leaves_the_calibration_and_replays_of_other_owners(memory):
    fact = {scope: await memory.scoped(scope).remember("Mirabel likes tea") for scope in (ANN, BOB)}
    floor = Floor(model=0, count=3, middle=(0.1, 0.25), spread=(1.0, 2.0), chance=0.5)
    for scope in (ANN, BOB):
        store = memory._opened.store.seen_by(scope)
        space = (await store.read(lambda tx, scope=scope: tx.visible(scope)))[0]
        await store.derive(lambda tx, scope=scope: tx.statistics.put_floor(scope, floor, rule=7))
        await store.derive(
            lambda tx, scope=scope, space=space: tx.proposals.put(f"run-{scope.owner}", space=space, at=0, body="{}")
        )
        assert await measured(memory, scope) == (floor, "{}")
    await memory.scoped(ANN).erase(id=fact[ANN].id)
    assert await measured(memory, BOB) == (floor, "{}")
    assert await measured(memory, ANN) == (None, None)


@pytest.mark.parametrize("at", ["2019-01-01", "2031-01-01"])
async def test_the_time_of_an_erased_memory_is_in_no_profile(anns, at):
    for year in ("2024", "2025"):
        await anns.remember(f"Mirabel went to Rome in {year}", about=["Mirabel"], at=f"{year}-05-01")
    erased = await anns.remember("Mirabel had an operation", about=["Mirabel"], at=at)
    await anns.remember("Olga sang", about=["Olga"], at=at)
    await anns.settle(600)

    async def span(name: str) -> tuple[str, str]:
        found = await anns.entity(name)
        return found.first_seen.isoformat()[:10], found.last_seen.isoformat()[:10]

    assert at in await span("Mirabel")
    await anns.erase(id=erased.id)
    assert await span("Mirabel") == ("2024-05-01", "2025-05-01")
    assert await span("Olga") == (at, at)
    assert (await anns.doctor()).ok


async def test_a_dry_run_tells_what_would_go_and_changes_nothing(anns):
    ids = await small(anns)
    before = await all_of(anns)
    dry = await anns.erase(entity="Mirabel", dry_run=True)
    assert dry.dry_run and await all_of(anns) == before
    report = await anns.erase(entity="Mirabel")
    assert (dry.erased, dry.kept) == (report.erased, report.kept)
    assert {each.kind for each in report.erased} == {"episodic", "semantic", "entity", "relation", "session"}
    told = await all_of(anns)
    assert "Rome" not in told and "Zuvinakob" not in told
    for id_ in ids.values():
        with pytest.raises(NotFoundError, match="was erased on"):
            await anns.get(id_)


async def test_a_commit_loses_its_reason_with_the_former_version_that_it_wrote(anns):
    ids = await small(anns)
    note = await anns.remember("the neighbour Mirabel keeps the spare key")
    await anns.forget(note.id, reason="Mirabel moved out")
    await anns.restore(note.id)
    await anns.update(note.id, content="the neighbour keeps the spare key")
    await anns.forget(ids["lives"], reason="another reason")
    await anns.settle(600)
    report = await anns.erase(entity="Mirabel")
    assert note.id not in {id_ for each in report.erased for id_ in each.ids}
    assert (await anns.get(note.id)).content == "the neighbour keeps the spare key"
    assert "Mirabel moved out" not in await all_of(anns, [note.id])
    assert (await anns.doctor()).ok


async def test_an_erased_owner_is_gone_and_all_others_stay(memory):
    anns, bobs = memory.scoped(ANN), memory.scoped(BOB)
    await small(anns)
    await anns.forget((await anns.list()).nodes[0].id, reason="a secret reason")
    kept = await bobs.remember("Tom likes plums", about=["Tom"])
    await bobs.settle(600)
    before = await canonical(bobs, ids=[kept.id], names=["Tom"])
    report = await anns.erase(owner="ann")
    assert report.is_done
    assert await canonical(bobs, ids=[kept.id], names=["Tom"]) == before
    assert (await anns.stats()).nodes == {}
    assert not await anns.log()
    assert await anns.people() == ()
    await anns.add("hello again")
    assert (await anns.stats()).nodes == {"episodic": 1}
    assert (await memory.doctor()).ok


async def test_the_words_of_a_commit_go_with_what_it_wrote(anns):
    gone = await anns.remember("a plan for nobody")
    await anns.forget(gone.id, reason="it was a secret")
    await anns.erase(id=gone.id)
    log = await anns.log()
    assert [commit.origin for commit in log] == ["erase", "forget", "remember"]
    assert all("secret" not in commit.reason for commit in log)


async def imported(memory: Memory, folder: Path, *names: str) -> None:
    """Import a chat of Mirabel and Tom under each name of a file."""
    for number, name in enumerate(names, start=1):
        said = ("Mirabel", "I moved to Rome"), ("Tom", "Fine weather"), ("Tom", f"Mirabel has a boat, {number}")
        rows = [{"speaker": who, "text": text, "session": f"s{number}"} for who, text in said]
        path = folder / name
        path.write_text("\n".join(map(json.dumps, rows)))
        await memory.import_(path)


async def reasons_of_imports(memory: Memory) -> list[str]:
    return [commit.reason for commit in await memory.log(100) if commit.origin == "import"][::-1]


async def test_an_import_keeps_the_name_of_its_file_unless_it_has_an_erased_name(anns, tmp_path):
    await imported(anns, tmp_path, "holiday.jsonl", "chat_with_mirabel.jsonl", "МирабельЧат.jsonl")
    await anns.erase(entity="Mirabel")
    assert await reasons_of_imports(anns) == ["import of holiday.jsonl (chat)", "", ""]
    assert (await anns.doctor()).ok


async def test_a_file_named_by_erased_words_loses_its_name_and_one_without_memories_too(anns, tmp_path):
    await imported(anns, tmp_path, "holiday.jsonl", "boat.jsonl", "list.jsonl")
    for node in (await anns.list()).nodes:
        if "boat" in node.content:
            await anns.erase(id=node.id)
    assert await reasons_of_imports(anns) == ["import of holiday.jsonl (chat)", "", "import of list.jsonl (chat)"]
    await anns.erase(session="s3")
    assert await reasons_of_imports(anns) == ["import of holiday.jsonl (chat)", "", ""]
    assert (await anns.doctor()).ok


async def test_an_erasure_leaves_the_imports_of_others_alone(anns, memory, tmp_path):
    bobs = memory.scoped(BOB)
    await imported(bobs, tmp_path, "mirabel.jsonl")
    await imported(anns, tmp_path, "mirabel.jsonl")
    await anns.erase(entity="Mirabel")
    assert await reasons_of_imports(anns) == [""]
    assert await reasons_of_imports(bobs) == ["import of mirabel.jsonl (chat)"]


async def test_memories_with_other_evidence_stay_without_the_erased_part(anns):
    one = await anns.add("My wife is Mirabel", session="one")
    two = await anns.add("a longer day", session="two")
    lone, both = await anns.remember("a"), await anns.remember("b")

    def decide(tx):
        (relation,) = tx.entities.open_relations(ANN, "wife")
        fresh = [
            replace(lone, id="from-one", key=0, origin="consolidation", content="she is Mirabel"),
            replace(both, id="from-both", key=0, origin="consolidation", content="a day with Mirabel"),
        ]
        links = [Edge(source="from-one", target=one, type="derived_from", evidence=(one,))]
        links += [
            Edge(source="from-both", target=each, type="derived_from", evidence=(one, two)) for each in (one, two)
        ]
        links += [Edge(source="from-both", target=lone.id, type="entity", evidence=(one, two))]
        kept = replace(relation, evidence=(one, two))
        return Change(add=tuple(fresh), link=tuple(links), put_relations=(kept,)), None

    reason = Reason(actor="x", origin="consolidate", reason="consolidate")
    await anns._opened.store.write(decide, scope=ANN, reason=reason, at=NOW)
    report = await anns.erase(session="one")
    assert {each.kind: each.count for each in report.erased} == {"episodic": 1, "semantic": 1, "session": 1}
    assert [each.ids for each in report.kept] == [("from-both",)]
    assert (await anns.get("from-both")).content == "a day with Mirabel"
    assert (await anns.entity("Mirabel")).relation == "wife"
    edges = (await anns.explain("from-both")).edges
    assert edges and all(one not in edge.evidence for edge in edges)
    assert any(two in edge.evidence for edge in edges)
    again = await anns.erase(session="two")
    assert {each.kind for each in again.erased} >= {"semantic", "relation", "entity"}
    assert (await anns.doctor()).ok


async def test_erasing_foreign_data_fails_like_missing_data(memory):
    anns, bobs = memory.scoped(ANN), memory.scoped(BOB)
    ids = await small(anns)
    await bobs.add("mine")
    asked: Any
    for error, asked in (
        (InvalidError, {}),
        (InvalidError, {"id": "a", "session": "b"}),
        (InvalidError, {"id": ""}),
        (InvalidError, {"owner": 7}),
        (NotFoundError, {"id": ids["said"]}),
        (NotFoundError, {"id": "none"}),
        (NotFoundError, {"session": "talk"}),
        (NotFoundError, {"entity": "Mirabel"}),
        (DeniedError, {"owner": "ann"}),
        (DeniedError, {"owner": "there is no such"}),
    ):
        with pytest.raises(error):
            await bobs.erase(**asked)
    await anns.erase(id=ids["said"])
    with pytest.raises(NotFoundError) as theirs:
        await bobs.get(ids["said"])
    assert "erased" not in str(theirs.value)


async def test_undo_across_an_erasure_restores_only_the_rest(memory):
    ids = await memory.add_many([Message(text="alpha"), Message(text="beta"), Message(text="gamma")])
    (made,) = await memory.log()
    await memory.erase(id=ids[1])
    erased = (await memory.log())[0]
    assert erased.origin == "erase"
    with pytest.raises(ConflictError, match="erased"):
        await memory.undo(erased.seq)
    assert [node.content for node in (await memory.list(as_of=made.seq)).nodes] == ["gamma", "alpha"]
    await memory.undo(made.seq)
    assert (await memory.stats()).nodes == {}
    back = (await memory.log())[0]
    await memory.undo(back.seq)
    assert {node.content for node in (await memory.list()).nodes} == {"alpha", "gamma"}
    alone = await memory.add("delta")
    number = (await memory.log())[0].seq
    await memory.erase(id=alone)
    with pytest.raises(ConflictError, match="nothing is left"):
        await memory.undo(number)
    for ask in (memory.history, memory.explain, memory.restore, memory.forget, memory.get, memory.confirm):
        with pytest.raises(NotFoundError, match="was erased on"):
            await ask(alone)
    assert (await memory.doctor()).ok


async def story(memory: Memory) -> dict[str, str]:
    """A conversation and what is known of two people, all of it undone."""
    before = max((commit.seq for commit in await memory.log()), default=0)
    said = [
        Message(text="My wife is Mirabel. The code is Zuvinakob.", session="talk"),
        Message(text="Mirabel hid the key under the zirconium", session="talk", speaker="Quentin"),
    ]
    ids = await memory.add_many(said)
    fact = await memory.remember("Mirabel likes cocoa", about=["Mirabel"], session="talk", attributes={"house": "blue"})
    shy = await memory.remember("likes nutmeg", about=["Mirabel"], attributes={"house": "red"})
    other = await memory.remember("Tom likes plums", about=["Tom"])
    await memory.settle(600)
    for commit in await memory.log():
        if commit.seq > before and commit.origin in ("add", "remember"):
            await memory.undo(commit.seq)
    return {"said": ids[0], "told": ids[1], "likes": fact.id, "shy": shy.id, "other": other.id}


ALL_OF_STORY = ("Zuvinakob", "zirconium", "cocoa", "nutmeg", "Quentin", "plums")


async def told_after_undoing_undos(memory: Memory, ids: Any) -> str:
    """All that a memory shows after every undo was undone, where that is still possible."""
    for commit in await memory.log():
        if commit.origin == "undo":
            try:
                await memory.undo(commit.seq)
            except ConflictError:
                continue
    assert (await memory.doctor()).ok
    return await all_of(memory, ids)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "gone", "stays"),
    [
        ({"session": "talk"}, ("Zuvinakob", "zirconium", "cocoa", "Quentin"), ("nutmeg", "plums")),
        ({"id": "said"}, ("Zuvinakob",), ("zirconium", "cocoa", "nutmeg", "plums")),
        ({"id": "other"}, ("plums", "Tom"), ("zirconium", "cocoa")),
        ({"entity": "Mirabel"}, ("Zuvinakob", "zirconium", "cocoa", "nutmeg"), ("plums", "Tom")),
        ({"where": {"house": "blue"}}, ("cocoa",), ("nutmeg", "zirconium")),
    ],
)
@pytest.mark.parametrize("is_repeated", [False, True])
async def test_an_erasure_finds_what_was_undone(memory, asked, gone, stays, is_repeated):
    """No undo brings it back, also if the same was stored again and undone again since."""
    ids = await story(memory)
    if is_repeated:
        ids |= await story(memory)
    asked = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in asked.items()}
    dry = await memory.erase(**asked, dry_run=True)
    report = await memory.erase(**asked)
    assert report.erased == dry.erased and report.count
    told = await told_after_undoing_undos(memory, ids.values())
    assert [word for word in gone if word in told] == []
    assert [word for word in stays if word not in told] == []
    with pytest.raises(NotFoundError):
        await memory.erase(**asked)


@pytest.mark.parametrize("asked", [{"session": "talk"}, {"entity": "Mirabel"}])
async def test_an_erasure_of_what_was_stored_again_finds_what_was_undone(memory, asked):
    await story(memory)
    await memory.add("Mirabel hid the key under the zirconium", session="talk", speaker="Quentin")
    await memory.settle(600)
    await memory.erase(**asked)
    told = await told_after_undoing_undos(memory, ())
    assert "zirconium" not in told and "Zuvinakob" not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "gone"),
    [
        ({"session": "talk"}, {"The code word is mango orchard", "👍"}),
        ({"entity": "Mirabel"}, {"Mirabel hid the key behind the painting"}),
    ],
)
@pytest.mark.parametrize("is_undone", [False, True])
async def test_an_import_does_not_bring_back_what_was_undone_and_erased(memory, tmp_path, asked, gone, is_undone):
    async with Memory.open(tmp_path / "source.db", embedder=None) as source:
        for text in ("The code word is mango orchard", "👍"):
            await source.add(text, session="talk")
        await source.remember("Mirabel hid the key behind the painting", about=["Mirabel"])
        await source.remember("Tom likes plums", about=["Tom"])
        await source.export(tmp_path / "source.jsonl")

    async def texts() -> set[str]:
        return {node.content for node in (await memory.list(type="any")).nodes}

    await memory.import_(tmp_path / "source.jsonl")
    before = await texts()
    if is_undone:
        await memory.undo((await memory.log())[0].run_id)
        assert not await texts()
    await memory.erase(**asked)
    await memory.import_(tmp_path / "source.jsonl")
    assert await texts() == before - gone


async def test_an_owner_of_whom_everything_was_undone_is_erased(memory):
    anns, bobs = memory.scoped(ANN), memory.scoped(BOB)
    ids = await story(anns)
    kept = await bobs.remember("Bob likes zirconium")
    await bobs.undo((await bobs.log())[0].seq)
    report = await anns.erase(owner="ann")
    assert {each.kind for each in report.erased} == {"episodic", "semantic", "entity", "relation", "session"}
    told = await told_after_undoing_undos(anns, ids.values()) if await anns.log() else ""
    assert [word for word in ALL_OF_STORY if word in told] == []
    await bobs.undo((await bobs.log())[0].seq)
    assert (await bobs.get(kept.id)).content == "Bob likes zirconium"


async def test_a_correction_that_was_undone_goes_with_its_memory(memory):
    fact = await memory.remember("The safe is behind the painting")
    fresh = await memory.correct(fact.id, "The safe is behind the zirconium")
    await memory.undo((await memory.log())[0].seq)
    await memory.erase(id=fact.id)
    assert "zirconium" not in await told_after_undoing_undos(memory, [fact.id, fresh.id])


async def test_what_was_learnt_from_erased_messages_alone_goes_though_it_was_undone(memory):
    one = await memory.add("a longer day with Mirabel", session="one")
    two = await memory.add("a day", session="two")
    like = await memory.remember("a")

    def decide(tx):
        known = (("from-one", (one,)), ("from-both", (one, two)))
        fresh = [replace(like, id=id, key=0, origin="consolidation", content=f"learnt {id}") for id, _ in known]
        links = [
            Edge(source=id, target=each, type="derived_from", evidence=evidence)
            for id, evidence in known
            for each in evidence
        ]
        return Change(add=tuple(fresh), link=tuple(links)), None

    reason = Reason(actor="x", origin="consolidate", reason="consolidate")
    await memory._opened.store.write(decide, scope=memory.scope, reason=reason, at=NOW)
    await memory.undo((await memory.log())[0].seq)
    await memory.erase(session="one")
    told = await told_after_undoing_undos(memory, ["from-one", "from-both"])
    assert "learnt from-one" not in told and "learnt from-both" in told


async def test_an_interrupted_erasure_is_finished_on_opening_and_keeps_what_was_written_since(open_memory, monkeypatch):
    """In many steps, in between which others write: of a person only the erased memory knew, and into its session."""
    monkeypatch.setattr(erase, "AT_ONCE_ROWS", 0)

    def stop(point):
        if point == "erase: begun":
            raise RuntimeError("as if the process ended here")

    async with open_memory() as memory:
        gone = await memory.remember("Quentin keeps a lemur", about=["Quentin"], session="zoo")
        faults.install(stop)
        with pytest.raises(RuntimeError):
            await memory.erase(id=gone.id)
        faults.install(None)
        kept = await memory.remember("Quentin plays chess", about=["Quentin"])
        said = await memory.add("and who feeds it?", session="zoo")
    async with open_memory() as memory:
        await memory.settle(600)
        assert (await memory.get(kept.id)).about == ("Quentin",)
        assert (await memory.get(said)).session == "zoo"
        with pytest.raises(NotFoundError):
            await memory.get(gone.id)
        assert (await memory.doctor()).ok


def is_withheld(tx, owner, text, *, said_at=None):
    space = tx.space(owner, "")
    return space is not None and bool(tx.suppression.matches(space, text, session=None, said_at=said_at))


async def test_a_forgotten_statement_is_withheld_where_it_was_said_until_it_is_said_again(memory, clock):
    said = await memory.add("By the way, I am allergic to peanuts. The bus was late.", session="s")
    fact = await memory.remember("I am allergic to peanuts")
    store = memory._opened.store

    async def withheld(at):
        return await store.read(lambda tx: is_withheld(tx, "me", "I'm allergic to peanuts", said_at=at))

    async def shown():
        def ask(tx):
            node = tx.nodes.get(memory.scope, said)
            return tx.suppression.shown({node.key: node}).get(node.key, node.content)

        return await store.read(ask)

    assert not await withheld(clock.ms)
    await memory.forget(fact.id)
    assert await withheld(clock.ms) and await withheld(None) and not await withheld(clock.ms + 1)
    assert (await shown()).strip() == "The bus was late."
    await memory.restore(fact.id)
    assert not await withheld(clock.ms) and "peanuts" in await shown()
    await memory.forget(fact.id)
    assert await withheld(clock.ms) and "peanuts" not in await shown()
    clock.ms += 1_000
    await memory.remember("I am allergic to peanuts")
    assert not await withheld(clock.ms - 1_000) and "peanuts" in await shown()


async def test_a_replaced_version_is_withheld_while_it_is_forgotten(memory, clock):
    store = memory._opened.store
    await memory.add("I am allergic to peanuts", session="s")
    old = await memory.remember("I am allergic to peanuts")
    new = await memory.correct(old.id, "I am allergic to walnuts")

    async def asked():
        def read(tx):
            is_quoted = bool(tx.nodes.replaced(tx.nodes.get(memory.scope, new.id).key))
            return is_quoted, is_withheld(tx, "me", "I am allergic to peanuts")

        return await store.read(read)

    clock.ms += 1_000
    assert await asked() == (True, False)
    await memory.forget(old.id)
    assert await asked() == (False, True)
    done = await memory.undo((await memory.log())[0].seq)
    assert await asked() == (True, False)
    await memory.undo(done.seq)
    assert await asked() == (False, True)
    restored = await memory.restore(old.id)
    assert (restored.closed_reason, await asked()) == ("superseded", (True, False))


async def test_what_is_withheld_for_one_owner_is_not_for_another(memory):
    fact = await memory.remember("I am allergic to peanuts")
    await memory.forget(fact.id)
    store = memory._opened.store
    for owner, wanted in (("me", True), ("eve", False)):
        found = await store.read(lambda tx, owner=owner: is_withheld(tx, owner, "I am allergic to peanuts"))
        assert found is wanted
