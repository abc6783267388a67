"""Recognise what somebody still has to do, in statements, in notes to oneself and in questions. Pure.

The patterns are in the language files (`tasks`). All languages are read at once: a note of two words, such as "Milch
kaufen", seldom shows its language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ricordo.model import OPEN_TASK, Node
from ricordo.text.languages import Lexicon, all_languages, cached, pattern_of

_LOOKED_AT = 1_000
_SENTENCE = re.compile(r"(?:[^.!?…\n]|(?<=\b[A-Z][a-z])\.|[.!?…](?!\s|$))+[.!?…]*")  # not after "Dr."
# "Email: anna@example.org" tells an address, "Email Anna" a task.
_CONTACT = re.compile(
    r"[^\W\d_]+(?:[ -][^\W\d_]+)?:\s*(?:[\w.+-]+@[\w.-]+|[+(\d][\d\s()/.-]{4,}|(?:https?://|www\.)\S+)\s*"
)
_MARK = re.compile(r"^\s*(?:[-*+•]\s+)?(?:\[ ?\]\s*)?")


class _Cues(Lexicon):
    """Patterns for tasks; see `Tasks` in the language schema."""

    duties = pattern_of(
        lambda each: (*each.tasks.duties, *each.tasks.promises, *each.categories.get("task", ())), flags=re.IGNORECASE
    )
    notes = pattern_of(lambda each: each.tasks.notes, flags=re.IGNORECASE)
    lasting = pattern_of(lambda each: each.tasks.lasting, flags=re.IGNORECASE)
    withdrawn = pattern_of(lambda each: each.tasks.withdrawn, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)
    asked = pattern_of(lambda each: each.tasks.asked, flags=re.IGNORECASE)


_cues = cached()(_Cues)


def states_task(text: str) -> bool:
    """Return whether a text says what somebody has to do once: a duty, a reminder, or a note to oneself.

    >>> [states_task(each) for each in ("Call the tax adviser next Monday", "I still have to renew my passport")]
    [True, True]
    >>> [states_task(each) for each in ("Call me Bob", "Take 5 mg daily", "I must buy milk.. oh wait, we have some")]
    [False, False, False]
    """
    text = text[:_LOOKED_AT]
    withdrawn = [found.start() for found in _cues(all_languages()).withdrawn.finditer(text)]
    return any(_is_task(found.group()) for found in _SENTENCE.finditer(text, max(withdrawn, default=0)))


def _is_task(sentence: str) -> bool:
    cues = _cues(all_languages())
    said = _MARK.sub("", sentence).strip()
    if said.endswith("?") or cues.lasting.search(said):
        return False
    return bool(cues.duties.search(said) or (cues.notes.search(said) and not _CONTACT.fullmatch(said)))


def asks_what_to_do(question: str) -> bool:
    """Return whether a question asks for what is still to be done, without a word for tasks.

    >>> asks_what_to_do("What do I still have to do?"), asks_what_to_do("What do I have to do to get a visa?")
    (True, False)
    """
    return _cues(all_languages()).asked.search(question[:_LOOKED_AT]) is not None


CANCELLED = "cancelled"
"""The attribute of a task that is closed without being done; such a task has the attribute `done`, too."""


def is_done_task(node: Node) -> bool:
    """Return whether a memory is a task that is no longer open: done, or cancelled."""
    return node.category == "task" and bool(node.attributes.get("done"))


def ending_of_task(node: Node) -> str:
    """Return "done" or "cancelled" for a task that is no longer open, and "" for any other memory."""
    if not is_done_task(node):
        return ""
    return CANCELLED if node.attributes.get(CANCELLED) else "done"


_BOXED = re.compile(r"\s*(?:[-*+]\s+)?\[([ xX-])\]\s+(?=\S)")


def without_box(text: str) -> tuple[str, Mapping[str, bool] | None]:
    """Return a task as it is written in notes without its box, and its attributes. None: the text has no box.

    >>> without_box("- [ ] pay the rent"), without_box("[x] done"), without_box("pay [x]")
    (('pay the rent', {}), ('done', {'done': True}), ('pay [x]', None))
    """
    found = _BOXED.match(text)
    if found is None:
        return text, None
    return text[found.end() :], closed_by(found[1])


def closed_by(box: str) -> Mapping[str, bool]:
    """Return the attributes of a task whose box has a mark."""
    ending = {"-": {"done": True, CANCELLED: True}, "x": {"done": True}}
    return ending.get(box.lower(), {})


def is_open_task(node: Node) -> bool:
    """Return whether a memory is a task that is not done, or a passage of a note with open tasks."""
    return OPEN_TASK in node.tags or (node.category == "task" and not is_done_task(node))
