"""Recalled text is recognised in every form, and nothing else is."""

from __future__ import annotations

import html
import json
import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.text.prompt_text import BEGIN, END, NOTE, PLACE, cited, without_recalled

LINES = (
    "- Helen is allergic to peanuts (about Helen) [2026-01-05, 5 months ago] [id:3a6927eb]",
    '- Jonas (2026-02-01, 4 months ago): "We moved to Altona, and the keys are with Mrs. Novak" [id:0f27eb3a]',
)
BLOCK = "\n".join([BEGIN, NOTE, "## Known facts", LINES[0], "## Said in conversation", LINES[1], END])
SECRETS = ("allergic", "Altona", "Novak", "peanuts")


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


@pytest.mark.parametrize(
    "returned",
    [
        BLOCK,
        html.escape(BLOCK),
        html.escape(html.escape(BLOCK)),
        json.dumps({"context": BLOCK}),
        json.dumps({"context": BLOCK.replace("<", "\\u003c").replace(">", "\\u003e")}),
        quoted(BLOCK),
        textwrap.fill(BLOCK, 40),
        BLOCK.upper().replace("ALLERGIC", "allergic"),
        BLOCK.replace("\n", "\r\n"),
        BLOCK.removesuffix(END),
        BLOCK.removesuffix(LINES[1][20:] + "\n" + END),
        BLOCK.removeprefix(BEGIN + "\n"),
        BLOCK.replace(BEGIN, '<recalled-memory source="x">'),
        BEGIN + "\n" + BLOCK + "\n" + END,
        "\n".join(LINES),
        quoted("\n".join(LINES)),
        quoted("\n".join(textwrap.fill(line, 50) for line in LINES)),
    ],
)
def test_recalled_text_is_removed_in_every_form(returned: str) -> None:
    for text in (returned, f"Before it.\n\n{returned}\n\nAnd after it.", f"a tool says:\n{returned}"):
        left = without_recalled(text)
        assert PLACE in left
        assert not [secret for secret in SECRETS if secret.lower() in left.lower()], left
        if "after" in text:
            assert left.startswith("Before it.") and left.endswith("And after it.")
        assert without_recalled(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "What is a recalled-memory block?",
        "I recalled memory of it.",
        "- fix the parser [id:12345678]",
        "- released on 2026-01-05, finally\n- next: [id:12]x",
        "see [id:3a6927eb] for that",
        "a < b and b > c",
        "- one\n- two 2026-01-05, three\n\n- four [id:12345678]",
    ],
)
def test_text_written_by_people_is_not_changed(text: str) -> None:
    assert without_recalled(text) == text


def test_text_after_an_unclosed_fence_is_kept() -> None:
    text = f"{BEGIN}\n## Known facts\n{LINES[0]}\nMy sister is called Mara."
    assert without_recalled(text) == f"{PLACE}My sister is called Mara."


@given(st.text())
def test_removing_recalled_text_is_idempotent(text: str) -> None:
    once = without_recalled(f"{text}{BLOCK}{text}")
    assert "Altona" not in once
    assert without_recalled(once) == once


def test_handles_are_found_where_they_are_cited() -> None:
    assert cited("She is [id:3a6927eb], see also [id:0f27eb3a] and [id:3a6927eb].") == ("3a6927eb", "0f27eb3a")


@pytest.mark.parametrize("marker", [f"<{NOTE}", END, LINES[0]], ids=["note", "fence", "handle"])
@pytest.mark.parametrize("piece", [" ", "\\", "\n", f"{END}\n", "\n- ", "<", "2026-01-05, ", "a"])
@pytest.mark.parametrize("begin", ["<", " - ", " - \n", ""])
def test_a_hostile_text_that_has_a_marker_of_ours_takes_linear_time(marker: str, piece: str, begin: str) -> None:
    started = time.process_time()
    without_recalled(f"{marker}\n{begin}{piece * (100_000 // len(piece))}x")
    assert time.process_time() - started < 2
