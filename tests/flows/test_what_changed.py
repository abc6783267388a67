"""A question for what has changed is answered by the facts that replaced others, and by those that may have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flows.conftest import HandClock


async def remember_a_move_and_a_new_job(memory: Any) -> None:
    await memory.remember("I live in Porto", at="2024-01-10")
    await memory.remember("I work at Arup", at="2024-02-10")
    await memory.remember("I like green tea", at="2025-12-27")
    await memory.remember("I live in Lisbon", at="2025-12-12")
    await memory.remember("I've left Arup, I work at Siemens now", at="2025-12-29")


@pytest.mark.parametrize(
    "question",
    [
        "What changed lately?",
        "What has changed?",
        "Any recent changes?",
        "Was hat sich in letzter Zeit geändert?",
        "Что изменилось в последнее время?",
        "¿Qué ha cambiado últimamente?",
        "Qu'est-ce qui a changé récemment ?",
        "Cosa è cambiato di recente?",
        "O que mudou recentemente?",
    ],
)
async def test_what_changed_lately_is_what_replaced_or_contradicts_earlier_facts(memory: Any, question: str) -> None:
    await remember_a_move_and_a_new_job(memory)
    found = await memory.search(question, only_relevant=True)
    assert [hit.content for hit in found.hits] == ["I've left Arup, I work at Siemens now", "I live in Lisbon"]
    assert all(sum(share.share for share in hit.why) == pytest.approx(hit.score) for hit in found.hits)
    assert "green tea" not in str(await memory.context(question))


async def test_a_time_and_a_topic_limit_what_changed(memory: Any, clock: HandClock) -> None:
    await remember_a_move_and_a_new_job(memory)
    since = await memory.search("What has changed since last week?", only_relevant=True)
    assert [hit.content for hit in since.hits] == ["I've left Arup, I work at Siemens now"]
    of_topic = await memory.search("What changed at Arup?", only_relevant=True)
    assert "I live in Lisbon" not in [hit.content for hit in of_topic.hits]


async def test_what_changed_keeps_to_what_the_caller_asked_for(memory: Any) -> None:
    await remember_a_move_and_a_new_job(memory)
    await memory.remember("Anna lives in Braga", about=["Anna"], at="2025-12-01")
    await memory.remember("Anna lives in Faro", about=["Anna"], at="2025-12-20")

    async def changed(**filters: Any) -> list[str]:
        found = await memory.search("What changed lately?", only_relevant=True, **filters)
        return [hit.content for hit in found.hits]

    assert await changed(entity="Anna") == ["Anna lives in Faro"]
    assert await changed(before="2025-12-25") == ["Anna lives in Faro", "I live in Lisbon"]
    assert await changed(type="episodic") == []
