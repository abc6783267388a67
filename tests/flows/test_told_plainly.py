"""What the memory tells of itself is right: filters, archives, sources, versions, and what was not stored."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import InvalidError
from ricordo.interfaces.serialize import as_text
from tests.flows.conftest import DAY, HandClock


async def test_one_name_may_be_given_as_a_text(memory: Any) -> None:
    assert (await memory.remember("Emil likes tea", about="Emil")).about == ("Emil",)
    await memory.add_entity("Max", aliases="Maxi")
    assert (await memory.entity("Maxi")).name == "Max"
    with pytest.raises(InvalidError, match="about: 5 is not a list of names"):
        await memory.remember("Emil likes tea", about=5)


async def test_tags_match_in_any_case(memory: Any) -> None:
    node = await memory.remember("The router is in the hall", tags=["Home", "home", "WLAN", "Дом"])
    assert node.tags == ("Home", "WLAN", "Дом")
    for tag in ("home", "HOME", "wlan", "дом"):
        assert [found.id for found in (await memory.list(tag=tag)).nodes] == [node.id]
        assert (await memory.search("router", tag=tag)).ids == [node.id]
    assert (await memory.list(tag="garden")).nodes == ()


async def test_wishes_about_answers_are_preferences(memory: Any) -> None:
    wishes = (
        "Please always answer me in English",
        "Never use emojis when you write to me",
        "Bitte antworte mir immer auf Deutsch",
        "Отвечай мне всегда по-русски",
        "Réponds-moi toujours en français",
        "Respóndeme siempre en español",
    )
    for wish in wishes:
        assert (await memory.remember(wish)).category == "preference", wish
    assert (await memory.remember("Always lock the front door")).category == "knowledge"


async def test_the_archive_lists_what_expired_at_a_stated_time(memory: Any, clock: HandClock) -> None:
    node = await memory.remember("The permit is in the glove box", expires="2026-01-15")
    clock.ms += 20 * DAY
    await memory.maintain()
    assert [found.id for found in (await memory.list(archived=True)).nodes] == [node.id]
    assert (await memory.list()).nodes == ()


async def test_a_correction_does_not_rest_on_itself(memory: Any) -> None:
    said = await memory.add("It is the Volvo, not the Saab", session="s")
    old = await memory.remember("My car is a Saab")
    new = await memory.correct(old.id, "My car is a Volvo")
    assert (await memory.explain(new.id)).sources == ()
    proved = await memory.correct(new.id, "My car is a green Volvo", evidence=[said])
    assert [node.id for node in (await memory.explain(proved.id)).sources] == [said]


async def test_only_the_latest_version_is_called_current(memory: Any) -> None:
    old = await memory.remember("My car is a Saab")
    await memory.update(old.id, tags=["car"])
    new = await memory.correct(old.id, "My car is a Volvo")
    lines = as_text(await memory.history(new.id)).splitlines()
    assert [("current" in line, "Volvo" in line) for line in lines if "current" in line] == [(True, True)]
    assert sum("superseded" in line for line in lines) == 1


async def test_a_fact_off_the_record_is_returned_without_an_id(memory: Any) -> None:
    await memory.off_record()
    node = await memory.remember("The party is a surprise")
    assert (node.id, node.content) == ("", "The party is a surprise")
    assert as_text(node).startswith("Not stored")
    await memory.on_record()
    assert (await memory.list()).nodes == ()


@pytest.mark.parametrize(
    "said",
    ["On attend un deuxième bébé pour avril", "Aspettiamo un bambino per aprile", "We're expecting a baby in April"],
)
async def test_what_another_speaker_says_of_a_group_is_about_the_speaker(memory: Any, said: str) -> None:
    await memory.add(said, speaker="Théo", session="a")
    await memory.add("Super !", role="user", session="a")
    await memory.consolidate()
    (fact,) = (await memory.list(type="semantic")).nodes
    assert fact.about == ("Théo",)
