"""Tell apart facts of notes that only share the words of a heading: "Chalet: Pellet stove", "Snow at the chalet". Pure.

An import puts the headings of a note before each line, so that the line says what it is about. They are no statement.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ricordo.model import Node
from ricordo.text.analyzer import speaks_only_for_group
from ricordo.text.change import Topics, TopicWord, topics
from ricordo.text.statement import compare, subject_of

HEADING = "heading"
"""The attribute with the headings of an imported line, outermost first."""
HEADINGS_BETWEEN = " › "

_LEAST_WORTH = 1.0  # of a word that names a matter: no number, unit, or part of a date


@dataclass(frozen=True, slots=True, kw_only=True)
class _Headed:
    """A fact: the outermost heading above it, "" if it has none, and what it says below it."""

    title: str
    said: str


def is_of_author(text: str) -> bool:
    """Return whether a line of a note is about its author, even if the headings above it name something else.

    >>> [is_of_author(text) for text in ("I take 50 mcg", "Vivo a Roma", "Phone is 555 1", "We meet at ten")]
    [True, True, False, False]
    """
    return topics(text).names_speaker and not speaks_only_for_group(text)


def without_headings(node: Node) -> Node:
    """Return a fact about its author without the headings above it: "I take 50 mcg" for "Thyroid: I take 50 mcg". Other
    facts are unchanged, and so are those about what the headings name.
    """
    heading, said = _heading(node), _below(node)
    is_subject = {each.casefold() for each in heading.split(HEADINGS_BETWEEN)} & set(map(str.casefold, node.about))
    return replace(node, content=said) if said and not is_subject and is_of_author(said) else node


def beside(old: Node, new: Node) -> Node:
    """Return a fact as it is compared with a new one: without its headings if it is about its author, or if the new one
    is imported from a note without a title, such as a daily note, and gives the same thing another value.
    """
    if _gives_another_value(old, new):
        return replace(old, content=_below(old))
    return without_headings(old)


def _gives_another_value(old: Node, new: Node) -> bool:
    is_daily = new.origin == "import" and not _heading(new)
    return is_daily and changes_value(_below(old), new.content)


def changes_value(old: str, new: str) -> bool:
    """Return whether two statements give one thing two values: "The rent is 900 euros", "The rent is 980 euros"."""
    return bool(subject_of(old)) and compare(old, new) in ("replaced", "conflict")


def _heading(node: Node) -> str:
    """Return the headings above an imported line, outermost first; "" if it has none."""
    heading = node.attributes.get(HEADING)
    return heading if isinstance(heading, str) else ""


def _below(node: Node) -> str:
    """Return what an imported line says below its headings; "" if its text does not begin with them."""
    path, between, said = node.content.partition(": ")
    return said if between and path and path.casefold() in _heading(node).casefold() else ""


def are_of_two_notes(old: Node, new: Node) -> bool:
    """Return whether two facts are about different things according to the headings above them, so that both are true.

    They are about one thing if each is about what the title of the other one's note names, and if they have a word in
    common below it.
    """
    one, other = _headed(old), _headed(new)
    if not (one.title or other.title) or _gives_another_value(old, new):
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
    title = _heading(node).split(HEADINGS_BETWEEN)[0]
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
