"""Standing questions: kept with their answers, stale once what these rest on has changed, renewed by upkeep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ricordo import ConflictError, DeniedError, InvalidError, Memory, NotFoundError, Scope, Settings
from ricordo.language import ScriptedModel
from ricordo.ports import Turn

pytestmark = pytest.mark.asyncio

QUESTION = "Where does Anna live?"
MONDAY = 1_767_607_200_000
DAY = 86_400_000


class Clock:
    def __init__(self) -> None:
        self.ms = MONDAY

    def now(self) -> int:
        return self.ms


def quoting(turns: Sequence[Turn], schema: Mapping[str, Any]) -> object:
    """Answer with the first memory that the model is shown, in other words."""
    handle, text = re.findall(r"^(m\d+) \([^)]*\) [^:]*: (.*)$", turns[-1].text, flags=re.MULTILINE)[0]
    return {"known": True, "sentences": [{"text": f"{text}, indeed.", "evidence": [handle]}]}


def opened(place: Path | str, **given: Any) -> Memory:
    return Memory.open(place, embedder="hashing", **given)


@pytest.fixture(params=["file", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{tmp_path}/me.db" if request.param == "file" else f"{tmp_path}/me/"


async def whys(memory: Memory) -> list[str]:
    """Return why the answer to the only question is stale."""
    (found,) = await memory.questions()
    return [each.why for each in found.stale]


def is_written(folder: Path, text: str) -> bool:
    """Return whether any file below a folder holds a text."""
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert files
    return any(text.encode() in each.read_bytes() for each in files)


async def renewed(memory: Memory) -> str:
    """Run upkeep; return what it says of standing questions."""
    steps = {each.name: each.detail for each in (await memory.maintain()).steps}
    return steps["questions"]


async def test_a_question_is_kept_with_an_answer_that_says_what_it_rests_on(place: str) -> None:
    async with opened(place) as memory:
        rome = await memory.remember("Anna lives in Rome", about=["Anna"])
        kept = await memory.keep_question(QUESTION)
        assert (kept.question, kept.answer.text, kept.rests_on) == (QUESTION, "Anna lives in Rome", (rome.id,))
        assert [each.ids for each in kept.answer.sentences] == [(rome.id,)]
        assert kept.is_fresh and kept.answered_at is not None
        assert await memory.keep_question(QUESTION) == kept
        before = await memory.log(100)
    async with opened(place) as memory:
        assert await memory.questions() == [kept]
        assert await memory.question(kept.id[-8:]) == kept
        assert (await memory.receipts(), await memory.log(100)) == ([], before)
        assert [each.id for each in (await memory.search("Anna Rome")).hits] == [rome.id], "it is no knowledge"
        assert await renewed(memory) == "nothing to do"
        await memory.drop_question(kept.id)
        assert await memory.questions() == []
        with pytest.raises(NotFoundError, match="standing question"):
            await memory.question(kept.id)


@pytest.mark.slow
async def test_every_kind_of_change_makes_an_answer_stale_and_upkeep_renews_it(place: str) -> None:
    async with opened(place) as memory:
        rome = await memory.remember("Anna lives in Rome", about=["Anna"])
        await memory.remember("Anna plays chess", about=["Anna"])
        await memory.keep_question(QUESTION)
        await memory.remember("Bob likes tea", about=["Bob"])
        await memory.confirm(rome.id)
        assert await whys(memory) == []
        milan = await memory.correct(rome.id, "Anna lives in Milan")
        (found,) = await memory.questions()
        assert [(each.why, each.id, each.commit) for each in found.stale] == [
            ("superseded", rome.id, (await memory.log(1))[0].seq)
        ]
        assert found.answer.text == "Anna lives in Rome"
        assert (await memory.maintain(dry_run=True)).steps[-2].detail == "1 stale answer would be looked at"
        assert await renewed(memory) == "1 stale answer looked at, 1 renewed"
        (found,) = await memory.questions()
        assert (found.stale, found.answer.text) == ((), "Anna lives in Milan")

        await memory.add("I met Anna, she lives in Oslo now", session="s1")
        assert await whys(memory) == ["new"]
        await memory.undo((await memory.log(1))[0].seq)
        assert await whys(memory) == [], "the change was taken back"

        await memory.forget(milan.id)
        (found,) = await memory.questions()
        assert [each.why for each in found.stale] == ["forgotten"]
        assert "Milan" not in found.answer.text, "what is forgotten is in no answer"
        await memory.restore(milan.id)
        assert await whys(memory) == []

        await memory.forget(milan.id)
        await memory.renew_questions()
        assert await whys(memory) == []
        await memory.restore(milan.id)
        assert await whys(memory) == ["new"]


async def test_what_is_erased_leaves_no_byte_in_a_kept_answer(tmp_path: Path, place: str) -> None:
    async with opened(place) as memory:
        secret = await memory.remember("Anna lives in zqrome7", about=["Anna"])
        await memory.remember("Anna plays chess and lives well", about=["Anna"])
        kept = await memory.keep_question(QUESTION)
        other = await memory.keep_question("Who is in zqrome7?")
        assert "zqrome7" in kept.answer.text
        await memory.erase(id=secret.id)
        assert [each.id for each in await memory.questions()] == [kept.id], "a question that repeats it goes, too"
        found = await memory.question(kept.id)
        assert (found.answer, [each.why for each in found.stale]) == (None, ["unanswered"])
        assert other.id != kept.id and secret.id not in found.rests_on
        await memory.renew_questions()
        assert (await memory.question(kept.id)).is_fresh
    assert not is_written(tmp_path, "zqrome7") and not is_written(tmp_path, secret.id)


async def test_an_answer_made_before_an_erasure_is_not_kept_after_it(tmp_path: Path) -> None:
    """The message stays, without the sentence that said the same as what is erased."""
    async with opened(tmp_path / "me.db") as memory:
        said = await memory.add("I live in Rome. The bread is good here.", session="s1")

        class Slow(ScriptedModel):
            async def complete(self, *given: Any, **named: Any) -> Any:
                answer = await super().complete(*given, **named)
                await memory.consolidate("s1")
                for fact in (await memory.list(type="semantic")).nodes:
                    await memory.erase(id=fact.id)
                return answer

        async with opened(tmp_path / "me.db", model=Slow(quoting)) as other:
            kept = await other.keep_question("Where do I live?")
        assert (kept.answer, [each.why for each in kept.stale]) == (None, ["unanswered"])
        assert (await memory.get(said)).is_live
        await memory.renew_questions()
        assert "Rome" not in (await memory.question(kept.id)).answer.text


async def test_a_forgotten_sentence_of_a_message_is_not_shown_any_more(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        said = await memory.add("I live in Rome. The bread is good here.", session="s1")
        kept = await memory.keep_question("Where do I live?")
        assert kept.rests_on == (said,) and "Rome" in kept.answer.text
        await memory.consolidate("s1")
        (learnt,) = (await memory.list(type="semantic")).nodes
        await memory.forget(learnt.id)
        (found,) = await memory.questions()
        assert "Rome" not in found.answer.text
        assert [(each.why, each.id) for each in found.stale] == [("hidden", said)]
        await memory.renew_questions()
        assert await whys(memory) == []


async def test_a_model_writes_the_answers_and_renews_those_of_passages(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.remember("Anna lives in Rome", about=["Anna"])
        await memory.keep_question(QUESTION)
    async with opened(tmp_path / "me.db", model=ScriptedModel(quoting)) as memory:
        assert await whys(memory) == ["model"]
        assert await renewed(memory) == "1 stale answer looked at, 1 renewed"
        (found,) = await memory.questions()
        assert (found.answer.text, found.answer.model, found.stale) == ("Anna lives in Rome, indeed.", "scripted", ())
        assert await memory.renew_questions() == []
        assert [each.id for each in await memory.renew_questions(fresh=True)] == [found.id]
        page = memory.scoped(Scope(owner="me", trust="web"))
        with pytest.raises(DeniedError):
            await page.keep_question("What does Anna do?")
    async with opened(tmp_path / "me.db") as memory:
        assert await whys(memory) == [], "without a model, its answer stays"


async def test_without_tokens_left_upkeep_keeps_the_best_passages(tmp_path: Path) -> None:
    settings = Settings(daily_tokens=1)
    async with opened(tmp_path / "me.db", model=ScriptedModel(quoting), settings=settings) as memory:
        await memory.remember("Anna lives in Rome", about=["Anna"])
        assert (await memory.ask(QUESTION)).model == "scripted", "it takes the last tokens of the day"
        kept = await memory.keep_question(QUESTION)
        assert (kept.answer.text, kept.answer.model) == ("Anna lives in Rome", None)
        assert kept.answer.degraded and [each.why for each in kept.stale] == ["model"]


async def test_time_alone_makes_an_answer_stale_if_the_question_or_a_memory_names_one(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path / "me.db", clock=clock) as memory:
        await memory.remember("Anna is in Rome", about=["Anna"], expires="in 3 days")
        await memory.keep_question("Where is Anna?")
        clock.ms += 4 * DAY
        assert await whys(memory) == ["expired"]
        await memory.drop_question((await memory.questions())[0].id)
        await memory.keep_question("What did Anna do yesterday?")
        assert await whys(memory) == []
        clock.ms += DAY
        assert await whys(memory) == ["time"]


async def test_nobody_else_sees_a_question_and_what_was_kept_in_a_chat_is_read_there_alone(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        await memory.remember("Anna lives in Rome", about=["Anna"])
        mine = await memory.keep_question(QUESTION)
        team = memory.scoped(Scope(owner="me", chat="team"))
        await team.add("Anna lives in the office in Lima", session="t")
        there = await team.keep_question("Who lives in Lima?")
        assert [each.id for each in await team.questions()] == [mine.id, there.id]
        assert (await team.question(mine.id)).is_fresh, "it was asked outside the chat"
        assert [each.id for each in await memory.questions()] == [mine.id]
        for other in (memory.scoped(Scope(owner="eve")), memory.scoped(Scope(owner="eve", chat="team"))):
            assert await other.questions() == []
            for call in (other.question, other.drop_question, other.renew_questions):
                with pytest.raises(NotFoundError):
                    await call(mine.id)
        proposing = memory.scoped(Scope(owner="me", propose=True))
        assert len(await proposing.questions()) == 1
        with pytest.raises(DeniedError):
            await proposing.keep_question("What else?")


async def test_an_export_quotes_a_chat_only_where_the_chat_is_seen(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        team = memory.scoped(Scope(owner="ann", chat="team"))
        said = await team.add("Anna lives in the office in Lima", id="said-in-the-team")
        member = Scope(owner="eve", chat="team")
        there = await memory.scoped(member).keep_question("Who lives in Lima?")
        mine = await memory.scoped(Scope(owner="eve")).keep_question("Who lives in Rome?")
        outside = Scope(owner="eve"), replace(member, chat="another")
        for number, scope in enumerate((*outside, member)):
            path = tmp_path / f"{number}.jsonl"
            await memory.scoped(scope).export(path)
            exported = path.read_text("utf-8")
            assert mine.id in exported
            assert [each in exported for each in (there.id, said, "office")] == [scope is member] * 3


async def test_upkeep_of_the_owner_renews_what_was_kept_in_a_chat(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        team = memory.scoped(Scope(owner="me", chat="team"))
        await team.add("Anna lives in Lima", session="t")
        await team.keep_question(QUESTION)
        await team.add("Anna lives in Kyoto since June", session="t")
        assert await whys(team) == ["new"]
        assert await renewed(memory) == "1 stale answer looked at, 1 renewed"
        (found,) = await team.questions()
        assert found.is_fresh and "Kyoto" in found.answer.text


async def test_questions_outlive_the_age_of_receipts_and_travel_with_exports_and_copies(tmp_path: Path) -> None:
    clock = Clock()
    settings = Settings(receipts_days=7)
    async with opened(tmp_path / "me.db", clock=clock, settings=settings) as memory:
        await memory.remember("Anna lives in Rome", about=["Anna"])
        kept = await memory.keep_question(QUESTION)
        dropped = await memory.keep_question("Who is Bob?")
        await memory.drop_question(dropped.id)
        clock.ms += 8 * DAY
        await memory.gc()
        assert [each.id for each in await memory.questions()] == [kept.id]
        await memory.export(tmp_path / "mine.jsonl")
        assert dropped.id not in (tmp_path / "mine.jsonl").read_text("utf-8")
        await memory.migrate(f"{tmp_path}/folder/")
        await memory.backup(tmp_path / "copy.db")
        listed = await memory.questions()
    async with opened(tmp_path / "new.db", clock=clock) as memory:
        await memory.import_(tmp_path / "mine.jsonl", own=True)
        assert [(each.id, each.answer.text) for each in await memory.questions()] == [(kept.id, "Anna lives in Rome")]
    for place in (f"{tmp_path}/folder/", tmp_path / "copy.db"):
        async with opened(place, clock=clock) as memory:
            assert await memory.questions() == listed


async def test_bad_questions_are_refused_and_at_most_a_hundred_are_kept(tmp_path: Path) -> None:
    async with opened(tmp_path / "me.db") as memory:
        for bad in ("", "  ", "x" * 2_001, 7):
            with pytest.raises(InvalidError):
                await memory.keep_question(bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidError, match="limit"):
            await memory.keep_question(QUESTION, limit=0)
        for number in range(100):
            kept = await memory.keep_question(f"What is {number}?")
        assert not kept.answer.known
        with pytest.raises(ConflictError, match="100 questions"):
            await memory.keep_question("One more?")
