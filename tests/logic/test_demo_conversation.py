"""The demo conversation is consistent: times, sessions, and the evidence of its questions."""

from __future__ import annotations

import json
import re
from datetime import datetime
from importlib.resources import files
from itertools import groupby, pairwise

from ricordo.text.dates import find_interval

CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)


def lines(name):
    text = (files("ricordo.interfaces.demo") / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


TURNS = lines("conversation.jsonl")
QUESTIONS = lines("questions.jsonl")


def test_every_turn_says_who_said_what_when():
    for turn in TURNS:
        assert set(turn) == {"role", "speaker", "text", "time", "session"}
        assert (turn["role"], turn["speaker"]) in {("user", "Jonas"), ("user", "Vera"), ("assistant", "Ricordo")}
        assert turn["text"].strip() == turn["text"] != ""
        assert datetime.fromisoformat(turn["time"]).utcoffset() is not None


def test_the_conversation_covers_half_a_year():
    months = {turn["time"][:7] for turn in TURNS}
    assert months == {f"2026-{month:02}" for month in range(1, 7)}
    assert 180 <= len(TURNS) <= 260
    assert len({turn["session"] for turn in TURNS}) >= 14


def test_time_runs_forward_and_sessions_do_not_mix():
    times = [datetime.fromisoformat(turn["time"]) for turn in TURNS]
    assert all(earlier < later for earlier, later in pairwise(times))
    runs = [session for session, _ in groupby(TURNS, key=lambda turn: turn["session"])]
    assert len(runs) == len(set(runs))


def test_part_of_it_is_russian():
    assert 30 <= sum(CYRILLIC.search(turn["text"]) is not None for turn in TURNS) <= 100


def test_it_holds_one_invented_password_to_redact():
    secrets = [turn for turn in TURNS if "password:" in turn["text"]]
    assert len(secrets) == 1
    assert "Fake-Passw0rd-0000-example" in secrets[0]["text"]


def test_every_question_has_evidence_and_only_there():
    assert len(QUESTIONS) == 12
    for question in QUESTIONS:
        assert set(question) == {"question", "expected", "evidence", "note"}
        evidence = [TURNS[number - 1]["text"] for number in question["evidence"]]
        assert bool(question["expected"]) == bool(evidence)
        assert all(any(part in text for part in question["expected"]) for text in evidence)
        assert all(any(part in text for text in evidence) for part in question["expected"])


def test_questions_cross_languages_and_one_has_no_answer():
    def crosses(question):
        asked = CYRILLIC.search(question["question"]) is not None
        said = {CYRILLIC.search(TURNS[number - 1]["text"]) is not None for number in question["evidence"]}
        return bool(said) and said != {asked}

    assert sum(crosses(question) for question in QUESTIONS) >= 2
    assert sum(not question["evidence"] for question in QUESTIONS) == 1


def test_the_question_about_last_march_spans_its_evidence():
    now = round(datetime.fromisoformat(TURNS[-1]["time"]).timestamp() * 1000)
    (question,) = [question for question in QUESTIONS if "last March" in question["question"]]
    span = find_interval(question["question"], now=now, zone="Europe/Berlin")
    assert span is not None
    for number in question["evidence"]:
        at = datetime.fromisoformat(TURNS[number - 1]["time"]).timestamp() * 1000
        assert span.start <= at < span.end
