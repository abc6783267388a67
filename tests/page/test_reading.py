"""What the pages say: names of changes, what an undo took back, a missing result, and reasons in every language."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest

from ricordo import Memory
from ricordo.interfaces.page.rendering import LANGUAGES, Texts, undone, weakness
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
    for named in ("relate Miriam: sister of Jonas", "add entity Jonas", "end session sunday"):
        assert named in log
    last = (await memory.log(limit=1))[0].seq
    await browser.act("/page/undo", change=str(last))
    told = await read(browser, f"/page/change?id={last + 1}")
    assert f"undo of {last}" in told
    assert "Taken back Miriam plays the oboe" in told


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_reasons_are_in_the_language_of_the_page(language: str) -> None:
    texts = Texts(language)
    told = weakness(texts, "only 40% sure, expired on 2026-05-24, faded since 2026-06-01")
    assert all(value in told for value in ("40%", "2026-05-24", "2026-06-01"))
    assert (told == "only 40% sure, expired on 2026-05-24, faded since 2026-06-01") == (language == "en")
    assert undone("67") == "67"
    assert undone("019f088f-0ae0-7002-bdff-47f1bd6d9a3b with 2 later") == "bd6d9a3b with 2 later"
