"""What the pages say: names of changes, what an undo took back, a missing result, and reasons in every language."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from ricordo import Memory, Scope
from ricordo.interfaces.call import Caller
from ricordo.interfaces.page.rendering import LANGUAGES, Texts, detail, texts, undone, weakness
from tests.interfaces.serving import House, house
from tests.page.doors import Browser, signed_in

pytest.importorskip("jinja2", reason="the extra `server` is not installed")


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path / "me.db") as built:
        yield built


async def read(browser: Browser, path: str) -> str:
    """Return the words of a page, without markup."""
    page = (await browser.open(path)).text
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


async def opened(at: House) -> Memory:
    return await at.app.page.dispatcher.opened()


async def test_every_change_names_what_it_changed_and_an_undo_what_it_took_back(at: House) -> None:
    memory = await opened(at)
    await memory.add_entity("Jonas", type="person")
    await memory.add_entity("Miriam", type="person")
    await memory.relate("Miriam", "sister", source="Jonas")
    await memory.add("Good night", session="sunday")
    await memory.end_session("sunday")
    await memory.remember("Miriam plays the oboe")
    browser = await signed_in(at)
    log = await read(browser, "/page/changes")
    for named in ("relate Miriam is the sister of Jonas", "add entity Jonas", "end session sunday"):
        assert named in log
    last = (await memory.log(limit=1))[0].seq
    await browser.act("/page/undo", change=str(last))
    told = await read(browser, f"/page/change?id={last + 1}")
    assert f"undo of {last}" in told
    assert "Taken back Miriam plays the oboe" in told
    undone = await read(browser, f"/page/change?id={last}")
    assert "remember" in undone and "Miriam plays the oboe" in undone


async def test_a_result_that_is_missing_is_found_by_its_words_and_explained(at: House) -> None:
    memory = await opened(at)
    await memory.remember("Jonas is allergic to hazelnuts")
    gone = await memory.remember("The boat is called Möwe")
    await memory.forget(gone.id)
    browser = await signed_in(at)
    found = await read(browser, "/?q=Jonas+hazelnuts&missing=allergic+to+hazelnuts")
    assert "It is among the results Jonas is allergic to hazelnuts" in found
    archived = await read(browser, "/?q=Jonas+hazelnuts&missing=boat+called+M%C3%B6we")
    assert "Why it is not among the results The boat is called Möwe Left out by a filter, closed or expired" in archived
    assert "No memory has these words" in await read(browser, "/?q=Jonas&missing=zeppelin+quux")


async def test_a_result_below_the_relevance_floor_is_marked(at: House) -> None:
    memory = await opened(at)
    for text in ("Anna likes green tea", "the bike is blue", "Bob plays chess", "the car is red"):
        await memory.remember(text)
    browser = await signed_in(at)
    assert "Probably not relevant" in await read(browser, "/?q=thanks+for+the+bike!")
    assert "Probably not relevant" not in await read(browser, "/?q=who+plays+chess&only_relevant=1")


@pytest.mark.parametrize("language", LANGUAGES)
def test_reasons_are_in_the_language_of_the_page(language: str) -> None:
    texts = Texts(language)
    told = weakness(texts, "only 40% sure, expired on 2026-05-24, faded since 2026-06-01")
    assert all(value in told for value in ("40%", "2026-05-24", "2026-06-01"))
    assert (told == "only 40% sure, expired on 2026-05-24, faded since 2026-06-01") == (language == "en")
    assert undone("67") == "67"
    assert undone("019f088f-0ae0-7002-bdff-47f1bd6d9a3b with 2 later") == "bd6d9a3b with 2 later"


async def test_why_a_result_is_missing_is_told_in_the_language_of_the_page(at: House) -> None:
    memory = await opened(at)
    other = await memory.remember("The kettle is made of copper")
    gone = await memory.remember("The boat is called Möwe")
    await memory.forget(gone.id)
    await memory.remember("Jonas is allergic to hazelnuts")
    browser = await signed_in(at)
    await browser.act("/page/language", language="de")
    closed = await read(browser, f"/?q=Jonas+hazelnuts&why_not={gone.id}")
    assert "es ist geschlossen (vergessen); „Im Archiv suchen“ findet Geschlossenes" in closed
    assert "it is closed" not in closed
    alive = await read(browser, f"/?q=Jonas&archived=1&why_not={other.id}")
    assert "es ist nicht geschlossen, und nur das Archiv wurde durchsucht" in alive
    found = await read(browser, "/?q=Jonas+hazelnuts&missing=allergic+to+hazelnuts")
    assert re.search(r"Platz 1 von \d+ Kandidaten", found)
    assert " candidates" not in found


_SAID = (
    "17 of 40 candidates, relevance -1.2: it is about someone other than the question names",
    "12 of 40 candidates, 0.031 behind the one before it; only 10 were asked for",
    "3 of 40 candidates; only 2 were asked for",
    "31 of 40 candidates by its signals; only the best 30 went further",
    "it holds cat, berlin, worth 1.25 (the 80 found by words: 2.00 and more); "
    "its meaning scores 0.12 (the 80 found by meaning: 0.30 and more); it is of another time",
)


@pytest.mark.parametrize("said", _SAID)
def test_details_of_several_parts_are_translated_as_a_whole(said: str) -> None:
    assert detail(Texts("en"), said) == said
    numbers = re.findall(r"\d+(?:\.\d+)?", said)
    for language in set(LANGUAGES) - {"en"}:
        told = detail(Texts(language), said)
        assert sorted(re.findall(r"\d+(?:\.\d+)?", told)) == sorted(numbers)
        assert not re.search(r"\b(it|is|of|the|candidates|only|and|worth)\b", told.replace("berlin", ""))


def test_the_details_are_those_that_a_search_gives() -> None:
    """A search gives details in English; one that is reworded there and not here would stay English on every page."""
    folder = Path(__file__).parents[2] / "src/ricordo/retrieval"
    code = "".join((folder / name).read_text("utf-8") for name in ("search.py", "relevance.py"))
    given = re.sub(r'"\s*\n\s*(?:\+\s*)?f?"', "", code)
    for key, text in texts("en").items():
        if key.startswith("detail."):
            for part in re.split(r"\{\w+\}", text):
                assert part in given, key


async def test_a_decision_names_the_fact_that_it_closed(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        memory = await at.app.page.dispatcher.opened()
        await memory.remember("Tom works as a waiter")
        await memory.remember("Tom works as a singer")
        (review,) = await memory.review()
        browser = await signed_in(at)
        page = await browser.act("/page/inbox/decide", id=review.id, decision="replace")
        assert "Closed: “Tom works as a waiter”" in page.text and "/page/undo" in page.text


async def test_the_first_pages_say_that_there_are_memories_in_projects(at: House) -> None:
    browser = await signed_in(at)
    assert "ricordo chats" not in await read(browser, "/")
    memory = await opened(at)
    await memory.scoped(replace(memory.scope, chat="github.com/ann/shop")).add("We use pnpm")
    for path in ("/", "/page/conversations"):
        assert "memories in 1 chats and projects (1)" in await read(browser, path)


async def test_shared_memories_are_marked_and_name_their_writer(at: House) -> None:
    memory = await opened(at)
    ann, ben = (memory.scoped(Scope(owner=owner, chat="team")) for owner in ("ann", "ben"))
    shared = await ann.remember("The staging server is db-7", shared=True)
    own = await ben.remember("I am looking for a new job")
    browser = await signed_in(at, Caller(owner="ben", chat="team", trust="user"))
    latest = await read(browser, "/")
    assert latest.count("Shared: team") == 1
    found = await read(browser, "/?q=staging+server")
    assert "Shared: team ann" in found
    page = await read(browser, f"/page/memory?id={shared.id}")
    assert "Who can read it Everyone in team" in page and "Written by ann" in page
    page = await read(browser, f"/page/memory?id={own.id}")
    assert "Who can read it Only you" in page and "Written by" not in page and "Shared:" not in page
