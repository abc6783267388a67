"""What a vault of notes tells beside the text: the dates, kinds and properties of notes, and which ones are templates.

Source: help.obsidian.md, "Properties", "Templates" and "Daily notes"; silentvoid13.github.io/Templater, "Settings".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import get_args

from ricordo.model import Category, EntityType
from ricordo.text.dates.grammar import names_time
from ricordo.text.entity_recognition import is_body
from ricordo.text.languages import LanguageSet, all_languages, cached

_ISO = re.compile(r"(?<!\d)(\d{4})[-_./](\d{2})[-_./](\d{2})(?!\d)")
_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october"]
_MONTHS += ["november", "december"]
_WRITTEN = re.compile(
    r"\b(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?P<month>[A-Za-z]{3,9})|(?P<month2>[A-Za-z]{3,9})\s+(?P<day2>\d{1,2})"
    r"(?:st|nd|rd|th)?),?\s+(?P<year>\d{4})\b"
)
_CONFLICT = (
    r"\.sync-conflict-\d{8}-\d{6}|[_-]conflict-\d{8}-\d{6}"
    r"|\([^()]*\b(?:{})\b(?=[^()]*\d{4}-?\d\d-?\d\d)[^()]*\)"
)
"""What Syncthing, ownCloud, and Dropbox, Nextcloud and Obsidian Sync add to the name of a conflict copy."""
_WORD = re.compile(r"[^\W\d_]+")
_DATES = ("date", "updated", "modified", "date modified", "last modified", "created", "date created", "creation date")
"""The properties that date a note; the first one that it has counts."""
_TECHNICAL = frozenset(
    (*_DATES, "about", "alias", "aliases", "banner", "cover", "cssclass", "cssclasses", "draft", "icon", "id", "image")
) | frozenset(("lang", "layout", "permalink", "publish", "ricordo", "slug", "tag", "tags", "title", "uid", "uuid"))
"""Properties that are for programs, or that are read as something else than a statement."""
_OF_PAGE = ("source", "url", "link", "author", "authors", "published", "site", "description", "title")
"""The properties in which a web clipper keeps what a page says about itself; `_ADDRESSES` those with its address."""
_ADDRESSES = ("source", "url", "link")
_ADDRESS = re.compile(r"\W*https?://", re.IGNORECASE)
_NO_VALUE = re.compile(r"\{|<%|[|>][+-]?\Z")
_MOST_PROPERTIES, _MOST_VALUE = 50, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadingWords:
    """The headings of notes in every language, in lower case; see `Headings` of the language files' schema."""

    clippings: frozenset[str]
    nameless: frozenset[str]
    people: frozenset[str]
    things: frozenset[str]
    self: frozenset[str]
    thing_words: frozenset[str]
    person_tags: frozenset[str]
    conflict: re.Pattern[str]
    about: re.Pattern[str]
    categories: tuple[tuple[Category, frozenset[str]], ...]


@cached()
def heading_words() -> HeadingWords:
    """Return the words of all languages."""
    languages = all_languages()
    return HeadingWords(
        clippings=languages.words(lambda each: each.headings.clippings),
        nameless=languages.words(lambda each: each.headings.nameless),
        people=languages.words(lambda each: (*each.headings.people, *each.headings.things)),
        things=languages.words(lambda each: each.headings.things),
        self=languages.words(lambda each: each.headings.self),
        thing_words=languages.words(lambda each: each.headings.thing_words),
        person_tags=languages.words(lambda each: (*each.headings.people, *each.headings.person_tags)),
        conflict=languages.pattern(lambda each: each.headings.conflicts, _CONFLICT, flags=re.IGNORECASE),
        about=languages.pattern(lambda each: each.headings.about, r"(?:{})\s+(?P<name>.+)\Z", flags=re.IGNORECASE),
        categories=tuple((category, _words(languages, category)) for category in get_args(Category)),
    )


def _words(languages: LanguageSet, category: Category) -> frozenset[str]:
    return languages.words(lambda each: each.headings.categories.get(category, ()))


def heading_key(text: str) -> str:
    """Return a heading, or the name of a note, as the word lists have it."""
    return " ".join(text.lower().removesuffix(".md").split()).strip(" :.")


def is_conflict_copy(path: str) -> bool:
    """Return whether a file syncer made a file from one of two versions: "Ida (conflicted copy 2026-11-30).md"."""
    return heading_words().conflict.search(PurePosixPath(path).name) is not None


def category_of(key: str) -> Category | None:
    """Return the category of what is below a heading, by its key."""
    return next((category for category, words in heading_words().categories if key in words), None)


def date_in(text: str) -> str | None:
    """Return the first date in a text in ISO form; it may be 2026-01-15, January 15, 2026 or 15 January 2026."""
    if found := _ISO.search(text):
        year, month, day = (int(part) for part in found.groups())
    elif (found := _WRITTEN.search(text)) and (month := _month(found["month"] or found["month2"])):
        year, day = int(found["year"]), int(found["day"] or found["day2"])
    else:
        return None
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def _month(name: str) -> int:
    return next((number for number, month in enumerate(_MONTHS, start=1) if month.startswith(name.lower())), 0)


def name_of(stem: str) -> str:
    """Return what the file name of a note says besides a date; "" if it names nothing, as for a daily note."""
    name = " ".join(_ISO.sub(" ", stem).split()).strip(" -–—_:,.()") if date_in(stem) else stem
    words, key = _WORD.findall(name.lower()), heading_key(name)
    headings = heading_words()
    is_nameless = key in headings.nameless | headings.self or category_of(key) is not None
    is_day = name != stem and all(names_time([word], all_languages()) for word in words)
    return "" if not words or is_nameless or is_day else name


def is_of_person(note: str, tags: Iterable[str]) -> bool:
    """Return whether the folder of a note or a tag says that it is about a person."""
    words = heading_words()
    folders = {each.lower() for each in PurePosixPath(note).parts[:-1]}
    return bool(folders & (words.people - words.things)) or not words.person_tags.isdisjoint(tags)


def type_of(note: str, tags: Iterable[str] = (), *, least_words: int = 1) -> EntityType:
    """Return the type of what a note is about, by its path and tags. Without a folder, a name may be a person's if all
    its words begin with a capital and none of them tells a kind of thing, such as "project" or "school".

    Args:
        least_words: a shorter name is not a person's unless the folder or a tag says so.
    """
    if is_of_person(note, tags):
        return "person"
    words, path = heading_words(), PurePosixPath(note)
    folders = path.parts[:-1]
    if not folders and is_body(path.name.removesuffix(".md")):
        return "organization"
    names = path.name.removesuffix(".md").split()
    is_name = all(word[0].isupper() and word.replace("-", "").strip(".").isalpha() for word in names)
    is_thing = folders or not is_name or not words.thing_words.isdisjoint(map(str.lower, names))
    return "concept" if is_thing or len(names) < least_words else "person"


def date_of(fields: Mapping[str, Sequence[str]]) -> str | None:
    """Return the date that the front matter gives a note."""
    return next(filter(None, (date_in(value) for name in _DATES for value in fields.get(name, ()))), None)


def is_clipping(note: str, fields: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a note is a page clipped from the web, by its folder or the address in its front matter."""
    folders = {each.lower() for each in PurePosixPath(note).parts[:-1]}
    has_address = any(_ADDRESS.match(value) for name in _ADDRESSES for value in fields.get(name, ()))
    return has_address or not folders.isdisjoint(heading_words().clippings)


def properties(fields: Mapping[str, Sequence[str]], *, is_clipping: bool = False) -> Iterator[str]:
    """Yield what the properties of a note say, such as "birthday 1979-07-21", without what a page says of itself."""
    for name, values in list(fields.items())[:_MOST_PROPERTIES]:
        value = ", ".join(each for each in values if not _NO_VALUE.match(each))[:_MOST_VALUE]
        if value and name not in _TECHNICAL and not (is_clipping and name in _OF_PAGE):
            yield f"{re.sub('[_-]+', ' ', name)} {value}"


_SETTINGS = (
    ("templates.json", "folder"),
    ("daily-notes.json", "template"),
    ("plugins/templater-obsidian/data.json", "templates_folder"),
    ("plugins/periodic-notes/data.json", "template"),
)
"""The settings of Obsidian that name a folder of templates, or a template."""


def templates_of(folder: Path) -> tuple[str, ...]:
    """Return the beginnings of the relative paths of a vault's templates, as its settings name them."""
    found = []
    for name, key in _SETTINGS:
        try:
            said = json.loads((folder / ".obsidian" / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        place = said.get(key) if isinstance(said, dict) else None
        if isinstance(place, str) and (place := place.strip("/ ")):
            found += [f"{place}/", place if place.endswith(".md") else f"{place}.md"]
    return tuple(found)
