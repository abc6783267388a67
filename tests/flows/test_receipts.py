"""Receipts: what an answer gave and left out, kept by ids, replayed as of then, and erased with what they name."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ricordo import ConflictError, InvalidError, Memory, NotFoundError, Scope, Settings
from tests.flows.receipt_histories import history


def opened(place: Path | str, **settings: object) -> Memory:
    return Memory.open(place, embedder="hashing", settings=Settings(**settings))


@pytest.fixture(params=["file", "folder"])
def place(request, tmp_path):
    return tmp_path / "me.db" if request.param == "file" else f"{tmp_path}/me/"


async def test_a_search_leaves_a_receipt_when_it_is_asked_to(place):
    async with opened(place) as memory:
        rome = await memory.remember("Anna lives in Rome", about=["Anna"])
        await memory.remember("Anna likes tea")
        assert (await memory.search("where does Anna live")).receipt is None
        found = await memory.search("where does Anna live", limit=1, after="last_year", receipt=True)
        receipt = await memory.receipt(found.receipt)
        assert (receipt.verb, receipt.question) == ("search", "where does Anna live")
        assert receipt.asked == {"after": "last_year", "limit": 1}
        assert (receipt.owner, receipt.chat, receipt.trust) == ("me", "", "user")
        assert receipt.commit == (await memory.log(1))[0].seq
        assert [each.id for each in receipt.given] == found.ids == [rome.id]
        assert [each.strategy for each in receipt.given[0].why] == [each.strategy for each in found.hits[0].why]
        assert sum(each.share for each in receipt.given[0].why) == pytest.approx(found.hits[0].score, abs=1e-4)
        assert [(each.reason) for each in receipt.left_out] == ["rank 2: 1 were asked for"]
        assert receipt.setup["embedder"] == "hashing-256-v1"
        assert await memory.receipt(found.receipt[-8:]) == receipt
        assert "Rome" not in json.dumps([each.id for each in receipt.given])
    async with opened(place) as memory:  # it outlasts the process
        assert await memory.receipts() == [receipt]
        with pytest.raises(NotFoundError):
            await memory.receipt("x")
        with pytest.raises(InvalidError, match="receipt"):
            await memory.search("x", receipt="yes")


async def test_the_setting_lets_every_answer_leave_one(place):
    async with opened(place, receipts="answers") as memory:
        await memory.remember("Anna lives in Rome", about=["Anna"])
        await memory.add("I met Anna in Rome", session="s")
        block = await memory.context_parts("Where does Anna live?", session="s")
        answer = await memory.ask("Where does Anna live?")
        words = await memory.query("Rome")
        quiet = await memory.search("tea", receipt=False)
        assert quiet.receipt is None
        left = await memory.receipts()
        assert [each.verb for each in left] == ["query", "ask", "context"]
        assert [each.id for each in left] == [words.receipt, answer.receipt, block.receipt]
        given = {each.id: each.section for each in left[-1].given}
        assert given.keys() == block.ids and set(given.values()) <= {"facts", "people", "timeline", "evidence"}
        assert "said in the present conversation" in {each.reason for each in left[-1].left_out}
        assert await memory.receipts(1, before=left[0].id) == [left[1]]


async def test_a_replay_gives_what_was_given_then_and_names_the_changes_that_make_the_difference(place):
    async with opened(place) as memory:
        rome = await memory.remember("Anna lives in Rome", about=["Anna"])
        await memory.remember("Anna likes tea")
        await memory.settle()
        found = await memory.search("where does Anna live", receipt=True)
        same = await memory.replay_receipt(found.receipt)
        assert (same.then, same.today) == (same.receipt.given, same.receipt.given)
        assert (same.differs_from_receipt, same.differs_today, same.commits) == ((), (), ())
        await memory.correct(rome.id, "Anna lives in Milan")
        moved = (await memory.log(1))[0].seq
        other = memory.scoped(Scope(owner="eve"))
        await other.remember("Anna lives in Paris")
        before = await memory.log(100)
        told = await memory.replay_receipt(found.receipt)
        assert told.then == told.receipt.given and told.differs_from_receipt == () == told.reasons
        assert {each.what for each in told.differs_today if each.id == rome.id} == {"gone"}
        assert [each.seq for each in told.commits] == [moved]
        assert await memory.log(100) == before


async def test_what_is_erased_leaves_every_receipt_with_the_question_that_led_to_it(tmp_path):
    async with opened(tmp_path / "me.db", receipts="answers") as memory:
        secret = await memory.remember("The code of the vault is zqvault7")
        kept = await memory.remember("Bob plays the cello")
        led = await memory.search("what is zqvault7")
        near = await memory.search("zqvault7", limit=1, type="procedural")  # it found nothing, but says it
        other = await memory.search("who plays the cello", limit=1)
        await memory.erase(id=secret.id)
        cut = await memory.receipt(led.receipt)
        assert cut.question is None and secret.id not in [each.id for each in (*cut.given, *cut.left_out)]
        assert (await memory.receipt(near.receipt)).question is None
        whole = await memory.receipt(other.receipt)
        assert kept.id in [each.id for each in whole.given]
        with pytest.raises(ConflictError, match="erased"):
            await memory.replay_receipt(led.receipt)
    for path in tmp_path.iterdir():
        assert b"zqvault7" not in path.read_bytes() and secret.id.encode() not in path.read_bytes()


async def test_receipts_belong_to_their_caller_and_go_with_the_owner(tmp_path):
    async with opened(tmp_path / "me.db", receipts="answers") as memory:
        eve = memory.scoped(Scope(owner="eve"))
        await eve.remember("Eve likes jazz")
        hers = (await eve.search("jazz")).receipt
        team = memory.scoped(Scope(owner="me", chat="team"))
        there = (await team.search("what is zqteam7")).receipt
        assert [each.id for each in await memory.receipts()] == [there]
        with pytest.raises(NotFoundError):
            await memory.receipt(hers)
        with pytest.raises(ConflictError, match="team"):
            await memory.replay_receipt(there)
        await memory.export(tmp_path / "mine.jsonl")
        exported = (tmp_path / "mine.jsonl").read_text("utf-8")
        assert there in exported and hers not in exported
        await eve.erase(owner="eve")
        assert await eve.receipts() == []
    assert hers.encode() not in (tmp_path / "me.db").read_bytes()
    async with opened(tmp_path / "new.db") as copy:
        await copy.import_(tmp_path / "mine.jsonl", own=True)
        assert [each.id for each in await copy.receipts()] == [there]


async def test_gc_deletes_receipts_that_are_too_old(tmp_path):
    class Clock:
        ms = 1_767_261_600_000

        def now(self) -> int:
            return self.ms

    clock = Clock()
    settings = Settings(receipts="answers", receipts_days=7)
    async with Memory.open(tmp_path / "me.db", embedder=None, settings=settings, clock=clock) as memory:
        await memory.remember("Bob plays the cello")
        await memory.search("cello")
        clock.ms += 8 * 86_400_000
        await memory.search("cello")
        await memory.gc(dry_run=True)
        assert len(await memory.receipts()) == 2
        await memory.gc()
        assert len(await memory.receipts()) == 1


async def test_a_receipt_holds_no_credential(tmp_path):
    key = "sk-proj-Zq7Yx8Wv9Ut0Sr1Qp2On3Ml4Kj5Ih6Gf7Ed8Cb9Az0"
    async with opened(tmp_path / "me.db") as memory:
        found = await memory.search(f"whose key is {key}", receipt=True)
        assert key not in (await memory.receipt(found.receipt)).question


async def test_the_setting_reads_keeps_who_read_what(tmp_path):
    async with opened(tmp_path / "me.db", receipts="reads") as memory:
        anna = await memory.remember("Anna lives in Rome", about=["Anna"])
        turn = await memory.add("I met Anna", session="s1")
        await memory.settle()
        await memory.get(anna.id)
        await memory.list()
        await memory.entity("Anna")
        await memory.people()
        await memory.session("s1")
        await memory.history(anna.id)
        await memory.timeline()
        await memory.explain(anna.id)
        await memory.archive()
        await memory.search("Rome")
        await memory.export(tmp_path / "out.jsonl")
        read = {each.verb: [one.id for one in each.given] for each in await memory.receipts()}
        assert list(read) == [
            "export",
            "search",
            "archive",
            "explain",
            "timeline",
            "history",
            "session",
            "people",
            "entity",
            "list",
            "get",
        ]
        assert read["get"] == read["history"] == [anna.id] and read["session"] == [turn] and read["archive"] == []
        assert set(read["list"]) == {anna.id, turn} == set(read["timeline"])
        assert anna.id in read["entity"] and anna.id in read["explain"] and len(read["people"]) == 1
        last = await memory.receipts(1)
        with pytest.raises(ConflictError, match="cannot be replayed"):
            await memory.replay_receipt(last[0].id)
        await memory.erase(id=anna.id)
        assert anna.id not in {one.id for each in await memory.receipts(100) for one in each.given}
    assert anna.id.encode() not in (tmp_path / "me.db").read_bytes()


@pytest.mark.parametrize("seed", [1, 4])
async def test_random_histories_replay_as_they_were(seed, place):
    """`make receipts` lives more of them."""
    told = await history(seed, place, steps=12)
    found = told["same as then"] + told["without a question"] + told["different from then, with a reason"]
    assert found == told["looked at"] > 0


async def test_a_question_stays_if_all_it_says_is_still_remembered(tmp_path):
    """Erasing takes what quotes, restates or names what was erased, and no more."""
    questions = {
        "where does Anna live": True,  # others are remembered who live somewhere, and more about Anna
        "who lives in Rome": False,  # repeats a part of it
        "is Rome the place Anna lives in": False,  # says all of it, in another order
        "does anyone know zqkey9": False,  # names what only it named
        "wohnt Anna noch dort": False,  # may say it in other words: it gave it, and nothing left says "wohnt"
        "what does Bob like": True,
    }
    async with opened(tmp_path / "me.db") as memory:
        await memory.remember("Bob lives in Rome and likes tea")
        await memory.remember("Anna plays chess")
        gone = await memory.remember("Anna lives in Rome, says zqkey9")
        left = {text: (await memory.search(text, receipt=True)).receipt for text in questions}
        await memory.erase(id=gone.id)
        stays = {text: (await memory.receipt(id_)).question == text for text, id_ in left.items()}
        assert stays == questions
        named = [each.id for one in await memory.receipts() for each in (*one.given, *one.left_out)]
        assert named and gone.id not in named
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"zqkey9" not in written and gone.id.encode() not in written


async def test_an_erasure_waits_for_no_query_of_its_own(tmp_path):
    """All that the question says is in the first memory, so the others are not read."""
    async with opened(tmp_path / "me.db", patience_s=2.0) as memory:
        for text in ("Bob lives in Rome and likes tea", "Carla plays chess", "Dora likes jazz"):
            await memory.remember(text)
        gone = await memory.remember("Anna lives in Rome")
        await memory.search("who lives in Rome", receipt=True)
        await memory.settle()
        report = await memory.erase(id=gone.id)
        assert not [each for each in report.out_of_reach if "-wal" in each or "free pages" in each]
        assert (await memory.receipts())[0].question is None


async def test_a_replay_does_not_wait_for_work_on_the_original(tmp_path):
    """The copy has the lease of the process that embeds in the original, which nobody gives back there."""
    async with opened(tmp_path / "me.db") as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
        await memory.settle()
        found = await memory.search("tea", receipt=True)
        await memory.undo((await memory.log(1))[0].seq)  # taking this back brings a row that has no vector
        await memory.settle()
        async with asyncio.timeout(8):
            await memory.replay_receipt(found.receipt)


READS = {
    "ask": lambda memory, it: memory.ask("Where does Anna live?"),
    "archive": lambda memory, it: memory.archive(),
    "backup": lambda memory, it: memory.backup(it.folder / "copy.db"),
    "brief": lambda memory, it: memory.brief(),
    "brief_parts": lambda memory, it: memory.brief_parts(),
    "changes": lambda memory, it: anext(memory.changes(after=0)),
    "context": lambda memory, it: memory.context("Anna?"),
    "context_parts": lambda memory, it: memory.context_parts("Anna?"),
    "document": lambda memory, it: memory.document("d1"),
    "documents": lambda memory, it: memory.documents(),
    "entity": lambda memory, it: memory.entity("Anna"),
    "explain": lambda memory, it: memory.explain(it.fact),
    "export": lambda memory, it: memory.export(it.folder / "out.jsonl"),
    "forget_where": lambda memory, it: memory.forget_where(tag="x", dry_run=True),
    "gc": lambda memory, it: memory.gc(dry_run=True),
    "get": lambda memory, it: memory.get(it.fact),
    "history": lambda memory, it: memory.history(it.fact),
    "keep_question": lambda memory, it: memory.keep_question("Where does Anna live?"),
    "list": lambda memory, it: memory.list(),
    "log": lambda memory, it: memory.log(),
    "maintain": lambda memory, it: memory.maintain(dry_run=True),
    "migrate": lambda memory, it: memory.migrate(it.folder / "other.db"),
    "people": lambda memory, it: memory.people(),
    "prune": lambda memory, it: memory.prune(dry_run=True),
    "query": lambda memory, it: memory.query("Anna"),
    "question": lambda memory, it: memory.question(it.question),
    "questions": lambda memory, it: memory.questions(),
    "receipt": lambda memory, it: memory.receipt(it.receipt),
    "receipts": lambda memory, it: memory.receipts(),
    "renew_questions": lambda memory, it: memory.renew_questions(fresh=True),
    "replay_receipt": lambda memory, it: memory.replay_receipt(it.receipt),
    "review": lambda memory, it: memory.review(),
    "staged": lambda memory, it: memory.staged(),
    "run": lambda memory, it: memory.run(it.run),
    "runs": lambda memory, it: memory.runs(),
    "search": lambda memory, it: memory.search("Anna"),
    "session": lambda memory, it: memory.session("s1"),
    "sessions": lambda memory, it: memory.sessions(),
    "spaces": lambda memory, it: memory.spaces(),
    "chats": lambda memory, it: memory.chats(),
    "spending": lambda memory, it: memory.spending(),
    "stats": lambda memory, it: memory.stats(),
    "sync": lambda memory, it: memory.sync(it.shared),
    "timeline": lambda memory, it: memory.timeline(),
    "undo": lambda memory, it: memory.undo(it.commit, dry_run=True),
    "update_where": lambda memory, it: memory.update_where(tag="x", add_tags=["y"], dry_run=True),
    "weak": lambda memory, it: memory.weak(),
}
ROWS = {"brief_parts": "brief", "context_parts": "context", "replay_receipt": "receipt"}
SHOWS_NO_MEMORY = frozenset(("close", "scoped", "off_record", "on_record", "settle", "warm", "end_session", "doctor"))
SHOWS_NO_MEMORY |= {"rebuild_index", "verify_backup", "restore_backup", "import_", "erase"}
SHOWS_NO_MEMORY |= {"add", "add_nowait", "add_many", "rekey", "drop_question"}
# What they show is what they changed, or what a run made, and the log or the runs say by which caller.
CHANGES = frozenset(("remember", "remember_many", "correct", "update", "confirm", "reinforce", "demote", "forget"))
CHANGES |= {"restore", "resolve", "resolve_many", "relate", "merge", "split", "add_entity", "update_entity"}
CHANGES |= {"consolidate", "extract", "summarise", "reflect", "enrich", "infer_causes", "replay", "accept"}
CHANGES |= {"approve", "refuse", "add_document", "remove_document", "create_space", "set_member", "remove_member"}


async def test_every_method_that_shows_memories_leaves_a_row_of_who_read(tmp_path):
    """A new public method is called here, or stands in one of the two lists with their reasons."""
    methods = {name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if not name.startswith("_")}
    assert methods == READS.keys() | SHOWS_NO_MEMORY | CHANGES
    async with opened(tmp_path / "me.db", receipts="reads") as memory:
        fact = await memory.remember("Anna lives in Rome", about=["Anna"], tags=["x"])
        commit = (await memory.log(1))[0].seq
        await memory.add("Anna lives in Oslo now, she said", session="s1")
        await memory.end_session("s1")
        await memory.add_document(text="Anna lives in Lima, says the list.", id="d1")
        run = await memory.consolidate()
        found = await memory.search("Anna", receipt=True)
        shared = tmp_path / "shared"
        shared.mkdir()
        asked = await memory.keep_question("Where does Anna live?")
        given = {"commit": commit, "receipt": found.receipt, "run": run.id, "folder": tmp_path, "shared": shared}
        given["question"] = asked.id
        it = SimpleNamespace(fact=fact.id, **given)
        for name, read in READS.items():
            before = {each.id for each in await memory.receipts(1_000)}
            await read(memory, it)
            verbs = {each.verb for each in await memory.receipts(1_000) if each.id not in before}
            assert ROWS.get(name, name) in verbs, name
        view = memory.store_view
        await view.nodes([fact.id])
        assert [each async for each in view.each(None)]
        await view.holdings()
        await view.changed_by(commit)
        rows = {each.verb: [one.id for one in each.given] for each in await memory.receipts(1_000)}
        told = ("nodes", "each", "holdings", "changed_by")
        assert all(fact.id in rows[f"store_view.{name}"] for name in told)
        assert all(fact.id in rows[name] for name in ("brief", "forget_where", "update_where", "list", "explain"))
