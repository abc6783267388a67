"""A Russian conversation and its English twin answer their questions alike, and for the same reasons."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ricordo.retrieval.signals import asks_for_a_list
from tests.quality.asking import Asked, ask_all, mean_recall, twin

DEPTH = 5
SIGNALS = ("person", "date", "kind of answer", "own experience", "said already")
"""The signals that depend on word lists; the others depend on the words of the turns."""

_asked: dict[tuple[str, str | None], list[Asked]] = {}


async def asked_in(language: str, embedder: str | None = "default") -> list[Asked]:
    if (language, embedder) not in _asked:
        turns, questions = twin(language)
        _asked[language, embedder] = await ask_all(turns, questions, embedder=embedder)
    return _asked[language, embedder]


def signals(asked: Asked) -> set[str]:
    return {share.strategy for _, shares in asked.trace.hits for share in shares} & set(SIGNALS)


def test_both_twins_have_the_same_events_and_times() -> None:
    russian, english = (twin(language)[0] for language in ("ru", "en"))
    assert russian.keys() == english.keys() and len(russian) == 60
    for name, turn in russian.items():
        assert (turn.session, turn.at) == (english[name].session, english[name].at)


@pytest.mark.parametrize("language", ["ru", "en"])
async def test_nearly_every_question_finds_its_evidence(language: str) -> None:
    asked = await asked_in(language)
    late = [each.question.text for each in asked if not each.recall(DEPTH)]
    assert len(late) <= 1, late
    assert mean_recall(asked, 10) >= 0.95


@pytest.mark.parametrize("embedder", ["default", None], ids=str)
async def test_both_languages_reach_similar_recall(embedder: str | None) -> None:
    russian = mean_recall(await asked_in("ru", embedder), DEPTH)
    english = mean_recall(await asked_in("en", embedder), DEPTH)
    assert russian >= english - 0.08


async def test_the_same_signals_work_in_both_languages() -> None:
    differing: Mapping[str, object] = {
        russian.question.text: (signals(russian), signals(english))
        for russian, english in zip(await asked_in("ru"), await asked_in("en"), strict=True)
        if signals(russian) != signals(english)
    }
    assert differing == {}


async def test_the_same_times_are_understood() -> None:
    understood = [
        (bool(russian.trace.interval), bool(english.trace.interval), russian.question.kind == "date")
        for russian, english in zip(await asked_in("ru"), await asked_in("en"), strict=True)
    ]
    assert all(len(set(each)) == 1 for each in understood)


def test_list_questions_are_detected_in_both_languages_alike() -> None:
    russian, english = (twin(language)[1] for language in ("ru", "en"))
    for one, other in zip(russian, english, strict=True):
        assert asks_for_a_list(one.text) == asks_for_a_list(other.text), (one.text, other.text)
