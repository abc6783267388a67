"""Tell apart facts of notes that only share the words of a heading: "Chalet: Pellet stove", "Snow at the chalet". Pure.

An import puts the headings of a note before each line, so that the line says what it is about. They are no statement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ricordo.model import Node
from ricordo.text.change import Topics, TopicWord, topics

HEADING = "heading"
"""The attribute with the headings of an imported line, outermost first."""
HEADINGS_BETWEEN = " › "

_LEAST_WORTH = 1.0  # of a word that names a matter: no number, unit, or part of a date


@dataclass(frozen=True, slots=True, kw_only=True)
class _Headed:
    """A fact: the outermost heading above it, "" if it has none, and what it says below it."""

    title: str
    said: str


def are_of_two_notes(old: Node, new: Node) -> bool:
    """Return whether two facts are about different things according to the headings above them, so that both are true.

    They are about one thing if each is about what the title of the other one's note names, and if they have a word in
    common below it.
    """
    one, other = _headed(old), _headed(new)
    if not (one.title or other.title):
        return False
    if not (_is_about(new, one.title) and _is_about(old, other.title)):
        return True
    subjects = [topics(each) for each in (one.title, other.title, *{*old.about, *new.about})]
    before, after = topics(one.said), topics(other.said)
    return not any(
        word.worth >= _LEAST_WORTH and before.likeness(word.stems) and not _names(subjects, word)
        for word in after.words
    )


def _headed(node: Node) -> _Headed:
    heading = node.attributes.get(HEADING)
    title = heading.split(HEADINGS_BETWEEN)[0] if isinstance(heading, str) else ""
    if title.casefold() not in node.content.casefold():  # it was corrected
        title = ""
    return _Headed(title=title, said=node.content.removeprefix(title))


def _is_about(node: Node, title: str) -> bool:
    """Return whether a fact names a title, or is about what has this name."""
    if title.casefold() in map(str.casefold, node.about):
        return True
    said = topics(node.content)
    return all(said.likeness(word.stems) for word in topics(title).words)


def _names(subjects: Iterable[Topics], word: TopicWord) -> bool:
    return any(each.likeness(word.stems) for each in subjects)
