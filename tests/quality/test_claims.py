"""Claims of a model that nobody said do not become live without review; true ones do once they are verified."""

from __future__ import annotations

import pytest
from benchmarks.knowledge_claims import DATA, outcomes, read, report

PART = read(DATA)[::4]


def message(text: str) -> dict[str, str]:
    return {"speaker": "Ann", "text": text}


@pytest.mark.slow
@pytest.mark.parametrize("verifier", ["none", "exact"])
async def test_what_nobody_said_is_not_live_without_review(verifier):
    found = report(await outcomes(PART, verifier=verifier))
    assert found["made up"] >= 15 and found["made up live"] == 0
    if verifier == "exact":
        assert found["true live"] >= 0.93 * found["true"]


async def test_a_restated_sentence_needs_no_verification():
    said = {"en": "I live in Oslo.", "de": "Ich wohne in Oslo.", "ru": "Я живу в Осло."}
    claims = {"en": "The user lives in Oslo", "de": "Der Nutzer wohnt in Oslo", "ru": "Пользователь живёт в Осло"}
    cases = [
        {"id": code, "kind": "true", "messages": [message(text)], "claim": claims[code], "evidence": [0]}
        for code, text in said.items()
    ]
    assert {(each.what, each.was_asked) for each in await outcomes(cases, verifier="none")} == {("live", False)}


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("I adopted a parrot.", "The user is a parrot smuggler wanted in Brazil"),
        ("I don't live in Oslo.", "The user lives in Oslo"),
        ("I lived in Oslo.", "The user lives in Oslo"),
        ("My sister lives in Oslo.", "The user lives in Oslo"),
        ("Do I live in Oslo?", "The user lives in Oslo"),
        ("I'd live in Oslo.", "The user lives in Oslo"),
        ("If I live in Oslo, I ski.", "The user lives in Oslo"),
        ("I live in Oslo.", "The user lives in Oslo with two cats"),
        ("I live in Oslo.", "Anna lives in Oslo"),
        ("I do like olives.", "The user dislikes olives"),
    ],
)
async def test_what_differs_from_its_evidence_waits_for_review(said, claim):
    case = {"id": "x", "kind": "added_detail", "messages": [message(said)], "claim": claim, "evidence": [0]}
    (found,) = await outcomes([case], verifier="none")
    assert found.was_asked and found.what != "live"
