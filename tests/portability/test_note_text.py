"""A fact keeps its words in a note, whatever Markdown they contain."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from ricordo import Node
from ricordo.portability.note_text import mark_of, parse, written

PIECES = [
    "| a | b |",
    "|---|---|",
    "+---+---+",
    "```python",
    "```",
    "~~~",
    'print("x")',
    "> quote",
    "## heading",
    "# h",
    "- item",
    "* item",
    "1. one",
    "2) two",
    "[ ] box",
    "[x] box",
    "%%",
    "%% hidden %%",
    "%%%",
    "<!-- hidden -->",
    "<!--",
    "<span hidden>x</span>",
    "<script>",
    "</script>",
    "\\<!--",
    "[//]: # (hidden)",
    "^0123456789ab",
    "^abc",
    "key:: value",
    "std::vector",
    "![[img]]",
    "[ref]: url",
    "---",
    "***",
    "===",
    "<b>",
    "\\",
    "\\|",
    "\\> q",
    "\\- item",
    "#tag",
    "words",
    "Anna",
    "[[Anna]]",
    "::",
]


def node(text: str) -> Node:
    at = datetime(2026, 11, 24, tzinfo=UTC)
    return Node(id="01a2", type="semantic", content=text, event_time=at, created_at=at, valid_from=at)


@given(lines=st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=6))
@example(lines=["| a | b |", "|---|---|", "| 1 | 2 |", "```python", 'print("x")', "```"])
@example(lines=["%% open"])
@example(lines=["std:: vector"])
def test_a_fact_is_one_item_with_its_words_whatever_markdown_it_contains(lines: list[str]) -> None:
    memory = node("\n".join(lines))
    note = parse(f"# Me\n\n## Knowledge\n- before ^00000000000a\n{written(memory)}\n- after ^00000000000c\n")
    assert [item.mark for item in note.items] == ["00000000000a", mark_of(memory.id), "00000000000c"]
    assert note.items[1].text.split() == memory.content.split()
