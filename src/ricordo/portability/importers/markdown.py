"""Memory kept as markdown: `MEMORY.md`, `memory/*.md`, or any file or folder of headings and bullets.

Source: docs.openclaw.ai, "Memory" (`MEMORY.md` for what lasts, `memory/YYYY-MM-DD.md` for each day), and "Migration" in
seed 003 of this project: each bullet or paragraph is a separate memory. Headings give its entity and category; a
date in the file name, in a heading or before a bullet gives its time. Markdown that Ricordo exported has comments with
the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, get_args

from ricordo.model import Category, Fact
from ricordo.portability.markdown_text import Heading, Item, date_in, entry_of, outline
from ricordo.portability.records import (
    Destination,
    ImportedFact,
    ImportedPerson,
    Records,
    clamped,
    entity_type,
    texts_of,
)
from ricordo.portability.sources import Source
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


@cached()
def _headings() -> _Headings:
    languages = all_languages()
    return _Headings(
        nameless=languages.words(lambda each: each.headings.nameless),
        people=languages.words(lambda each: each.headings.people),
        self=languages.words(lambda each: each.headings.self),
        about=languages.pattern(lambda each: each.headings.about, r"(?:{})\s+(?P<name>.+)\Z", flags=re.IGNORECASE),
        categories=tuple((category, _words(languages, category)) for category in get_args(Category)),
    )


def _words(languages: LanguageSet, category: Category) -> frozenset[str]:
    return languages.words(lambda each: each.headings.categories.get(category, ()))


def fits(source: Source) -> bool:
    """Return whether it is markdown, by name or by content, or a folder that contains some."""
    if source.is_folder:
        return any(name.lower().endswith(_SUFFIXES) for name in source.names)
    if source.is_database or source.is_archive or source.document is not None or source.lines.rows:
        return False
    text = source.own_text
    return source.path.name.lower().endswith(_SUFFIXES) or re.search(r"(?m)^(#{1,6} |[-*+] )\S", text) is not None


def read(source: Source, destination: Destination) -> Records:
    """Read all markdown files of a folder, in the order of their names, or a single file."""
    reading = _Reading(destination=destination)
    names = [name for name in source.names if name.lower().endswith(_SUFFIXES)]
    for name in names if source.is_folder else [None]:
        file = source.text(name)
        reading.file(file.name, file.text)
    return Records(
        format=NAME,
        people=tuple(reading.people.values()),
        facts=tuple(reading.facts.values()),
        refused=tuple(reading.refused),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """What the headings above a block say about it."""

    about: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    category: Category | None = None
    at: str | None = None
    is_people: bool = False


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Gathers facts, and the people that headings name, file by file."""

    destination: Destination
    people: dict[str, ImportedPerson] = field(default_factory=dict)
    facts: dict[str, ImportedFact] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    counts: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def file(self, name: str, text: str) -> None:
        start = self._of_file(name)
        places: list[tuple[int, _Section]] = [(0, start)]
        for block in outline(text):
            if isinstance(block, Heading):
                places = [each for each in places if each[0] < block.level]
                places.append((block.level, self._under(block, places[-1][1], f"{name} line {block.line}")))
            else:
                self._item(block, places[-1][1], f"{name} line {block.line}")

    def _of_file(self, name: str) -> _Section:
        """Return what the path says: a date in the file name, a folder of people."""
        path = PurePosixPath(name)
        place = _Section(at=date_in(path.stem))
        if path.parent.name.lower() in _headings().people:
            return replace(place, is_people=True)
        return place

    def _under(self, heading: Heading, above: _Section, where: str) -> _Section:
        if isinstance(heading.said.get("name"), str):
            return replace(above, about=(self._exported_entity(heading.said, where),), is_people=False)
        at = date_in(heading.text)
        if at is not None:
            return replace(above, at=at)
        key = " ".join(heading.text.lower().removesuffix(".md").split()).strip(" :.")
        kind = next((category for category, words in _headings().categories if key in words), None)
        if key in _headings().people:
            return replace(above, is_people=True, category=kind or above.category)
        if kind is not None:
            return replace(above, category=kind)
        if key in _headings().nameless:
            return above
        if heading.level == 1 and not above.is_people and above.about == ():
            return replace(above, tags=(*above.tags, *_tag(heading.text)))
        if name := self._person(heading.text, above, where):
            return replace(above, about=(name,), is_people=False)
        return replace(above, tags=tuple(dict.fromkeys((*above.tags, *_tag(heading.text)))))

    def _exported_entity(self, said: Mapping[str, Any], where: str) -> str:
        """Read an entity from the comment of an exported heading."""
        name, relation = str(said["name"]), said.get("relation")
        self.people[name] = ImportedPerson(
            name=name,
            type=entity_type(said.get("type")),
            aliases=texts_of(said.get("aliases")),
            relation=str(relation) if relation else None,
            place=where,
        )
        return name

    def _person(self, text: str, above: _Section, where: str) -> str | None:
        """Return the person a heading names: "Sarah (wife)" under "People", or "About Sarah" anywhere."""
        asked = _headings().about.match(text)
        if not asked and not above.is_people:
            return None
        found = _RELATED.match(asked["name"] if asked else text)
        if found is None or not name_key(found["name"]) or found["name"].lower() in _headings().self:
            return None
        said = found["relation"] or found["after"]
        relation = known_relation(said.lower().removeprefix("my ").strip()) if said else None
        person = ImportedPerson(name=found["name"], relation=relation, place=where)
        before = self.people.setdefault(name_key(person.name), person)
        if before.relation is None and relation is not None:
            self.people[name_key(person.name)] = replace(before, relation=relation)
        return before.name

    def _item(self, item: Item, place: _Section, where: str) -> None:
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
            self.facts[fact.id or ""] = ImportedFact(
                fact=fact,
                at=at,
                place=where,
                score=clamped(said.get("score"), -10.0, 10.0, otherwise=0.0),
                decay_rate=0.0 if said.get("confirmed") is True else None,
            )
        except (TypeError, ValueError) as error:
            self.refused.append(f"{where}: its comment cannot be read: {error}")

    def _id(self, text: str, at: str | None, place: _Section, said: dict[str, Any]) -> str:
        """Make an id from text, time and entities: moving a fact to another file or heading does not change it."""
        if isinstance(said.get("id"), str):
            return str(said["id"])  # Ricordo exported it
        key = (text, at, place.about)
        self.counts[key] += 1
        return self.destination.id_of(NAME, *key, self.counts[key])


def _tag(text: str) -> tuple[str, ...]:
    tag = " ".join(text.split()).strip(" :#").lower()[:_MOST_TAG]
    return (tag,) if tag and tag not in _headings().nameless else ()
