"""Passages join to the text they come from, and long messages are found and shown by theirs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Memory
from ricordo.text.passages import MOST, passages_of

_SENTENCES = st.sampled_from(
    (
        "The lake was cold that morning. ",
        "Version 2.5 came out! ",
        "Мы переехали в Осло; там дождь. ",
        "我们去年搬到了奥斯陆。",
        "x = [1, 2, 3]\n",
        "a" * 900,
        "Why? ",
        "\n\n",
    )
)


@given(st.lists(_SENTENCES, max_size=60).map("".join))
def test_passages_join_without_gaps_and_none_is_long(text: str) -> None:
    spans = passages_of(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(end - start <= 1.5 * MOST for start, end in spans)


_NEEDLES = {
    "What did the plumber charge?": "The plumber charged 240 euros for the new valve.",
    "Сколько взял сантехник?": "Сантехник взял за новый вентиль двести сорок евро.",
    "Was hat der Klempner verlangt?": "Der Klempner hat für das neue Ventil 240 Euro verlangt.",
}


@pytest.mark.parametrize("question", _NEEDLES)
@pytest.mark.parametrize("embedder", [None, "hashing"])
async def test_a_sentence_in_the_middle_of_a_long_message_is_found_and_shown(
    question: str, embedder: str | None
) -> None:
    filler = [f"Paragraph {n} is about gardens, roads and the price of bread in town number {n}. " for n in range(400)]
    async with Memory.open(":memory:", embedder=embedder) as memory:
        for number in range(6):
            text = filler.copy()
            if number == 3:
                text.insert(200, _NEEDLES[question] + " ")
            await memory.add("".join(text), role="assistant", session=f"s{number}")
        await memory.settle()
        first = (await memory.search(question)).hits[0]
    needle = _NEEDLES[question]
    assert needle in first.excerpt
    assert len(first.excerpt) < 1_000
    start, end = first.passage
    assert start <= first.content.index(needle) < end
    assert first.content[start:end] in first.excerpt


async def test_the_words_of_the_user_come_before_the_assistant_who_repeats_them() -> None:
    async with Memory.open(":memory:", embedder=None) as memory:
        await memory.add("My dentist is Dr. Marlow in Pine Street.", role="user", session="s")
        echo = "Noted: your dentist is Dr. Marlow in Pine Street. Dentist visits are best booked early, so call him."
        await memory.add(echo, role="assistant", session="s")
        await memory.settle()
        mine = await memory.search("Who is my dentist?")
        advice = await memory.search("What did you recommend about the dentist?")
    assert [hit.role for hit in mine.hits] == ["user", "assistant"]
    assert advice.hits[0].role == "assistant"
