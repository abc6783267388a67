"""Memory kept as markdown: `MEMORY.md`, `memory/*.md`, or any file or folder of headings and bullets.

Source: docs.openclaw.ai, "Memory" (`MEMORY.md` for what lasts, `memory/YYYY-MM-DD.md` for each day), and "Migration" in
seed 003 of this project: each bullet or paragraph is a memory of its own. Headings say what it is about and of what
kind; a date in a file's name, a heading or before a bullet says when. What Ricordo itself wrote as markdown carries a
comment that says the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from ricordo.model import Category, Fact
from ricordo.portability.markdown_text import Heading, Item, date_in, entry_of, outline
from ricordo.portability.records import Known, Parsed, Person, Reader, entity_type, number_in, texts_of
from ricordo.portability.sources import Material
from ricordo.text import name_key
from ricordo.text.kinship import known_relation
from ricordo.text.languages import LanguageSet, all_languages, cached

NAME = "markdown"

_SUFFIXES = (".md", ".markdown", ".mdown")
_RELATED = re.compile(r"(?P<name>[^()]+?)\s*(?:\((?P<relation>[^()]+)\)|[-–—:,]\s*(?P<after>[^()]+))?\Z")
_MOST_TAG = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Headings:
    """The headings of notes in every language, in lower case; see `Headings` of the language files' schema."""

    nameless: frozenset[str]
    people: frozenset[str]
    self: frozenset[str]
    about: re.Pattern[str]
    categories: tuple[tuple[Category, frozenset[str]], ...]


_CATEGORIES: tuple[Category, ...] = (
    "preference",
    "identity",
    "relationship",
    "knowledge",
    "reflection",
    "summary",
    "context",
    "event",
    "task",
    "observation",
)


@cached()
def _headings() -> _Headings:
    languages = all_languages()
    return _Headings(
        nameless=languages.words(lambda each: each.headings.nameless),
        people=languages.words(lambda each: each.headings.people),
        self=languages.words(lambda each: each.headings.self),
        about=languages.pattern(lambda each: each.headings.about, r"(?:{})\s+(?P<name>.+)\Z", flags=re.IGNORECASE),
        categories=tuple((category, _over(languages, category)) for category in _CATEGORIES),
    )


def _over(languages: LanguageSet, category: Category) -> frozenset[str]:
    return languages.words(lambda each: each.headings.categories.get(category, ()))


def fits(material: Material) -> bool:
    """Whether it is a markdown file by its name or its look, or a folder that holds one."""
    if material.is_folder:
        return any(name.lower().endswith(_SUFFIXES) for name in material.names)
    if material.is_database or material.is_archive or material.document is not None or material.lines.rows:
        return False
    text = material.own_text
    return material.path.name.lower().endswith(_SUFFIXES) or re.search(r"(?m)^(#{1,6} |[-*+] )\S", text) is not None


def read(material: Material, reader: Reader) -> Parsed:
    """All markdown files of a folder, in the order of their names; or the one file."""
    reading = _Reading(reader=reader)
    names = [name for name in material.names if name.lower().endswith(_SUFFIXES)]
    for name in names if material.is_folder else [None]:
        file = material.text(name)
        reading.file(file.name, file.text)
    return Parsed(
        format=NAME,
        people=tuple(reading.people.values()),
        facts=tuple(reading.facts.values()),
        refused=tuple(reading.refused),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What the headings above a block say of it."""

    about: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: Category | None = None
    at: str | None = None
    is_people: bool = False


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Gathers facts and the people headings name, file by file."""

    reader: Reader
    people: dict[str, Person] = field(default_factory=dict)
    facts: dict[str, Known] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    counts: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def file(self, name: str, text: str) -> None:
        start = self._of_file(name)
        places: list[tuple[int, _Place]] = [(0, start)]
        for block in outline(text):
            if isinstance(block, Heading):
                places = [each for each in places if each[0] < block.level]
                places.append((block.level, self._under(block, places[-1][1], f"{name} line {block.line}")))
            else:
                self._item(block, places[-1][1], f"{name} line {block.line}")

    def _of_file(self, name: str) -> _Place:
        """A file's name may hold a date, and that of a folder of people the name of one."""
        path = PurePosixPath(name)
        place = _Place(at=date_in(path.stem))
        if path.parent.name.lower() in _headings().people:
            return replace(place, is_people=True)
        return place

    def _under(self, heading: Heading, above: _Place, where: str) -> _Place:
        if isinstance(heading.said.get("name"), str):
            return replace(above, about=(self._told(heading.said, where),), is_people=False)
        at = date_in(heading.text)
        if at is not None:
            return replace(above, at=at)
        key = " ".join(heading.text.lower().removesuffix(".md").split()).strip(" :.")
        known = _headings()
        kind = next((category for category, words in known.categories if key in words), None)
        if key in known.people:
            return replace(above, is_people=True, category=kind or above.category)
        if kind is not None:
            return replace(above, category=kind)
        if key in known.nameless or (heading.level == 1 and not above.is_people and above.about == ()):
            return above if key in known.nameless else replace(above, tags=(*above.tags, *_tag(heading.text)))
        if name := self._person(heading.text, above, where):
            return replace(above, about=(name,), is_people=False)
        return replace(above, tags=tuple(dict.fromkeys((*above.tags, *_tag(heading.text)))))

    def _told(self, said: Mapping[str, Any], where: str) -> str:
        """Somebody or something as Ricordo wrote it down."""
        name, relation = str(said["name"]), said.get("relation")
        self.people[name] = Person(
            name=name,
            type=entity_type(said.get("type")),
            aliases=texts_of(said.get("aliases")),
            relation=str(relation) if relation else None,
            place=where,
        )
        return name

    def _person(self, text: str, above: _Place, where: str) -> str | None:
        """Whom a heading names: under "People", "Sarah (wife)" and the like; anywhere, "About Sarah"."""
        asked = _headings().about.match(text)
        if not asked and not above.is_people:
            return None
        found = _RELATED.match(asked["name"] if asked else text)
        if found is None or not name_key(found["name"]) or found["name"].lower() in _headings().self:
            return None
        said = found["relation"] or found["after"]
        relation = known_relation(said.lower().removeprefix("my ").strip()) if said else None
        person = Person(name=found["name"], relation=relation, place=where)
        before = self.people.setdefault(name_key(person.name), person)
        if before.relation is None and relation is not None:
            self.people[name_key(person.name)] = replace(before, relation=relation)
        return before.name

    def _item(self, item: Item, place: _Place, where: str) -> None:
        entry = entry_of(item)
        if not entry.text.strip() or not any(char.isalnum() for char in entry.text):
            return
        said = entry.said
        try:
            fact = Fact(
                content=entry.text,
                type=said.get("type", "semantic"),
                category="task" if entry.is_task else place.category,
                about=tuple(said.get("about", place.about)),
                tags=tuple(said.get("tags", place.tags)),
                confidence=said.get("confidence", 1.0),
                expires=said.get("expires"),
                valid_from=said.get("since"),
                attributes=said.get("attributes"),
                origin="import",
                id=self._id(entry.text, entry.at or place.at, place, said),
            )
            at = said.get("at") or entry.at or place.at
            self.facts[fact.id or ""] = Known(
                fact=fact,
                at=at,
                place=where,
                score=number_in(said.get("score"), -10.0, 10.0, otherwise=0.0),
                decay_rate=0.0 if said.get("confirmed") is True else None,
            )
        except (TypeError, ValueError) as error:
            self.refused.append(f"{where}: its comment cannot be read: {error}")

    def _id(self, text: str, at: str | None, place: _Place, said: dict[str, Any]) -> str:
        """By what it says, when, and about whom: files and headings may be put in order without making it another."""
        if isinstance(said.get("id"), str):
            return str(said["id"])  # it came from Ricordo
        told = (text, at, place.about)
        self.counts[told] += 1
        return self.reader.id_of(NAME, *told, self.counts[told])


def _tag(text: str) -> tuple[str, ...]:
    tag = " ".join(text.split()).strip(" :#").lower()[:_MOST_TAG]
    return (tag,) if tag and tag not in _headings().nameless else ()
