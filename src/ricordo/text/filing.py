"""Decide whether a statement made in a project is about its user as a person, or about the project. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ricordo.text.categories import infer_category
from ricordo.text.languages import NEVER, LanguageSet, Lexicon, all_languages, cached, languages_of, pattern_of
from ricordo.text.names import likeness, relation_at

_MOST_CHARS = 1_000
_PROJECT = "<PROJECT>"
_OF_PEOPLE = frozenset(("identity", "relationship"))
_CODE = re.compile(
    r"`|\b\w+_\w+\b|\b[a-z]{2,}[A-Z]\w*|\blocalhost\b|\bport \d|(?<!\S)--?[a-z]|(?<![\w/])/\w+/"
    r"|\.(?:py|js|ts|tsx|jsx|go|rs|java|kt|rb|php|c|cc|cpp|h|cs|sh|sql|css|html|json|ya?ml|toml|lock|env|md)\b"
)
"""Signs of code in any language: back quotes, identifiers, options, paths, names of files."""
_NAME = re.compile(r"[^\W\d_a-z\u0430-\u044f\u0451][^\W\d_]+")


class _Cues(Lexicon):
    user = pattern_of(lambda each: each.filing.user, r"\W*(?:{})(?![\w-])", flags=re.IGNORECASE)
    things = pattern_of(lambda each: each.filing.things, r"(?<![\w-])(?:{})(?![\w-])", flags=re.IGNORECASE)

    mine = pattern_of(lambda each: each.kinship.possessives, r"(?<![\w-])(?:{})\s+", flags=re.IGNORECASE)


_cues = cached()(_Cues)


def place_label(name: str) -> str:
    """Return the short name of a chat or project: the last part of a path or an address, else the name unchanged.

    >>> place_label("/home/ann/notes"), place_label("github.com/ann/shop"), place_label("Family")
    ('notes', 'shop', 'Family')
    """
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] or name


def is_about_user(text: str, *, category: str | None = None, names: Iterable[str] = (), project: str = "") -> bool:
    """Return whether a statement made in a project is about its user, and so of use in other projects.

    Args:
        category: inferred from the text if None.
        names: of the user, by which a statement may call them.
        project: its name; a statement that is limited to the project is about the project.

    >>> is_about_user("The user's birthday is 5 May 1988"), is_about_user("The user's branch is feature-x")
    (True, False)
    """
    text = text[:_MOST_CHARS]
    if _here(place_label(project), languages_of(text)).search(text):
        return False
    kind = category or infer_category(text)
    is_own = names_user(text, names)
    is_of_people = kind in _OF_PEOPLE or kind == "preference"
    if is_own and is_of_people:
        return True
    return (is_own or is_of_people) and not _is_of_work(text)


def names_user(text: str, names: Iterable[str] = ()) -> bool:
    """Return whether a statement begins with the user or something of theirs, or names the user or their relatives.

    >>> names_user("Ich heiße Jonas"), names_user("Jonas lebt in Bonn")
    (True, False)
    """
    cues = _cues(all_languages())
    if cues.user.match(text) or any(relation_at(text, found.end()) for found in cues.mine.finditer(text)):
        return True
    words = _NAME.findall(text)
    return any(_is_form(word, part) for name in names for part in name.split()[:1] for word in words)


def _is_form(word: str, name: str) -> bool:
    """Return whether a word is a name in any case: "Katrins", "Анну"."""
    return word in (name, f"{name}s") or likeness(word, name) in ("same", "form")


@cached(maxsize=256)
def _here(project: str, languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of words that limit a statement to a project. Its name counts only as it is written."""
    name = f"(?-i:{re.escape(project)})" if project else NEVER
    words = (each.replace(_PROJECT, name) for each in languages.in_order(lambda each: each.filing.here) if each)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(words) or NEVER})(?![\w-])", re.IGNORECASE)


def _is_of_work(text: str) -> bool:
    return bool(_CODE.search(text) or _cues(all_languages()).things.search(text))
