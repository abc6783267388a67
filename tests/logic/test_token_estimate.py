"""The estimate of tokens against counts of real tokenizers."""

from __future__ import annotations

import pytest

from ricordo.text.token_estimate import estimated_tokens

# The tokens of cl100k_base; o200k_base has fewer.
COUNTED = {
    "I moved to Oslo in March and work at a small bakery near the harbour; my sister Anna visits on weekends.": 23,
    "- I'm allergic to peanuts [2026-11-24, just now] [id:2092fc80]": 25,
    "Ich wohne seit März in München und arbeite als Krankenpfleger nachts in einem Universitätsklinikum.": 29,
    "Я живу в Петрозаводске и работаю программистом в небольшой компании, а по выходным хожу на лыжах.": 46,
    "Vivo en Sevilla con mi mujer y nuestros dos hijos, y trabajo como enfermero en el hospital provincial.": 23,
    "我住在上海，在一家软件公司工作，每天早上六点去公园跑步。": 31,
    "私は東京に住んでいて、ソフトウェア会社で働いています。": 29,
    "저는 서울에 살고 소프트웨어 회사에서 일합니다.": 25,
    "أعيش في القاهرة وأعمل في شركة برمجيات صغيرة": 31,
    "def total(rows: list[Row]) -> int:\n    return sum(row.amount for row in rows if not row.is_void)\n": 26,
}


@pytest.mark.parametrize("text", COUNTED)
def test_the_estimate_is_near_what_a_tokenizer_counts_in_every_script(text: str) -> None:
    assert 0.85 * COUNTED[text] <= estimated_tokens(text) <= 1.4 * COUNTED[text]


def test_long_texts_take_no_long_time_and_nothing_is_free() -> None:
    assert estimated_tokens("") == 1
    assert estimated_tokens("\u200d" * 1_000) >= 1_000
    assert estimated_tokens("a" * 100_000) >= 25_000
